"""The density of a parameter on a circle."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri

from basq.numerics.metropolis import LogDensity
from basq.posterior.sampled import GRID, GridDensity, SampledPosterior
from basq.posterior.smooth import MARGIN, log_density_1d
from basq.prior import Prior
from basq.prior.marginals import log_phi
from basq.prior.periodic import LEAST_PROBABILITY, emptiest
from basq.types import FloatArray


@dataclass(frozen=True)
class CircleDensity:
    """Density of a periodic parameter, zero outside the bounds of its prior.

    Mean, variance, distribution function and quantiles are those of the circle cut where it is emptiest: an interval
    may lead over the end of the prior and on from its beginning.

    Attributes
    ----------
    line : GridDensity
        Over values from the cut on, which may lie beyond the bounds.
    start : float
        The cut.
    bounds : tuple of float
        Of the prior.
    """

    line: GridDensity
    start: float
    bounds: tuple[float, float]

    @property
    def n_dim(self) -> int:
        return 1

    @property
    def period(self) -> float:
        return self.bounds[1] - self.bounds[0]

    def unrolled(self, t: ArrayLike) -> FloatArray:
        """Values t (k,) of the parameter, counted from the cut on."""
        out: FloatArray = self.start + (np.ravel(np.asarray(t, dtype=float)) - self.start) % self.period
        return out

    def _within(self, t: FloatArray) -> FloatArray:
        """Inverse of `unrolled`."""
        return self.bounds[0] + (t - self.bounds[0]) % self.period

    def pdf(self, t: ArrayLike) -> FloatArray:
        """Density at t (k,) or (k, 1): (k,)."""
        given = np.ravel(np.asarray(t, dtype=float))
        inside = (given >= self.bounds[0]) & (given <= self.bounds[1])
        return np.where(inside, self.line.pdf(self.unrolled(given)), 0.0)

    def log_pdf(self, t: ArrayLike) -> FloatArray:
        """Log-density, −inf where there is none."""
        values = self.pdf(t)
        return np.log(values, out=np.full_like(values, -np.inf), where=values > 0)

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Mass between the cut and t (k,)."""
        return self.line.cdf(self.unrolled(t))

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles at levels q (k,), counted from the cut on."""
        return self._within(self.line.ppf(q))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (1,) and covariance (1, 1)."""
        mean, cov = self.line.moments()
        return self._within(mean), cov

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, 1)."""
        return self._within(self.line.sample(n, rng))


def on_circle(prior: Prior, i: int, posterior: SampledPosterior) -> CircleDensity:
    """Density of a periodic parameter."""
    if posterior.n_dim == 1:
        return around(prior, i, posterior.log_pdf, ndtr(posterior.points[:, 0]), np.exp(posterior.log_weights))
    p = ndtr(posterior.population[:, i])
    cut = emptiest(p, np.full(len(p), 1.0 / len(p)))
    return _cut(prior, i, cut, *_smoothed((p - cut) % 1.0))


def around(prior: Prior, i: int, log_pdf: LogDensity, p: FloatArray, weights: FloatArray) -> CircleDensity:
    """Density of a periodic parameter from its log-density in standard space, (m, 1) -> (m,).

    Points of it, by their probabilities p (n,) and weights (n,), show where it is emptiest, and where it has to be
    looked at closely.
    """
    cut = emptiest(p, weights)
    nodes = np.union1d(np.linspace(0.0, 1.0, GRID), np.quantile((p - cut) % 1.0, np.linspace(0.0, 1.0, GRID)))
    return _cut(prior, i, cut, nodes, _log_ratio(log_pdf, (nodes + cut) % 1.0))


def held(prior: Prior, i: int, log_density: LogDensity) -> CircleDensity:
    """Density of a periodic parameter when all others are held, from its log-density in standard space."""
    p = np.linspace(0.0, 1.0, 4 * GRID, endpoint=False)
    log_ratio = _log_ratio(log_density, p)
    weights = np.exp(log_ratio - log_ratio.max())
    return around(prior, i, log_density, p, weights / weights.sum())


def _log_ratio(log_pdf: LogDensity, p: FloatArray) -> FloatArray:
    """Log of a density in standard space over the prior's at probabilities p (m,): (m,)."""
    u = ndtri(np.clip(p, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))
    out: FloatArray = log_pdf(u[:, None]) - log_phi(u)
    return out


def _cut(prior: Prior, i: int, cut: float, nodes: FloatArray, log_ratio: FloatArray) -> CircleDensity:
    low, high = (float(b) for b in prior.bounds[i])
    start = low + (high - low) * cut
    return CircleDensity(GridDensity.from_log(start + (high - low) * nodes, log_ratio), start, (low, high))


def _smoothed(turns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-density of samples (n,) on a circle of length one, up to a constant, at places within it: (m,) and (m,)."""
    near = MARGIN * float(turns.std())
    around = turns.min() < near and 1.0 - turns.max() < near
    if around:  # beyond either end it goes on as from the other one
        turns = np.concatenate([turns[turns > 0.5] - 1.0, turns, turns[turns <= 0.5] + 1.0])
    bins, log_density = log_density_1d(turns, (-0.5, 1.5) if around else (0.0, 1.0))
    nodes = np.linspace(0.0, 1.0, GRID) if around else np.linspace(bins[0], bins[-1], GRID)
    return nodes, CubicSpline(bins, log_density)(nodes)
