"""The reference: location and shape of the current posterior, which whitens the surrogate's coordinates."""

from dataclasses import dataclass

import numpy as np

from basq.linalg import cholesky, solve_lower
from basq.types import FloatArray


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
    def first(cls, u: FloatArray, log_posterior: FloatArray) -> "Reference":
        """Reference before any surrogate exists: the better half of the design."""
        order = np.argsort(-np.where(np.isfinite(log_posterior), log_posterior, -np.inf), kind="stable")
        return cls.of(u[order[: max(2 * u.shape[1], len(u) // 2)]])

    @property
    def axes(self) -> FloatArray:
        """Single standard-space coordinates, to unit scale, as rows in whitened space: (d, d)."""
        return self.root / np.linalg.norm(self.root, axis=1)[:, None]

    def whiten(self, u: FloatArray) -> FloatArray:
        """Map points (n, d) to coordinates in which the reference is N(0, I)."""
        return solve_lower(self.root, (u - self.mean).T).T
