"""Exceptions and warnings: each says what was given, what is allowed and what to do; and how messages count."""

from typing import Any


class BasqError(Exception):
    """Root of everything that basq raises on purpose."""


class InputError(BasqError, ValueError):
    """An argument is wrong; raised before any likelihood call is spent."""


class StoreError(InputError):
    """A store cannot be used: missing, foreign, busy, or of another problem."""


class DamagedError(StoreError):
    """A store does not hold what was written into it."""


class StoreInUseError(StoreError):
    """Another process chooses or evaluates the calls of a store."""


class AbsentError(InputError):
    """Something is needed that files do not hold, since it is code: it has to be given again."""


class EvaluationError(BasqError, RuntimeError):
    """The user's likelihood failed or returned something that is not a log-likelihood.

    Attributes
    ----------
    observations : Observations or None
        Everything that was evaluated before, so that nothing paid for is lost.
    call_traceback : str or None
        Where in the user's code, if the call that ended the run raised.
    """

    observations: Any = None
    call_traceback: str | None = None


class FitError(BasqError, RuntimeError):
    """A numerical step failed in spite of its fallbacks."""


class NumericsWarning(UserWarning):
    """A numerical step used its fallback; the result is valid but may be less sharp."""


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number of things: 1 call, 2 calls."""
    return f"{n} {one if n == 1 else many or one + 's'}"
