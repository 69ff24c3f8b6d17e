"""A kernel of sheared coordinates: a curved ridge becomes a straight one.

Posteriors of real models are seldom Gaussian, but often a Gaussian bent: rates that trade against each other along a
curve, tails that turn. A quadratic trend cannot follow, and a stationary process needs points all along the bend. A
shear can: every coordinate moves by a quadratic of the wider ones before it,

    tₖ = yₖ + Σ_{i ≤ j < k} bᵢⱼₖ s(yᵢ) s(yⱼ),

where s(y) = y / √(1 + (y/100)²) ends the bend where nothing is known of it. A shear is invertible whatever b, keeps
volumes, and has no folds where a second mode could be dreamed of.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from basq.gp.fit import Hyperprior
from basq.gp.kernels.base import Contraction
from basq.gp.kernels.trend import TrendKernel, TrendPrior
from basq.types import FloatArray, IntArray

REACH = 100.0
"""Standard deviations of the posterior up to which ridges bend."""
MOST = 10.0
"""Standard deviations in the prior that a bend is at most."""


@dataclass(frozen=True)
class Shear:
    """A shear of whitened coordinates.

    Attributes
    ----------
    frame : (d, d) array
        Orthogonal; its rows are the directions y, the widest of the posterior first.
    bends : (p,) array
        b, in the order of ``places``.
    """

    frame: FloatArray
    bends: FloatArray

    @classmethod
    def none(cls, frame: FloatArray) -> Self:
        """The identity."""
        return cls(frame, np.zeros(len(places(len(frame))[0])))

    def __call__(self, z: FloatArray) -> FloatArray:
        """Map points (n, d)."""
        y = z @ self.frame.T
        return (y + _products(y) @ self.matrix) @ self.frame

    def back(self, t: FloatArray) -> FloatArray:
        """Inverse, of points (n, d): what a coordinate was moved by follows from those before it."""
        out = t @ self.frame.T
        for k in range(1, out.shape[1]):
            before = np.triu_indices(out.shape[1])[1] < k
            out[:, k] -= _products(out[:, :k]) @ self.matrix[before, k]
        return out @ self.frame

    @cached_property
    def matrix(self) -> FloatArray:
        """b as (pairs, d)."""
        d = len(self.frame)
        pair, target = places(d)
        out = np.zeros((d * (d + 1) // 2, d))
        out[pair, target] = self.bends
        return out

    def pulled(self, z: FloatArray, slope: FloatArray) -> FloatArray:
        """Derivative by the bends, (p,), of what has the slope (n, d) by the images of points z (n, d)."""
        pair, target = places(z.shape[1])
        return (_products(z @ self.frame.T).T @ (slope @ self.frame.T))[pair, target]

    def seen_from(self, frame: FloatArray, change: FloatArray) -> "Shear":
        """About the same shear for other whitened coordinates z′, of which z = change z′ + … is made, and their frame.

        What is not a shear there is left out.
        """
        turn = self.frame @ change @ frame.T
        d = len(frame)
        i, j = np.triu_indices(d)
        full = np.zeros((d, d, d))
        full[:, i, j] = self.matrix.T
        full = 0.5 * (full + full.transpose(0, 2, 1))
        found = np.linalg.solve(turn, np.einsum("kij,ia,jb->kab", full, turn, turn, optimize=True).reshape(d, -1))
        found = found.reshape(d, d, d)
        flat = np.where(i == j, 1.0, 2.0)[:, None] * found[:, i, j].T
        return Shear(frame, flat[places(d)])


def _products(y: FloatArray) -> FloatArray:
    """s(yᵢ) s(yⱼ) for all pairs i ≤ j of the coordinates of points (n, d)."""
    s = y / np.sqrt(1.0 + (y / REACH) ** 2)
    i, j = np.triu_indices(y.shape[1])
    return s[:, i] * s[:, j]


def places(n_dim: int) -> tuple[IntArray, IntArray]:
    """Pairs (i ≤ j), by their place among all, and targets k > j of the bends: both (p,)."""
    _, j = np.triu_indices(n_dim)
    pair, target = np.nonzero(j[:, None] < np.arange(n_dim))
    return pair, target


@dataclass(frozen=True)
class ShearedKernel:
    """A `TrendKernel` of sheared points.

    Attributes
    ----------
    base : TrendKernel
    shear : Shear
    unit : float
        Of the bends: ``theta`` has them divided by it, so that they are of the order of one like the logarithms.
    learned : bool
        Otherwise they stay as they are.
    """

    base: TrendKernel
    shear: Shear
    unit: float
    learned: bool = True

    gaussian: ClassVar[bool] = False

    @property
    def variance(self) -> float:
        return self.base.variance

    @property
    def lengthscale(self) -> FloatArray:
        return self.base.lengthscale

    @property
    def theta(self) -> FloatArray:
        return np.concatenate([self.base.theta, self.shear.bends / self.unit])

    @property
    def variance_index(self) -> int:
        return self.base.variance_index

    @property
    def bends_index(self) -> slice:
        """Where the bends stand in ``theta``."""
        n = len(self.base.theta)
        return slice(n, n + len(self.shear.bends))

    def with_theta(self, theta: FloatArray) -> Self:
        n = len(theta) - len(self.shear.bends)
        shear = replace(self.shear, bends=self.unit * theta[n:])
        return replace(self, base=self.base.with_theta(theta[:n]), shear=shear)

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        left = self.shear(a)
        return self.base(left, left if a is b else self.shear(b))

    def diagonal(self, x: FloatArray) -> FloatArray:
        return self.base.diagonal(self.shear(x))

    def against(self, data: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        evaluate = self.base.against(self.shear(data))
        return lambda x: evaluate(self.shear(x))

    def weighted_sum(self, data: FloatArray, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        evaluate = self.base.weighted_sum(self.shear(data), weights)
        return lambda x: evaluate(self.shear(x))

    def prepared(self, x: FloatArray) -> Self:
        return self

    def with_gradient(self, x: FloatArray) -> tuple[FloatArray, Contraction]:
        t = self.shear(x)
        k, contract = self.base.with_gradient(t)

        def both(g: FloatArray) -> FloatArray:
            by_bends = np.zeros(len(self.shear.bends))
            if self.learned:
                by_bends = self.unit * self.shear.pulled(x, self.base.by_points(t, g))
            return np.concatenate([contract(g), by_bends])

        return k, both


def sheared(
    trend: TrendPrior, axes: FloatArray, frame: FloatArray, sd: float, *, learned: bool
) -> tuple[ShearedKernel, Hyperprior]:
    """The kernel to begin with, without a shear, and what is believed of its hyperparameters.

    Parameters
    ----------
    trend : TrendPrior
    axes : (k, d) array
        As in `TrendKernel`.
    frame : (d, d) array
        As in `Shear`.
    sd : float
        Of all bends of a coordinate together: each one's is a d-th part of it.
    learned : bool
        Otherwise it remains without.
    """
    kernel = ShearedKernel(trend.start(axes), Shear.none(frame), sd / len(frame), learned)
    prior, bends = trend.hyperprior(len(frame)), np.ones(len(kernel.shear.bends))
    most = MOST * bends if learned else 0.0 * bends
    return kernel, Hyperprior(
        np.concatenate([prior.mean, 0.0 * bends]),
        np.concatenate([prior.sd, bends]),
        np.concatenate([prior.lower, -most]),
        np.concatenate([prior.upper, most]),
    )
