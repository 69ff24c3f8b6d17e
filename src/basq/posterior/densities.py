"""Densities over the user's parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from basq.errors import InputError
from basq.method import Density
from basq.prior import Prior
from basq.types import FloatArray


@dataclass(frozen=True)
class ParameterDensity:
    """A density over some of the user's parameters.

    Attributes
    ----------
    names : tuple of str
    density : Density
        Over the same coordinates, in standard space or in the user's.
    prior : Prior or None
        Maps standard space to parameters; None where ``density`` is in the user's space already.
    dims : tuple of int
        The parameters' places in the prior.
    """

    names: tuple[str, ...]
    density: Density
    prior: Prior | None
    dims: tuple[int, ...]

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at x: (k, d), or (k,) for a single parameter."""
        points = self._rows(x)
        if self.prior is None:
            return self.density.log_pdf(points)
        u, jacobian = np.empty_like(points), np.zeros(len(points))
        inside = np.ones(len(points), dtype=bool)
        for column, i in enumerate(self.dims):
            low, high = self.prior.bounds[i]
            inside &= (points[:, column] >= low) & (points[:, column] <= high)
        u[~inside] = 0.0
        for column, i in enumerate(self.dims):
            u[inside, column] = self.prior.coordinate_to_standard(i, points[inside, column])
            jacobian += self.prior.coordinate_log_jacobian(i, u[:, column])
        return np.where(inside, self.density.log_pdf(u) - jacobian, -np.inf)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at x: (k, d), or (k,) for a single parameter."""
        out: FloatArray = np.exp(self.log_pdf(x))
        return out

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Distribution function of a single parameter at t (k,)."""
        points = np.atleast_1d(np.asarray(t, dtype=float))
        if self.prior is None or len(self.dims) > 1:
            return self.density.cdf(points)
        low, high = self.prior.bounds[self.dims[0]]
        below = self.density.cdf(self.prior.coordinate_to_standard(self.dims[0], np.clip(points, low, high)))
        inside = 1.0 - below if self._falls else below
        return np.where(points <= low, 0.0, np.where(points >= high, 1.0, inside))

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles of a single parameter at levels q (k,)."""
        if self.prior is None or len(self.dims) > 1:
            return self.density.ppf(q)
        values = self.density.ppf(1.0 - np.asarray(q, dtype=float) if self._falls else q)
        return self.prior.coordinate_from_standard(self.dims[0], np.clip(values, -8.0, 8.0))

    @property
    def _falls(self) -> bool:
        """Whether a unit-cube transform turns the parameter round: large where the standard coordinate is small."""
        assert self.prior is not None
        low, high = self.prior.coordinate_from_standard(self.dims[0], np.array([-1.0, 1.0]))
        return bool(high < low)

    def sample(self, n: int, seed: Any = None) -> FloatArray:
        """Draw n equal-weight points: (n, d)."""
        points = self.density.sample(n, np.random.default_rng(seed))
        if self.prior is None:
            return points
        columns = [self.prior.coordinate_from_standard(i, points[:, c]) for c, i in enumerate(self.dims)]
        return np.stack(columns, axis=1)

    def _rows(self, x: ArrayLike) -> FloatArray:
        points = np.asarray(x, dtype=float)
        if len(self.dims) == 1:
            return points.reshape(-1, 1)
        points = np.atleast_2d(points)
        if points.shape[1] != len(self.dims):
            raise InputError(f"Points over {self.names} must have shape (k, {len(self.dims)}), got {points.shape}.")
        return points


def coordinate_moments(prior: Prior, i: int, density: Density) -> tuple[float, float] | None:
    """Mean and standard deviation of one parameter of a separable prior; None if no mass is to be seen.

    Parameters
    ----------
    prior : Prior
    i : int
        The parameter's place.
    density : Density
        Of its coordinate in standard space.
    """
    centre, spread = density.moments()
    # a surrogate that goes negative can have a negative "variance": then look everywhere
    sd = float(np.sqrt(spread[0, 0])) if spread[0, 0] > 0.0 else 8.0
    u = np.clip(centre[0] + sd * np.linspace(-9.0, 9.0, 1201), -8.0, 8.0)
    weight = np.maximum(density.pdf(u), 0.0) * np.gradient(u)
    if weight.sum() <= 0.0:
        return None
    x = prior.coordinate_from_standard(i, u)
    mean = float(weight @ x / weight.sum())
    return mean, float(np.sqrt(weight @ (x - mean) ** 2 / weight.sum()))
