"""The polynomial kernel: not stationary, of finite rank."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from basq.gp.kernels.base import Contraction
from basq.types import FloatArray


@dataclass(frozen=True)
class Polynomial:
    """The kernel v (1 + Σ xₖ xₖ′ / lₖ²)^degree.

    Attributes
    ----------
    variance : float
    lengthscale : (d,) array
    degree : int
    """

    variance: float
    lengthscale: FloatArray
    degree: int = 3

    gaussian: ClassVar[bool] = False

    @property
    def theta(self) -> FloatArray:
        return np.log(np.append(self.lengthscale, self.variance))

    @property
    def variance_index(self) -> int:
        return len(self.lengthscale)

    def with_theta(self, theta: FloatArray) -> Self:
        values = np.exp(theta)
        return replace(self, lengthscale=values[:-1], variance=float(values[-1]))

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        base: FloatArray = 1.0 + (a / self.lengthscale**2) @ b.T
        return self.variance * base**self.degree

    def diagonal(self, x: FloatArray) -> FloatArray:
        base: FloatArray = 1.0 + ((x / self.lengthscale) ** 2).sum(axis=1)
        return self.variance * base**self.degree

    def against(self, data: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        return lambda x: (self(x, data).T, self.diagonal(x))  # the layout in which triangular systems are solved

    def weighted_sum(self, data: FloatArray, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        return lambda x: self(x, data) @ weights

    def prepared(self, x: FloatArray) -> Self:
        return self

    def with_gradient(self, x: FloatArray) -> tuple[FloatArray, Contraction]:
        u = x / self.lengthscale
        base = 1.0 + u @ u.T
        k = self.variance * base**self.degree

        def contract(g: FloatArray) -> FloatArray:
            m = self.variance * self.degree * g * base ** (self.degree - 1)
            return np.append(-2.0 * (u * (m @ u)).sum(axis=0), np.vdot(g, k))

        return k, contract

    def input_gradient(self, point: FloatArray, x: FloatArray) -> FloatArray:
        """Gradient of K(point, xᵢ) in the point (d,), one row per row of x: (n, d)."""
        base = 1.0 + x @ (point / self.lengthscale**2)
        return self.variance * self.degree * base[:, None] ** (self.degree - 1) * x / self.lengthscale**2
