"""When to stop, and what to say about it."""

import time
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from basq.errors import InputError
from basq.evaluation.evaluator import ALL_FAILED
from basq.evaluation.store import Store
from basq.method import Fit
from basq.status import Status
from basq.types import FloatArray, is_number

MOSTLY_FAILED = 0.9
"""Share of failures among the last calls at which a run gives up."""
ROUGH = 0.5
"""Standard deviation of log Z above which the posterior is not known well either."""


@dataclass(frozen=True)
class Verdict:
    """How a run stands after a step, and why.

    Attributes
    ----------
    status : Status
    why : str
        In a clause.
    sound : bool
        Whether nothing speaks against the answer but, perhaps, an error above its target.
    """

    status: Status
    why: str
    sound: bool = False

    @property
    def stop(self) -> bool:
        """Whether to stop."""
        return self.status is not Status.RUNNING

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED

    @property
    def message(self) -> str:
        """Status and reason in a sentence."""
        return self.status.because(self.why)


@dataclass(frozen=True)
class Stopping:
    """Target accuracy and budgets; whichever comes first.

    Attributes
    ----------
    dlogz : float
        Target standard deviation of log Z; 0 runs until a budget is spent.
    max_evals : int
    max_time : float or None
        Seconds, likelihood calls included; checked between batches.
    """

    dlogz: float
    max_evals: int
    max_time: float | None = None
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not (is_number(self.dlogz) and self.dlogz >= 0.0):
            raise InputError(f"dlogz={self.dlogz!r}: give the standard deviation of log Z to reach, at least 0.")
        if not (is_number(self.max_evals, Integral) and self.max_evals >= 1):
            raise InputError(f"max_evals={self.max_evals!r}: give a positive whole number of likelihood calls.")
        if self.max_time is not None and not (is_number(self.max_time) and self.max_time > 0.0):
            raise InputError(f"max_time={self.max_time!r}: give a positive number of seconds, or None.")

    @property
    def out_of_time(self) -> bool:
        return self.max_time is not None and time.monotonic() - self.started >= self.max_time

    def judge(self, fitted: Fit, n_evals: int, trouble: str | None = None) -> Verdict:
        """Look at the state after a batch; ``trouble`` is a reason to give up."""
        converged, why = fitted.converged(self.dlogz)
        if trouble is not None:
            return Verdict(Status.FAILED, f"{trouble}; {why}")
        if converged:
            return Verdict(Status.CONVERGED, why, sound=True)
        sound = fitted.converged(max(self.dlogz, ROUGH))[0]
        if n_evals >= self.max_evals:
            spent = f"{n_evals} of max_evals = {self.max_evals} calls spent"
            return Verdict(Status.NOT_CONVERGED, f"{spent}; {why}", sound)
        if self.out_of_time:
            return Verdict(Status.NOT_CONVERGED, f"max_time = {self.max_time:g} s is over; {why}", sound)
        return Verdict(Status.RUNNING, why, sound)


def trouble(log_likelihood: FloatArray, batch_size: int, store: Store) -> str | None:
    """Say so when nearly all of the last calls, of (n,) in all, have failed."""
    last = np.isnan(log_likelihood[-max(2 * batch_size, ALL_FAILED) :])
    if len(last) < ALL_FAILED or last.mean() < MOSTLY_FAILED:
        return None
    failure = store.last_failure()
    assert failure is not None
    return f"{int(last.sum())} of the last {len(last)} calls failed (the last: {failure.error})"
