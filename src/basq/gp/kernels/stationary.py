"""Stationary kernels, each with its formula; how fast their paths are forgotten is what tells them apart."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from basq.gp.kernels.base import Stationary
from basq.numerics.linalg import distance_left, distance_right, row_blocks
from basq.types import FloatArray


class RBF(Stationary):
    """The Gaussian kernel, κ = exp(−r²/2): the paper's, and the one with closed forms."""

    gaussian: ClassVar[bool] = True

    def profile(self, r2: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = np.exp(-0.5 * r2)
        return k, k

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return super().__call__(a, b) if a is b else self.rows(b)(a)

    def rows(self, data: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return x (m, d) -> K(x, data), (m, n), with what depends on the data alone computed once."""
        scaled = data / self.lengthscale
        centre = scaled.mean(axis=0) if len(scaled) else np.zeros(scaled.shape[1])
        right, log_variance = distance_right(scaled, centre).T, float(np.log(self.variance))

        def evaluate(x: FloatArray) -> FloatArray:
            """In place, block by block: these are the largest arrays of a run."""
            left = -distance_left(x / self.lengthscale, centre, plus=-log_variance)
            out = np.empty((len(x), len(data)))
            for rows in row_blocks(len(x), len(data)):
                block = np.matmul(left[rows], right, out=out[rows])
                np.minimum(block, log_variance, out=block)
                np.exp(block, out=block)
            return out

        return evaluate

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n frequencies (n, d) from the spectral density, a normal one."""
        return rng.standard_normal((n, len(self.lengthscale))) / self.lengthscale


class Matern12(Stationary):
    """Matérn-1/2, κ = exp(−r): paths without a derivative."""

    def profile(self, r2: FloatArray) -> tuple[FloatArray, FloatArray]:
        r = np.sqrt(r2)
        k = np.exp(-r)
        # h ~ 1/r at coinciding points, where it only ever multiplies a zero difference
        return k, np.divide(k, r, out=np.zeros_like(r), where=r > 0)

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n frequencies (n, d) from the spectral density, a Cauchy one."""
        return student_frequencies(1, self.lengthscale, n, rng)


class Matern32(Stationary):
    """Matérn-3/2, κ = (1 + √3 r) exp(−√3 r): paths with one derivative."""

    def profile(self, r2: FloatArray) -> tuple[FloatArray, FloatArray]:
        r = np.sqrt(r2)
        e = np.exp(-np.sqrt(3.0) * r)
        return (1.0 + np.sqrt(3.0) * r) * e, 3.0 * e

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n frequencies (n, d) from the spectral density, a Student t with 3 degrees of freedom."""
        return student_frequencies(3, self.lengthscale, n, rng)


class Matern52(Stationary):
    """Matérn-5/2, κ = (1 + √5 r + 5r²/3) exp(−√5 r): paths with two derivatives."""

    def profile(self, r2: FloatArray) -> tuple[FloatArray, FloatArray]:
        root = np.sqrt(5.0) * np.sqrt(r2)
        e = np.exp(-root)
        return (1.0 + root + 5.0 / 3.0 * r2) * e, 5.0 / 3.0 * (1.0 + root) * e

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n frequencies (n, d) from the spectral density, a Student t with 5 degrees of freedom."""
        return student_frequencies(5, self.lengthscale, n, rng)


def student_frequencies(freedom: int, lengthscale: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Frequencies (n, d) of a Matérn kernel ν: a multivariate Student t with 2ν degrees of freedom."""
    normal = rng.standard_normal((n, len(lengthscale)))
    scale = 1.0 / np.sqrt(rng.chisquare(freedom, n) / freedom)
    return scale[:, None] * normal / lengthscale


@dataclass(frozen=True)
class RationalQuadratic(Stationary):
    """A mixture of RBF kernels over Gamma-distributed scales, κ = (1 + r²/2α)^−α.

    Attributes
    ----------
    shape : float
        α; the RBF is the limit of large ones.
    """

    shape: float = 1.0

    @property
    def shapes(self) -> list[float]:
        return [self.shape]

    def with_theta(self, theta: FloatArray) -> Self:
        return replace(super().with_theta(theta), shape=float(np.exp(theta)[-1]))

    def profile(self, r2: FloatArray) -> tuple[FloatArray, FloatArray]:
        base = 1.0 + r2 / (2.0 * self.shape)
        k = base**-self.shape
        return k, k / base

    def shape_gradient(self, g: FloatArray, k: FloatArray, h: FloatArray) -> FloatArray:
        """Σ G ∘ ∂K/∂log α, with k/h the base 1 + r²/2α of the power."""
        base = np.divide(k, h, out=np.ones_like(k), where=h > 0.0)
        change = k - h - k * np.log(base)
        return np.array([self.shape * float(np.einsum("ij,ij->", g, change))])

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n frequencies (n, d) from the spectral density, a Gamma mixture of normal ones."""
        normal = rng.standard_normal((n, len(self.lengthscale)))
        scale = np.sqrt(rng.gamma(self.shape, 1.0 / self.shape, n))
        return scale[:, None] * normal / self.lengthscale
