"""From pending calls to finished ones: a pool, retries, the store, and what to do about failures."""

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from basq.errors import EvaluationError
from basq.evaluation import rest
from basq.evaluation.begun import Begun
from basq.evaluation.call import Outcome
from basq.evaluation.futures import Futures
from basq.evaluation.journal import Journal
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
        if isinstance(pool, Processes | Futures) and store.path is not None:
            pool.journal = Journal(store.path.absolute())  # whatever the directory later
        self._vectorized, self._retries, self._raises = vectorized, retries, raises
        self.interrupted = interrupted
        self.finished: Callable[[int], None] = lambda _: None
        self._attempts: dict[int, int] = {}
        self._tasks: dict[Task, None] = {}  # what the pool has
        self._queue: deque[Task] = deque()  # what it has not yet
        self._begun = Begun(store) if pool.at_stake and store.path is not None else None
        if self._begun is not None:
            self._begun.give_up()
        self._any_done = store.counts()["done"] > 0
        self._n_failed = 0
        self._stopping = False
        self._salvaging = False
        self._unwritten: list[tuple[int, Outcome]] = []

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
        for rows in self._groups(calls):
            self._queue.append(Task(tuple(map(int, calls.ids[rows])), calls.x[rows], self._names))
        tasks = self._admitted()
        self._note()
        for task in tasks:
            self._pool.submit(task)

    def _groups(self, calls: Pending) -> list[IntArray]:
        """Which calls make a task together, (n,) each."""
        each = np.arange(len(calls))
        suspect = np.full(len(calls), not self._vectorized)
        if self._begun is not None:  # the run has died during these: apart, the innocent ones have nothing to fear
            suspect |= np.isin(calls.ids, list(self._begun.suspects()))
        together = each[~suspect]
        parts = np.array_split(together, min(self._pool.n_workers, len(together))) if len(together) else []
        return [*each[suspect][:, None], *parts]

    def _admitted(self) -> list[Task]:
        """Tasks for the pool: where a call can end the run, no more than are noted as under way."""
        room = len(self._queue) if self._begun is None else max(self._pool.at_stake - len(self._tasks), 0)
        tasks = [self._queue.popleft() for _ in range(min(room, len(self._queue)))]
        self._tasks |= dict.fromkeys(tasks)
        return tasks

    def _note(self, ended: Sequence[int] = ()) -> None:
        """Write which calls may be under way, before they are."""
        if self._begun is not None:
            self._begun.note([i for task in self._tasks for i in task.ids], ended)

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
        self._stopping = self._salvaging = True
        self._withdraw()
        found: list[Answer] = []
        with contextlib.suppress(EvaluationError):
            while answers := self._pool.collect(0.0):
                found += answers
        with contextlib.suppress(EvaluationError):
            self._take(found)
        if self.interrupted():  # by the user: nobody died
            self._tasks.clear()
            self._note()

    def rescued(self) -> Path:
        """Copy what was in the store, whose file is gone, and what has come since."""
        return rest.copied(self._store, self._unwritten)

    def _withdraw(self) -> None:
        """Take back the calls that no worker has begun."""
        taken = self._pool.cancel()
        for task in taken:
            del self._tasks[task]
        taken += self._queue
        self._queue.clear()
        for task in taken:
            for i in task.ids:
                self._attempts.pop(i)

    def _take(self, answers: list[Answer]) -> None:
        """Write what became of calls, and only then do what may go wrong."""
        if not answers:
            self._store.place.check()  # also where no call ends for hours
            return
        final: list[tuple[int, Outcome]] = []
        again: list[tuple[int, Outcome]] = []
        stopping = self._stopping or self.interrupted()
        for task, outcomes in answers:
            self._tasks.pop(task, None)
            rows = []
            for row, (i, outcome) in enumerate(zip(task.ids, outcomes, strict=True)):
                self._attempts[i] += not outcome.together
                if self._tried_again(i, outcome):
                    again.append((i, outcome))
                    rows.append(row)
                else:
                    final.append((i, outcome))
            if rows and not stopping:
                self._queue += _apart(task, rows) if outcomes[rows[0]].together else [_part(task, rows)]
        tasks = [] if stopping else self._admitted()
        self._unwritten += final
        rest.write(
            self._store, self._unwritten, lambda: self._write(self._unwritten, again),
            lambda: self._salvaging or self.interrupted(),
        )  # fmt: skip
        self._unwritten = []
        for i, _ in [*final, *(again if stopping else [])]:  # whoever takes up the run tries them again
            self._attempts.pop(i)
        if final:
            self.finished(len(final))
            self._judge([o for _, o in final])
        for task in tasks:
            self._pool.submit(task)

    def _write(self, final: list[tuple[int, Outcome]], again: list[tuple[int, Outcome]]) -> None:
        with self._store.transaction():
            if again:
                self._store.retry(again)
            if final:
                self._store.finish(final)
            self._note([i for i, _ in [*final, *again]])

    def _tried_again(self, i: int, outcome: Outcome) -> bool:
        """Whether a call that has just been made is to be made again."""
        if outcome.log_likelihood is not None or outcome.output is not None:  # it would be simulated again for nothing
            return False
        tries = max(self._retries, LOST_RETRIES) if outcome.lost else self._retries
        if self.interrupted():  # what ends the run may have ended the simulator
            return not self._raises
        return outcome.together or self._attempts[i] <= tries

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


def _part(task: Task, rows: list[int]) -> Task:
    """Some of the points of a task."""
    return replace(task, ids=tuple(task.ids[r] for r in rows), x=task.x[rows])


def _apart(task: Task, rows: list[int]) -> list[Task]:
    """Points of a task one by one.

    Not in halves, which would be fewer calls: a function that does not do what ``vectorized`` promises may take a batch
    of d points in d dimensions for something else, and give d wrong values.
    """
    return [_part(task, [r]) for r in rows]
