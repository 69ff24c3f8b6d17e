"""Worker processes of our own: a dead one costs its call, not the run; a call that takes too long is ended."""

import contextlib
import multiprocessing.process
import queue
import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any

from basq.evaluation.call import UNKNOWN, Call, Outcome
from basq.evaluation.guard import MARK, end, guard, kill
from basq.evaluation.journal import Journal
from basq.evaluation.pipe import Answering, Asking
from basq.evaluation.task import Answer, Task
from basq.evaluation.worker import pack, serve
from basq.types import FloatArray

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")}
"""Environment of a worker: workers share the machine, so none of them may take it all."""
DEATH_CHECK = 1.0
"""Seconds between two looks at whether a worker lives: its pipe stays open if a process it has forked holds it."""
LOADING = 300.0
"""Seconds that a worker has to start and to import what the function needs, where calls have a time limit."""
LAST_BREATH = 1.0
"""Seconds that a worker which has hung up gets to end by itself, so that its exit code can be told."""

CRASHES = {getattr(signal, f"SIG{name}", 0) for name in ("ABRT", "BUS", "FPE", "ILL", "SEGV", "SYS", "TRAP")}
"""Signals that a process brings upon itself. Others are sent: by the system when memory runs out, by a queue."""


class Child:
    """A worker process, and the driver's end of the pipe to it.

    Attributes
    ----------
    task : Task or None
        What it works on.
    deadline : float
        When that has to be done (monotonic clock); infinite while the process still starts.
    """

    def __init__(self, payload: bytes) -> None:
        from loky.backend import get_context

        context = get_context("loky")  # a fresh interpreter that does not run the user's script again
        self.connection, theirs = context.Pipe()
        self._pipe = Asking(self.connection)
        self._mark, self._started = uuid.uuid4().hex, time.monotonic()
        environment = ONE_THREAD | {MARK: self._mark}
        self.process = context.Process(target=serve, args=(Answering(theirs), payload), daemon=True, env=environment)
        with _may_have_children():
            self.process.start()
        guard.watch(self.process.pid, self._mark)
        theirs.close()
        self.task: Task | None = None
        self.deadline = float("inf")
        self._ready = False

    @property
    def alive(self) -> bool:
        return bool(self.process.is_alive())

    def start(self, task: Task, timeout: float | None) -> None:
        """Hand over a task; its time begins when the process is up, which has a time of its own."""
        self.task = task
        if timeout is not None:
            self.deadline = time.monotonic() + timeout if self._ready else self._started + LOADING
        with contextlib.suppress(OSError):  # it has died meanwhile: `answer` will say so
            self._pipe.ask(task.x)

    def answer(self, timeout: float | None) -> list[Outcome] | None:
        """What it has to say about its task, now that there is something to read.

        None if it has only started, or answers a task that nobody waits for any more.
        """
        assert self.task is not None
        try:
            fits, message = self._pipe.hear()
        except (EOFError, OSError):
            return self.dead()
        outcomes: list[Outcome] | None = message
        if outcomes is None:
            self._ready = True
            self.deadline = float("inf") if timeout is None else time.monotonic() + timeout
        return outcomes if fits else None

    @property
    def silent(self) -> bool:
        """Whether it has died with nothing left to read."""
        return not self.alive and not self.connection.poll()

    def dead(self) -> list[Outcome]:
        """Say that it died, and of what."""
        assert self.task is not None
        self.process.join(LAST_BREATH)
        self.kill()
        error = f"The worker process died {self._cause()} at {self.task.where}."
        noise = 0.0 if self._crashed else UNKNOWN
        return Outcome.failed_together(len(self.task.x), error, lost=True, noise=noise)

    def overdue(self, timeout: float) -> list[Outcome]:
        """End the process and with it the call."""
        assert self.task is not None
        self.kill()
        if not self._ready:
            error = f"The worker process had not loaded log_likelihood after {LOADING:g} s, at {self.task.where}."
            return Outcome.failed_together(len(self.task.x), error, lost=True, noise=UNKNOWN)
        error = f"The call took longer than timeout = {timeout:g} s at {self.task.where}; it was ended."
        return Outcome.failed_together(len(self.task.x), error, seconds=timeout)

    def evaluate(self, x: FloatArray, timeout: float) -> list[Outcome]:
        """Evaluate points (n, d) and wait for the outcomes; an interrupt ends the process and with it the call."""
        self.start(Task((), x), timeout)
        outcomes = None
        try:
            while outcomes is None:
                if wait([self.connection], _patience(self.deadline)):
                    outcomes = self.answer(timeout)
                elif self.deadline <= time.monotonic():
                    outcomes = self.overdue(timeout)
                elif self.silent:
                    outcomes = self.dead()
        except BaseException:
            self.kill()  # the next call would wait for this one
            raise
        return outcomes

    def kill(self) -> None:
        """End the process at once, and whatever it has started."""
        end(self.process.pid, self._mark)  # the others first: without it, they may be nobody's
        if self.alive:
            kill(self.process.pid)
        self.process.join()
        guard.forget(self.process.pid)
        self.connection.close()

    @property
    def _crashed(self) -> bool:
        """Whether it has ended by itself, rather than by a signal that others send."""
        code = self.process.exitcode
        return code is not None and (code >= 0 or -code in CRASHES)

    def _cause(self) -> str:
        code = self.process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"by signal {signal.Signals(-code).name}"
        return f"with exit code {code}"


def _patience(deadline: float) -> float:
    """How long to wait for a worker before looking at the clock and at whether it lives."""
    return min(max(deadline - time.monotonic(), 0.0), DEATH_CHECK)


@contextmanager
def _may_have_children() -> Iterator[None]:
    """Let a daemonic process start another: Dask's workers are daemons, and end theirs with themselves as ours do."""
    config: dict[str, Any] = multiprocessing.process.current_process()._config  # type: ignore[attr-defined]
    daemon = config.pop("daemon", None)
    try:
        yield
    finally:
        if daemon is not None:
            config["daemon"] = daemon


class Processes:
    """A pool of worker processes, each with one task at a time.

    A thread hands tasks to free workers and collects answers, so that a worker does not wait while the driver thinks.

    Parameters
    ----------
    call : Call
        Travels to every worker once, when it starts.
    n_workers : int
    timeout : float or None
        Seconds that a task may take.

    Attributes
    ----------
    journal : Journal or None
        Told of every answer at once, in the pool's thread.
    """

    at_stake = 0

    def __init__(self, call: Call, n_workers: int, timeout: float | None) -> None:
        self.n_workers = n_workers
        self.journal: Journal | None = None
        self._payload, self._timeout = pack(call), timeout
        self._tasks: deque[Task] = deque()
        self._answers: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()
        self._children: list[Child] = []
        self._wake, self._woken = multiprocessing.Pipe()
        self._called = False  # there is something in that pipe: one is enough, and more could fill it
        self._open = True
        self._thread = threading.Thread(target=self._dispatch, name="basq-workers", daemon=True)
        self._thread.start()

    def submit(self, task: Task) -> None:
        self._tasks.append(task)
        self._call()

    def collect(self, timeout: float | None) -> list[Answer]:
        try:
            found = [self._answers.get(timeout=timeout)]
        except queue.Empty:
            return []
        while not self._answers.empty():
            found.append(self._answers.get())
        answers = [a for a in found if not isinstance(a, Exception)]
        for error in found:
            if isinstance(error, Exception):
                if not answers:
                    raise error
                self._answers.put(error)  # the next time: others had finished before
        return answers

    def cancel(self) -> list[Task]:
        taken = []
        with contextlib.suppress(IndexError):  # the thread may take the last one first
            while True:
                taken.append(self._tasks.pop())
        return taken

    def close(self) -> None:
        if self._open:
            self._open = False
            self._call()
            self._thread.join()
            self._wake.close()
            self._woken.close()
            if self.journal is not None:
                self.journal.close()

    def _call(self) -> None:
        """Wake the thread, after there is something for it to see."""
        if not self._called:
            self._called = True
            self._wake.send_bytes(b".")

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        try:
            while self._open:
                self._hand_out()
                self._wait()
        except Exception as error:  # never leave the driver waiting for answers that will not come
            self._answers.put(error)
        finally:
            for child in self._children:
                child.kill()

    def _hand_out(self) -> None:
        """Give tasks to free workers; start one for a task that finds none, up to the number allowed."""
        self._children = [c for c in self._children if c.task is not None or c.alive]
        free = [c for c in self._children if c.task is None]
        while free or len(self._children) < self.n_workers:
            try:
                task = self._tasks.popleft()
            except IndexError:  # none, or taken back
                return
            if not free:
                free.append(Child(self._payload))
                self._children.append(free[0])
            free.pop().start(task, self._timeout)

    def _wait(self) -> None:
        """Sleep until a worker answers or dies, a deadline passes, or there are new tasks."""
        busy = {c.connection: c for c in self._children if c.task is not None}
        left = _patience(min(c.deadline for c in busy.values())) if busy else None
        for ready in wait([self._woken, *busy], left):
            if ready is self._woken:
                self._woken.recv_bytes()
                self._called = False  # before it looks: what is added from now on calls again
            else:
                child = busy[ready]
                self._report(child, child.answer(self._timeout))
        for child in busy.values():
            late = child.task is not None and child.deadline <= time.monotonic()
            # it may have answered while others were looked after
            if late and self._timeout is not None and not child.connection.poll():
                self._report(child, child.overdue(self._timeout))
            elif child.task is not None and child.silent:
                self._report(child, child.dead())

    def _report(self, child: Child, outcomes: list[Outcome] | None) -> None:
        if outcomes is not None:
            assert child.task is not None
            if self.journal is not None:
                self.journal(child.task, outcomes)
            self._answers.put((child.task, outcomes))
            child.task = None
            child.deadline = float("inf")
