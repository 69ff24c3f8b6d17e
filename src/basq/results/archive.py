"""One object in one file: written whole or not at all, recognised when read."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from basq.errors import InputError
from basq.plain import NotPlainError, pack, unpack
from basq.report.target import DATABASE, SAVED, spare, writable
from basq.version import __version__

FORMAT = 3
"""Raised when versions of basq before and after could not read what the other one writes."""
PICKLED = 2
"""The last format that held pickled objects, which can run any code when they are read."""


def write(path: Path, content: Any) -> None:
    """Write known objects as plain data; the file appears, or replaces an older one, only when it is on the disk."""
    writable(path, "save", "result.basq")
    spare(path, saves=True)
    blob = pack(content, strict=False)
    about = {"format": FORMAT, "basq": __version__, "sha256": hashlib.sha256(blob).hexdigest()}
    with _draft(path) as draft:
        with draft.open("wb") as file:
            file.write(SAVED + json.dumps(about).encode() + b"\n" + blob)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """A new file beside one, under a name that nobody else can know or has prepared; it is gone afterwards."""
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # not through a link, nor over a file
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def read(path: Path, *, allow_pickle: bool = False) -> Any:
    """Read what `write` has written; what basq wrote before it had plain data only with ``allow_pickle``."""
    with path.open("rb") as file:
        if file.read(len(SAVED)) != SAVED:
            raise InputError(f"{path} is not a file of Result.save{_guess(path)}.")
        head, blob = file.readline(), file.read()
    try:
        about = json.loads(head)
        format_, version, digest = int(about["format"]), str(about["basq"]), about["sha256"]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged: its second line cannot be read.") from error
    if format_ not in (FORMAT, PICKLED):
        age = "old" if format_ > FORMAT else "new"
        raise InputError(f"{path} was written by basq {version}, in a format that basq {__version__} is too {age} for.")
    if hashlib.sha256(blob).hexdigest() != digest:
        raise InputError(f"{path} is damaged: it does not hold what was written. Copy it again.")
    if format_ == PICKLED:
        return _unpickled(path, blob, version, allow_pickle=allow_pickle)
    try:
        return unpack(blob)
    except NotPlainError as error:
        raise InputError(
            f"{path}, written by basq {version}, cannot be read by basq {__version__}: {error}."
        ) from error


def _unpickled(path: Path, blob: bytes, version: str, *, allow_pickle: bool) -> Any:
    """An object of a file as it was written before."""
    import pickle

    if not allow_pickle:
        raise InputError(
            f"{path} was written by an older basq ({version}), as pickled objects, which can run any code when they "
            "are read. If you trust whoever made it: Result.load(path, allow_pickle=True), and save it again."
        )
    try:
        return pickle.loads(blob)
    except Exception as error:
        raise InputError(
            f"{path}, written by basq {version}, cannot be read by basq {__version__} here "
            f"({type(error).__name__}: {error}). The modules with the prior's functions have to be importable."
        ) from error


def _guess(path: Path) -> str:
    """What else the file may be."""
    with path.open("rb") as file:
        store = file.read(len(DATABASE)) == DATABASE
    return f"; if it is a store, basq.Sampler.open({str(path)!r}).result() reads it" if store else ""
