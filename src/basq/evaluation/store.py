"""The store: every call of a run in an SQLite file, durable the moment it has finished.

It knows rows, not models: what was asked, what became of it, and which calls each step of the run learned from. A run
without a file keeps its store in memory.
"""

import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from basq.errors import StoreError, StoreInUseError
from basq.evaluation import snapshot
from basq.evaluation.call import Outcome
from basq.evaluation.calls import Calls
from basq.evaluation.lock import Lock
from basq.evaluation.place import Place, as_file
from basq.evaluation.prepare import prepare
from basq.observations import Failure
from basq.types import BoolArray, FloatArray, IntArray

GIVEN = "given"
"""The worker of values that the user had already."""
SHARED = "shared"
"""The worker of calls whose output was simulated for a rival."""
PATIENCE = 60.0
"""Seconds to wait for another process that is writing."""
APART = -1
"""The step of calls that no step is to learn from: they test what was learned."""


class Store:
    """Calls of one run.

    Parameters
    ----------
    path : path or None
        SQLite file, made if it does not exist; None keeps everything in memory.
    n_dim : int, optional
        Number of parameters; needed to make a new file.
    """

    def __init__(self, path: str | os.PathLike[str] | None, n_dim: int | None = None) -> None:
        self.path = as_file(path)
        self.place = Place(self.path)
        if n_dim is None and (self.path is None or not self.path.exists()):
            raise StoreError(f"There is no store {str(path)!r}.")
        self._one = threading.RLock()  # values may be told from other threads
        self._lock = Lock(self.path)
        try:
            self._connection = sqlite3.connect(
                self.path or ":memory:", isolation_level=None, timeout=PATIENCE, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise StoreError(f"{self} cannot be opened: {error}. Give the name of a file that can be made.") from error
        weakref.finalize(self, self._connection.close)  # whoever drops a store or a sampler need not close it
        try:
            prepare(self, self._connection, n_dim)
        except StoreError:
            self.close()
            raise
        self.n_dim: int = self.get("n_dim")

    def __str__(self) -> str:
        return f"The store {str(self.path)!r}" if self.path else "The store in memory"

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and durable at the end; one inside another is part of it."""
        with self._one:
            inside = self._connection.in_transaction
            if inside:
                yield
                return
            self.place.check()
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:  # SQLite may have given it up itself
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StoreError(f"{self} cannot be written: {error}.") from error

    @contextmanager
    def driving(self, patience: float = 0.0) -> Iterator[None]:
        """Be the only one who chooses and evaluates calls; others may read and tell meanwhile.

        Parameters
        ----------
        patience : float
            Seconds to wait for another one.
        """
        with self._lock.held(patience) as held:
            if not held:
                raise StoreInUseError(f"{self} is in use: another process chooses or evaluates its calls.")
            yield

    @property
    def driven(self) -> bool:
        """Whether somebody is `driving`."""
        return self._lock.taken

    def copy(self, target: sqlite3.Connection) -> None:
        """Copy everything into another database."""
        with self._one:
            self._connection.backup(target)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Write whole rows, as they were in another store."""
        marks = ", ".join("?" * len(columns))
        with self.transaction():
            self._connection.executemany(
                f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows
            )

    # --- what does not change during a run ----------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """A setting, or None."""
        for (value,) in self._read("SELECT value FROM meta WHERE key = ?", (key,)):
            return value if isinstance(value, bytes) else json.loads(value)
        return None

    def set(self, **settings: Any) -> None:
        """Write settings, bytes or JSON."""
        with self.transaction():
            for key, value in settings.items():
                self._set(key, value)

    def _set(self, key: str, value: Any) -> None:
        text = value if isinstance(value, bytes) else json.dumps(value)
        self._connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, text))

    def drop(self, key: str) -> None:
        """Forget a setting."""
        with self.transaction():
            self._connection.execute("DELETE FROM meta WHERE key = ?", (key,))

    # --- calls --------------------------------------------------------------------------------------------------------

    def add(self, x: FloatArray, u: FloatArray, explores: BoolArray | bool, batch: int) -> IntArray:
        """Write calls that are to be made, before they are: their ids, (n,)."""
        flags = np.broadcast_to(explores, len(x))
        with self.transaction():
            first, _ = self.extent()
            self._connection.executemany(
                "INSERT INTO calls (id, batch, explores, x, u, state, attempt) VALUES (?, ?, ?, ?, ?, 'pending', 0)",
                [
                    (first + i, batch, int(flags[i]), x[i].astype("<f8").tobytes(), u[i].astype("<f8").tobytes())
                    for i in range(len(x))
                ],
            )
        return first + np.arange(len(x))

    def give(self, x: FloatArray, u: FloatArray, log_likelihood: FloatArray, noise: FloatArray) -> None:
        """Write values (n,) that the user has already as finished calls, a batch of their own."""
        values = zip(map(float, log_likelihood), map(float, noise), strict=True)
        self.take(x, u, [Outcome(value, sd, worker=GIVEN) for value, sd in values])

    def take(
        self, x: FloatArray, u: FloatArray, outcomes: Sequence[Outcome], explores: BoolArray | bool = False
    ) -> None:
        """Write calls that were made elsewhere, and what became of them, as a batch of their own."""
        if len(x):
            with self.transaction():
                ids = self.add(x, u, explores, self.extent()[1])
                self.finish(list(zip(map(int, ids), outcomes, strict=True)))

    def finish(self, outcomes: Sequence[tuple[int, Outcome]]) -> None:
        """Write what became of calls; an outcome is final."""
        self._update(outcomes, lambda outcome: "failed" if outcome.log_likelihood is None else "done")

    def retry(self, outcomes: Sequence[tuple[int, Outcome]]) -> None:
        """Write failed attempts of calls that will be tried again."""
        self._update(outcomes, lambda _: "pending")

    def _update(self, outcomes: Sequence[tuple[int, Outcome]], state: Callable[[Outcome], str]) -> None:
        rows = [
            (
                state(o), o.log_likelihood, o.noise, o.extra, o.error, o.traceback, o.worker, o.seconds, time.time(), i,
            )
            for i, o in outcomes
        ]  # fmt: skip
        with self.transaction():
            self._connection.executemany(
                "UPDATE calls SET state = ?, log_likelihood = ?, noise = ?, extra = ?, error = coalesce(?, error), "
                "traceback = coalesce(?, traceback), worker = ?, seconds = ?, finished = ?, attempt = attempt + 1 "
                "WHERE id = ? AND state = 'pending'",
                rows,
            )
            outputs = [(i, o.output) for i, o in outcomes if o.output is not None]
            self._connection.executemany("INSERT OR REPLACE INTO outputs (id, output) VALUES (?, ?)", outputs)

    def begin_again(self, *, simulate: bool) -> None:
        """Forget what was learned, and make failed calls pending again; with ``simulate``, outputs are forgotten."""
        with self.transaction():
            if simulate:
                self._connection.execute("DELETE FROM outputs")
            self._connection.execute("UPDATE calls SET state = 'pending' WHERE state = 'failed'")
            self._connection.execute("UPDATE calls SET step = NULL")
            self._connection.execute("DELETE FROM steps")
            snapshot.forget(self._connection)

    def pending(self) -> Calls:
        """Calls that have no outcome yet."""
        return self._select("step IS NULL AND state = 'pending'")

    def news(self) -> Calls:
        """Finished calls that no step has learned from."""
        return self._select("step IS NULL AND state != 'pending'")

    def waiting(self) -> Calls:
        """All calls that have no outcome yet, those apart too."""
        return self._select("state = 'pending'")

    def set_apart(self, ids: IntArray) -> None:
        """Keep calls from being learned from."""
        with self.transaction():
            self._connection.executemany(f"UPDATE calls SET step = {APART} WHERE id = ?", [(int(i),) for i in ids])

    def forget(self) -> None:
        """Forget the calls apart that have no outcome yet."""
        with self.transaction():
            self._connection.execute(f"DELETE FROM calls WHERE step = {APART} AND state = 'pending'")

    def take_in(self) -> None:
        """Make the calls apart calls of the run, which it learns from; forget what they were for."""
        with self.transaction():
            self._connection.execute(f"UPDATE calls SET step = NULL WHERE step = {APART}")
            self._connection.execute("DELETE FROM meta WHERE key = 'certificate'")

    def refuse(self) -> None:
        """Take back the calls apart, whose values are not those of the run."""
        with self.transaction():
            self._connection.execute(f"DELETE FROM calls WHERE step = {APART}")
            self._connection.execute("DELETE FROM outputs WHERE id NOT IN (SELECT id FROM calls)")
            self._connection.execute("DELETE FROM meta WHERE key = 'certificate'")

    def done(self) -> Calls:
        """Calls that have a value."""
        return self._select("state = 'done'")

    @property
    def n_calls(self) -> int:
        """How many calls there are."""
        return int(self._read("SELECT count(*) FROM calls")[0][0])

    def extent(self) -> tuple[int, int]:
        """The id of the next call, and the number of the next batch."""
        ((last, batch),) = self._read("SELECT max(id), max(batch) FROM calls")
        return (0, 0) if last is None else (last + 1, batch + 1)

    def of(self, ids: Sequence[int]) -> Calls:
        """The calls with these ids that exist."""
        return self._select(f"id IN ({','.join(str(int(i)) for i in ids)})")

    def _select(self, where: str) -> Calls:
        rows = self._read(
            f"SELECT id, batch, explores, log_likelihood, noise, x, u FROM calls WHERE {where} ORDER BY id"
        )
        table = np.empty((len(rows), 5 + 2 * self.n_dim))
        for i, row in enumerate(rows):
            table[i, :5] = [np.nan if value is None else value for value in row[:5]]
            table[i, 5:] = np.frombuffer(row[5] + row[6], dtype="<f8")
        return Calls(table)

    def outputs(self, ids: IntArray) -> list[bytes | None]:
        """What simulators gave at the calls with these ids (n,), packed; None where there is nothing."""
        rows = [self._read("SELECT output FROM outputs WHERE id = ?", (int(i),)) for i in ids]
        return [row[0][0] if row else None for row in rows]

    def with_outputs(self) -> Calls:
        """Calls of which a simulator's output is there."""
        return self._select("id IN (SELECT id FROM outputs)")

    @property
    def n_shared(self) -> int:
        """Calls that were simulated for a rival."""
        return int(self._read(f"SELECT count(*) FROM calls WHERE worker = '{SHARED}'")[0][0])

    def counts(self) -> dict[str, int]:
        """How many calls are pending, done and failed."""
        found = dict(self._read("SELECT state, count(*) FROM calls GROUP BY state"))
        return {state: found.get(state, 0) for state in ("done", "failed", "pending")}

    def times(self) -> tuple[float | None, float | None, float]:
        """When the first call began and the last one ended (seconds since 1970), and the seconds of all together."""
        ((first, last, total),) = self._read(
            "SELECT min(finished - coalesce(seconds, 0)), max(finished), total(seconds) FROM calls"
        )
        return first, last, total

    def rows(self) -> list[dict[str, Any]]:
        """Everything known about every call, as dicts."""
        return self._rows("1 ORDER BY id")

    def failures(self) -> tuple[Failure, ...]:
        """The calls that have failed for good."""
        return tuple(map(_failure, self._rows("state = 'failed' ORDER BY id")))

    def last_failure(self) -> Failure | None:
        """The last of them; None if there is none."""
        found = self._rows("state = 'failed' ORDER BY id DESC LIMIT 1")
        return _failure(found[0]) if found else None

    def has_own_values(self) -> bool:
        """Whether a call of this run has a value, rather than the user before it."""
        return bool(self._rows(f"state = 'done' AND worker IS NOT '{GIVEN}' LIMIT 1"))

    def _rows(self, where: str) -> list[dict[str, Any]]:
        columns = [name for (name,) in self._read("SELECT name FROM pragma_table_info('calls')")]
        rows = self._read(f"SELECT * FROM calls WHERE {where}")
        return [_readable(dict(zip(columns, row, strict=True))) for row in rows]

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows, for one thread at a time.

        SQLite holds a lock of its own while a thread that writes has Python compute checksums; one that came to read
        would wait for it with Python's, for ever.
        """
        with self._one:
            return self._connection.execute(query, values).fetchall()

    # --- steps --------------------------------------------------------------------------------------------------------

    def learned(self, step: int, calls: Calls, record: dict[str, Any]) -> None:
        """Write that a step of the run has learned from these calls, and what came out."""
        with self.transaction():
            try:
                self._connection.execute(
                    "INSERT INTO steps (step, calls, record) VALUES (?, ?, ?)",
                    (step, calls.table.astype("<f8").tobytes(), json.dumps(record, default=float)),
                )
            except sqlite3.IntegrityError as error:
                raise StoreError(f"{self} was changed by another process meanwhile; open it again.") from error
            self._connection.executemany("UPDATE calls SET step = ? WHERE id = ?", [(step, int(i)) for i in calls.ids])

    def steps(self, first: int = 0) -> list[tuple[Calls, dict[str, Any]]]:
        """What every step from this one on learned from and what came out, in order."""
        found = self._read("SELECT calls, record FROM steps WHERE step >= ? ORDER BY step", (first,))
        records = json.loads(f"[{','.join(record for _, record in found)}]")
        width = 5 + 2 * self.n_dim
        tables = [np.frombuffer(blob, dtype="<f8").reshape(-1, width) for blob, _ in found]
        return [(Calls(table), record) for table, record in zip(tables, records, strict=True)]

    def keep(self, n_steps: int, blob: bytes) -> None:
        """Keep what is known after so many steps, in the place of what was known before."""
        with self.transaction():
            snapshot.write(self._connection, n_steps, blob)

    def kept(self) -> tuple[int, bytes] | None:
        """What was kept last, and after how many steps."""
        with self._one:
            return snapshot.read(self._connection)

    def last_record(self) -> dict[str, Any] | None:
        """What came out of the last step that had a value to learn from; None if there is none."""
        found = self._read("SELECT record FROM steps WHERE record != '{}' ORDER BY step DESC LIMIT 1")
        return json.loads(found[0][0]) if found else None


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """Decode the columns that are not plain numbers or text."""
    for key in ("x", "u"):
        row[key] = np.frombuffer(row[key], dtype="<f8")
    row["extra"] = json.loads(row["extra"]) if row["extra"] else None
    return row


def _failure(row: dict[str, Any]) -> Failure:
    return Failure(row["id"], row["x"], row["error"], row["traceback"], row["attempt"])
