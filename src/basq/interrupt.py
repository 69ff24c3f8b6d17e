"""Ctrl-C: once to stop and keep everything, twice to leave at once."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether the user has pressed Ctrl-C."""

    def __init__(self) -> None:
        self._pressed = False

    def __call__(self) -> bool:
        return self._pressed

    @classmethod
    @contextmanager
    def watched(cls) -> Iterator["Interrupt"]:
        """Take over the signal, in the main thread; elsewhere it cannot be, and never arrives."""
        interrupt = cls()
        if threading.current_thread() is not threading.main_thread():
            yield interrupt
            return
        before = signal.signal(signal.SIGINT, interrupt._press)
        try:
            yield interrupt
        finally:
            # None: the handler was not installed from Python, and cannot be put back from here
            signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        print(
            "\nbasq: interrupted; waiting for the calls that are running. Press Ctrl-C again to leave at once.",
            file=sys.stderr,
            flush=True,
        )
