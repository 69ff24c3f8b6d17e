"""One object in one file: written whole or not at all, recognised when read."""

import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

from basq.errors import InputError
from basq.report.target import DATABASE, SAVED, spare, writable
from basq.version import __version__

FORMAT = 2
"""Raised when versions of basq before and after could not read what the other one writes."""


def write(path: Path, content: Any) -> None:
    """Write an object; the file appears, or replaces an older one, only when all of it is on the disk."""
    writable(path, "save", "result.basq")
    spare(path, saves=True)
    blob = _pack(content)
    about = {"format": FORMAT, "basq": __version__, "sha256": hashlib.sha256(blob).hexdigest()}
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(SAVED + json.dumps(about).encode() + b"\n" + blob)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _pack(content: Any) -> bytes:
    import cloudpickle  # and not pickle: a prior may hold lambdas, or functions of a notebook

    try:
        blob: bytes = cloudpickle.dumps(content)
    except Exception as error:
        raise InputError(
            f"The result cannot be written into a file ({type(error).__name__}: {error}). "
            "Open files, locks and connections inside the functions of the prior."
        ) from error
    return blob


def read(path: Path) -> Any:
    """Read what `write` has written."""
    with path.open("rb") as file:
        if file.read(len(SAVED)) != SAVED:
            raise InputError(f"{path} is not a file of Result.save{_guess(path)}.")
        head, blob = file.readline(), file.read()
    try:
        about = json.loads(head)
        format_, version, digest = int(about["format"]), about["basq"], about["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: its second line cannot be read.") from error
    if format_ != FORMAT:
        age = "old" if format_ > FORMAT else "new"
        raise InputError(f"{path} was written by basq {version}, in a format that basq {__version__} is too {age} for.")
    if hashlib.sha256(blob).hexdigest() != digest:
        raise InputError(f"{path} is damaged: it does not hold what was written. Copy it again.")
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
