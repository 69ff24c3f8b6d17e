"""What is known after a step of a run, and the two steps themselves: learn and choose."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from basq.errors import InputError
from basq.method import Batch, Designer, Fit, Method, Posterior
from basq.numerics.linalg import blas_threads
from basq.observations import Failure, Observations
from basq.prior import Prior
from basq.results.record import Record
from basq.results.result import Result
from basq.run.arguments import as_batch, as_fit
from basq.run.stopping import Stopping, Verdict
from basq.run.suspicion import suspicions
from basq.status import Status
from basq.types import FloatArray

LATE = 2.0 / 3.0
"""Share of the calls after which an answer should have settled."""


@dataclass(frozen=True)
class State:
    """Everything known after a step; replaced, never changed."""

    observations: Observations
    fitted: Fit
    verdict: Verdict
    history: tuple[Record, ...]

    def result(self, prior: Prior, failures: tuple[Failure, ...] = (), ended: Status | None = None) -> Result:
        """The answer that it gives; ``ended`` says how the run ended where its stopping rule did not speak."""
        fitted, verdict = self.fitted, self.verdict
        return Result(
            self.history[-1].log_evidence,
            self.history[-1].log_evidence_std,
            verdict.status if verdict.stop or ended is None else ended,
            verdict.why,
            prior,
            self.observations,
            self.history,
            _posterior(fitted),
            fitted.audits,
            failures,
            fitted.log_surrogate,
            noise=fitted.noise,
            sound=verdict.sound,
            notes=(*fitted.notes, *suspicions(self.observations)),
        )

    def as_record(self) -> dict[str, Any]:
        """The last step for the store, readable without replaying it."""
        last = self.history[-1]
        return {
            "n_evals": last.n_evals,
            "log_evidence": last.log_evidence,
            "log_evidence_std": last.log_evidence_std,
            "status": self.verdict.status,
            "message": self.verdict.message,
            "seconds": last.seconds,
            "info": last.info,
            "time": time.time(),
        }


def _posterior(fitted: Fit) -> Posterior | None:
    """Return the posterior, or None: a run that found no mass still has calls and a message worth giving back."""
    try:
        return fitted.posterior
    except InputError:
        return None


@dataclass(frozen=True)
class Recipe:
    """How a run is made: what does not change while it goes on, and the steps that follow from it.

    Attributes
    ----------
    prior : Prior
    method : Method
    stopping : Stopping
    batch_size : int
    seed : int
        Every random number comes from it and from where in the run it is drawn, so that a run can be taken up anywhere.
    cheap : Prior or None
        Of parameters that are integrated over at every call.
    """

    prior: Prior
    method: Method[Any]
    stopping: Stopping
    batch_size: int
    seed: int
    cheap: Prior | None = None

    def rng(self, *where: int) -> np.random.Generator:
        """The stream of random numbers of one place in the run."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=where))

    def design_size(self, n_given: int) -> int:
        """Number of points spread over the prior before anything is modelled; none if enough values were given."""
        least = self.method.initial_size(self.prior.n_dim)
        if n_given >= least:
            return 0
        size = self.batch_size * math.ceil(least / self.batch_size)  # whole batches: no idle worker
        return min(size, max(self.stopping.max_evals - n_given, 0))

    def design(self, first: int, n: int, seen: FloatArray) -> Batch:
        """Points first … first + n − 1 of the initial design, the method's own or an even spread over the prior.

        ``seen`` (m, d) are all points so far.
        """
        if isinstance(self.method, Designer):
            own = self.method.design(self.prior.measure, n, self.rng(0, first), seen=seen)
            if own is not None:
                return as_batch(own, self.prior.n_dim, self.method)
        return Batch(self.prior.measure.sample_quasi(first + n, self.rng(0))[first:], explores=True)

    def choose(self, state: State, n: int, first_id: int, taken: FloatArray) -> Batch:
        """Algorithm 1, lines 4-10: the next n points, away from those under way (m, d)."""
        last = state.history[-1].seconds
        ratio = last.get("evaluate", 0.0) / last["select"] if last.get("select") else 0.0
        with blas_threads(len(state.observations)):
            batch = self.method.select(state.fitted, n, self.rng(1, first_id), cost_ratio=ratio, taken=taken)
        return as_batch(batch, self.prior.n_dim, self.method)

    def learn(
        self,
        state: State | None,
        observations: Observations,
        n_calls: int,
        trouble: str | None = None,
        *,
        seconds: dict[str, float],
        info: dict[str, Any],
    ) -> State:
        """Algorithm 1, lines 12-16: train the surrogate on everything seen, integrate, judge."""
        history, previous = (state.history, state.fitted) if state else ((), None)
        rng = self.rng(2, len(history))
        start = time.perf_counter()
        with blas_threads(len(observations)):
            fitted = as_fit(self.method.fit(observations, self.prior, previous, rng), self.method)
            verdict = self.stopping.judge(fitted, n_calls, trouble)
        times = _stages(fitted, time.perf_counter() - start)
        last = Record(n_calls, fitted.log_evidence, fitted.log_evidence_std, times | seconds, info)
        return State(observations, fitted, verdict, (*history, _settled(last, verdict, history)))

    def judged(self, state: State, trouble: str | None = None) -> State:
        """A state that was learned before, by the stopping rule of now."""
        *history, last = state.history
        with blas_threads(len(state.observations)):
            verdict = self.stopping.judge(state.fitted, last.n_evals, trouble)
        last = replace(last, log_evidence_std=state.fitted.log_evidence_std)
        return replace(state, verdict=verdict, history=(*history, _settled(last, verdict, history)))


def _settled(last: Record, verdict: Verdict, history: Sequence[Record]) -> Record:
    """The last record, with the error that a run has which has not converged."""
    if verdict.status is Status.CONVERGED:
        return last
    moves = unsettled(history, last.n_evals, last.log_evidence)
    return replace(last, log_evidence_std=float(np.hypot(last.log_evidence_std, moves)))


def unsettled(history: Sequence[Record], n_calls: int, log_evidence: float) -> float:
    """Root mean square of what log Z was off its present value in the last third of the calls.

    A run that has not converged says more by how its answer moves than by the error that its surrogate claims.
    """
    late = [h.log_evidence - log_evidence for h in history if h.n_evals >= LATE * n_calls]
    late = [x for x in late if np.isfinite(x)]
    largest = max(map(abs, late), default=0.0)  # whose square may overflow
    return largest * float(np.sqrt(np.mean(np.square(np.array(late) / largest)))) if largest else 0.0


def _stages(fitted: Fit, total: float) -> dict[str, float]:
    """Seconds by stage as the method has booked them; all of it is fitting for one that books nothing."""
    return dict(fitted.seconds) or {"fit": total}
