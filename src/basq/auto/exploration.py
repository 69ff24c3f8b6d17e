"""Exploration: points away from the known posterior, where another mode could be.

A second, cruder process on strongly compressed values sees the whole prior at once. The ends of ascents on its mean,
outside the bulk of the posterior, are searches for modes; the rest are points far from all data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from basq.auto.chart import Chart
from basq.auto.settings import Exploration, Settings
from basq.gp.fit import fit
from basq.gp.gp import GP
from basq.gp.kernels.trend import TrendKernel
from basq.numerics.linalg import square_distances
from basq.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Explorer:
    """A process on −√(a + gap to the best log-posterior), standardised, in standard space.

    The square root compresses: gaps of thousands of nats still have a slope to climb, small ones still differ.

    Attributes
    ----------
    gp : GP
    log_posterior : (n,) array
        At the points of the process; −inf stands at the lowest finite value.
    ascents : (n, d) array
        Where ascents from the process's own points end.
    n_searched : int
        Points when its hyperparameters were last looked for.
    settings : Exploration
    """

    gp: GP
    log_posterior: FloatArray
    ascents: FloatArray
    n_searched: int
    settings: Exploration

    @classmethod
    def fit(
        cls, u: FloatArray, log_posterior: FloatArray, previous: "Explorer | None", settings: Settings
    ) -> "Explorer":
        """Learn from points (n, d) and their log-posteriors (n,)."""
        own, d = settings.exploration, u.shape[1]
        finite = np.isfinite(log_posterior)
        levels = np.where(finite, log_posterior, log_posterior[finite].min())
        y = -np.sqrt(own.offset + d + levels.max() - levels)
        y = (y - y.mean()) / max(float(y.std()), 1e-3)
        if previous is not None and len(u) < own.growth * previous.n_searched:
            noise = np.full(len(u), own.noise**2 + 1e-8 * previous.gp.kernel.variance)  # as in the fit
            gp = previous.gp.grown(u, y, noise) or GP.condition(u, y, previous.gp.kernel, noise=noise)
            return cls(gp, levels, climb(gp, u, own), previous.n_searched, own)
        prior = replace(settings.kernel.trend, first=own.first)
        gp = fit(
            u,
            y,
            prior.start(np.empty((0, d))),
            noise=1e-8,
            known_noise=own.noise**2,
            hyperprior=prior.hyperprior(d),
            recalled=None if previous is None else previous.gp.optimum,
            max_steps=own.fit_steps,
        )
        return cls(gp, levels, climb(gp, u, own), len(u), own)

    def filled(self, log_posterior: FloatArray) -> FloatArray:
        """Log-posteriors (n,) with −inf at the lowest value of this process."""
        return np.where(np.isfinite(log_posterior), log_posterior, self.log_posterior.min())

    def same_basin(self, a: FloatArray, b: FloatArray) -> BoolArray:
        """Whether ends of ascents a (n, d) and b (m, d) are the same: (n, m)."""
        scales = self.gp.kernel.lengthscale
        return square_distances(a / scales, b / scales) < self.settings.same_basin

    def best_in_basin(self, ends: FloatArray) -> FloatArray:
        """Best log-posterior among the points whose ascents end at each of these (m, d): (m,)."""
        return np.where(self.same_basin(ends, self.ascents), self.log_posterior, -np.inf).max(axis=1, initial=-np.inf)


def climb(gp: GP, start: FloatArray, settings: Exploration) -> FloatArray:
    """Ascend a process's mean from many points (m, d) at once, each with its own step size until that is small."""
    kernel = gp.kernel
    assert isinstance(kernel, TrendKernel)
    ascent = kernel.weighted_slope(gp.x, gp.weights)
    edge = np.sqrt(chi2.ppf(settings.climb_edge, start.shape[1]))
    u, active, step = start.copy(), np.arange(len(start)), np.full(len(start), settings.climb_first)
    mean, slope = ascent(u)
    for _ in range(settings.climb_steps):
        trial = u[active] + (step / (np.linalg.norm(slope, axis=1) + 1e-12))[:, None] * slope
        trial *= np.minimum(1.0, edge / np.maximum(np.linalg.norm(trial, axis=1), 1e-12))[:, None]
        trial_mean, trial_slope = ascent(trial)
        better = trial_mean > mean
        u[active[better]] = trial[better]
        step = np.where(better, settings.climb_faster * step, settings.climb_slower * step)
        mean, slope = np.where(better, trial_mean, mean), np.where(better[:, None], trial_slope, slope)
        going = step > settings.climb_short
        active, step, mean, slope = active[going], step[going], mean[going], slope[going]
    return u


@dataclass(frozen=True)
class Bulk:
    """Posterior samples in their own metric: what counts as known.

    Attributes
    ----------
    chart : Chart
    points : (n, d) array
        Whitened.
    radius2 : float
        Squared distance beyond which a point is outside.
    """

    chart: Chart
    points: FloatArray
    radius2: float

    @classmethod
    def of(cls, chart: Chart, population: FloatArray, settings: Exploration) -> "Bulk":
        points = chart.whiten(population[: settings.bulk])
        own = square_distances(points, points)
        np.fill_diagonal(own, np.inf)
        usual = float(np.quantile(own.min(axis=1), settings.neighbour_quantile))
        return cls(chart, points, settings.neighbour**2 * usual)

    def contains(self, u: FloatArray) -> BoolArray:
        return square_distances(self.chart.whiten(u), self.points).min(axis=1) <= self.radius2


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
    own = explorer.settings
    anywhere = rng.standard_normal((own.starts, seen.shape[1]))
    ends = np.concatenate([explorer.ascents, climb(explorer.gp, anywhere, own)])
    scales = explorer.gp.kernel.lengthscale
    fresh = square_distances(ends / scales, seen / scales).min(axis=1) > own.fresh**2
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


def spread_points(seen: FloatArray, n: int, rng: np.random.Generator, settings: Exploration) -> FloatArray:
    """n prior points far from everything seen, alternately weighted by the prior and flat within its bulk."""
    d = seen.shape[1]
    pool = rng.standard_normal((settings.spread, d))
    radius2 = (pool * pool).sum(axis=1)
    weights = (np.exp(-radius2 / d), (radius2 < chi2.ppf(settings.spread_edge, d)).astype(float))
    distance = square_distances(pool, seen).min(axis=1)
    chosen = np.empty((n, d))
    for k in range(n):
        chosen[k] = pool[int(np.argmax(distance * weights[k % 2]))]
        distance = np.minimum(distance, ((pool - chosen[k]) ** 2).sum(axis=1))
    return chosen
