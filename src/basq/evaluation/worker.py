"""What runs where the likelihood is called: in a worker process, or on another machine."""

import contextlib
import os
import pickle
import signal
import socket
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from threadpoolctl import threadpool_limits

from basq.errors import InputError
from basq.evaluation.call import Call, Outcome
from basq.evaluation.pipe import Answering
from basq.types import FloatArray

MOST_KEPT = 16
"""Functions that a worker remembers; one that is forgotten too early is sent again."""

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals by which schedulers and terminals end a run, and all of its processes."""
GRACE = 20.0
"""Seconds for what can still be finished then: most schedulers kill after 30."""


def pack(call: Call) -> bytes:
    """The function as bytes, whole: also one of a notebook, of ``__main__`` or a lambda."""
    import cloudpickle

    try:
        return cloudpickle.dumps(call)
    except Exception as error:
        raise InputError(
            f"log_likelihood cannot be sent to worker processes ({type(error).__name__}: {error}). "
            "Open files, locks and connections inside the function, or stay in this process with pool=None."
        ) from error


def unpack(payload: bytes) -> "Call | Unloadable":
    """The function again, in a process that is its own: one BLAS thread each, so that workers do not compete."""
    try:
        call: Call = pickle.loads(payload)
    except Exception as error:
        message = f"log_likelihood could not be loaded in a worker process: {type(error).__name__}: {error}."
        if isinstance(error, ModuleNotFoundError):
            message += " Your modules have to be importable where the workers run: set PYTHONPATH there."
        return Unloadable(Outcome.failed(message, traceback.format_exc()))
    threadpool_limits(1)
    return call


@dataclass(frozen=True)
class Unloadable:
    """Stands for a function that this process cannot load; every call of it fails with the reason."""

    reason: Outcome

    def attempt(self, x: FloatArray) -> list[Outcome]:
        return [self.reason] * len(x)


def name() -> str:
    """Name of this process on this machine."""
    return f"{socket.gethostname()}:{os.getpid()}"


def attempt(call: Call | Unloadable, x: FloatArray) -> list[Outcome]:
    """Evaluate points (n, d) and sign the outcomes."""
    return [replace(outcome, worker=name()) for outcome in call.attempt(x)]


# --- worker processes of our own --------------------------------------------------------------------------------------


def serve(pipe: Answering, payload: bytes) -> None:
    """Answer points with outcomes until the driver hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    leaving = Leaving()
    if hasattr(os, "setsid"):
        os.setsid()  # a group of our own, which ends as a whole: a simulator started by the call, too
    call = unpack(payload)
    with contextlib.suppress(EOFError, OSError):  # the driver is gone
        pipe.send(None)  # ready: from here on the time belongs to the calls
        while not leaving.asked:
            x = pipe.recv()
            with leaving.later():
                pipe.send(attempt(call, x))


class Leaving:
    """Ends this process when a signal asks for it: at once where it is idle, otherwise after the call."""

    def __init__(self) -> None:
        self.asked = self._busy = False
        for number in ENDINGS:
            signal.signal(number, self._ask)

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """Not while this lasts, if it does not last too long."""
        self._busy = True
        yield
        self._busy = False

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if not self._busy:
            os._exit(128 + number)
        self.asked = True
        timer = threading.Timer(GRACE, os._exit, [128 + number])
        timer.daemon = True
        timer.start()


# --- workers of a given pool: the function travels to each of them once -----------------------------------------------

_CALLS: dict[str, Call | Unloadable] = {}
"""Functions known in this process, by token."""
_CHILDREN: dict[int, tuple[str, Any]] = {}
"""Child processes that evaluate calls with a time limit, by thread, with the token of the function they know.

A thread has one, so that runs which follow each other on workers that live on do not leave theirs behind.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CHILDREN.clear)  # they are its parent's to end


def keep(token: str, call: Call) -> None:
    """Make a function known in this process, where threads and forks of it find it without pickling."""
    _CALLS[token] = call


def forget(token: str) -> None:
    """Drop a function from this process, and the children that evaluate it."""
    _CALLS.pop(token, None)
    for thread in [t for t, (known, _) in list(_CHILDREN.items()) if known == token]:
        _CHILDREN.pop(thread)[1].kill()


def remote(token: str, payload: bytes | None, x: FloatArray, timeout: float | None) -> list[Outcome] | None:
    """Evaluate points (n, d) by a function that was sent before; None asks for the function to be sent."""
    if timeout is not None:
        return _limited(token, payload, x, timeout)
    if token not in _CALLS:
        if payload is None:
            return None
        while len(_CALLS) >= MOST_KEPT:  # of runs that are over, on a worker that lives on
            _CALLS.pop(next(iter(_CALLS)))
        _CALLS[token] = unpack(payload)
    return attempt(_CALLS[token], x)


def _limited(token: str, payload: bytes | None, x: FloatArray, timeout: float) -> list[Outcome] | None:
    """Evaluate in a child of this worker, which can be killed when its time is over."""
    from basq.evaluation.processes import Child  # which imports this module

    thread = threading.get_ident()
    known, child = _CHILDREN.get(thread, ("", None))
    if known != token or not child.alive:
        if payload is None:
            return None
        if child is not None:
            child.kill()
        child = Child(payload)
        _CHILDREN[thread] = token, child
    outcomes: list[Outcome] = child.evaluate(x, timeout)
    return outcomes
