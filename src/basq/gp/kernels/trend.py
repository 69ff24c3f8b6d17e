"""The kernel of log-likelihoods: a quadratic trend, smooth departures from it, and bends.

A log-likelihood is near a parabola where the posterior is, so a quadratic part carries the extrapolation, which a
stationary kernel alone would flatten to a constant (not integrable once exponentiated). A rational quadratic models
what is left; a sum of one-dimensional functions, of the single parameters and of the distance from the centre, catches
heavy or skewed tails, for which it needs far fewer points than a function of all parameters would.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from basq.gp.fit import Hyperprior
from basq.gp.kernels.base import Contraction, DistanceSum
from basq.numerics.linalg import distance_left, distance_right, half_square_distances, row_blocks, upper_blocks
from basq.types import FloatArray

KNOTS = np.linspace(-4.0, 4.0, 11)
"""Knots of the one-dimensional functions, on the scale of asinh(standardised parameter) or log √(1 + distance²)."""

KNOT_ROOT = np.linalg.inv(np.linalg.cholesky(np.exp(-0.5 * (KNOTS[:, None] - KNOTS) ** 2) + 1e-6 * np.eye(11))).T


@dataclass(frozen=True)
class Grams:
    """Inner products of points x (n, d) and of their one-dimensional functions, both (n, n)."""

    x: FloatArray
    inner: FloatArray
    bends: FloatArray


@dataclass(frozen=True)
class TrendKernel:
    """v RQ(z) + s₀ + s₁ zᵀz′ + s₂ (zᵀz′)² + a Σⱼ k(xⱼ, xⱼ′) in whitened z, x = asinh(axes z) and log √(1 + |z|²).

    Attributes
    ----------
    lengthscale : (d,) array
        Of the rational quadratic (shape 1).
    variance : float
        v.
    trend : (3,) array
        s₀, s₁, s₂.
    additive : float
        a.
    axes : (k, d) array
        Rows give the single parameters, to unit scale, in whitened coordinates; none leaves the additive part out.
    grams : Grams or None
        See ``prepared``.
    """

    lengthscale: FloatArray
    variance: float
    trend: FloatArray
    additive: float
    axes: FloatArray
    grams: Grams | None = None

    gaussian: ClassVar[bool] = False

    @property
    def theta(self) -> FloatArray:
        return np.log(np.concatenate([self.lengthscale, [self.variance], self.trend, [self.additive]]))

    @property
    def variance_index(self) -> int:
        return len(self.lengthscale)

    def with_theta(self, theta: FloatArray) -> Self:
        d = len(self.lengthscale)
        values = np.exp(theta)
        return replace(
            self,
            lengthscale=values[:d],
            variance=float(values[d]),
            trend=values[d + 1 : d + 4],
            additive=float(values[d + 4]),
        )

    def features(self, z: FloatArray) -> FloatArray:
        """Functions of one variable each whose inner product is the additive part: (n, 11 (k + 1))."""
        b = self._variables(z)
        k, n = b.shape
        if not n * k:
            return np.empty((n, len(KNOTS) * k))
        bumps = _bumps(b).reshape(len(KNOTS), k * n)
        out: FloatArray = (KNOT_ROOT.T @ bumps).reshape(len(KNOTS) * k, n).T
        return out

    def _variables(self, z: FloatArray) -> FloatArray:
        """What the one-dimensional functions at z (n, d) depend on: single parameters, and the distance, (k + 1, n)."""
        if not len(self.axes):
            return np.empty((0, len(z)))
        distance = 0.5 * np.log1p(np.einsum("ij,ij->i", z, z))
        return np.concatenate([np.arcsinh(self.axes @ z.T), distance[None]])

    def _rational(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """v RQ(a, b), in place: this is the largest array of the sampling."""
        return self._decayed(half_square_distances(a / self.lengthscale, b / self.lengthscale, plus=1.0))

    def _decayed(self, base: FloatArray) -> FloatArray:
        """v / base, in place; far from the centre of the data rounding may leave a base of 1 + r²/2 below one."""
        np.maximum(base, 1.0, out=base)
        return np.divide(self.variance, base, out=base)

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        left = self.features(a)
        return self._covariance(a, b, left, left if a is b else self.features(b))

    def _covariance(self, a: FloatArray, b: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """K(a, b) from points and their one-dimensional functions: (n, m)."""
        s0, s1, s2 = self.trend
        inner = a @ b.T
        out = self._rational(a, b)
        out += s0
        trend = s2 * inner
        trend += s1
        trend *= inner
        out += trend
        out += (self.additive * left) @ right.T
        return out

    def diagonal(self, x: FloatArray) -> FloatArray:
        return self._variances(x, self.features(x))

    def _variances(self, x: FloatArray, features: FloatArray) -> FloatArray:
        s0, s1, s2 = self.trend
        inner = (x * x).sum(axis=1)
        bends = self.additive * np.einsum("ij,ij->i", features, features)
        return self.variance + s0 + (s1 + s2 * inner) * inner + bends

    def against(self, data: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        s0, s1, s2 = self.trend
        rational = self._rationals(data)
        right = np.column_stack([self.additive * self.features(data), s1 * data, np.full(len(data), s0)]).T
        curved = np.sqrt(s2) * data.T

        def evaluate(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            features, out = self.features(x), np.empty((len(x), len(data)))
            left = np.concatenate([features.T, x.T, np.ones((1, len(x)))]).T
            for rows, _ in rational(x, out):
                square = x[rows] @ curved
                square *= square
                square += left[rows] @ right
                out[rows] += square
            return out.T, self._variances(x, features)

        return evaluate

    def weighted_sum(self, data: FloatArray, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return x -> K(x, data) weights; the finite-rank parts are summed over the data once."""
        constant, linear, quadratic, bends = self._sums(data, weights)
        rational = self._rationals(data)

        def evaluate(x: FloatArray) -> FloatArray:
            out: FloatArray = constant + x @ linear + np.einsum("ni,ni->n", x @ quadratic, x)
            if len(self.axes):
                out += _summed_bumps(self._variables(x), bends)
            for rows, block in rational(x, None):
                out[rows] += block @ weights
            return out

        return evaluate

    def weighted_slope(
        self, data: FloatArray, weights: FloatArray
    ) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """Return x (m, d) -> K(x, data) weights, (m,), and its gradient, (m, d)."""
        constant, linear, quadratic, bends = self._sums(data, weights)
        columns = (weights / self.variance)[:, None] * np.column_stack([data, np.ones(len(data))])
        rational = self._rationals(data)

        def evaluate(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            curved = x @ quadratic
            out: FloatArray = constant + x @ linear + np.einsum("ni,ni->n", curved, x)
            slope: FloatArray = linear + 2.0 * curved
            for rows, block in rational(x, None):
                out[rows] += block @ weights
                sums = np.square(block, out=block) @ columns
                slope[rows] += (sums[:, :-1] - sums[:, -1:] * x[rows]) / self.lengthscale**2
            if len(self.axes):
                b = self._variables(x)
                bumps = bends.T[:, :, None] * _bumps(b)
                out += bumps.sum(axis=(0, 1))
                slope += self._by_variables(x, b, bumps)
            return out, slope

        return evaluate

    def _sums(self, data: FloatArray, weights: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """The parts of finite rank summed over the data: constant, (d,), (d, d), and (k + 1, knots) for the bumps."""
        s0, s1, s2 = self.trend
        linear, quadratic = s1 * (weights @ data), s2 * (data.T * weights) @ data
        bends = (self.additive * (weights @ self.features(data))).reshape(len(KNOTS), -1)
        return float(s0 * weights.sum()), linear, quadratic, (KNOT_ROOT @ bends).T

    def _rationals(
        self, data: FloatArray
    ) -> Callable[[FloatArray, FloatArray | None], Iterator[tuple[slice, FloatArray]]]:
        """Return x (m, d), out -> v RQ(x, data) in blocks of rows, within an (m, n) array if one is given."""
        scaled = data / self.lengthscale
        centre = scaled.mean(axis=0)
        right = distance_right(scaled, centre).T

        def blocks(x: FloatArray, out: FloatArray | None) -> Iterator[tuple[slice, FloatArray]]:
            left = distance_left(x / self.lengthscale, centre, plus=1.0)
            for rows in row_blocks(len(x), len(data)):
                block = np.matmul(left[rows], right, out=None if out is None else out[rows])
                yield rows, self._decayed(block)

        return blocks

    def prepared(self, x: FloatArray) -> Self:
        features = self.features(x)
        return replace(self, grams=Grams(x, x @ x.T, features @ features.T))

    def with_gradient(self, x: FloatArray) -> tuple[FloatArray, Contraction]:
        grams = self.grams if self.grams is not None and self.grams.x is x else self.prepared(x).grams
        assert grams is not None
        s0, s1, s2 = self.trend
        u = x / self.lengthscale
        u = u - u.mean(axis=0)
        k, shape = np.empty((2, len(x), len(x)))
        left, right = distance_left(u, np.zeros(u.shape[1]), plus=1.0), distance_right(u, np.zeros(u.shape[1])).T
        for rows, columns in upper_blocks(len(x)):
            inner, rational = grams.inner[rows, columns], shape[rows, columns]
            np.matmul(left[rows], right[:, columns], out=rational)
            np.reciprocal(np.maximum(rational, 1.0, out=rational), out=rational)
            part = s2 * inner
            part += s1
            part *= inner
            part += s0
            part += self.variance * rational
            part += self.additive * grams.bends[rows, columns]
            k[rows, columns] = part

        def contract(g: FloatArray) -> FloatArray:
            by_scale, others = DistanceSum(u), np.zeros(5)
            for rows, columns in upper_blocks(len(x)):
                part, inner, rational = g[rows, columns], grams.inner[rows, columns], shape[rows, columns]
                m, weighted = part * rational, part * inner
                bent = np.einsum("ij,ij->", part, grams.bends[rows, columns])
                others += m.sum(), part.sum(), weighted.sum(), np.einsum("ij,ij->", weighted, inner), bent
                m *= rational
                by_scale.add(m, rows, columns)
            factors = np.concatenate([[self.variance], self.trend, [self.additive]])
            return np.concatenate([self.variance * by_scale.total, factors * others])

        return k, contract

    def by_points(self, x: FloatArray, g: FloatArray) -> FloatArray:
        """Σ Gᵢⱼ ∂K(xᵢ, xⱼ)/∂x for every row of x (n, d), with G as `with_gradient` takes it: (n, d)."""
        _, s1, s2 = self.trend
        scaled = x / self.lengthscale
        features, out = self.features(x), np.empty_like(x)
        rational = self._rationals(x)
        by_feature = np.empty_like(features)
        for rows, block in rational(x, None):
            both = g[rows] + g[:, rows].T
            by_feature[rows] = both @ features
            slope = x[rows] @ x.T
            slope *= 2.0 * s2
            slope += s1
            slope *= both
            out[rows] = slope @ x
            both *= np.square(block, out=block)
            pulls = (both @ scaled - both.sum(axis=1)[:, None] * scaled[rows]) / self.variance
            out[rows] += pulls / self.lengthscale
        if len(self.axes):
            b = self._variables(x)
            weights = KNOT_ROOT @ (self.additive * by_feature.T).reshape(len(KNOTS), -1)
            bumps = weights.reshape(len(KNOTS), *b.shape) * _bumps(b)
            out += self._by_variables(x, b, bumps)
        return out

    def _by_variables(self, x: FloatArray, b: FloatArray, bumps: FloatArray) -> FloatArray:
        """Slope by the points x (n, d), with variables b (k + 1, n), of a sum of bumps (knots, k + 1, n): (n, d)."""
        by_variable = ((KNOTS[:, None, None] - b) * bumps).sum(axis=0).T
        slope: FloatArray = (by_variable[:, :-1] / np.cosh(b[:-1].T)) @ self.axes
        slope += x * (by_variable[:, -1] * np.exp(-2.0 * b[-1]))[:, None]
        return slope


def _bumps(b: FloatArray) -> FloatArray:
    """exp(−½ (b − knot)²) for every knot: (…) -> (knots, …).

    Neighbouring knots differ by the factor exp(b Δ) and a constant, so two exponentials do for all of them.
    """
    out = np.empty((len(KNOTS), *b.shape))
    factor = np.exp((KNOTS[1] - KNOTS[0]) * b)
    np.exp(b * (KNOTS[0] - 0.5 * b), out=out[0])
    for j in range(1, len(KNOTS)):
        np.multiply(out[j - 1], factor, out=out[j])
    out *= np.exp(-0.5 * KNOTS**2).reshape(-1, *(1,) * b.ndim)
    return out


def _summed_bumps(b: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Sum of ``_bumps(b)``, b (k, n), times coefficients (k, knots): (n,), as a polynomial in exp(b Δ)."""
    b = np.clip(b, -60.0, 60.0)  # every bump is zero there, and powers would overflow beyond
    scaled = (coefficients * np.exp(-0.5 * KNOTS**2)).T[:, :, None]
    factor = np.exp((KNOTS[1] - KNOTS[0]) * b)
    out = scaled[-1] * factor
    for c in scaled[-2:0:-1]:
        out += c
        out *= factor
    out += scaled[0]
    return np.einsum("kn,kn->n", out, np.exp(b * (KNOTS[0] - 0.5 * b)))


Five = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class TrendPrior:
    """Where the hyperparameters of a `TrendKernel` begin, and weak priors on their logarithms.

    Those of the variances stand in the order v, s₀, s₁, s₂, a. Lengthscales begin at √d, about the distance between two
    points of a whitened posterior. Variances of the trend have no prior, only bounds.

    Attributes
    ----------
    first : tuple of five floats
        Variances to begin with, for data that span some tens of nats.
    scale_sd : float
        Of the lengthscales. One lengthscale prior of sd 1 and one of 0.25 were both worse calibrated.
    sd : tuple of five floats
    scale_bounds : tuple of two floats
    lower, upper : tuples of five floats
    """

    first: Five = (2.0, 4.0, 3.0, 2.0, 0.0)
    scale_sd: float = 0.5
    sd: Five = (3.0, np.inf, np.inf, np.inf, 3.0)
    scale_bounds: tuple[float, float] = (-2.0, 4.0)
    lower: Five = (-12.0, -6.0, -6.0, -8.0, -12.0)
    upper: Five = (16.0, 16.0, 14.0, 12.0, 12.0)

    def start(self, axes: FloatArray) -> TrendKernel:
        """The kernel to begin with."""
        d = axes.shape[1]
        variance, *trend, additive = self.first
        return TrendKernel(np.full(d, np.sqrt(d)), np.exp(variance), np.exp(trend), np.exp(additive), axes)

    def hyperprior(self, n_dim: int) -> Hyperprior:
        """Priors and bounds in the order of ``TrendKernel.theta``."""

        def both(scales: float, others: Five) -> FloatArray:
            return np.concatenate([np.full(n_dim, scales), others])

        mean = np.concatenate([np.full(n_dim, 0.5 * np.log(n_dim)), np.zeros(5)])
        low, high = self.scale_bounds
        return Hyperprior(mean, both(self.scale_sd, self.sd), both(low, self.lower), both(high, self.upper))
