"""What a Gaussian process asks of its covariance function, and the machinery that stationary ones share.

Hyperparameters are learned as logarithms, ``theta = [log lengthscales, log variance, (log shapes)]``. Their
gradients are contractions Σ Gᵢⱼ ∂Kᵢⱼ/∂θ over one triangle of a symmetric matrix (maths: Rasmussen & Williams 2006,
eq. 5.9), formed with matrix products of blocks that fit the cache: no (n, n, d) array ever exists.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from basq.numerics.linalg import distance_left, distance_right, row_blocks, square_distances, upper_blocks
from basq.types import FloatArray

Contraction = Callable[[FloatArray], FloatArray]


class Kernel(Protocol):
    """What a Gaussian process asks of its covariance function."""

    @property
    def variance(self) -> float: ...

    @property
    def lengthscale(self) -> FloatArray: ...

    @property
    def theta(self) -> FloatArray: ...

    @property
    def variance_index(self) -> int:
        """Where log variance stands in ``theta``; lengthscales before it, shapes after it."""
        ...

    @property
    def gaussian(self) -> bool:
        """Whether K = variance · exp(−½ Σ ((xₖ − xₖ′)/lengthscaleₖ)²), whose integrals have closed forms."""
        ...

    def with_theta(self, theta: FloatArray) -> Self:
        """Return the same kernel with other hyperparameters."""
        ...

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Covariance of every row of a (n, d) with every row of b (m, d): (n, m)."""
        ...

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Prior variance at the rows of x: (n,)."""
        ...

    def against(self, data: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """Return x (m, d) -> K(data, x), (n, m), and the prior variance at x, (m,)."""
        ...

    def weighted_sum(self, data: FloatArray, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the function x -> K(x, data) weights, (m, d) -> (m,)."""
        ...

    def prepared(self, x: FloatArray) -> Self:
        """Return the same kernel with what depends on x alone computed once, for a fit."""
        ...

    def with_gradient(self, x: FloatArray) -> tuple[FloatArray, Contraction]:
        """Return K(x, x) and the map G -> Σ G ∘ ∂K/∂θ, one value per hyperparameter.

        Of K only the upper triangle may be read. G has zeros below the diagonal; halve the diagonal of a symmetric
        matrix for half its contraction.
        """
        ...


@runtime_checkable
class Spectral(Protocol):
    """A kernel with a spectral density to draw from: what random Fourier features need."""

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n frequencies (n, d) from the spectral density (Bochner)."""
        ...


@runtime_checkable
class Differentiable(Protocol):
    """A kernel with a gradient in its input: what local penalisation needs."""

    def input_gradient(self, point: FloatArray, x: FloatArray) -> FloatArray:
        """Gradient of K(point, xᵢ) in the point (d,), one row per row of x: (n, d)."""
        ...


class DistanceSum:
    """Σ Mᵢⱼ (uᵢₖ − uⱼₖ)² for every coordinate k of points u (n, d), over blocks of M that are added one by one."""

    def __init__(self, u: FloatArray) -> None:
        self.total = np.zeros(u.shape[1])
        self._u = u
        self._powers = np.column_stack([np.ones(len(u)), u, u * u])

    def add(self, m: FloatArray, rows: slice, columns: slice) -> None:
        """Add the block m of M."""
        u, d = self._u[rows], self._u.shape[1]
        sums = m @ self._powers[columns]
        self.total += (u * (sums[:, :1] * u - 2.0 * sums[:, 1 : d + 1])).sum(axis=0) + sums[:, d + 1 :].sum(axis=0)


@dataclass(frozen=True)
class Stationary(ABC):
    """A stationary kernel v κ(r²), r² = Σ ((xₖ − xₖ′)/lₖ)²; a subclass gives κ, and perhaps shapes of it.

    Attributes
    ----------
    variance : float
        v = K(x, x).
    lengthscale : (d,) array
    isotropic : bool
        One lengthscale for all coordinates (``lengthscale`` then repeats it).
    """

    variance: float
    lengthscale: FloatArray
    isotropic: bool = False

    gaussian: ClassVar[bool] = False

    @abstractmethod
    def profile(self, r2: FloatArray) -> tuple[FloatArray, FloatArray]:
        """κ(r²) and h(r²) = −2 κ′(r²), both in the shape of r²; h has to be finite at zero."""

    @property
    def shapes(self) -> list[float]:
        """Hyperparameters of κ itself, which stand after the variance in ``theta``: none, unless a subclass has any."""
        return []

    @property
    def theta(self) -> FloatArray:
        scales = self.lengthscale[:1] if self.isotropic else self.lengthscale
        return np.log(np.concatenate([scales, [self.variance], self.shapes]))

    @property
    def variance_index(self) -> int:
        return 1 if self.isotropic else len(self.lengthscale)

    def with_theta(self, theta: FloatArray) -> Self:
        values = np.exp(theta)
        n_scales = self.variance_index
        scales = np.broadcast_to(values[:n_scales], self.lengthscale.shape).copy()
        return replace(self, lengthscale=scales, variance=float(values[n_scales]))

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        r2 = square_distances(a / self.lengthscale, b / self.lengthscale)
        if a is b:  # rounding would be felt: a Matérn-1/2 has slope 1/r at r = 0
            np.fill_diagonal(r2, 0.0)
        return self.variance * self.profile(r2)[0]

    def rows(self, data: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return x (m, d) -> K(x, data), (m, n)."""
        return lambda x: self(x, data)

    def diagonal(self, x: FloatArray) -> FloatArray:
        return np.full(len(x), self.variance)

    def against(self, data: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        matrix = self.rows(data)
        return lambda x: (matrix(x).T, self.diagonal(x))  # the layout in which triangular systems are solved

    def weighted_sum(self, data: FloatArray, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        matrix = self.rows(data)

        def evaluate(x: FloatArray) -> FloatArray:
            # a few blocks at a time: the whole matrix would take longer to be allocated than to be used
            parts = [matrix(x[rows]) @ weights for rows in row_blocks(len(x), max(len(data) // 16, 1))]
            return np.concatenate(parts) if parts else np.empty(0)

        return evaluate

    def prepared(self, x: FloatArray) -> Self:
        return self

    def with_gradient(self, x: FloatArray) -> tuple[FloatArray, Contraction]:
        u = (x - x.mean(axis=0)) / self.lengthscale
        k = np.empty((len(x), len(x)))
        h = k if self.gaussian else np.empty_like(k)
        left, right = distance_left(u, np.zeros(u.shape[1])), distance_right(u, np.zeros(u.shape[1])).T
        for rows, columns in upper_blocks(len(x)):
            r2 = 2.0 * left[rows] @ right[:, columns]
            np.maximum(r2, 0.0, out=r2)
            np.fill_diagonal(r2, 0.0)
            unit, slope = self.profile(r2)
            np.multiply(self.variance, unit, out=k[rows, columns])
            if h is not k:
                np.multiply(self.variance, slope, out=h[rows, columns])

        def contract(g: FloatArray) -> FloatArray:
            by_scale, by_variance, by_shape = DistanceSum(u), 0.0, np.zeros(len(self.shapes))
            for rows, columns in upper_blocks(len(x)):
                g_part, k_part, h_part = g[rows, columns], k[rows, columns], h[rows, columns]
                by_scale.add(g_part * h_part, rows, columns)
                by_variance += float(np.einsum("ij,ij->", g_part, k_part))
                by_shape += self.shape_gradient(g_part, k_part, h_part)
            scales = by_scale.total.sum(keepdims=True) if self.isotropic else by_scale.total
            return np.concatenate([scales, [by_variance], by_shape])

        return k, contract

    def shape_gradient(self, g: FloatArray, k: FloatArray, h: FloatArray) -> FloatArray:
        """Σ G ∘ ∂K/∂θ over a block for every one of the ``shapes``; k and h are the blocks of v κ and v h."""
        return np.empty(0)

    def input_gradient(self, point: FloatArray, x: FloatArray) -> FloatArray:
        """Gradient of K(point, xᵢ) in the point (d,), one row per row of x: (n, d)."""
        difference = (point - x) / self.lengthscale
        h = self.profile((difference * difference).sum(axis=1))[1]
        return -self.variance * h[:, None] * difference / self.lengthscale
