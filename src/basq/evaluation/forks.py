"""Children that a function of the user's forks: they are never the process that it was called in."""

import os
import sys
from types import TracebackType


class OneProcess:
    """A block out of which only the process comes that went in.

    A forked child that returns from the block, or raises out of it, would go on as a second worker, or as a second
    driver of the run. It leaves at once instead, with the exit code that it would have had as a script: without
    cleaning up, for all that could be cleaned up is its parent's.
    """

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:
            try:
                code = _last_words(error)
            except BaseException:  # an error that cannot be told
                code = 1
            os._exit(code)


def _last_words(error: BaseException | None) -> int:
    """Say on stderr what Python would say of a process that ends so, and give its exit code."""
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1
