"""Where an output may be written: over what can be made again, and over nothing else."""

import os
from collections.abc import Iterable
from pathlib import Path

from basq.errors import InputError

SAVED = b"basq result\n"
"""First line of a file of ``Result.save``; a line of JSON and plain data follow."""
DATABASE = b"SQLite format 3\0"
APPLICATION_AT = 68
"""Where an SQLite file says whose it is, in four bytes."""
STORE = b"basq"
"""What a store says there; a command that is only asked for help needs no SQLite for it."""
BESIDE = ("-journal", "-wal", "-shm", ".lock")
"""What the names of files end in that belong to a database: the first two may hold what is not in it yet."""
CODE = (".py", ".ipynb")


def writable(path: Path, verb: str, example: str) -> None:
    """Refuse a path at which no file can be written, for the one who has called a method of this name."""
    given = f"{verb}({str(path)!r})"
    if not path.parent.is_dir():
        raise InputError(f"{given}: there is no directory {str(path.parent)!r}; make it, or name another.")
    if path.is_dir():
        raise InputError(f"{given}: this is a directory; give the name of a file, such as {example!r}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{given}: this file may not be written; name one that may.")


def spare(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = (), *, saves: bool = False) -> None:
    """Refuse to write an output over what could not be made again.

    Parameters
    ----------
    path : path
        Of the output. What is no regular file, as a terminal, loses nothing.
    inputs : paths
        What the same command reads or makes besides, there already or not.
    saves : bool
        The output is a saved result, which may replace an older one.
    """
    target = Path(path)
    if any(_same(target, Path(other)) for other in inputs):
        _refuse(target, "which this command reads or makes")
    base = _base(target)
    if base is not None and (_is_database(base) or any(_same(base, Path(other)) for other in inputs)):
        _refuse(target, f"which belongs to the store or database {base.name}")
    what = _what(target)
    if what is not None and not (saves and what == "a saved result"):
        _refuse(target, f"which is {what}")


def _refuse(path: Path, why: str) -> None:
    raise InputError(
        f"The output would be written over {path}, {why}; nothing was written. Name another file for the output."
    )


def _same(one: Path, other: Path) -> bool:
    """Whether two names mean one file, by links too; a file that is not there yet is its place."""
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()


def _base(path: Path) -> Path | None:
    """The database that a file of this name would belong to."""
    ends = [end for end in BESIDE if path.name.endswith(end) and path.name != end]
    return path.with_name(path.name.removesuffix(ends[0])) if ends else None


def _what(path: Path) -> str | None:
    """What there is to lose; None if nothing."""
    if not path.is_file():
        return None
    if path.resolve().suffix in CODE:
        return "code"
    head = _head(path)
    if head.startswith(DATABASE):
        return "a store of basq" if head[APPLICATION_AT:] == STORE else "an SQLite database"
    return "a saved result" if head.startswith(SAVED) else None


def _is_database(path: Path) -> bool:
    return path.is_file() and _head(path).startswith(DATABASE)


def _head(path: Path) -> bytes:
    """The first bytes of a file, as far as whose database it is."""
    try:
        with path.open("rb") as file:
            return file.read(APPLICATION_AT + len(STORE))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error}), so nobody knows what an output would destroy there. "
            "Name another file for the output."
        ) from error
