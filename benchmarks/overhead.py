"""What the tool itself costs: time by stage, against the least that the method needs on this machine.

    python -m benchmarks.overhead            # all sizes (20 minutes)
    python -m benchmarks.overhead --quick    # the sizes of the targets (3 minutes)
    python -m benchmarks.overhead --peers    # also PyVBMC, at equal calls (10 minutes more)

One batch is timed after two warm-up fits, with one BLAS thread below the size where two pay and all above, as in a run.
The floor is one Cholesky factorisation of the n × n kernel matrix, one N × n kernel evaluation and one product of N × n
and n × b matrices (N = 20,000), timed alone in the same process. Everything that matters is a ratio to it. The last line
is JSON.
"""

import argparse
import json
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import basq
from basq.auto import Auto
from basq.evaluation.call import Outcome
from basq.evaluation.store import Store
from basq.linalg import blas_threads, cholesky
from basq.observations import Observations
from basq.surrogate.kernels import make_kernel

N_CANDIDATES = 20_000
STAGES = {
    "paper": {
        "fit": ["basq.paper.fit"],
        "candidates": ["basq.paper.propose"],
        "features": ["basq.paper.nystrom_features"],
        "recombination": ["basq.paper.recombine"],
    },
    "auto": {
        "fit": ["basq.surrogate.log_model.fit", "basq.selection.exploration.fit"],
        "candidates": ["basq.cells.temper", "basq.batches.selection_measure"],
        "features": ["basq.batches.nystrom_features"],
        "recombination": ["basq.batches.recombine"],
        "evidence": ["basq.cells.estimate"],
        "audit": ["basq.auto.audit"],
        "exploration": ["basq.auto.explore", "basq.auto.Scout.send", "basq.auto.find_suspect"],
    },
}
METHODS: dict[str, Any] = {"paper": basq.Paper(), "auto": Auto()}


@dataclass
class Stopwatch:
    """Seconds by stage; a stage inside another counts as itself only."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _running: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._tick()
        self._running.append(name)
        try:
            yield
        finally:
            self._tick()
            self._running.pop()

    def _tick(self) -> None:
        now = time.perf_counter()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    @contextmanager
    def watching(self, stages: dict[str, list[str]]) -> Iterator[None]:
        """Time every call of some functions as stages."""
        with ExitStack() as stack:
            for name, places in stages.items():
                for place in places:
                    stack.enter_context(patch(place, self._timed(name, _find(place))))
            yield

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            with self.stage(name):
                return function(*args, **options)

        return timed


def _find(place: str) -> Any:
    """The object at a dotted path."""
    module, _, name = place.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_find(module), name)


def observations(problem: basq.problems.Problem, n: int) -> Observations:
    """A run's points: a quarter from the prior, the rest about the posterior."""
    rng = np.random.default_rng(0)
    wide = problem.prior.sample(n // 4, rng)
    narrow = problem.sample_posterior(n - len(wide), rng)
    x = np.concatenate([wide, narrow + 0.3 * narrow.std(axis=0) * rng.standard_normal(narrow.shape)])
    x = x[rng.permutation(n)]
    u = problem.prior.to_standard(x)
    values = problem.log_likelihood(x)
    explores, batch = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.intp)
    return Observations(x, u, values, prior_weight(problem, u), np.zeros(n), explores, batch)


def prior_weight(problem: basq.problems.Problem, u: np.ndarray) -> np.ndarray:
    return np.asarray(problem.prior.log_weight(u))


def first(seen: Observations, n: int) -> Observations:
    return seen.where(np.arange(len(seen)) < n)


def one_batch(name: str, n: int, d: int, batch_size: int) -> dict[str, float]:
    """Seconds by stage of a step that ends with n observations, and of what a user asks for afterwards."""
    problem, method = basq.problems.mixture(d), METHODS[name]
    seen, fitted, none = observations(problem, n), None, np.empty((0, d))
    watch = Stopwatch()
    with blas_threads(n):
        for size in (n - 2 * batch_size, n - batch_size):
            fitted = method.fit(first(seen, max(size, n // 2)), problem.prior, fitted, np.random.default_rng(size))
            method.select(fitted, batch_size, np.random.default_rng(1), cost_ratio=0.0, taken=none)
        with watch.watching(STAGES[name]), watch.stage("rest"):
            fitted = method.fit(seen, problem.prior, fitted, np.random.default_rng(2))
            with watch.stage("evidence"):
                _ = fitted.log_evidence, fitted.log_evidence_std
            method.select(fitted, batch_size, np.random.default_rng(3), cost_ratio=0.0, taken=none)
        batch = sum(watch.seconds.values())
        with watch.stage("posterior sampling"):
            fitted.posterior.sample(1000, np.random.default_rng(4))
    return {**watch.seconds, "store": store_time(problem, seen, batch_size), "batch": batch}


def store_time(problem: basq.problems.Problem, seen: Observations, batch_size: int) -> float:
    """Seconds for the calls of a batch in the store, committed together."""
    with (
        TemporaryDirectory(dir=".", prefix=".bench-") as directory,
        Store(Path(directory, "s.sqlite"), problem.n_dim) as store,
    ):
        start = time.perf_counter()
        ids = store.add(seen.x[:batch_size], seen.u[:batch_size], False, 0)
        store.finish([(int(i), Outcome(0.0)) for i in ids])
        store.learned(0, store.news(), {})
        return time.perf_counter() - start


def floor(n: int, d: int, batch_size: int) -> dict[str, float]:
    """Seconds of the three operations that no implementation can do without, best of three."""
    rng = np.random.default_rng(0)
    x, candidates, columns = (rng.standard_normal(s) for s in ((n, d), (N_CANDIDATES, d), (n, batch_size)))
    kernel = make_kernel("rbf", d, lengthscale=np.sqrt(d), variance=1.0)
    k = kernel(x, x) + 1e-6 * np.eye(n)
    out = {}
    with blas_threads(n):
        for name, work in (
            ("cholesky", lambda: cholesky(k)),
            ("kernel", lambda: kernel(candidates, x)),
            ("product", lambda: kernel_matrix @ columns),
        ):
            times = []
            for _ in range(3):
                start = time.perf_counter()
                result = work()
                times.append(time.perf_counter() - start)
            if name == "kernel":
                kernel_matrix = result
            out[name] = min(times)
    return out


def peak_memory(name: str, n: int, d: int, batch_size: int) -> float:
    """Largest memory of a step beyond what was there before, in GB."""
    tracemalloc.start()
    one_batch(name, n, d, batch_size)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e9


def gradients_per_batch(name: str) -> float:
    """Marginal-likelihood gradients per batch of a run, after the third batch."""
    from basq.surrogate import fit as module

    counts, original = [0], module.negative_log_posterior

    def counted(*args: Any, **options: Any) -> Any:
        counts[-1] += 1
        return original(*args, **options)

    problem = basq.problems.lumpy(4) if name == "auto" else basq.problems.mixture(4)
    with patch("basq.surrogate.fit.negative_log_posterior", counted):
        basq.infer(
            problem.log_likelihood, problem.prior, method=METHODS[name], vectorized=True, max_evals=256, dlogz=0.0, seed=0,
            progress=False, callback=lambda _: counts.append(0),
        )  # fmt: skip
    return float(np.mean(counts[3:-1]))


if __name__ == "__main__":
    import sys

    name, n, d, b = sys.argv[1], *map(int, sys.argv[2:5])
    f = floor(n, d, b)
    print("floor", {k: round(v, 4) for k, v in f.items()}, round(sum(f.values()), 3))
    for _ in range(2):
        s = one_batch(name, n, d, b)
        print({k: round(v, 3) for k, v in s.items()}, "ratio", round(s["batch"] / sum(f.values()), 2))
    print("gradients", gradients_per_batch(name))
