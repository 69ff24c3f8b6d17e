"""What a store could not take: kept in memory while there may be room again, and then in a second file."""

import base64
import json
import logging
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from basq.errors import InputError, StoreError
from basq.evaluation.call import Outcome
from basq.evaluation.place import StoreGoneError
from basq.evaluation.store import Store

ENDING = ".values"
"""Of a second file, which ``basq tell`` reads."""
ROOM = 60.0
"""Seconds to wait until a disk has room again."""
LOOK = 1.0
"""Seconds between two looks at whether it has."""

Rows = Sequence[tuple[int, Outcome]]


def write(store: Store, rows: Rows, act: Callable[[], None], impatient: Callable[[], bool]) -> None:
    """Write outcomes into a store by what is given; where it takes nothing, wait, and name a second file in the end."""
    end = time.monotonic() + ROOM
    waiting = False
    while True:
        try:
            act()
            return
        except StoreGoneError:  # there is nothing to wait for
            raise
        except StoreError as error:
            if store.path is None or impatient() or time.monotonic() >= end:
                raise _left(store, rows, error) from error
            if not waiting:
                logging.getLogger("basq").warning(
                    "%s %d outcomes are kept in memory; make room, they are waited with for %g s.",
                    error, len(rows), ROOM,
                )  # fmt: skip
            waiting = True
            time.sleep(LOOK)


def _left(store: Store, rows: Rows, error: StoreError) -> StoreError:
    """The error of a store that takes nothing, which names where the rows are."""
    if store.path is None:
        return error
    try:
        path = _saved(store.path, rows)
    except OSError as other:
        return StoreError(f"{error} Nor could a second file be written: {other}.")
    return StoreError(
        f"{error} {len(rows)} outcomes that it could not take are in {path}: when there is room, "
        f"basq tell {store.path} {path}."
    )


def _saved(store: Path, rows: Rows) -> Path:
    """Write rows into a new file of text, in the directory for such files: that of the store has no room."""
    number, name = tempfile.mkstemp(prefix=f"{store.stem}-", suffix=ENDING)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        json.dump([{"id": i} | _plain(outcome) for i, outcome in rows], file)
        file.flush()
        os.fsync(file.fileno())
    return Path(name)


def _plain(outcome: Outcome) -> dict[str, Any]:
    blob = outcome.output
    return asdict(outcome) | {"output": None if blob is None else base64.b64encode(blob).decode()}


def read(path: Path) -> list[tuple[int, Outcome]]:
    """The rows of a second file."""
    known = {field.name for field in fields(Outcome)}
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [(int(row.pop("id")), _outcome({k: v for k, v in row.items() if k in known})) for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is no file of values that a store could not take ({error}).") from error


def _outcome(row: dict[str, Any]) -> Outcome:
    blob = row.get("output")
    return Outcome(**row | {"output": None if blob is None else base64.b64decode(blob)})


def copied(store: Store, rows: Rows) -> Path:
    """Copy what an open store holds whose file is gone, with rows that have come since, beside where it was."""
    assert store.path is not None
    number, name = tempfile.mkstemp(prefix=f"{store.path.stem}-", suffix=".sqlite", dir=store.path.absolute().parent)
    os.close(number)
    with closing(sqlite3.connect(name)) as target:
        store.copy(target)
    with Store(name) as copy:
        copy.finish(rows)
    return Path(name)
