"""From what the user gives as ``pool`` to a `Pool`: one small adapter for each kind."""

import multiprocessing
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from numbers import Integral
from types import ModuleType
from typing import Any

from basq.errors import EvaluationError, InputError
from basq.evaluation import worker
from basq.evaluation.call import Call, Outcome
from basq.evaluation.forks import OneProcess
from basq.evaluation.task import Answer, Pool, Task
from basq.extras import blaming, registered
from basq.types import FloatArray, is_number

POLL = 1.0
"""Seconds between two looks at a pool that gives no sign when a worker dies."""


@contextmanager
def open_pool(call: Call, pool: Any, timeout: float | None = None) -> Iterator[Pool]:
    """Start a pool for a function, and let go of it in the end; the user's own executor is left running.

    Parameters
    ----------
    call : Call
    pool : None, int, Executor, Dask client, Ray, anything with ``.map``, or the name of one of these
    timeout : float, optional
        Seconds that a call may take; it is ended then. Needs a process, so there is at least one.
    """
    if timeout is not None and not (is_number(timeout) and timeout > 0.0):
        raise InputError(f"timeout={timeout!r}: give the seconds that a call may take, or None.")
    with ExitStack() as stack:
        opened = _adapter(call, _named(pool, stack) if isinstance(pool, str) else pool, timeout)
        stack.callback(opened.close)
        yield opened


def _named(name: str, stack: ExitStack) -> Any:
    """Start the pool of an installed package, ``"name"`` or ``"name:argument"``, which ends with the stack."""
    name, _, argument = name.partition(":")
    entry = registered("basq.pools", name)
    with blaming(entry):
        made = entry.load()(argument)
        return stack.enter_context(made) if isinstance(made, AbstractContextManager) else made


def _adapter(call: Call, pool: Any, timeout: float | None) -> Pool:
    if pool is None:
        return Here(call) if timeout is None else _processes(call, 1, timeout)
    if is_number(pool, Integral):
        return _processes(call, int(pool), timeout)
    if isinstance(pool, Executor):
        return Futures(call, pool.submit, lambda: _size(pool, "_max_workers"), timeout, tells=True)
    if _comes_from(pool, "distributed") and hasattr(pool, "get_executor"):
        return _dask(call, pool, timeout)
    if isinstance(pool, ModuleType) and pool.__name__ == "ray":
        return _ray(call, pool, timeout)
    if callable(getattr(pool, "map", None)) and not isinstance(pool, type):
        return Mapped(call, pool, timeout)
    raise InputError(
        f"pool={pool!r}: allowed are None, a number of worker processes, a concurrent.futures.Executor "
        "(MPIPoolExecutor too), a Dask Client, an object with .map, or the name of a pool, such as 'ray'."
    )


def _size(pool: Any, private: str) -> int:
    """How many workers a pool has: what it says, or what those of the standard library keep to themselves."""
    return getattr(pool, "n_workers", None) or getattr(pool, private, None) or 1


def _comes_from(thing: Any, package: str) -> bool:
    return type(thing).__module__.partition(".")[0] == package


def _processes(call: Call, n: int, timeout: float | None) -> Pool:
    if n < 1:
        raise InputError(f"pool={n}: give at least one worker process, or None to stay in this one.")
    from basq.evaluation.processes import Processes

    return Processes(call, n, timeout)


def _dask(call: Call, client: Any, timeout: float | None) -> Pool:
    if client.status != "running":
        raise InputError(f"pool={client!r}: this Dask client has no connection (it is {client.status}).")
    return Futures(call, client.get_executor(pure=False).submit, lambda: sum(client.nthreads().values()), timeout)


def ray_pool(address: str) -> Any:
    """Ray, at an address or wherever it finds itself: ``pool="ray"``."""
    try:
        import ray
    except ImportError as error:
        raise InputError("pool='ray' needs Ray: pip install basq[ray].") from error
    if address and not ray.is_initialized():
        ray.init(address, log_to_driver=False)
    return ray


def _ray(call: Call, ray: Any, timeout: float | None) -> Pool:
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    function = ray.remote(_remote)

    def submit(_: Any, *args: Any) -> Any:
        return function.remote(*args).future()

    return Futures(call, submit, lambda: int(ray.cluster_resources().get("CPU", 1)), timeout)


class Here:
    """Calls in this process, one after the other."""

    n_workers = 1

    def __init__(self, call: Call) -> None:
        self._call = call
        self._tasks: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def collect(self, timeout: float | None) -> list[Answer]:
        if not self._tasks:
            return []
        task = self._tasks[0]
        outcomes = worker.attempt(self._call, task.x)
        self._tasks.popleft()
        return [(task, outcomes)]

    def cancel(self) -> list[Task]:
        taken = list(self._tasks)
        self._tasks.clear()
        return taken

    def close(self) -> None:
        self._tasks.clear()


class Futures:
    """Calls in anything that gives futures: an executor, Dask, Ray, MPI.

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
    tells : bool
        Whether a future refuses to be cancelled once its call has begun, as those of the standard library do.
    """

    def __init__(
        self,
        call: Call,
        submit: Callable[..., Any],
        count: Callable[[], int],
        timeout: float | None,
        *,
        tells: bool = False,
    ) -> None:
        self._count, self._tells = count, tells
        self._submit, self._timeout = submit, timeout
        self._call, self._payload = call, b""
        self._token = uuid.uuid4().hex
        self._tasks: dict[Future[Any], Task] = {}
        self._broken: EvaluationError | None = None
        worker.keep(self._token, call)

    @property
    def n_workers(self) -> int:
        return max(self._count(), 1)

    def submit(self, task: Task) -> None:
        self._send(task, None)

    def collect(self, timeout: float | None) -> list[Answer]:
        if self._broken is not None:
            raise self._broken
        end = float("inf") if timeout is None else time.monotonic() + timeout
        answers: list[Answer] = []
        while self._tasks and not answers:
            left = None if timeout is None else max(end - time.monotonic(), 0.0)
            done, _ = wait(self._tasks, left, FIRST_COMPLETED)
            for future in done:
                try:
                    answer = self._answer(future)
                except EvaluationError as error:  # told the next time: others may have finished before it broke
                    self._broken = error
                else:
                    answers += [] if answer is None else [answer]
            if not done or self._broken is not None:
                break
        if self._broken is not None and not answers:
            raise self._broken
        return answers

    def cancel(self) -> list[Task]:
        begun = 0 if self._tells else self.n_workers  # for all that can be known the oldest ones
        waiting = [future for future in self._tasks if not future.done()][begun:]
        return [self._tasks.pop(future) for future in waiting if future.cancel()]

    def close(self) -> None:
        for future in self._tasks:
            future.cancel()
        self._tasks.clear()
        worker.forget(self._token)

    def _send(self, task: Task, payload: bytes | None) -> None:
        try:
            future = self._submit(_remote, self._token, payload, task.x, self._timeout)
        except RuntimeError as error:  # shut down, or broken by a worker that died
            raise EvaluationError(f"The given pool takes no more calls ({type(error).__name__}: {error}).") from error
        self._tasks[future] = task

    def _answer(self, future: Future[Any]) -> Answer | None:
        """Read a finished future; None if its worker had to be sent the function first."""
        task = self._tasks.pop(future)
        error = CancelledError("cancelled by the pool") if future.cancelled() else future.exception()
        if isinstance(error, BrokenExecutor):
            raise EvaluationError(
                f"A worker of the given pool died and took the pool with it ({type(error).__name__}: {error}). Worker "
                "processes that survive this come with a number, such as pool=8."
            ) from error
        if error is not None:  # a KeyboardInterrupt too: Ctrl-C reaches the processes of a local pool itself
            message = f"The call at {task.where} was lost by the given pool: {type(error).__name__}: {error}"
            return task, [Outcome.failed(message, lost=True)] * len(task.x)
        outcomes = future.result()
        if outcomes is None:
            self._payload = self._payload or worker.pack(self._call)
            self._send(task, self._payload)
            return None
        return task, outcomes


class Mapped:
    """Calls in whatever has a ``map``, such as ``multiprocessing.Pool``; the function travels as with futures."""

    def __init__(self, call: Call, pool: Any, timeout: float | None) -> None:
        self.n_workers = _size(pool, "_processes")
        self._pool, self._timeout = pool, timeout
        self._call, self._payload = call, b""
        self._token = uuid.uuid4().hex
        self._queued: list[Task] = []
        self._ignorant: list[Task] = []  # those whose worker has to be sent the function
        self._running: dict[int, Task] = {}
        self._results: Iterator[Any] = iter(())
        self._pids: set[int] = set()
        worker.keep(self._token, call)

    def submit(self, task: Task) -> None:
        self._queued.append(task)

    def collect(self, timeout: float | None) -> list[Answer]:
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while self._running or self._queued or self._ignorant:
            if timeout == 0.0 and not hasattr(self._pool, "imap_unordered"):
                return []  # a plain map cannot be asked whether there is something
            if not self._running:
                self._start()
            number, outcomes = self._next(end) or (None, None)
            if number is None:
                return []
            task = self._running.pop(number)
            if outcomes is not None:
                return [(task, outcomes)]
            self._ignorant.append(task)
        return []

    def cancel(self) -> list[Task]:
        taken = [*self._queued, *self._ignorant]
        self._queued.clear()
        self._ignorant.clear()
        return taken

    def close(self) -> None:
        self.cancel()
        worker.forget(self._token)

    def _start(self) -> None:
        payload = None
        if self._ignorant:
            payload = self._payload = self._payload or worker.pack(self._call)
        tasks = self._ignorant or self._queued
        self._running = dict(enumerate(tasks))
        tasks.clear()
        self._pids = self._alive()
        start = getattr(self._pool, "imap_unordered", self._pool.map)  # gives each value as soon as it is there
        function = partial(_numbered, self._token, payload, self._timeout)
        try:
            self._results = iter(start(function, [(i, task.x) for i, task in self._running.items()]))
        except ValueError as error:  # what a multiprocessing.Pool says that was closed
            raise EvaluationError(f"The given pool takes no more calls ({type(error).__name__}: {error}).") from error

    def _next(self, end: float) -> tuple[int, list[Outcome] | None] | None:
        """Number and outcomes of the next task, None if time is over.

        A ``multiprocessing.Pool`` that lost a worker would be waited for in vain.
        """
        if not hasattr(self._results, "next"):
            answer = next(self._results, None)
            if answer is None:
                raise EvaluationError(
                    f"The map of the given pool gave no answer for {len(self._running)} of its calls."
                )
            return answer
        while True:
            try:
                return self._results.next(timeout=min(POLL, max(end - time.monotonic(), 0.0)))
            except multiprocessing.TimeoutError:
                if self._alive() != self._pids:
                    raise EvaluationError(
                        "A worker of the given multiprocessing.Pool died; such a pool forgets its call and waits for "
                        "ever. Worker processes that survive this come with a number, such as pool=8."
                    ) from None
            if time.monotonic() >= end:
                return None

    def _alive(self) -> set[int]:
        """Processes of a ``multiprocessing.Pool`` that replaces none of them on purpose."""
        if getattr(self._pool, "_maxtasksperchild", None) is not None:
            return set()
        return {process.pid for process in getattr(self._pool, "_pool", ()) if hasattr(process, "pid")}


def _numbered(
    token: str, payload: bytes | None, timeout: float | None, task: tuple[int, FloatArray]
) -> tuple[int, list[Outcome] | None]:
    number, x = task
    return number, _remote(token, payload, x, timeout)


def _remote(token: str, payload: bytes | None, x: FloatArray, timeout: float | None) -> list[Outcome] | None:
    """What a worker of a given pool does; the loading of the function may fork, too."""
    with OneProcess():
        return worker.remote(token, payload, x, timeout)
