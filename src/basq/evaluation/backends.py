"""From what the user gives as ``pool`` to a `Pool`: one small adapter for each kind."""

import sys
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from numbers import Integral
from types import ModuleType
from typing import Any

from basq.errors import EvaluationError, InputError
from basq.evaluation import worker
from basq.evaluation.call import Call, Outcome
from basq.evaluation.futures import Futures, numbered, promised, remote
from basq.evaluation.task import Answer, Pool, Task
from basq.extras import blaming, registered
from basq.types import is_number


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
        size = partial(_size, pool, "_max_workers")
        # their futures refuse to be cancelled once the call has begun
        return Futures(call, pool.submit, size, timeout, begun=lambda _: 0, fragile=True)
    if _comes_from(pool, "distributed") and hasattr(pool, "get_executor"):
        return _dask(call, pool, timeout)
    if isinstance(pool, ModuleType) and pool.__name__ == "ray":
        return _ray(call, pool, timeout)
    if callable(getattr(pool, "map", None)) and not isinstance(pool, type):
        return (_applied if hasattr(pool, "apply_async") else Mapped)(call, pool, timeout)
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
    return _oldest(call, client.get_executor(pure=False).submit, lambda: sum(client.nthreads().values()), timeout)


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
    function = ray.remote(remote)

    def submit(_: Any, *args: Any) -> Any:
        return function.remote(*args).future()

    return _oldest(call, submit, lambda: int(ray.cluster_resources().get("CPU", 1)), timeout)


def _oldest(call: Call, submit: Callable[..., Any], count: Callable[[], int], timeout: float | None) -> Pool:
    """A pool that does not say which calls have begun: for all that can be known, the oldest ones."""
    return Futures(call, submit, count, timeout, begun=lambda _: max(count(), 1), fragile=False)


def _applied(call: Call, pool: Any, timeout: float | None) -> Pool:
    """A ``multiprocessing.Pool``, which takes nothing back, and replaces workers that die."""
    replaces = getattr(pool, "_maxtasksperchild", None) is not None  # also those that do not

    def alive() -> set[int]:
        return set() if replaces else {p.pid for p in getattr(pool, "_pool", ()) if hasattr(p, "pid")}

    size = _size(pool, "_processes")
    return Futures(call, promised(pool), lambda: size, timeout, begun=lambda n: n, fragile=True, alive=alive)


class Here:
    """Calls in this process, one after the other."""

    n_workers = at_stake = 1

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


class Mapped:
    """Calls in whatever has nothing but a ``map``; the function travels as with futures."""

    def __init__(self, call: Call, pool: Any, timeout: float | None) -> None:
        self.n_workers, self.at_stake = _size(pool, "_processes"), sys.maxsize  # a map takes all that there is
        self._pool, self._timeout = pool, timeout
        self._call, self._payload = call, b""
        self._token = uuid.uuid4().hex
        self._queued: list[Task] = []
        self._ignorant: list[Task] = []  # those whose worker has to be sent the function
        self._running: dict[int, Task] = {}
        self._results: Iterator[tuple[int, list[Outcome] | None]] = iter(())
        worker.keep(self._token, call)

    def submit(self, task: Task) -> None:
        self._queued.append(task)

    def collect(self, timeout: float | None) -> list[Answer]:
        if timeout == 0.0:
            return []  # a map cannot be asked whether there is something
        while self._running or self._queued or self._ignorant:
            if not self._running:
                self._start()
            answer = next(self._results, None)
            if answer is None:
                raise EvaluationError(
                    f"The map of the given pool gave no answer for {len(self._running)} of its calls."
                )
            task, outcomes = self._running.pop(answer[0]), answer[1]
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
        function = partial(numbered, self._token, payload, self._timeout)
        self._results = iter(self._pool.map(function, [(i, task.x) for i, task in self._running.items()]))
