"""Calls in anything that gives futures: an executor, Dask, Ray, MPI, a pool of multiprocessing."""

import queue
import time
import uuid
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, InvalidStateError
from contextlib import suppress
from typing import Any

from basq.errors import EvaluationError
from basq.evaluation import worker
from basq.evaluation.call import UNKNOWN, Call, Outcome
from basq.evaluation.forks import OneProcess
from basq.evaluation.journal import Journal
from basq.evaluation.task import Answer, Task
from basq.types import FloatArray

POLL = 1.0
"""Seconds between two looks at a pool that gives no sign when a worker dies."""


class Futures:
    """Calls whose answers come as futures.

    Workers are told a token instead of the function; one that does not know it yet answers so, and is sent it. So it
    travels to each worker once, and not at all to threads of this process.

    Parameters
    ----------
    call : Call
    submit : callable
        ``submit(function, *args)`` gives a future.
    count : callable
        How many workers there are now: those of a cluster come and go, and may still be in its queue.
    timeout : float or None
    begun : callable
        Of the calls that have not ended, oldest first: how many may have begun, for all that can be known, and cannot
        be taken back.
    fragile : bool
        Whether a worker that dies ends the pool, or this process.
    alive : callable
        The worker processes, of a pool that forgets the call of one that dies.

    Attributes
    ----------
    journal : Journal or None
        Told of every answer at once, in a thread of the pool's.
    """

    def __init__(
        self,
        call: Call,
        submit: Callable[..., Any],
        count: Callable[[], int],
        timeout: float | None,
        *,
        begun: Callable[[int], int],
        fragile: bool,
        alive: Callable[[], set[int]] = set,
    ) -> None:
        self._count, self._begun, self._alive = count, begun, alive
        self._submit, self._timeout, self._fragile = submit, timeout, fragile
        self.journal: Journal | None = None
        self._call, self._payload = call, b""
        self._token = uuid.uuid4().hex
        self._tasks: dict[Future[Any], Task] = {}
        self._ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._broken: EvaluationError | None = None
        self._pids = alive()
        worker.keep(self._token, call)

    @property
    def n_workers(self) -> int:
        return max(self._count(), 1)

    @property
    def at_stake(self) -> int:
        """Twice as many as there are workers: they begin others before it is known that they have ended the first."""
        return 2 * self.n_workers if self._fragile else 0

    def submit(self, task: Task) -> None:
        self._send(task, None)

    def collect(self, timeout: float | None) -> list[Answer]:
        end = float("inf") if timeout is None else time.monotonic() + timeout
        answers: list[Answer] = []
        while self._tasks and not answers and self._broken is None:
            left = end - time.monotonic()
            ended = self._wait(min(max(left, 0.0), POLL))
            looks: list[Future[Any] | None] = [*ended] or [None]
            for future in looks:
                try:
                    answer = self._look(future)
                except EvaluationError as error:  # told the next time: others may have finished before it broke
                    self._broken = error
                else:
                    answers += [] if answer is None else [answer]
            if not ended and left <= 0.0:
                break
        if self._broken is not None and not answers:
            raise self._broken
        return answers

    def cancel(self) -> list[Task]:
        waiting = [future for future in self._tasks if not future.done()]
        taken = [future for future in waiting[self._begun(len(waiting)) :] if future.cancel()]
        return [self._tasks.pop(future) for future in taken]

    def close(self) -> None:
        for future in self._tasks:
            future.cancel()
        self._tasks.clear()
        worker.forget(self._token)
        if self.journal is not None:
            self.journal.close()

    def _send(self, task: Task, payload: bytes | None) -> None:
        try:
            future = self._submit(remote, self._token, payload, task.x, self._timeout)
        except BrokenExecutor as error:
            raise _broken(error) from error
        except (RuntimeError, ValueError) as error:  # shut down
            raise EvaluationError(f"The given pool takes no more calls ({type(error).__name__}: {error}).") from error
        self._tasks[future] = task
        future.add_done_callback(self._note)

    def _note(self, future: Future[Any]) -> None:
        """Take a future that has ended, in a thread of the pool's; perhaps before the driver looks for it."""
        task = self._tasks.get(future)
        if self.journal is not None and task is not None and not future.cancelled() and future.exception() is None:
            outcomes = future.result()
            if outcomes is not None:
                self.journal(task, outcomes)
        self._ended.put(future)

    def _wait(self, seconds: float) -> list[Future[Any]]:
        """Futures that have ended, at least one if that happens within so many seconds."""
        found: list[Future[Any]] = []
        with suppress(queue.Empty):
            found.append(self._ended.get(timeout=seconds))
            while True:
                found.append(self._ended.get_nowait())
        return found

    def _look(self, future: Future[Any] | None) -> Answer | None:
        """Read a finished future; without one, look whether the workers live."""
        if future is not None:
            return self._answer(future)
        if self._alive() != self._pids:
            raise EvaluationError(
                "A worker of the given multiprocessing.Pool died; such a pool forgets its call and waits for "
                "ever. Worker processes that survive this come with a number, such as pool=8."
            )
        return None

    def _answer(self, future: Future[Any]) -> Answer | None:
        """Read a finished future; None if nobody waits for it, or its worker had to be sent the function first."""
        task = self._tasks.pop(future, None)
        if task is None:
            return None
        error = CancelledError("cancelled by the pool") if future.cancelled() else future.exception()
        if isinstance(error, BrokenExecutor):
            raise _broken(error) from error
        if error is not None:  # a KeyboardInterrupt too: Ctrl-C reaches the processes of a local pool itself
            message = f"The call at {task.where} was lost by the given pool: {type(error).__name__}: {error}"
            return task, Outcome.failed_together(len(task.x), message, lost=True, noise=UNKNOWN)
        outcomes = future.result()
        if outcomes is None:
            self._payload = self._payload or worker.pack(self._call)
            self._send(task, self._payload)
            return None
        return task, outcomes


def _broken(error: BrokenExecutor) -> EvaluationError:
    return EvaluationError(
        f"A worker of the given pool died and took the pool with it ({type(error).__name__}: {error}). Worker "
        "processes that survive this come with a number, such as pool=8."
    )


def promised(pool: Any) -> Callable[..., "Future[Any]"]:
    """A function that has a call made by something with ``apply_async``, such as ``multiprocessing.Pool``."""

    def submit(function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def settle(give: Callable[[Any], None], what: Any) -> None:
            with suppress(InvalidStateError):  # the run is over, and nobody waits for it
                give(what)

        pool.apply_async(
            function, args,
            callback=lambda value: settle(future.set_result, value),
            error_callback=lambda error: settle(future.set_exception, error),
        )  # fmt: skip
        return future

    return submit


def numbered(
    token: str, payload: bytes | None, timeout: float | None, task: tuple[int, FloatArray]
) -> tuple[int, list[Outcome] | None]:
    """What a worker does of a pool that has nothing but a ``map``."""
    number, x = task
    return number, remote(token, payload, x, timeout)


def remote(token: str, payload: bytes | None, x: FloatArray, timeout: float | None) -> list[Outcome] | None:
    """What a worker of a given pool does; the loading of the function may fork, too."""
    with OneProcess():
        return worker.remote(token, payload, x, timeout)
