"""The chart: location and shape of the current posterior, which whitens the surrogate's coordinates.

Standard space bends a parameter whose prior is flat: what is Gaussian between the edges of a box is a banana there. So
its probability Φ(u), in which the parameter is linear, takes the place of u before anything is whitened.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from basq.auto.settings import Charts, quadratic
from basq.numerics.gaussians import LOG_2PI, NARROWEST, GaussianMixture, Measure, mean_and_root
from basq.numerics.linalg import cho_inverse, cholesky, solve_lower
from basq.prior.periodic import LEAST_PROBABILITY
from basq.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Chart:
    """A Gaussian in standard space, or with the probabilities of some parameters for coordinates.

    Attributes
    ----------
    mean : (d,) array
    root : (d, d) array
        Lower Cholesky factor of its covariance.
    flat : (d,) bool array or None
        Parameters whose probability is the coordinate; none by default.
    """

    mean: FloatArray
    root: FloatArray
    flat: BoolArray | None = None

    @classmethod
    def standard(cls, n_dim: int) -> "Chart":
        """Standard space as it is."""
        return cls(np.zeros(n_dim), np.eye(n_dim))

    @classmethod
    def of(cls, points: FloatArray, flat: BoolArray | None = None) -> "Chart":
        """Mean and covariance of points (n, d); the unit matrix for a single one."""
        points = straightened(points, flat)
        return cls(*mean_and_root(points), flat)

    @classmethod
    def beneath(cls, points: FloatArray, log_density: FloatArray, settings: Charts) -> tuple["Chart", float]:
        """The Gaussian whose logarithm fits a log-density (n,) best at samples (n, d) of it, and its peak.

        Where the density is Gaussian it is exact. The samples' covariance, which is taken where there is no such
        Gaussian, is not, and far out the difference is many nats.
        """
        finite = np.isfinite(log_density)
        points, log_density = points[finite], log_density[finite]
        own, d = cls.of(points), points.shape[1]
        rows, columns = np.triu_indices(d)
        of_samples = own, float((log_density / len(points)).sum()) + 0.5 * d  # not the mean, whose sum may overflow
        huge = np.abs(log_density).max(initial=0.0) > 1e100  # whose square would overflow
        if huge or len(points) < settings.per_coefficient * quadratic(d):
            return of_samples
        z = own.whiten(points)
        central = np.argsort((z * z).sum(axis=1))[: int(settings.central * len(z))]
        z, y = z[central], log_density[central]
        design = np.column_stack([np.ones(len(z)), z, z[:, rows] * z[:, columns]])
        found = np.linalg.solve(design.T @ design + 1e-9 * np.eye(design.shape[1]), design.T @ y)
        curvature = np.zeros((d, d))
        curvature[rows, columns] = -found[1 + d :]
        curvature += curvature.T
        if not np.linalg.eigvalsh(curvature)[0] > settings.least_curvature:
            return of_samples
        inverse = cho_inverse(cholesky(curvature)[0])
        slope = found[1 : 1 + d]
        mode = inverse @ slope
        return cls(own.mean + own.root @ mode, own.root @ cholesky(inverse)[0]), float(found[0] + 0.5 * slope @ mode)

    @classmethod
    def first(
        cls, u: FloatArray, log_posterior: FloatArray, settings: Charts, flat: BoolArray | None = None
    ) -> "Chart":
        """Chart before any surrogate exists: of the better part of the design."""
        order = np.argsort(-np.where(np.isfinite(log_posterior), log_posterior, -np.inf), kind="stable")
        n = max(settings.first_per_dim * u.shape[1], int(settings.first_share * len(u)))
        return cls.of(u[order[:n]], flat)

    def in_all(self, kinds: Iterable[BoolArray | None]) -> "tuple[Chart, ...]":
        """A Gaussian in standard space as it looks, to first order, with the probabilities of some parameters."""
        slope = np.exp(-0.5 * self.mean**2) / np.sqrt(2.0 * np.pi)
        slope = np.maximum(slope, NARROWEST / np.linalg.norm(self.root, axis=1))
        out = []
        for flat in kinds:
            scale = np.where(flat, slope, 1.0) if flat is not None else np.ones(len(slope))
            out.append(Chart(straightened(self.mean[None], flat)[0], scale[:, None] * self.root, flat))
        return tuple(out)

    @cached_property
    def _inverse_root(self) -> FloatArray:
        """A product costs less than a solve, and this is asked for in every step of the sampling."""
        return solve_lower(self.root, np.eye(len(self.root)))

    @property
    def axes(self) -> FloatArray:
        """Single coordinates, to unit scale, as rows in whitened space: (d, d)."""
        return self.root / np.linalg.norm(self.root, axis=1)[:, None]

    @property
    def frame(self) -> FloatArray:
        """Directions in whitened space, as rows, in which the chart is widest first: (d, d), orthogonal."""
        left, sds, _ = np.linalg.svd(self.root)
        return (left / sds).T @ self.root

    def seen_from(self, other: "Chart") -> FloatArray:
        """Matrix (d, d) that turns differences between whitened points of another chart into those of this one."""
        return self._inverse_root @ other.root

    def whiten(self, u: FloatArray) -> FloatArray:
        """Map points (n, d) of standard space to coordinates in which the chart is N(0, I)."""
        return (straightened(u, self.flat) - self.mean) @ self._inverse_root.T


def straightened(u: FloatArray, flat: BoolArray | None) -> FloatArray:
    """Points u (n, d) with the probabilities Φ(u) of flat parameters in the place of u."""
    if flat is None:
        return u
    out = u.copy()
    out[:, flat] = ndtr(u[:, flat])
    return out


def bent(v: FloatArray, flat: BoolArray | None) -> FloatArray:
    """Inverse of `straightened`; what lies outside the box of probabilities is folded back into it."""
    if flat is None:
        return v
    out, p = v.copy(), np.abs(v[:, flat])
    out[:, flat] = ndtri(np.clip(np.minimum(p, 2.0 - p), LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))
    return out


@dataclass(frozen=True)
class StraightMeasure:
    """A measure over standard space as it is over `straightened` points.

    Attributes
    ----------
    base : Measure
        N(0, I), which leaves nothing of flat parameters but a box, or a part of it.
    flat : (d,) bool array
    """

    base: Measure
    flat: BoolArray

    def log_pdf(self, v: FloatArray) -> FloatArray:
        p = v[:, self.flat]
        inside = ((p > 0.0) & (p < 1.0)).all(axis=1)
        if isinstance(self.base, GaussianMixture):
            return np.where(inside, _log_standard(v[:, ~self.flat]), -np.inf)
        u = bent(v, self.flat)
        return np.where(inside, self.base.log_pdf(u) - _log_standard(u[:, self.flat]), -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return straightened(self.base.sample(n, rng), self.flat)


def straight(measure: Measure, flat: BoolArray | None) -> Measure:
    """A measure over standard space as it is over `straightened` points."""
    return measure if flat is None else StraightMeasure(measure, flat)


def _log_standard(z: FloatArray) -> FloatArray:
    """Log-density of N(0, I) at the rows of z: (n,)."""
    return -0.5 * (np.einsum("ij,ij->i", z, z) + z.shape[1] * LOG_2PI)
