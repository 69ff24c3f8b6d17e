"""From pending calls to finished ones: a pool, retries, the store, and what to do about failures."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from basq.errors import EvaluationError
from basq.evaluation.call import Outcome
from basq.evaluation.processes import Processes
from basq.evaluation.store import Store
from basq.evaluation.task import Answer, Pool, Task
from basq.types import FloatArray, IntArray

LOST_RETRIES = 1
"""Least number of times that a call whose worker died is tried again: it may have died of something else."""
ALL_FAILED = 16
"""Failed calls without a single success after which a run gives up."""
LOGGER = logging.getLogger("basq")
LOGGER.addHandler(logging.NullHandler())  # silent until somebody sets up logging
POLL = 0.5
"""Seconds between two looks at whether the user has interrupted."""


class Pending(Protocol):
    """Calls to be made: ids (n,) and points (n, d)."""

    @property
    def ids(self) -> IntArray: ...

    @property
    def x(self) -> FloatArray: ...

    def __len__(self) -> int: ...


class Journal:
    """Writes values where they arrive, in the thread of the pool: on disk also while the driver thinks.

    The driver writes them again, which changes nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: Store | None = None  # a connection of the thread's own

    def __call__(self, task: Task, outcomes: list[Outcome]) -> None:
        done = [(i, o) for i, o in zip(task.ids, outcomes, strict=True) if o.log_likelihood is not None]
        if done:
            self._store = self._store or Store(self._path)
            self._store.finish(done)


class Evaluator:
    """Has the calls of a store evaluated by a pool, and writes what becomes of them.

    Parameters
    ----------
    pool : Pool
    store : Store
    vectorized : bool
        Calls go together, one group for each worker.
    retries : int
        How often a failed call is tried again.
    raises : bool
        Whether a failed call ends the run.
    interrupted : callable
        Whether the user wants to stop.

    Attributes
    ----------
    interrupted : callable
    finished : callable
        Told how many calls have just ended; by default nobody is.
    """

    def __init__(
        self,
        pool: Pool,
        store: Store,
        *,
        vectorized: bool,
        retries: int,
        raises: bool,
        interrupted: Callable[[], bool],
    ) -> None:
        self._pool, self._store = pool, store
        self._names = tuple(store.get("names") or ())
        if isinstance(pool, Processes) and store.path is not None:
            pool.journal = Journal(store.path)
        self._vectorized, self._retries, self._raises = vectorized, retries, raises
        self.interrupted = interrupted
        self.finished: Callable[[int], None] = lambda _: None
        self._attempts: dict[int, int] = {}
        self._any_done = store.counts()["done"] > 0
        self._n_failed = 0
        self._stopping = False

    @property
    def outstanding(self) -> int:
        """Calls under way."""
        return len(self._attempts)

    @property
    def n_workers(self) -> int:
        return self._pool.n_workers

    def start(self, calls: Pending) -> None:
        """Hand calls to the pool."""
        self._attempts |= dict.fromkeys(map(int, calls.ids), 0)
        if self._vectorized and len(calls):
            for rows in np.array_split(np.arange(len(calls)), min(self._pool.n_workers, len(calls))):
                self._pool.submit(Task(tuple(map(int, calls.ids[rows])), calls.x[rows], self._names))
        else:
            for i, x in zip(calls.ids, calls.x, strict=True):
                self._pool.submit(Task((int(i),), x[None], self._names))

    def finish(self, leave: int = 0) -> bool:
        """Wait until at most so many calls are under way, each written to the store when it comes in.

        Returns
        -------
        bool
            False if the user has interrupted; the calls that were running have come in then, the others are pending.
        """
        while self.outstanding > (0 if self.interrupted() else leave):
            if not self.wait(POLL):
                break
        return not self.interrupted()

    def wait(self, seconds: float) -> bool:
        """Take in what comes within so many seconds; False if the interrupt has ended the workers, too."""
        if self.interrupted() and not self._stopping:
            self._stopping = True
            self._withdraw()
        try:
            self._take(self._pool.collect(seconds))
        except EvaluationError:
            if not self.interrupted() or self._raises:
                raise
            return False  # the calls of these workers stay pending
        return True

    def poll(self) -> int:
        """Take in what is there without waiting: the number of calls."""
        before = self.outstanding
        while not self.interrupted() and (answers := self._pool.collect(0.0)):
            self._take(answers)
        return before - self.outstanding

    def salvage(self) -> None:
        """Take in what has finished meanwhile, before the workers go; nothing is begun or tried again."""
        self._stopping = True
        self._withdraw()
        with contextlib.suppress(EvaluationError):
            while answers := self._pool.collect(0.0):
                self._take(answers)

    def _withdraw(self) -> None:
        """Take back the calls that no worker has begun."""
        for task in self._pool.cancel():
            for i in task.ids:
                self._attempts.pop(i)

    def _take(self, answers: list[Answer]) -> None:
        """Write what became of calls, and only then do what may go wrong."""
        final: list[tuple[int, Outcome]] = []
        again: list[tuple[int, Outcome]] = []
        tasks: list[Task] = []
        for task, outcomes in answers:
            rows = []
            for row, (i, outcome) in enumerate(zip(task.ids, outcomes, strict=True)):
                self._attempts[i] += 1
                tries = max(self._retries, LOST_RETRIES) if outcome.lost else self._retries
                tries = 0 if outcome.output is not None else tries  # it would be simulated once more for nothing
                if outcome.log_likelihood is None and self._attempts[i] <= tries:
                    again.append((i, outcome))
                    rows.append(row)
                else:
                    final.append((i, outcome))
            if rows and not self._stopping:
                tasks.append(replace(task, ids=tuple(task.ids[r] for r in rows), x=task.x[rows]))
        if again:
            self._store.retry(again)
        if self._stopping:  # whoever takes up the run tries them again
            for i, _ in again:
                self._attempts.pop(i)
        if final:
            self._store.finish(final)
            for i, _ in final:
                self._attempts.pop(i)
            self.finished(len(final))
            self._judge([o for _, o in final])
        for task in tasks:
            self._pool.submit(task)

    def _judge(self, outcomes: list[Outcome]) -> None:
        """Raise if failures are not to be borne, or there is nothing but failures."""
        failures = [o for o in outcomes if o.log_likelihood is None]
        self._any_done = self._any_done or len(failures) < len(outcomes)
        self._n_failed += len(failures)
        for failure in failures:
            LOGGER.warning("failed call: %s", failure.error)
        if failures and (self._raises or (self._n_failed >= ALL_FAILED and not self._any_done)):
            message = failures[0].error or "A call failed."
            if not self._raises:
                message = f"All {self._n_failed} calls have failed, so the run stops. One of them: {message}"
            error = EvaluationError(message)
            error.call_traceback = failures[0].traceback
            if error.call_traceback:
                error.add_note(error.call_traceback)
            raise error
