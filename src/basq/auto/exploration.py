"""Exploration: points away from the known posterior, where another mode could be.

A second, cruder process on strongly compressed values sees the whole prior at once. The ends of ascents on its mean,
outside the bulk of the posterior, are searches for modes; the rest are points far from all data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import chi2

from basq.auto.chart import Reference
from basq.gp.fit import fit
from basq.gp.gp import GP
from basq.gp.kernels.trend import TrendKernel
from basq.numerics.linalg import square_distances
from basq.types import BoolArray, FloatArray

NOISE = 1e-2
"""Noise sd of the standardised compressed values."""
GROWTH = 1.5
"""Growth of the number of points after which hyperparameters are looked for again: this process only points the way."""
NEIGHBOUR = 1.2
"""A point is outside the bulk if farther from it than this times the bulk's own largest nearest-neighbour distances."""
SAME_BASIN = 0.3
"""Squared distance, in lengthscales, below which two ends of ascents count as one."""
SHORT = 0.01
"""Step at which an ascent ends: what is asked of its end is which basin it lies in."""
SEARCHES = 0.75
"""Largest share of exploration points that are searches."""


@dataclass(frozen=True)
class Explorer:
    """A process on −√(a + gap to the best log-posterior), standardised, in standard space.

    The square root compresses: gaps of thousands of nats still have a slope to climb, small ones still differ.

    Attributes
    ----------
    gp : GP
    log_posterior : (n,) array
        At the points of the process; −inf stands at the lowest finite value.
    n_searched : int
        Points when its hyperparameters were last looked for.
    """

    gp: GP
    log_posterior: FloatArray
    n_searched: int

    @classmethod
    def fit(cls, u: FloatArray, log_posterior: FloatArray, previous: "Explorer | None") -> "Explorer":
        """Learn from points (n, d) and their log-posteriors (n,)."""
        d = u.shape[1]
        finite = np.isfinite(log_posterior)
        levels = np.where(finite, log_posterior, log_posterior[finite].min())
        y = -np.sqrt(5.0 + d + levels.max() - levels)
        y = (y - y.mean()) / max(float(y.std()), 1e-3)
        start = TrendKernel(np.full(d, np.sqrt(d)), 1.0, np.exp([-1.0, -2.0, -8.0]), np.exp(-12.0), np.empty((0, d)))
        if previous is not None and len(u) < GROWTH * previous.n_searched:
            noise = np.full(len(u), NOISE**2 + 1e-8 * previous.gp.kernel.variance)  # as in the fit
            gp = previous.gp.grown(u, y, noise) or GP.condition(u, y, previous.gp.kernel, noise=noise)
            return cls(gp, levels, previous.n_searched)
        gp = fit(
            u,
            y,
            start,
            noise=1e-8,
            known_noise=NOISE**2,
            hyperprior=start.hyperprior(),
            recalled=None if previous is None else previous.gp.optimum,
            max_steps=10,
        )
        return cls(gp, levels, len(u))

    def filled(self, log_posterior: FloatArray) -> FloatArray:
        """Log-posteriors (n,) with −inf at the lowest value of this process."""
        return np.where(np.isfinite(log_posterior), log_posterior, self.log_posterior.min())

    @cached_property
    def ascents(self) -> FloatArray:
        """Where ascents from the process's own points end: (n, d)."""
        return self.climb(self.gp.x)

    def climb(self, start: FloatArray, n_steps: int = 20) -> FloatArray:
        """Ascend the mean from many points (m, d) at once, each with its own step size until that is small."""
        kernel = self.gp.kernel
        assert isinstance(kernel, TrendKernel)
        ascent = kernel.weighted_slope(self.gp.x, self.gp.weights)
        edge = np.sqrt(chi2.ppf(0.9999, start.shape[1]))
        u, active, step = start.copy(), np.arange(len(start)), np.full(len(start), 0.3)
        mean, slope = ascent(u)
        for _ in range(n_steps):
            trial = u[active] + (step / (np.linalg.norm(slope, axis=1) + 1e-12))[:, None] * slope
            trial *= np.minimum(1.0, edge / np.maximum(np.linalg.norm(trial, axis=1), 1e-12))[:, None]
            trial_mean, trial_slope = ascent(trial)
            better = trial_mean > mean
            u[active[better]] = trial[better]
            step = np.where(better, 1.3 * step, 0.4 * step)
            mean, slope = np.where(better, trial_mean, mean), np.where(better[:, None], trial_slope, slope)
            going = step > SHORT
            active, step, mean, slope = active[going], step[going], mean[going], slope[going]
        return u

    def same_basin(self, a: FloatArray, b: FloatArray) -> BoolArray:
        """Whether ends of ascents a (n, d) and b (m, d) are the same: (n, m)."""
        scales = self.gp.kernel.lengthscale
        return square_distances(a / scales, b / scales) < SAME_BASIN

    def best_in_basin(self, ends: FloatArray) -> FloatArray:
        """Best log-posterior among the points whose ascents end at each of these (m, d): (m,)."""
        return np.where(self.same_basin(ends, self.ascents), self.log_posterior, -np.inf).max(axis=1, initial=-np.inf)


@dataclass(frozen=True)
class Bulk:
    """Posterior samples in their own metric: what counts as known.

    Attributes
    ----------
    reference : Reference
    points : (n, d) array
        Whitened.
    radius2 : float
        Squared distance beyond which a point is outside.
    """

    reference: Reference
    points: FloatArray
    radius2: float

    @classmethod
    def of(cls, reference: Reference, population: FloatArray) -> "Bulk":
        points = reference.whiten(population[:400])
        own = square_distances(points, points)
        np.fill_diagonal(own, np.inf)
        return cls(reference, points, NEIGHBOUR**2 * float(np.quantile(own.min(axis=1), 0.99)))

    def contains(self, u: FloatArray) -> BoolArray:
        return square_distances(self.reference.whiten(u), self.points).min(axis=1) <= self.radius2


def outside(bulks: Sequence[Bulk], u: FloatArray) -> BoolArray:
    """Whether points u (m, d) lie outside every bulk: (m,)."""
    return ~np.any([b.contains(u) for b in bulks], axis=0)


def searches(explorer: Explorer, seen: FloatArray, bulks: Sequence[Bulk], rng: np.random.Generator) -> FloatArray:
    """Ends of ascents outside the bulk, one per basin, most promising first: (m, d).

    Parameters
    ----------
    seen : (n, d) array
        All observed points; an end that was observed already is no search.
    """
    d = seen.shape[1]
    ends = np.concatenate([explorer.ascents, explorer.climb(rng.standard_normal((200, d)))])
    scales = explorer.gp.kernel.lengthscale
    fresh = square_distances(ends / scales, seen / scales).min(axis=1) > 0.05**2
    ends = ends[outside(bulks, ends) & fresh]
    if not len(ends):
        return ends
    p = explorer.gp.predict(ends)
    ends = ends[np.argsort(-(p.mean + np.sqrt(p.var)), kind="stable")]
    same = np.tril(explorer.same_basin(ends, ends), -1)
    first = np.ones(len(ends), dtype=bool)
    for i in range(len(ends)):
        first[i] = not (same[i] & first).any()
    return ends[first]


def spread_points(seen: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """n prior points far from everything seen, alternately weighted by the prior and flat within its bulk."""
    d = seen.shape[1]
    pool = rng.standard_normal((3000, d))
    radius2 = (pool * pool).sum(axis=1)
    weights = (np.exp(-radius2 / d), (radius2 < chi2.ppf(0.995, d)).astype(float))
    distance = square_distances(pool, seen).min(axis=1)
    chosen = np.empty((n, d))
    for k in range(n):
        chosen[k] = pool[int(np.argmax(distance * weights[k % 2]))]
        distance = np.minimum(distance, ((pool - chosen[k]) ** 2).sum(axis=1))
    return chosen
