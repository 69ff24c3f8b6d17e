"""Where a store lies: a file that can be made, and that stays the same file while it is written."""

import os
from pathlib import Path

from basq.errors import StoreError


class StoreGoneError(StoreError):
    """The file of a store was deleted, moved or replaced while it was open."""


def as_file(path: str | os.PathLike[str] | None) -> Path | None:
    """The file of a store; None for one in memory."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise StoreError(f"store={path!r}: give the name of a file, or None.")
    file = Path(path)
    if str(path).startswith((":memory:", "file:")):  # which SQLite would not write to a file of that name
        raise StoreError(f"store={str(path)!r}: give the name of a file; without store, the calls stay in memory.")
    if not file.parent.is_dir():
        raise StoreError(f"store={str(path)!r}: the directory {file.parent} does not exist.")
    return file


class Place:
    """The file at a path, as it was when it was first seen.

    Parameters
    ----------
    path : Path or None
    """

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else path.absolute()
        self._known: tuple[int, int] | None = None

    def check(self) -> None:
        """Raise if another file is there by now, or none: SQLite would go on writing what nobody can open."""
        if self._path is None:
            return
        try:
            found = os.stat(self._path)
            here = found.st_dev, found.st_ino
        except FileNotFoundError:
            here = None
        if self._known is None:
            self._known = here
        elif here != self._known:
            what = "deleted or moved" if here is None else "replaced by another file"
            raise StoreGoneError(f"The store {str(self._path)!r} was {what} while the run was using it.")
