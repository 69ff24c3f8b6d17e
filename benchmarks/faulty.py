"""A log-likelihood that is known everywhere, and goes wrong at some points in one of many ways."""

import ctypes
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


class Unspeakable(Exception):
    """Cannot be pickled, nor told."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = multiprocessing.Lock()

    def __str__(self) -> str:
        raise RuntimeError("no words")


def throw(error: BaseException) -> None:
    raise error


def fork(act: Callable[[], Any]) -> None:
    """A child that does something, and comes back from it; the call itself goes on."""
    if os.fork() == 0:
        os.close(2)  # what it has to say is its own affair
        act()


def hang() -> None:
    """Hold the interpreter."""
    ctypes.PyDLL(None).pause()


def leave_behind() -> None:
    """Wait for a simulator that has a session of its own."""
    subprocess.Popen(["sleep", "600"], start_new_session=True).wait()


def recurse() -> None:
    recurse()


RAISE: dict[str, Callable[[], Any]] = {
    "raises": lambda: throw(ArithmeticError("unlucky")),
    "raises what cannot be told": lambda: throw(Unspeakable()),
    "raises 1 MB of text": lambda: throw(ValueError("long " * 200_000)),
    "runs out of memory": lambda: throw(MemoryError()),
    "exits": lambda: sys.exit("bye"),
    "recurses": recurse,
}
GIVE: dict[str, Callable[[], Any]] = {
    "NaN": lambda: np.nan,
    "+inf": lambda: np.inf,
    "masked": lambda: np.ma.masked,
    "True": lambda: True,
    "a date": lambda: np.datetime64("2020-01-01"),
    "text": lambda: "1.5",
    "complex": lambda: 1.0 + 0.0j,
    "nothing": lambda: None,
}
ODD: dict[str, Callable[[], Any]] = {
    "three numbers": lambda: np.zeros(3),
    "a negative noise": lambda: (1.0, -1.0),
    "a function": lambda: np.sin,
}
GO_ON: dict[str, Callable[[], Any]] = {
    "a child that exits": lambda: fork(lambda: sys.exit(0)),
    "a child that comes back": lambda: fork(lambda: None),
    "a child whose exec fails": lambda: fork(lambda: os.execv("/no/such/program", ["x"])),
    "a child that raises": lambda: fork(lambda: throw(ArithmeticError("child"))),
    "another directory": lambda: os.chdir("/"),
    "a flood of text": lambda: print("text " * 10_000),
}
DIE: dict[str, Callable[[], Any]] = {
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "SIGTERM and then SIGKILL": lambda: (os.kill(os.getpid(), signal.SIGTERM), os.kill(os.getpid(), signal.SIGKILL)),
    "_exit": lambda: os._exit(1),
    "abort": os.abort,
}
HANG: dict[str, Callable[[], Any]] = {
    "sleeps": lambda: time.sleep(600.0),
    "holds the interpreter": hang,
    "a simulator that hangs": leave_behind,
}
KINDS = {"raise": RAISE, "give": GIVE, "odd": ODD, "go on": GO_ON, "die": DIE, "hang": HANG}


def truth(x: np.ndarray) -> float:
    """The log-likelihood; no two points have the same."""
    return float(-0.5 * np.sum((x - [0.3, -0.2]) ** 2) / 0.2)


class Faulty:
    """The log-likelihood, which goes wrong at a share of the points, always in the same way at the same point.

    Parameters
    ----------
    log : path
        Where it writes down what it does.
    kinds : list of str
        Of faults.
    share : float
    seed : int
    """

    def __init__(self, log: str, kinds: list[str], share: float, seed: int) -> None:
        self.log, self.kinds, self.share, self.seed = log, kinds, share, seed

    def __call__(self, x: np.ndarray) -> Any:
        kind, name = self.fault(x)
        if kind is not None:
            self.note("fault", name)
            given = KINDS[kind][name]()
            if kind in ("give", "odd"):
                return given
        value = truth(x)
        self.note("value", x.tolist())
        return value

    def fault(self, x: np.ndarray) -> tuple[str | None, str]:
        """What goes wrong at a point."""
        rng = random.Random(x.tobytes() + self.seed.to_bytes(4))
        if not self.kinds or rng.random() >= self.share:
            return None, ""
        kind = rng.choice(self.kinds)
        return kind, rng.choice(list(KINDS[kind]))

    def note(self, *words: Any) -> None:
        """Write a line at once and whole, whatever happens next."""
        file = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, (json.dumps(words) + "\n").encode())
        os.close(file)


class FaultyMany(Faulty):
    """The same for whole batches: the first fault that raises, hangs or dies is that of the batch."""

    def __call__(self, x: np.ndarray) -> Any:
        given = []
        for row in x:
            kind, name = self.fault(row)
            if kind is not None:
                self.note("fault", name)
            given.append(truth(row) if kind is None else KINDS[kind][name]())
        for row, value in zip(x, given, strict=True):
            if isinstance(value, float) and value == truth(row):
                self.note("value", row.tolist())
        return given
