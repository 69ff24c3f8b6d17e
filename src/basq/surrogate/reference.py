"""The reference: location and shape of the current posterior, which whitens the surrogate's coordinates."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.linalg import cho_inverse, cholesky, solve_lower
from basq.types import FloatArray

LEAST_CURVATURE = 0.1
"""Curvature of a log-density, in units of its samples' covariance, below which a direction is not like a Gaussian."""

CENTRAL = 0.9
"""Share of the samples, the central ones, that a Gaussian is fitted to."""


@dataclass(frozen=True)
class Reference:
    """A Gaussian in standard space.

    Attributes
    ----------
    mean : (d,) array
    root : (d, d) array
        Lower Cholesky factor of its covariance.
    """

    mean: FloatArray
    root: FloatArray

    @classmethod
    def of(cls, points: FloatArray) -> "Reference":
        """Mean and covariance of points (n, d); the unit matrix where they say nothing."""
        n, d = points.shape
        mean = points.mean(axis=0)
        centred = points - mean
        cov = centred.T @ centred / (n - 1) if n > 1 else np.eye(d)
        # coordinates may differ in scale by many orders: factorise the correlations
        sd = np.sqrt(np.maximum(np.diag(cov), 1e-200))
        correlation = cov / np.outer(sd, sd)
        return cls(mean, sd[:, None] * cholesky(correlation + 1e-9 * np.eye(d))[0])

    @classmethod
    def beneath(cls, points: FloatArray, log_density: FloatArray) -> tuple["Reference", float]:
        """The Gaussian whose logarithm fits a log-density (n,) best at samples (n, d) of it, and its peak.

        Where the density is Gaussian it is exact. The samples' covariance, which is taken where there is no such
        Gaussian, is not, and far out the difference is many nats.
        """
        finite = np.isfinite(log_density)
        points, log_density = points[finite], log_density[finite]
        own, d = cls.of(points), points.shape[1]
        rows, columns = np.triu_indices(d)
        of_samples = own, float(log_density.mean()) + 0.5 * d
        if len(points) < 3 * (len(rows) + d + 1):
            return of_samples
        z = own.whiten(points)
        central = np.argsort((z * z).sum(axis=1))[: int(CENTRAL * len(z))]  # the farthest would weigh the most
        z, y = z[central], log_density[central]
        design = np.column_stack([np.ones(len(z)), z, z[:, rows] * z[:, columns]])
        found = np.linalg.solve(design.T @ design + 1e-9 * np.eye(design.shape[1]), design.T @ y)
        curvature = np.zeros((d, d))
        curvature[rows, columns] = -found[1 + d :]
        curvature += curvature.T
        if not np.linalg.eigvalsh(curvature)[0] > LEAST_CURVATURE:
            return of_samples
        inverse = cho_inverse(cholesky(curvature)[0])
        slope = found[1 : 1 + d]
        mode = inverse @ slope
        return cls(own.mean + own.root @ mode, own.root @ cholesky(inverse)[0]), float(found[0] + 0.5 * slope @ mode)

    @classmethod
    def first(cls, u: FloatArray, log_posterior: FloatArray) -> "Reference":
        """Reference before any surrogate exists: the better half of the design."""
        order = np.argsort(-np.where(np.isfinite(log_posterior), log_posterior, -np.inf), kind="stable")
        return cls.of(u[order[: max(2 * u.shape[1], len(u) // 2)]])

    @cached_property
    def _inverse_root(self) -> FloatArray:
        """A product costs less than a solve, and this is asked for in every step of the sampling."""
        return solve_lower(self.root, np.eye(len(self.root)))

    @property
    def axes(self) -> FloatArray:
        """Single standard-space coordinates, to unit scale, as rows in whitened space: (d, d)."""
        return self.root / np.linalg.norm(self.root, axis=1)[:, None]

    def whiten(self, u: FloatArray) -> FloatArray:
        """Map points (n, d) to coordinates in which the reference is N(0, I)."""
        return (u - self.mean) @ self._inverse_root.T
