"""Ctrl-C, or a callback's word: once to stop and keep everything, twice to leave at once."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np

NOTICE = "basq: interrupted; waiting for the calls that are running.\nbasq: press Ctrl-C again to leave at once."
NOT_STORED = "basq: not stored: result.save(...) keeps the calls; next time, give store=."


class Interrupt:
    """Whether the user has pressed Ctrl-C, or a callback has asked to stop.

    Parameters
    ----------
    stored : bool
        Whether the calls are kept on disk; if not, the user is told what keeps them.
    """

    def __init__(self, stored: bool) -> None:
        self._pressed = False
        self._stored = stored

    def __call__(self) -> bool:
        return self._pressed

    @classmethod
    @contextmanager
    def watched(cls, *, stored: bool) -> Iterator["Interrupt"]:
        """Take over the signal, in the main thread; elsewhere it cannot be, and never arrives."""
        interrupt = cls(stored)
        if threading.current_thread() is not threading.main_thread():
            yield interrupt
            return
        before = signal.signal(signal.SIGINT, interrupt._press)
        try:
            yield interrupt
        finally:
            # None: the handler was not installed from Python, and cannot be put back from here
            signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)

    def heard(self, answer: object) -> None:
        """Take a callback's answer: True stops, as Ctrl-C does."""
        self._pressed = self._pressed or (isinstance(answer, bool | np.bool_) and bool(answer))

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        print("\n".join(["", NOTICE, *([] if self._stored else [NOT_STORED])]), file=sys.stderr, flush=True)
