"""Files that a command writes at its end: looked at before anything is spent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from basq.errors import BasqError, InputError


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it, or name another file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{path} must not be written here; name another file.")


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """Say what was written; a disk that is full by now is no wrong use of the command."""
    try:
        yield
    except OSError as error:
        raise BasqError(f"{path} could not be written: {error}.") from error
    print(f"{what}: {path}")
