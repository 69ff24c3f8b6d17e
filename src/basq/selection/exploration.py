"""Exploration: points away from the known posterior, where another mode could be.

A second, cruder process on strongly compressed values sees the whole prior at once. The ends of ascents on its mean,
outside the bulk of the posterior, are searches for modes; the rest are points far from all data.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from basq.linalg import square_distances
from basq.surrogate.fit import fit
from basq.surrogate.gp import GP
from basq.surrogate.reference import Reference
from basq.surrogate.trend import TrendKernel
from basq.types import FloatArray

NOISE = 1e-2
"""Noise sd of the standardised compressed values."""
NEIGHBOUR = 1.2
"""A point is outside the bulk if farther from it than this times the bulk's own largest nearest-neighbour distances."""


@dataclass(frozen=True)
class Explorer:
    """A process on −√(a + gap to the best log-posterior), standardised, in standard space.

    Attributes
    ----------
    gp : GP
    offset : float
        a, in nats: gaps below it hardly count.
    centre, unit : float
        Of the standardisation.
    """

    gp: GP
    offset: float
    centre: float
    unit: float

    @classmethod
    def fit(cls, u: FloatArray, log_posterior: FloatArray, previous: "Explorer | None") -> "Explorer":
        """Learn from points (n, d) and their log-posteriors (n,); −inf counts as the lowest finite value."""
        d = u.shape[1]
        finite = np.isfinite(log_posterior)
        levels = np.where(finite, log_posterior, log_posterior[finite].min())
        offset = 5.0 + d
        y = -np.sqrt(offset + levels.max() - levels)
        centre, unit = float(y.mean()), max(float(y.std()), 1e-3)
        start = TrendKernel(np.full(d, np.sqrt(d)), 1.0, np.exp([-1.0, -2.0, -8.0]), np.exp(-12.0), np.empty((0, d)))
        kernel = start if previous is None else start.with_theta(previous.gp.kernel.theta)
        gp = fit(
            u,
            (y - centre) / unit,
            kernel,
            noise=1e-8,
            known_noise=NOISE**2,
            hyperprior=start.hyperprior(),
            max_steps=20,
        )
        return cls(gp, offset, centre, unit)

    def level(self, gap: float) -> float:
        """Standardised value of a point this many nats below the best."""
        return (-float(np.sqrt(self.offset + gap)) - self.centre) / self.unit

    def climb(self, start: FloatArray, n_steps: int = 30) -> tuple[FloatArray, FloatArray]:
        """Ascend the mean from many points (m, d) at once; returns the ends and their means."""
        kernel = self.gp.kernel
        assert isinstance(kernel, TrendKernel)
        u, mean = start, self.gp.predict_mean(start)
        slope = kernel.weighted_gradient(u, self.gp.x, self.gp.weights)
        step = np.full(len(u), 0.3)
        edge = np.sqrt(chi2.ppf(0.9999, u.shape[1]))
        for _ in range(n_steps):
            trial = u + step[:, None] * slope / (np.linalg.norm(slope, axis=1)[:, None] + 1e-12)
            trial *= np.minimum(1.0, edge / np.linalg.norm(trial, axis=1))[:, None]
            trial_mean = self.gp.predict_mean(trial)
            better = trial_mean > mean
            u, mean = np.where(better[:, None], trial, u), np.where(better, trial_mean, mean)
            slope = kernel.weighted_gradient(u, self.gp.x, self.gp.weights)
            step = np.where(better, 1.3 * step, 0.4 * step)
        return u, mean


def explore(
    explorer: Explorer,
    reference: Reference,
    population: FloatArray,
    batch: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, int]:
    """Choose n exploration points.

    Parameters
    ----------
    population : (N, d) array
        Posterior samples: the bulk to stay away from.
    batch : (b, d) array
        Points chosen already.

    Returns
    -------
    points : (n, d) array
    n_open : int
        Searches that could still end in a mode.
    """
    searches = open_searches(explorer, reference, population, rng)
    found = searches[: (3 * n + 3) // 4]
    seen = np.concatenate([explorer.gp.x, batch, found])
    return np.concatenate([found, spread_points(seen, n - len(found), rng)]), len(searches)


def open_searches(
    explorer: Explorer, reference: Reference, population: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Local maxima of the explorer outside the bulk that could still reach the posterior, most promising first."""
    d = population.shape[1]
    ends, mean = explorer.climb(np.concatenate([explorer.gp.x, rng.standard_normal((200, d))]))
    sd = np.sqrt(explorer.gp.predict(ends).var)
    promising = (mean + 2.0 * sd > explorer.level(5.0 + 2.0 * d)) & (sd > 0.02)
    promising &= outside(ends, reference, population, rng)
    chosen: list[FloatArray] = []
    scales = explorer.gp.kernel.lengthscale
    for i in np.argsort(-(mean + sd), kind="stable"):
        if promising[i]:
            near = [float((((ends[i] - c) / scales) ** 2).sum()) < 0.3 for c in chosen]
            if not any(near):
                chosen.append(ends[i])
    return np.array(chosen).reshape(-1, d)


def outside(u: FloatArray, reference: Reference, population: FloatArray, rng: np.random.Generator) -> np.ndarray:
    """Whether points (m, d) lie outside the bulk of the population: (m,) bool."""
    bulk = reference.whiten(population[rng.choice(len(population), min(400, len(population)), replace=False)])
    own = square_distances(bulk, bulk)
    np.fill_diagonal(own, np.inf)
    radius2 = NEIGHBOUR**2 * np.quantile(own.min(axis=1), 0.99)
    return square_distances(reference.whiten(u), bulk).min(axis=1) > radius2


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
