"""The posterior of a surrogate without closed forms: a density that can be evaluated, and weighted points."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp
from scipy.stats import gaussian_kde

from basq.errors import InputError
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import blas_threads, log_det
from basq.numerics.metropolis import LogDensity, metropolis
from basq.posterior.smooth import log_density_1d
from basq.types import FloatArray, IntArray

GRID = 2001
"""Points of a one-dimensional density's grid."""

N_POPULATION = 4000
"""Equal-weight samples that a posterior keeps."""

N_CONDITIONAL = 2**13
"""Points that represent a conditional of two or more coordinates."""


@dataclass(frozen=True)
class GridDensity:
    """A one-dimensional density on a fine grid.

    Attributes
    ----------
    grid : (m,) array, increasing
    values : (m,) array
        Density, integrates to one by the trapezoidal rule.
    """

    grid: FloatArray
    values: FloatArray

    @property
    def n_dim(self) -> int:
        return 1

    @classmethod
    def from_log(cls, grid: FloatArray, log_values: FloatArray) -> "GridDensity":
        """Normalise exp(log_values) over the grid."""
        values = np.exp(log_values - log_values.max())
        return cls(grid, values / np.trapezoid(values, grid))

    @cached_property
    def _cumulative(self) -> FloatArray:
        panels = 0.5 * np.diff(self.grid) * (self.values[1:] + self.values[:-1])
        total: FloatArray = np.concatenate([[0.0], np.cumsum(panels)])
        return total / total[-1]

    def pdf(self, t: ArrayLike) -> FloatArray:
        """Density at t (k,) or (k, 1): (k,)."""
        out: FloatArray = np.interp(np.ravel(np.asarray(t, dtype=float)), self.grid, self.values, left=0.0, right=0.0)
        return out

    def log_pdf(self, t: ArrayLike) -> FloatArray:
        """Log-density, −inf off the grid."""
        values = self.pdf(t)
        return np.log(values, out=np.full_like(values, -np.inf), where=values > 0)

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Distribution function at t (k,)."""
        out: FloatArray = np.interp(np.ravel(np.asarray(t, dtype=float)), self.grid, self._cumulative)
        return out

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles at levels q (k,)."""
        levels = np.atleast_1d(np.asarray(q, dtype=float))
        if not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise InputError(f"Quantile levels must lie in [0, 1], got {levels}.")
        out: FloatArray = np.interp(levels, self._cumulative, self.grid)
        return out

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (1,) and covariance (1, 1)."""
        mean = np.trapezoid(self.grid * self.values, self.grid)
        var = np.trapezoid((self.grid - mean) ** 2 * self.values, self.grid)
        return np.array([mean]), np.array([[var]])

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, 1)."""
        return self.ppf(rng.random(n))[:, None]


@dataclass(frozen=True)
class KernelDensity:
    """Several coordinates' density, smoothed from samples.

    Attributes
    ----------
    points : (n, d) array
        Equal-weight samples.
    """

    points: FloatArray

    @property
    def n_dim(self) -> int:
        return self.points.shape[1]

    @cached_property
    def _kde(self) -> gaussian_kde:
        return gaussian_kde(self.points.T)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at the rows of x (k, d): (k,)."""
        out: FloatArray = self._kde(np.atleast_2d(np.asarray(x, dtype=float)).reshape(-1, self.n_dim).T)
        return out

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at the rows of x."""
        out: FloatArray = self._kde.logpdf(np.atleast_2d(np.asarray(x, dtype=float)).reshape(-1, self.n_dim).T)
        return out

    def cdf(self, t: ArrayLike) -> FloatArray:
        raise InputError(f"cdf needs one parameter, this density has {self.n_dim}; take a marginal first.")

    ppf = cdf

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d)."""
        return self.points.mean(axis=0), np.cov(self.points.T).reshape(self.n_dim, self.n_dim)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n of the samples: (n, d)."""
        return self.points[rng.choice(len(self.points), size=n, replace=n > len(self.points))]


@dataclass(frozen=True)
class Moved:
    """Log-density of a x + b, where x has a known one; a class, so that it can be pickled."""

    log_density: LogDensity
    inverse: FloatArray
    offset: FloatArray
    log_det: float

    def __call__(self, x: FloatArray) -> FloatArray:
        return self.log_density((x - self.offset) @ self.inverse.T) - self.log_det


@dataclass(frozen=True)
class Slice:
    """Log-density of the free coordinates, with the others held at a value; log_norm is what normalises it."""

    log_density: LogDensity
    free: IntArray
    fixed: IntArray
    value: FloatArray
    log_norm: float = 0.0

    def __call__(self, x: FloatArray) -> FloatArray:
        full = np.empty((len(x), len(self.free) + len(self.fixed)))
        full[:, self.fixed], full[:, self.free] = self.value, x
        return self.log_density(full) - self.log_norm


@dataclass(frozen=True)
class SampledPosterior:
    """A normalised log-density with weighted points that represent it.

    Attributes
    ----------
    log_density : callable, (m, d) -> (m,)
        Log posterior density in standard space.
    points : (N, d) array
    log_weights : (N,) array
        Normalised.
    seed : int
        Of the equal-weight samples.
    n_moves : int
        Metropolis moves that bring these into equilibrium; 0 if the points are such samples already.
    """

    log_density: LogDensity
    points: FloatArray
    log_weights: FloatArray
    seed: int
    n_moves: int

    plain_cached: ClassVar = ("population",)

    @classmethod
    def build(
        cls,
        log_density: LogDensity,
        points: FloatArray,
        log_weights: FloatArray,
        rng: np.random.Generator,
        *,
        n_moves: int = 20,
    ) -> "SampledPosterior":
        """Normalise the weights."""
        return cls(log_density, points, log_weights - logsumexp(log_weights), int(rng.integers(2**31)), n_moves)

    @cached_property
    def population(self) -> FloatArray:
        """Equal-weight samples: the weighted points, resampled and moved into equilibrium; made when first needed."""
        if self.n_moves == 0:
            return self.points
        rng = np.random.default_rng(self.seed)
        start = self.points[rng.choice(len(self.points), size=N_POPULATION, p=np.exp(self.log_weights))]
        with blas_threads(self.n_dim):
            return metropolis(self.log_density, start, self._steps, rng, n_moves=self.n_moves)

    @property
    def _steps(self) -> FloatArray:
        """Covariance for Metropolis moves (d, d); the points may all be one."""
        return self.moments()[1] + 1e-12 * np.eye(self.n_dim)

    @property
    def n_dim(self) -> int:
        return self.points.shape[1]

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at the rows of x (k, d): (k,)."""
        out: FloatArray = np.exp(self.log_pdf(x))
        return out

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at the rows of x (k, d): (k,)."""
        return self.log_density(np.atleast_2d(np.asarray(x, dtype=float)).reshape(-1, self.n_dim))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d), from the weighted points."""
        weights = np.exp(self.log_weights)
        mean = weights @ self.points
        centred = self.points - mean
        return mean, (weights[:, None] * centred).T @ centred

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, d)."""
        if n <= len(self.population):
            return self.population[rng.choice(len(self.population), size=n, replace=False)]
        start = self.population[rng.integers(len(self.population), size=n)]
        return metropolis(self.log_density, start, self._steps, rng)

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Distribution function at t (k,), of a single coordinate."""
        return self.line.cdf(t)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles at levels q (k,), of a single coordinate."""
        return self.line.ppf(q)

    @cached_property
    def line(self) -> GridDensity:
        """The density of a single coordinate on a grid."""
        if self.n_dim > 1:
            raise InputError(f"This needs one parameter, this density has {self.n_dim}; take a marginal first.")
        return _on_grid(self.log_density, self.points[:, 0])

    def affine(self, a: FloatArray, b: FloatArray) -> "SampledPosterior":
        """Posterior of a x + b."""
        return SampledPosterior(
            Moved(self.log_density, np.asarray(np.linalg.inv(a), dtype=float), b, log_det(a)),
            self.points @ a.T + b,
            self.log_weights,
            self.seed,
            self.n_moves,
        )

    def marginal(self, dims: list[int]) -> "GridDensity | KernelDensity | SampledPosterior":
        """Density of some coordinates, smoothed from the population; of all of them it is the density itself."""
        if self.n_dim == 1:
            return self.line
        if dims == list(range(self.n_dim)):
            return self
        if len(dims) == self.n_dim:
            return self.affine(np.eye(self.n_dim)[dims], np.zeros(self.n_dim))
        points = self.population[:, dims]
        return smooth_1d(points[:, 0]) if len(dims) == 1 else KernelDensity(points)

    def conditional(self, fixed: list[int], value: ArrayLike) -> "GridDensity | SampledPosterior":
        """Density of the other coordinates given some, from the log-density itself."""
        free = np.setdiff1d(np.arange(self.n_dim), fixed)
        held, at = np.asarray(fixed, dtype=np.intp), np.asarray(value, dtype=float)
        density = Slice(self.log_density, free, held, at)
        if len(free) == 1:
            return _on_grid(density, self.points[:, free[0]])
        rng = np.random.default_rng(0)  # a fixed stream: a conditional is a property of the result
        proposal = self._gaussian_guess(free, held, at)
        points = proposal.sample_quasi(N_CONDITIONAL, rng)
        log_w = density(points) - proposal.log_pdf(points)
        log_total = float(logsumexp(log_w) - np.log(len(log_w)))
        _check_mass(log_total)
        return SampledPosterior.build(replace(density, log_norm=log_total), points, log_w, rng)

    def _gaussian_guess(self, free: IntArray, fixed: IntArray, value: FloatArray) -> GaussianMixture:
        """Where the free coordinates may be: the marginal and the conditional of a Gaussian of the same moments."""
        mean, cov = self.moments()
        gain = np.linalg.solve(cov[np.ix_(fixed, fixed)], cov[np.ix_(fixed, free)])
        marginal = cov[np.ix_(free, free)]
        means = np.stack([mean[free], mean[free] + (value - mean[fixed]) @ gain])
        # twice the covariance, so that the weights stay bounded where the density has somewhat heavier tails
        covs = 2.0 * np.stack([marginal, marginal - cov[np.ix_(free, fixed)] @ gain])
        return GaussianMixture(np.array([0.5, 0.5]), means, covs)


def _on_grid(log_density: LogDensity, spread: FloatArray) -> GridDensity:
    """Normalise a one-dimensional log-density over a grid that zooms in on its own mass, denser where points crowd."""
    low, high = float(spread.min()), float(spread.max())
    crowd = np.quantile(spread, np.linspace(0.0, 1.0, GRID))
    for _ in range(3):
        grid = np.union1d(np.linspace(low, high, GRID), crowd[(crowd > low) & (crowd < high)])
        log_values = log_density(grid[:, None])
        _check_mass(float(log_values.max()))
        inside = grid[log_values > log_values.max() - 40.0]
        margin = 2.0 * (high - low) / GRID
        low, high = float(inside.min()) - margin, float(inside.max()) + margin
    return GridDensity.from_log(grid, log_values)


def _check_mass(log_mass: float) -> None:
    if not np.isfinite(log_mass):
        raise InputError("No mass: the density is zero at the given values, so nothing can be conditioned on them.")


def smooth_1d(samples: FloatArray) -> GridDensity:
    """Smooth density of one coordinate's samples (n,), on a grid."""
    bins, log_density = log_density_1d(samples)
    place = np.linspace(0.0, len(bins) - 1.0, GRID)
    grid = np.linspace(bins[0], bins[-1], GRID)
    return GridDensity.from_log(grid, CubicSpline(np.arange(len(bins)), log_density)(place))
