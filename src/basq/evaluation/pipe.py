"""The two ends of the pipe to a worker process: every answer carries the number of its question."""

import os
from multiprocessing.connection import Connection
from typing import Any

from basq.types import FloatArray


class Asking:
    """The driver's end.

    Parameters
    ----------
    connection : Connection
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._number = 0

    def ask(self, x: FloatArray) -> None:
        """Send points (n, d). The answer to an earlier question counts no more from here on."""
        self._number += 1
        self.connection.send((self._number, x))

    def hear(self) -> tuple[bool, Any]:
        """Take one message: whether it is the answer to the last question, and the answer."""
        number, answer = self.connection.recv()
        return number == self._number, answer


class Answering:
    """The worker's end; it belongs to the process that it is unpickled in, and no child of that can use it.

    Parameters
    ----------
    connection : Connection
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._owner = os.getpid()
        self._number = 0  # of no question: what a worker says before the first is that it is ready

    def __reduce__(self) -> tuple[Any, ...]:
        return Answering, (self._connection,)

    def recv(self) -> FloatArray:
        """Wait for the next points (n, d)."""
        self._leave_if_forked()
        x: FloatArray
        self._number, x = self._connection.recv()
        return x

    def send(self, answer: Any) -> None:
        """Answer the points that were received last."""
        self._leave_if_forked()
        self._connection.send((self._number, answer))

    def _leave_if_forked(self) -> None:
        """End a process that is a child of the worker, forked while the function was loaded."""
        if os.getpid() != self._owner:
            os._exit(1)
