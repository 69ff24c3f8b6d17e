"""What can be saved of a damaged store: every row that still is as it was written."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from basq.errors import StoreError
from basq.evaluation.carve import rows as carved
from basq.evaluation.seals import SEALED, seal
from basq.evaluation.store import APART, Store

REAL = frozenset({"log_likelihood", "noise", "seconds", "finished"})
"""Columns of fractions, which SQLite writes as whole numbers where they are such."""
ORDER = {"pending": 0, "failed": 1, "done": 2}

Row = tuple[Any, ...]


@dataclass
class Saved:
    """The rows of a store, by table and key, without their seals."""

    meta: dict[str, Row] = field(default_factory=dict)
    calls: dict[int, Row] = field(default_factory=dict)
    outputs: dict[int, Row] = field(default_factory=dict)
    steps: dict[int, Row] = field(default_factory=dict)

    def add(self, table: str, row: Row) -> None:
        """Add a row, unless a later state of it is there."""
        own = getattr(self, table)
        old = own.get(row[0])
        if old is None or (table == "calls" and _age(row) > _age(old)):
            own[row[0]] = row

    @property
    def n_asked(self) -> int:
        """How many calls there were, as far as can be seen."""
        return max([-1, *self.calls, *self.outputs]) + 1


def _age(call: Row) -> tuple[int, int, bool]:
    """How far a call had come."""
    named = dict(zip(SEALED["calls"], call, strict=True))
    return ORDER.get(named["state"], -1), named["attempt"], named["step"] is not None


def salvage(path: Path) -> Saved:
    """Every row of a file that fits its seal: through its tables as far as they go, then page by page."""
    saved = Saved()
    whole = [_read(path, table, saved) for table in SEALED]
    if not all(whole):
        for row_id, values in carved(path.read_bytes()):
            for table in SEALED:
                row = _sealed(table, row_id, values)
                # calls that were taken back may still stand in pages that are free again
                if row is not None and not (table == "calls" and row[-1] == APART):
                    saved.add(table, row)
    return saved


def _read(path: Path, table: str, saved: Saved) -> bool:
    """Take the rows of a table as SQLite gives them; whether that was all."""
    columns, found = ", ".join(SEALED[table]), []
    address = f"{path.absolute().as_uri()}?mode=ro"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as connection:
        if table not in {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}:
            return table == "outputs"  # which the oldest stores did not have
        has_seals = "seal" in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        try:
            for row in connection.execute(f"SELECT {columns}{', seal' if has_seals else ''} FROM {table}"):
                found.append(not has_seals or row[-1] == seal(table, *row[:-1]))
                if found[-1]:
                    saved.add(table, row[:-1] if has_seals else row)
        except (sqlite3.Error, UnicodeDecodeError):
            return False
        return all(found)
    return False


def _sealed(table: str, row_id: int, values: Row) -> Row | None:
    """A row found in a page, if it is one of this table, and whole."""
    columns = SEALED[table]
    if len(values) != len(columns) + 1:
        return None
    first = values[0] if table == "meta" else row_id  # a key that is a number is the row's id
    rest = zip(columns[1:], values[1:-1], strict=True)
    row = (first, *(float(v) if name in REAL and isinstance(v, int) else v for name, v in rest))
    return row if values[-1] == seal(table, *row) else None


def rebuild(saved: Saved, path: Path) -> Store:
    """Write what was saved into a new store."""
    if not saved.calls and not saved.steps:
        raise StoreError("Nothing of the store can be saved: no call in it is as it was written.")
    steps = list(_first_steps(saved))
    _restore_calls(saved, steps)
    width = len(next(iter(saved.calls.values()))[3])
    store = Store(path, width // 8)
    with store.transaction():
        for table, rows in (("meta", saved.meta), ("calls", _unlearned(saved, len(steps))), ("outputs", saved.outputs)):
            store.insert(table, SEALED[table], list(rows.values()))
        store.insert("steps", SEALED["steps"], steps)
    return store


def _first_steps(saved: Saved) -> Iterator[Row]:
    """The steps up to the first one that is lost: a run goes on from there."""
    step = 0
    while step in saved.steps:
        yield saved.steps[step]
        step += 1


def _restore_calls(saved: Saved, steps: list[Row]) -> None:
    """Take calls that are lost from the steps that have learned from them."""
    for step, blob, _ in steps:
        n_dim = _width(saved, blob, steps)
        for row in np.frombuffer(blob, dtype="<f8").reshape(-1, 5 + 2 * n_dim):
            number, batch, explores, value, noise = row[:5]
            done = not np.isnan(value)
            x, u = row[5 : 5 + n_dim].astype("<f8").tobytes(), row[5 + n_dim :].astype("<f8").tobytes()
            if int(number) not in saved.calls:
                saved.calls[int(number)] = (
                    int(number), int(batch), int(explores), x, u, "done" if done else "failed",
                    float(value) if done else None, None if np.isnan(noise) else float(noise), None, 1,
                    None if done else "its record was lost", None, None, None, None, step,
                )  # fmt: skip


def _width(saved: Saved, blob: bytes, steps: list[Row]) -> int:
    """Number of parameters."""
    if saved.calls:
        return len(next(iter(saved.calls.values()))[3]) // 8
    n_dim = saved.meta.get("n_dim")
    if n_dim is None:
        raise StoreError(f"Of the store only {len(steps)} steps can be read, and not how many parameters it has.")
    return int(n_dim[1])


def _unlearned(saved: Saved, n_steps: int) -> dict[int, Row]:
    """The calls, those of steps that are lost as news."""
    return {key: row if row[-1] is None or row[-1] < n_steps else (*row[:-1], None) for key, row in saved.calls.items()}
