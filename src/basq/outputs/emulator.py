"""What a simulator gives at points where it never ran, from what it gave at evaluated ones.

Outputs vary smoothly with the parameters, and neighbouring entries vary together: a few principal components carry
them, and each of these is interpolated by a Gaussian process. How far off that is shows where every evaluated point is
predicted from all others.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from basq.errors import InputError, counted
from basq.gp.fit import fit
from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.numerics.gaussians import mean_and_root
from basq.numerics.linalg import solve_lower
from basq.types import BoolArray, FloatArray, IntArray

OUTSIDE, BEYOND = 0.01, 1e-6
"""Posterior mass, were it normal, outside the points that are tested, and beyond those that are interpolated between.
Outputs far away from the posterior may be wild, and would only spoil the scales."""
LEAST_POINTS, PER_COEFFICIENT, MOST_POINTS = 10, 2, 400
"""Points that are interpolated between in any case: so many, and more per coefficient of a quadratic; and at most."""
LEAST_TESTED = 10
LEFT_OVER, MOST_COMPONENTS = 1e-9, 40
"""Share of the variance that no component carries, and components at most."""
NEGLIGIBLE = 1e-10
"""Spread of an entry, relative to its size, that is rounding."""
NEARLY_ALL = 0.9
"""Share of the entries whose error is below the one that is told."""
MAX_STEPS = 30
"""Of the search for hyperparameters."""


@dataclass(frozen=True)
class Emulator:
    """Rows of numbers (p,) as functions of points u (d,), where the posterior is; in whatever coordinates.

    Attributes
    ----------
    centre : (d,) array
    whitening : (d, d) array
        Maps u − centre to coordinates in which the posterior is about N(0, I).
    processes : tuple of GP
        One a component.
    mean : (p,) array
    basis : (m, p) array
        The components.
    error : float
        Of nearly all entries at points within the posterior, each predicted from all others, in standard deviations of
        the entry's posterior.
    n_points : int
        Evaluated points that it interpolates between.
    """

    centre: FloatArray
    whitening: FloatArray
    processes: tuple[GP, ...]
    mean: FloatArray
    basis: FloatArray
    error: float
    n_points: int

    @classmethod
    def learn(cls, u: FloatArray, values: FloatArray, log_density: FloatArray, samples: FloatArray) -> "Emulator":
        """Learn from values at evaluated points.

        Parameters
        ----------
        u : (n, d) array
            The points.
        values : (n, p) array
        log_density : (n,) array
            Of the posterior at the points, up to a constant.
        samples : (N, d) array
            Of the posterior.
        """
        n, d = u.shape
        if n < d + 2:
            raise InputError(
                f"{counted(n, 'output')} with finite numbers cannot be interpolated over {counted(d, 'parameter')}: "
                f"at least {d + 2} are needed."
            )
        spread = samples.std(axis=0)
        scale = np.where(spread > 0.0, spread, 1.0)  # coordinates may be of any size
        centre, root = mean_and_root(samples / scale)
        centre, whitening = centre * scale, solve_lower(root, np.eye(d)) / scale
        near, tested = _near(log_density, d)
        z, values = (u[near] - centre) @ whitening.T, values[near]
        mean, scores, basis = _components(values)
        processes = tuple(_interpolated(z, y) for y in scores.T)
        left_out = np.stack([p.left_out[0] for p in processes], axis=1) if processes else np.empty((len(z), 0))
        wrong = values - mean - (scores - left_out) @ basis
        emulator = cls(centre, whitening, processes, mean, basis, 0.0, len(z))
        sd = emulator._spread(samples)
        varies = sd > NEGLIGIBLE * np.abs(mean)  # false for NaN
        relative = np.sqrt(np.mean(wrong[tested][:, varies] ** 2, axis=0)) / sd[varies]
        error = float(np.quantile(relative, NEARLY_ALL)) if varies.any() else 0.0
        return cls(centre, whitening, processes, mean, basis, error, len(z))

    def __repr__(self) -> str:
        return (
            f"Emulator(from {counted(self.n_points, 'output')}, {counted(len(self.basis), 'component')}, "
            f"error {100.0 * self.error:.2g} % of the posterior spread)"
        )

    def scores(self, u: FloatArray) -> FloatArray:
        """The components' coefficients at points u (q, d): (q, m)."""
        z = (u - self.centre) @ self.whitening.T
        each = [p.predict_mean(z) for p in self.processes]
        return np.stack(each, axis=1) if each else np.empty((len(u), 0))

    def __call__(self, u: FloatArray) -> FloatArray:
        """Rows (q, p) at points u (q, d)."""
        return self.mean + self.scores(u) @ self.basis

    def _spread(self, samples: FloatArray) -> FloatArray:
        """Standard deviation of every entry (p,) over samples (N, d)."""
        scores = self.scores(samples)
        centred = scores - scores.mean(axis=0)
        covariance = centred.T @ centred / len(centred)
        square: FloatArray = np.einsum("ip,ip->p", self.basis, covariance @ self.basis) + 0.0 * self.mean
        return np.sqrt(np.maximum(square, 0.0))


def _near(log_density: FloatArray, n_dim: int) -> tuple[IntArray, BoolArray]:
    """Which points to interpolate between, the best first; and which of these lie within the posterior."""
    order = np.argsort(-log_density, kind="stable")
    depth = log_density[order[0]] - log_density[order]
    least = LEAST_POINTS + PER_COEFFICIENT * (n_dim + 1) * (n_dim + 2) // 2
    wanted = int(np.clip(np.sum(depth < 0.5 * chi2.isf(BEYOND, n_dim)), least, MOST_POINTS))
    tested = depth[:wanted] < 0.5 * chi2.isf(OUTSIDE, n_dim)
    tested[:LEAST_TESTED] = True
    return order[:wanted], tested


def _components(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Principal components of rows (n, p), entries of all sizes alike: mean (p,), scores (n, m), basis (m, p)."""
    mean = values.mean(axis=0)
    scale = np.maximum(values.std(axis=0), NEGLIGIBLE * np.abs(mean) + np.finfo(float).tiny)
    standard = np.nan_to_num((values - mean) / scale)
    left, size, right = np.linalg.svd(standard, full_matrices=False)
    share = size**2 / max(np.sum(size**2), np.finfo(float).tiny)
    rest = 1.0 - np.cumsum(share) + share  # before each component is taken
    m = min(int(np.sum(rest > LEFT_OVER)), MOST_COMPONENTS) if size[0] > 1e-6 else 0
    root = np.sqrt(len(values))
    return mean, left[:, :m] * root, (size[:m] / root)[:, None] * right[:m] * np.nan_to_num(scale)


def _interpolated(z: FloatArray, y: FloatArray) -> GP:
    """A process through values y (n,) of unit size at points z (n, d), with as much noise as they show."""
    d = z.shape[1]
    start = make_kernel("rbf", d, lengthscale=2.0 * np.sqrt(d), variance=1.0)
    return fit(z, y, start, constant_mean=True, noise=None, max_steps=MAX_STEPS)
