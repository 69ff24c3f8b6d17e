"""Covariance functions, with the derivatives that fitting needs.

Hyperparameters are learned as logarithms, ``theta = [log lengthscales, log variance, (log shape)]``. Their
gradients are contractions Σ Gᵢⱼ ∂Kᵢⱼ/∂θ over one triangle of a symmetric matrix (maths: Rasmussen & Williams 2006,
eq. 5.9), formed with matrix products of blocks that fit the cache: no (n, n, d) array ever exists.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, get_args

import numpy as np

from basq.errors import InputError
from basq.numerics.linalg import distance_left, distance_right, row_blocks, square_distances, upper_blocks
from basq.types import FloatArray

KernelName = Literal["rbf", "rbf-iso", "matern12", "matern32", "matern52", "rq", "polynomial"]
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
        """Where log variance stands in ``theta``; lengthscales before it, a shape after it."""
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


def _profile(family: str, r2: FloatArray, shape: float) -> tuple[FloatArray, FloatArray]:
    """Return κ(r²) and h(r²) = −2 κ′(r²) of a stationary family, both of unit variance."""
    if family == "rbf":
        k = np.exp(-0.5 * r2)
        return k, k
    if family == "rq":
        base = 1.0 + r2 / (2.0 * shape)
        k = base**-shape
        return k, k / base
    r = np.sqrt(r2)
    if family == "matern12":
        k = np.exp(-r)
        # h ~ 1/r at coinciding points, where it only ever multiplies a zero difference
        return k, np.divide(k, r, out=np.zeros_like(r), where=r > 0)
    if family == "matern32":
        e = np.exp(-np.sqrt(3.0) * r)
        return (1.0 + np.sqrt(3.0) * r) * e, 3.0 * e
    root = np.sqrt(5.0) * r
    e = np.exp(-root)
    return (1.0 + root + 5.0 / 3.0 * r2) * e, 5.0 / 3.0 * (1.0 + root) * e


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
class Stationary:
    """A stationary kernel v κ(r²), r² = Σ ((xₖ − xₖ′)/lₖ)².

    Attributes
    ----------
    family : "rbf", "matern12", "matern32", "matern52" or "rq"
    variance : float
        K(x, x).
    lengthscale : (d,) array
    isotropic : bool
        One lengthscale for all coordinates (``lengthscale`` then repeats it).
    shape : float
        Shape parameter of the rational quadratic; unused otherwise.
    """

    family: str
    variance: float
    lengthscale: FloatArray
    isotropic: bool = False
    shape: float = 1.0

    @property
    def theta(self) -> FloatArray:
        scales = self.lengthscale[:1] if self.isotropic else self.lengthscale
        tail = [self.variance, self.shape] if self.family == "rq" else [self.variance]
        return np.log(np.concatenate([scales, tail]))

    @property
    def variance_index(self) -> int:
        return 1 if self.isotropic else len(self.lengthscale)

    def with_theta(self, theta: FloatArray) -> Self:
        values = np.exp(theta)
        n_scales = self.variance_index
        scales = np.broadcast_to(values[:n_scales], self.lengthscale.shape).copy()
        shape = float(values[-1]) if self.family == "rq" else self.shape
        return replace(self, lengthscale=scales, variance=float(values[n_scales]), shape=shape)

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        if self.family == "rbf" and a is not b:
            return self._rows(b)(a)
        r2 = square_distances(a / self.lengthscale, b / self.lengthscale)
        if a is b:  # rounding would be felt: a Matérn-1/2 has slope 1/r at r = 0
            np.fill_diagonal(r2, 0.0)
        return self.variance * _profile(self.family, r2, self.shape)[0]

    def _rows(self, data: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return x (m, d) -> K(x, data), (m, n), with what depends on the data alone computed once."""
        if self.family != "rbf":
            return lambda x: self(x, data)
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

    def diagonal(self, x: FloatArray) -> FloatArray:
        return np.full(len(x), self.variance)

    def against(self, data: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        matrix = self._rows(data)
        return lambda x: (matrix(x).T, self.diagonal(x))  # the layout in which triangular systems are solved

    def weighted_sum(self, data: FloatArray, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        matrix = self._rows(data)

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
        h = k if self.family == "rbf" else np.empty_like(k)
        left, right = distance_left(u, np.zeros(u.shape[1])), distance_right(u, np.zeros(u.shape[1])).T
        for rows, columns in upper_blocks(len(x)):
            r2 = 2.0 * left[rows] @ right[:, columns]
            np.maximum(r2, 0.0, out=r2)
            np.fill_diagonal(r2, 0.0)
            unit, slope = _profile(self.family, r2, self.shape)
            np.multiply(self.variance, unit, out=k[rows, columns])
            if h is not k:
                np.multiply(self.variance, slope, out=h[rows, columns])

        def contract(g: FloatArray) -> FloatArray:
            by_scale, by_variance, by_shape = DistanceSum(u), 0.0, 0.0
            for rows, columns in upper_blocks(len(x)):
                g_part, k_part, h_part = g[rows, columns], k[rows, columns], h[rows, columns]
                by_scale.add(g_part * h_part, rows, columns)
                by_variance += float(np.einsum("ij,ij->", g_part, k_part))
                if self.family == "rq":
                    # k/h is the base 1 + r²/2α of the power
                    base = np.divide(k_part, h_part, out=np.ones_like(k_part), where=h_part > 0.0)
                    change = k_part - h_part - k_part * np.log(base)
                    by_shape += self.shape * float(np.einsum("ij,ij->", g_part, change))
            scales = by_scale.total.sum(keepdims=True) if self.isotropic else by_scale.total
            return np.concatenate([scales, [by_variance, by_shape][: 2 if self.family == "rq" else 1]])

        return k, contract

    def input_gradient(self, point: FloatArray, x: FloatArray) -> FloatArray:
        """Gradient of K(point, xᵢ) in the point (d,), one row per row of x: (n, d)."""
        difference = (point - x) / self.lengthscale
        h = _profile(self.family, (difference * difference).sum(axis=1), self.shape)[1]
        return -self.variance * h[:, None] * difference / self.lengthscale

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n frequencies (n, d) from the spectral density (Bochner)."""
        normal = rng.standard_normal((n, len(self.lengthscale)))
        if self.family == "rbf":
            scale = np.ones(n)
        elif self.family == "rq":  # a Gamma mixture of RBF kernels
            scale = np.sqrt(rng.gamma(self.shape, 1.0 / self.shape, n))
        else:  # Matérn ν: a multivariate Student t with 2ν degrees of freedom
            freedom = {"matern12": 1, "matern32": 3, "matern52": 5}[self.family]
            scale = 1.0 / np.sqrt(rng.chisquare(freedom, n) / freedom)
        return scale[:, None] * normal / self.lengthscale


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


def make_kernel(name: KernelName, n_dim: int, *, lengthscale: float = 1.0, variance: float = 1.0) -> Kernel:
    """Build a kernel by its name, with one lengthscale for all coordinates to start from."""
    if name not in get_args(KernelName):
        raise InputError(f"Unknown kernel {name!r}; allowed are {', '.join(get_args(KernelName))}.")
    scales = np.full(n_dim, lengthscale)
    if name == "polynomial":
        return Polynomial(variance, scales)
    family = "rbf" if name == "rbf-iso" else name
    return Stationary(family, variance, scales, isotropic=name == "rbf-iso")
