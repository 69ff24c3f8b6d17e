"""Maps between user space and standard space, in which the prior is N(0, I)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import special

from basq.errors import InputError
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import cholesky, solve_lower
from basq.prior.marginals import Coordinate, Marginal, log_phi
from basq.types import FloatArray, IntArray

REACH = 8.2
"""|u| that a unit-cube transform can see: Φ(8.2) is the last float64 below one."""

STEEP = 7.9
"""|u| up to which a transform is differentiated; the widest stencil still ends before REACH."""

BISECTIONS = 54
"""Halvings that bring the bracket [-REACH, REACH] down to 1e-15."""


class StandardMap(Protocol):
    """What a prior needs of a map; points are rows, (n, d)."""

    @property
    def n_dim(self) -> int:
        """Number of parameters d."""

    @property
    def bounds(self) -> FloatArray:
        """Box that holds the support, (d, 2)."""

    @property
    def coordinates(self) -> tuple[Coordinate, ...] | None:
        """One map for each coordinate, if the map is separable."""

    def describe(self, names: tuple[str, ...]) -> str:
        """Say what the law is in a few words."""

    def from_standard(self, u: FloatArray) -> FloatArray:
        """Map standard to user space."""

    def to_standard(self, x: FloatArray) -> FloatArray:
        """Map points of the support to standard space."""

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        """Return log |det dx/du|, (n,)."""

    def log_pdf(self, x: FloatArray) -> FloatArray:
        """Log-density in user space inside the bounds, (n,)."""


@dataclass(frozen=True)
class SeparableMap:
    """Independent marginals."""

    coordinates: tuple[Marginal, ...]

    @property
    def n_dim(self) -> int:
        return len(self.coordinates)

    @property
    def bounds(self) -> FloatArray:
        return np.array([c.bounds for c in self.coordinates])

    def describe(self, names: tuple[str, ...]) -> str:
        return ", ".join(f"{n} ~ {c.label}" for n, c in zip(names, self.coordinates, strict=True))

    def from_standard(self, u: FloatArray) -> FloatArray:
        return np.column_stack([c.from_standard(u[:, i]) for i, c in enumerate(self.coordinates)])

    def to_standard(self, x: FloatArray) -> FloatArray:
        return np.column_stack([c.to_standard(x[:, i]) for i, c in enumerate(self.coordinates)])

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        terms = [c.log_jacobian(u[:, i]) for i, c in enumerate(self.coordinates)]
        out: FloatArray = np.sum(terms, axis=0)
        return out

    def log_pdf(self, x: FloatArray) -> FloatArray:
        terms = np.stack([c.log_pdf(x[:, i]) for i, c in enumerate(self.coordinates)])
        # on a corner one density may be 0 and another infinite: their product counts as 0
        impossible = np.isneginf(terms).any(axis=0)
        out: FloatArray = np.where(impossible, -np.inf, np.where(impossible, 0.0, terms).sum(axis=0))
        return out


@dataclass(frozen=True)
class AffineMap:
    """x = offset + factor u, with a lower-triangular factor: eq. (44) of the paper, with its mean corrected.

    Attributes
    ----------
    factor : (d, d) array
    offset : (d,) array
    """

    factor: FloatArray
    offset: FloatArray

    @classmethod
    def whitening(cls, mean: FloatArray, cov: FloatArray, what: str) -> "AffineMap":
        """Build the map that turns N(0, I) into N(mean, cov).

        Raises
        ------
        InputError
            If the covariance is singular; the message starts with `what`.
        """
        scale = np.sqrt(np.diag(cov))
        if (scale > 0).all() and np.isfinite(cov).all():
            # the correlation matrix shows a singular law whatever the units of the parameters
            factor, jitter = cholesky(cov / np.outer(scale, scale))
            if jitter == 0 and np.diag(factor).min() > 1e-6:
                return cls(scale[:, None] * factor, np.array(mean, dtype=float))
        raise InputError(
            f"{what} has a singular covariance: a parameter is constant, or a linear combination of the "
            f"others. Remove it from the prior and compute it in the likelihood. Variances given: "
            f"{np.diag(cov)}."
        )

    @property
    def n_dim(self) -> int:
        return len(self.offset)

    @property
    def bounds(self) -> FloatArray:
        return np.tile([-np.inf, np.inf], (self.n_dim, 1))

    @property
    def coordinates(self) -> None:
        return None

    @property
    def log_det(self) -> float:
        return float(np.log(np.diag(self.factor)).sum())

    def describe(self, names: tuple[str, ...]) -> str:
        return f"({', '.join(names)}) ~ multivariate normal"

    def from_standard(self, u: FloatArray) -> FloatArray:
        return self.offset + u @ self.factor.T

    def to_standard(self, x: FloatArray) -> FloatArray:
        return solve_lower(self.factor, (x - self.offset).T).T

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        return np.full(len(u), self.log_det)

    def log_pdf(self, x: FloatArray) -> FloatArray:
        return GaussianMixture.standard(self.n_dim).log_pdf(self.to_standard(x)) - self.log_det


@dataclass(frozen=True)
class TransformMap:
    """A unit-cube transform x = T(Φ(u)), known only as a function.

    Attributes
    ----------
    transform : callable, (d,) -> (d,)
    signs : (d,) array or None
        +1 or -1 where a coordinate rises or falls; None if the transform is not separable.
    bounds : (d, 2) array
    """

    transform: Callable[[FloatArray], Any]
    signs: FloatArray | None
    bounds: FloatArray

    @classmethod
    def probe(cls, transform: Callable[[FloatArray], Any], n_dim: int) -> "TransformMap":
        """Check a user's transform at a few points and find out whether it is separable."""
        points = np.random.default_rng(0).uniform(0.001, 0.999, (8, n_dim))
        points[:2] = np.array([[0.001], [0.999]])
        for point in points:
            _check_transform(transform, point)
        signs = _signs(transform, n_dim) if _is_separable(transform, points) else None
        return cls(transform, signs, _bounds(transform, signs, n_dim))

    def only(self, dims: IntArray) -> "TransformMap":
        """The map of some coordinates of a separable transform, by their places (k,); the others rest at the median."""
        signs = self._separable_signs("only")
        return TransformMap(PartOfTransform(self.transform, self.n_dim, dims), signs[dims], self.bounds[dims])

    @property
    def n_dim(self) -> int:
        return len(self.bounds)

    @property
    def coordinates(self) -> "tuple[TransformCoordinate, ...] | None":
        return None if self.signs is None else tuple(TransformCoordinate(self, i) for i in range(self.n_dim))

    def describe(self, names: tuple[str, ...]) -> str:
        kind = "separable" if self.signs is not None else "joint"
        return f"({', '.join(names)}) ~ {kind} unit-cube transform"

    def from_standard(self, u: FloatArray) -> FloatArray:
        x = _apply(self.transform, special.ndtr(np.clip(u, -REACH, REACH)))
        bad = ~np.isfinite(x).all(axis=1)
        if bad.any():
            cube = special.ndtr(u[bad][0])
            raise InputError(f"The prior transform returned {x[bad][0]} at cube={cube}; it must be finite on (0, 1).")
        return x

    def to_standard(self, x: FloatArray) -> FloatArray:
        signs = self._separable_signs("to_standard")
        lo, hi = np.full(x.shape, -REACH), np.full(x.shape, REACH)
        for _ in range(BISECTIONS):
            mid = 0.5 * (lo + hi)
            low = signs * (self.from_standard(mid) - x) < 0
            lo, hi = np.where(low, mid, lo), np.where(low, hi, mid)
        out: FloatArray = 0.5 * (lo + hi)
        return out

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        out: FloatArray = self.log_slopes(u).sum(axis=1)
        return out

    def log_slopes(self, u: FloatArray) -> FloatArray:
        """Return log |dx_i/du_i| by a five-point difference, (n, d)."""
        self._separable_signs("log_jacobian")
        # Φ(u) has few digits left in the far tail, so the step has to grow there
        u = np.clip(u, -STEEP, STEEP)
        step = 0.005 + 0.1 * (np.abs(u) / STEEP) ** 8
        near = self.from_standard(u + step) - self.from_standard(u - step)
        far = self.from_standard(u + 2 * step) - self.from_standard(u - 2 * step)
        with np.errstate(divide="ignore"):
            out: FloatArray = np.log(np.abs(8 * near - far) / (12 * step))
        return out

    def log_pdf(self, x: FloatArray) -> FloatArray:
        self._separable_signs("log_pdf")
        # density and slope at the same u, so that an edge of the support has the density next to it
        u = np.clip(self.to_standard(x), -STEEP, STEEP)
        out: FloatArray = log_phi(u).sum(axis=1) - self.log_jacobian(u)
        return out

    def _separable_signs(self, method: str) -> FloatArray:
        if self.signs is None:
            raise InputError(
                f"{method} needs the inverse of the prior transform, and none can be found: a parameter "
                f"depends on several cube coordinates, or is not strictly monotone in its own. Samples and "
                f"the evidence work. For densities in your parameters give independent marginals, a "
                f"multivariate_normal, or Prior.from_density."
            )
        return self.signs


@dataclass(frozen=True)
class PartOfTransform:
    """Some coordinates of a separable transform, (k,) -> (k,); a class, so that it can be pickled."""

    transform: Callable[[FloatArray], Any]
    n_dim: int
    dims: IntArray

    def __call__(self, cube: FloatArray) -> FloatArray:
        whole = np.full(self.n_dim, 0.5)
        whole[self.dims] = cube
        out: FloatArray = np.asarray(self.transform(whole), dtype=float)[self.dims]
        return out


@dataclass(frozen=True)
class TransformCoordinate:
    """One coordinate of a separable transform; the others rest at the median."""

    parent: TransformMap
    i: int

    @property
    def bounds(self) -> tuple[float, float]:
        lo, hi = self.parent.bounds[self.i]
        return float(lo), float(hi)

    def from_standard(self, u: FloatArray) -> FloatArray:
        out: FloatArray = self.parent.from_standard(self._embed(u))[:, self.i]
        return out

    def to_standard(self, x: FloatArray) -> FloatArray:
        rows = self.parent.from_standard(self._embed(np.zeros(len(x))))
        rows[:, self.i] = x
        out: FloatArray = self.parent.to_standard(rows)[:, self.i]
        return out

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        out: FloatArray = self.parent.log_slopes(self._embed(u))[:, self.i]
        return out

    def _embed(self, u: FloatArray) -> FloatArray:
        rows = np.zeros((len(u), self.parent.n_dim))
        rows[:, self.i] = u
        return rows


def _apply(transform: Callable[[FloatArray], Any], cube: FloatArray) -> FloatArray:
    """Call the user's function row by row, on copies that it may overwrite."""
    out = np.empty_like(cube)
    for row, point in zip(out, cube, strict=True):
        row[:] = transform(point.copy())
    return out


def _check_transform(transform: Callable[[FloatArray], Any], point: FloatArray) -> None:
    try:
        value = transform(point.copy())
        x = np.asarray(value, dtype=float)
    except Exception as error:
        raise InputError(
            f"The prior transform failed at cube={point}: {type(error).__name__}: {error}. "
            f"It must take an array of shape {point.shape} in (0, 1) and return the parameters."
        ) from error
    if value is None or x.shape != point.shape:
        given = "None" if value is None else f"an array of shape {x.shape}"
        raise InputError(
            f"The prior transform returned {given} at cube={point}; it must return shape {point.shape}. "
            f"If the number of parameters is not {len(point)}, give n_dim."
        )
    if not np.isfinite(x).all():
        raise InputError(f"The prior transform returned {x} at cube={point}; it must be finite on (0, 1).")


def _is_separable(transform: Callable[[FloatArray], Any], points: FloatArray) -> bool:
    """Whether x_i moves with cube_i only: swap one coordinate at a time between neighbouring probes."""
    x = _apply(transform, points)
    tolerance = 1e-10 * np.ptp(x, axis=0)
    for k in range(len(points) - 1):
        swap = np.eye(points.shape[1], dtype=bool)
        mixed = _apply(transform, np.where(swap, points[k + 1], points[k]))
        if (np.abs(mixed - np.where(swap, x[k + 1], x[k])) > tolerance).any():
            return False
    return True


def _signs(transform: Callable[[FloatArray], Any], n_dim: int) -> FloatArray | None:
    """+1 or -1 for each coordinate of a separable transform; None if one is flat or turns round."""
    u = np.linspace(-4.0, 4.0, 33)
    # pairs a small step apart also find transforms that move in jumps
    u = np.sort(np.concatenate([u, u + 1e-3]))
    steps = np.sign(np.diff(_apply(transform, np.tile(special.ndtr(u)[:, None], n_dim)), axis=0))
    monotone = (steps == steps[0]).all() and (steps[0] != 0).all()
    return np.asarray(steps[0], dtype=float) if monotone else None


def _bounds(transform: Callable[[FloatArray], Any], signs: FloatArray | None, n_dim: int) -> FloatArray:
    """Find a separable transform's support: its values at the cube's corners, or the last it can reach."""
    if signs is None:
        return np.tile([-np.inf, np.inf], (n_dim, 1))
    reach = _apply(transform, np.tile(special.ndtr([[-REACH], [REACH]]), n_dim))
    try:
        with np.errstate(all="ignore"):
            corner = _apply(transform, np.tile([[0.0], [1.0]], n_dim))
    except Exception:  # a transform owes us nothing on the closed cube
        corner = reach
    return np.sort(np.where(np.isfinite(corner), corner, reach), axis=0).T
