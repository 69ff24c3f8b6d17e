"""The kernel of log-likelihoods: a quadratic trend, smooth departures from it, and one-parameter bends.

A log-likelihood is near a parabola where the posterior is, so a quadratic part carries the extrapolation, which a
stationary kernel alone would flatten to a constant (not integrable once exponentiated). A rational quadratic models
what is left; a sum of one-dimensional functions of the single parameters catches heavy or skewed tails, for which it
needs far fewer points than a function of all parameters would.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from basq.linalg import square_distances
from basq.surrogate.fit import Hyperprior
from basq.surrogate.kernels import Contraction
from basq.types import FloatArray

KNOTS = np.linspace(-4.0, 4.0, 11)
"""Knots of the one-dimensional functions, on the scale of asinh(standardised parameter)."""

KNOT_ROOT = np.linalg.inv(np.linalg.cholesky(np.exp(-0.5 * (KNOTS[:, None] - KNOTS) ** 2) + 1e-6 * np.eye(11))).T


@dataclass(frozen=True)
class TrendKernel:
    """v RQ(z) + s₀ + s₁ zᵀz′ + s₂ (zᵀz′)² + a Σⱼ k(xⱼ, xⱼ′) in whitened coordinates z, x = axes z.

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
    axes : (d, d) array
        Rows give the single parameters, to unit scale, in whitened coordinates.
    """

    lengthscale: FloatArray
    variance: float
    trend: FloatArray
    additive: float
    axes: FloatArray

    @classmethod
    def start(cls, axes: FloatArray) -> "TrendKernel":
        """Hyperparameters to begin with, for data that span some tens of nats."""
        d = len(axes)
        return cls(np.full(d, np.sqrt(d)), np.exp(2.0), np.exp([4.0, 3.0, 2.0]), 1.0, axes)

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

    def hyperprior(self) -> Hyperprior:
        """Weak priors on lengthscales and variances, bounds only on the trend."""
        d = len(self.lengthscale)
        mean = np.concatenate([np.full(d, 0.5 * np.log(d)), np.zeros(5)])
        sd = np.concatenate([np.ones(d), [3.0, np.inf, np.inf, np.inf, 3.0]])
        lower = np.concatenate([np.full(d, -2.0), [-12.0, -6.0, -6.0, -8.0, -12.0]])
        upper = np.concatenate([np.full(d, 4.0), [16.0, 16.0, 14.0, 12.0, 12.0]])
        return Hyperprior(mean, sd, lower, upper)

    def features(self, z: FloatArray) -> FloatArray:
        """Functions of the single parameters whose inner product is the additive part: (n, 11 d)."""
        bent = np.arcsinh(z @ self.axes.T)
        return (np.exp(-0.5 * (bent[:, :, None] - KNOTS) ** 2) @ KNOT_ROOT).reshape(len(z), -1)

    def _rational(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """v RQ(a, b), in place: this is the largest array of the sampling."""
        out = square_distances(a / self.lengthscale, b / self.lengthscale)
        out *= 0.5
        out += 1.0
        return np.divide(self.variance, out, out=out)

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        s0, s1, s2 = self.trend
        inner = a @ b.T
        out = self._rational(a, b)
        out += s0 + (s1 + s2 * inner) * inner
        out += self.additive * (self.features(a) @ self.features(b).T)
        return out

    def diagonal(self, x: FloatArray) -> FloatArray:
        s0, s1, s2 = self.trend
        inner = (x * x).sum(axis=1)
        return self.variance + s0 + (s1 + s2 * inner) * inner + self.additive * (self.features(x) ** 2).sum(axis=1)

    def weighted_sum(self, x: FloatArray, data: FloatArray, weights: FloatArray) -> FloatArray:
        """K(x, data) weights, with the finite-rank parts summed over the data first: (m,)."""
        s0, s1, s2 = self.trend
        quadratic = s2 * (data.T * weights) @ data
        linear = s1 * (weights @ data)
        out: FloatArray = self._rational(x, data) @ weights
        out += s0 * weights.sum() + x @ linear + np.einsum("ni,ni->n", x @ quadratic, x)
        out += self.features(x) @ (self.additive * (weights @ self.features(data)))
        return out

    def weighted_gradient(self, x: FloatArray, data: FloatArray, weights: FloatArray) -> FloatArray:
        """Gradient of ``weighted_sum`` at the rows of x: (m, d)."""
        _, s1, s2 = self.trend
        rational = self._rational(x, data)
        slope = rational * rational * (weights / self.variance)
        out: FloatArray = (slope @ data - slope.sum(axis=1)[:, None] * x) / self.lengthscale**2
        out += s1 * (weights @ data) + 2.0 * x @ (s2 * (data.T * weights) @ data)
        parameters = x @ self.axes.T
        bent = np.arcsinh(parameters)[:, :, None] - KNOTS
        coefficients = (self.additive * (weights @ self.features(data))).reshape(len(self.axes), -1) @ KNOT_ROOT.T
        by_parameter = np.einsum("ndk,dk->nd", -bent * np.exp(-0.5 * bent**2), coefficients)
        out += (by_parameter / np.sqrt(1.0 + parameters**2)) @ self.axes
        return out

    def with_gradient(self, x: FloatArray) -> tuple[FloatArray, Contraction]:
        s0, s1, s2 = self.trend
        u = x / self.lengthscale
        shape = 1.0 / (1.0 + 0.5 * square_distances(u, u))
        rational = self.variance * shape
        inner = x @ x.T
        features = self.features(x)
        bends = self.additive * (features @ features.T)
        k = rational + s0 + (s1 + s2 * inner) * inner + bends

        def contract(g: FloatArray) -> FloatArray:
            m = g * rational
            by_variance = 0.5 * m.sum()
            m *= shape
            by_scale = m.sum(axis=1) @ (u * u) - (u * (m @ u)).sum(axis=0)
            weighted = g * inner
            by_trend = 0.5 * self.trend * np.array([g.sum(), weighted.sum(), np.vdot(weighted, inner)])
            return np.concatenate([by_scale, [by_variance], by_trend, [0.5 * np.vdot(g, bends)]])

        return k, contract
