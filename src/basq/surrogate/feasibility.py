"""Where the likelihood is zero: a Gaussian process that classifies.

Its logarithm is −inf there, which no process of values can follow, so a process of its own learns the two labels: a
probit model by Laplace's approximation (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, §3.4).
Its kernel has a quadratic trend, for at the scale of a posterior a wall is nearly straight or evenly bent, and
departures from it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from basq.gaussians import LOG_2PI
from basq.linalg import cholesky, inverse_lower, product_lower
from basq.surrogate.trend import TrendKernel
from basq.types import BoolArray, FloatArray

FIRST = np.log([30.0, 3.0, 3.0, 2.0])
"""Variances of linear and quadratic trend and of departures, and lengthscale (over √d), to begin with."""
STEPS = np.log([10.0, 10.0, 10.0, 2.0])
"""How far each is changed in the search for better ones."""
LOWER, UPPER = np.log([1e-2, 1e-3, 1e-2, 0.25]), np.log([1e5, 1e4, 1e3, 8.0])
MOST_MOVES = 6
"""Changes for the better after which a search ends; the next batch's goes on from there."""
NEWTON_STEPS, SMALL_STEP = 30, 1e-4


@dataclass(frozen=True)
class Feasibility:
    """A classifier of points by whether their likelihood is zero.

    Attributes
    ----------
    x : (n, d) array
    theta : (4,) array
        Logarithms of the variances of linear and quadratic trend and of departures, and of the lengthscale over √d.
    latent : (n,) array
        Mode of the latent process at the points.
    slope : (n,) array
        Gradient of the log-likelihood of the labels there.
    root : (n,) array
        Root of minus its second derivative.
    factor : (n, n) array
        Cholesky factor of I + root K root.
    log_evidence : float
        Laplace's approximation of the labels' log marginal likelihood.
    """

    x: FloatArray
    theta: FloatArray
    latent: FloatArray
    slope: FloatArray
    root: FloatArray
    factor: FloatArray
    log_evidence: float

    @classmethod
    def learn(cls, x: FloatArray, finite: BoolArray, previous: "Feasibility | None" = None) -> "Feasibility":
        """Learn from points (n, d) and whether their likelihood was finite (n,), beginning with the last answer."""
        best = cls.at(x, finite, FIRST if previous is None else previous.theta, None)
        for _ in range(MOST_MOVES):
            changes = [sign * step for step in np.diag(STEPS) for sign in (1.0, -1.0)]
            thetas = [np.clip(best.theta + change, LOWER, UPPER) for change in changes]
            others = [cls.at(x, finite, theta, best.latent) for theta in thetas]
            better = max(others, key=lambda o: o.log_evidence)
            if better.log_evidence < best.log_evidence + 0.1:
                break
            best = better
        return best

    @classmethod
    def at(cls, x: FloatArray, finite: BoolArray, theta: FloatArray, latent: FloatArray | None) -> "Feasibility":
        """Find the mode of the latent process for given hyperparameters by Newton's method."""
        sign, k = np.where(finite, 1.0, -1.0), kernel(theta, x.shape[1])(x, x)
        f = np.zeros(len(x)) if latent is None else latent
        for _ in range(NEWTON_STEPS):
            _, slope, root = probit(sign, f)
            factor, _ = cholesky(root[:, None] * k * root, plus=1.0)
            b = root**2 * f + slope
            inverse = inverse_lower(factor)
            weights = b - root * (inverse.T @ (inverse @ (root * (k @ b))))
            change, f = k @ weights - f, k @ weights
            if np.abs(change).max() < SMALL_STEP:
                break
        log_l, slope, root = probit(sign, f)
        log_evidence = log_l - 0.5 * float(f @ weights) - float(np.log(factor.diagonal()).sum())
        return cls(x, theta, f, slope, root, factor, log_evidence)

    @cached_property
    def _scaled_inverse(self) -> FloatArray:
        return np.asfortranarray(inverse_lower(self.factor) * self.root)

    @cached_property
    def kernel(self) -> TrendKernel:
        return kernel(self.theta, self.x.shape[1])

    def log_probability(self, x: FloatArray) -> FloatArray:
        """Log-probability that the likelihood is not zero at points (m, d): (m,)."""
        cross = self.kernel(self.x, x)
        half = product_lower(self._scaled_inverse, cross)
        var = np.maximum(self.kernel.diagonal(x) - np.einsum("ij,ij->j", half, half), 0.0)
        out: FloatArray = log_ndtr(self.slope @ cross / np.sqrt(1.0 + var))
        return out


def kernel(theta: FloatArray, n_dim: int) -> TrendKernel:
    """The latent process's kernel."""
    linear, quadratic, variance, lengthscale = np.exp(theta)
    scales, none = np.full(n_dim, np.sqrt(n_dim) * lengthscale), np.empty((0, n_dim))
    return TrendKernel(scales, variance, np.array([linear, linear, quadratic]), 0.0, none)


def probit(sign: FloatArray, f: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Log-likelihood of labels ±1 (n,) given the latent process (n,), its gradient, and the root of its curvature."""
    t = sign * f
    log_p = log_ndtr(t)
    ratio = np.exp(-0.5 * (t * t + LOG_2PI) - log_p)
    return float(log_p.sum()), sign * ratio, np.sqrt(np.maximum(ratio * (ratio + t), 1e-12))
