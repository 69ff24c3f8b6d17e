"""Ctrl-C, or a callback's word: once to stop and keep everything, twice to leave at once; and schedulers' signals."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from basq.evaluation.worker import ENDINGS, GRACE

NOTICE = "basq: interrupted; waiting for the calls that are running.\nbasq: press Ctrl-C again to leave at once."
NOT_STORED = "basq: not stored: result.save(...) keeps the calls; next time, give store=."


class Interrupt:
    """Whether the user has pressed Ctrl-C, a callback has asked to stop, or somebody else wants the run to end.

    Parameters
    ----------
    store : path or None
        Where the calls are kept on disk; if nowhere, the user is told what keeps them.
    """

    def __init__(self, store: str | os.PathLike[str] | None) -> None:
        self._pressed = False
        self._store = store
        self._signal: signal.Signals | None = None
        self._timer: threading.Timer | None = None

    def __call__(self) -> bool:
        return self._pressed

    @classmethod
    @contextmanager
    def watched(cls, store: str | os.PathLike[str] | None) -> Iterator["Interrupt"]:
        """Take over the signals, in the main thread; elsewhere they cannot be, and never arrive."""
        interrupt = cls(store)
        if threading.current_thread() is not threading.main_thread():
            yield interrupt
            return
        # ignored ones (nohup) stay so, and those that somebody else attends to are theirs
        ours = [number for number in ENDINGS if signal.getsignal(number) is signal.SIG_DFL]
        before: dict[signal.Signals, Any] = {number: signal.signal(number, interrupt._end) for number in ours}
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupt._press)
        try:
            yield interrupt
        finally:
            if interrupt._timer is not None:  # from here on the time is the caller's
                interrupt._timer.cancel()
            for number, handler in before.items():
                # None: the handler was not installed from Python, and cannot be put back from here
                signal.signal(number, signal.default_int_handler if handler is None else handler)
        interrupt.leave()

    def leave(self) -> None:
        """End this process, with the exit code that tells of it, if a signal has asked for that."""
        if self._signal is not None:
            print(self._last_words, file=sys.stderr, flush=True)
            raise SystemExit(128 + self._signal)

    def heard(self, answer: object) -> None:
        """Take a callback's answer: True stops, as Ctrl-C does."""
        self._pressed = self._pressed or (isinstance(answer, bool | np.bool_) and bool(answer))

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        hint = [] if self._store else [NOT_STORED]
        print("\n".join(["", NOTICE, *hint]), file=sys.stderr, flush=True)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Keep what can be finished in the time that schedulers give."""
        if self._signal is not None:  # once more: at once
            raise SystemExit(128 + number)
        self._pressed, self._signal = True, signal.Signals(number)
        self._timer = threading.Timer(GRACE, self._leave_at_once)
        self._timer.daemon = True
        self._timer.start()

    def _leave_at_once(self) -> NoReturn:
        """Leave a call, a fit or a pool that does not end; what has returned is on the disk."""
        assert self._signal is not None
        with suppress(Exception):
            print(self._last_words, file=sys.stderr, flush=True)
            sys.stdout.flush()
        os._exit(128 + self._signal)

    @property
    def _last_words(self) -> str:
        assert self._signal is not None
        if self._store is None:
            return f"basq: ended by {self._signal.name}; nothing was stored: next time, give store=."
        return f"basq: ended by {self._signal.name}; what has returned is in {self._store}: the same command goes on."
