"""Algorithm 1 of the paper: choose a batch, evaluate it, learn, integrate, repeat."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from basq.errors import EvaluationError
from basq.evaluation.pool import Evaluate
from basq.linalg import blas_threads
from basq.method import Batch, Fit, Method
from basq.observations import Observations
from basq.prior import Prior
from basq.stopping import Stopping, Verdict


@dataclass(frozen=True)
class Record:
    """One line of a run's history.

    Attributes
    ----------
    n_evals : int
        Calls so far.
    log_evidence, log_evidence_std : float
    seconds : dict
        Time of the batch by stage: select, evaluate, fit, integrate.
    info : dict
        What the selection had to say.
    """

    n_evals: int
    log_evidence: float
    log_evidence_std: float
    seconds: dict[str, float]
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """Everything known after a batch; replaced, never changed."""

    observations: Observations
    fitted: Fit
    verdict: Verdict
    history: tuple[Record, ...]


def run(
    prior: Prior,
    method: Method[Any],
    evaluate: Evaluate,
    stopping: Stopping,
    *,
    batch_size: int,
    known: Observations,
    rng: np.random.Generator,
) -> Iterator[State]:
    """Yield the state after every batch, until the stopping rule speaks.

    The numbers are the lines of Algorithm 1.
    """
    observations, fitted = known, None
    history: tuple[Record, ...] = ()
    clock = Clock()
    batch = initial_design(prior, method, batch_size, stopping.max_evals, len(known), rng)  # 1
    while True:
        with clock("evaluate"):
            observations = extend(observations, batch, prior, evaluate)  # 11
        with clock("fit"), blas_threads(len(observations)):
            fitted = method.fit(observations, prior, fitted, rng)  # 12-13
        with clock("integrate"), blas_threads(len(observations)):
            evidence = fitted.log_evidence, fitted.log_evidence_std  # 15
        history = (*history, Record(len(observations), *evidence, dict(clock.last), batch.info))
        verdict = stopping.judge(fitted, len(observations))  # 3
        yield State(observations, fitted, verdict, history)  # 16
        if verdict.stop:
            return
        size = min(batch_size, stopping.max_evals - len(observations))
        with clock("select"), blas_threads(len(observations)):
            batch = method.select(fitted, size, rng, cost_ratio=clock.ratio("evaluate", "select"))  # 4-10


def initial_design(
    prior: Prior, method: Method[Any], batch_size: int, max_evals: int, n_known: int, rng: np.random.Generator
) -> Batch:
    """Spread the first points evenly over the prior; none if enough values were given."""
    if n_known >= method.initial_size(prior.n_dim):
        return Batch(np.empty((0, prior.n_dim)))
    size = batch_size * math.ceil(method.initial_size(prior.n_dim) / batch_size)  # whole batches: no idle worker
    return Batch(prior.measure.sample_quasi(min(size, max_evals - n_known), rng))


def extend(observations: Observations, batch: Batch, prior: Prior, evaluate: Evaluate) -> Observations:
    """Evaluate a batch and append it; a failure carries everything that was paid for before it."""
    if not len(batch.u):
        return observations
    x = prior.from_standard(batch.u)
    try:
        log_likelihood, noise = evaluate(x).T
    except EvaluationError as error:
        error.add_note(f"{len(observations)} earlier evaluations are in this error's attribute `observations`.")
        error.observations = observations
        raise
    log_weight = prior.log_weight(batch.u)
    return observations.append(x, batch.u, log_likelihood, log_weight, noise=noise, explores=batch.explores)


class Clock:
    """Seconds of the last run of each stage."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}
        self._stage, self._start = "", 0.0

    def __call__(self, stage: str) -> "Clock":
        self._stage = stage
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.last[self._stage] = time.perf_counter() - self._start

    def ratio(self, a: str, b: str) -> float:
        """How much longer stage a took than stage b, in the last batch; 0 if unknown."""
        return self.last.get(a, 0.0) / self.last[b] if self.last.get(b) else 0.0
