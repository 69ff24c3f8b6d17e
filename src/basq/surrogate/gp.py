"""Gaussian-process regression with a constant mean and a noise variance per point."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.gaussians import LOG_2PI
from basq.linalg import cho_inverse, cho_solve, cholesky, solve_lower
from basq.surrogate.kernels import Kernel
from basq.types import FloatArray, IntArray


@dataclass(frozen=True)
class Prediction:
    """The process at a set of points, with what later covariances can reuse.

    Attributes
    ----------
    x : (m, d) array
    mean : (m,) array
    half : (n, m) array
        L⁻¹ K(X, x); covariances between two predictions are K − halfᵀ half′.
    var : (m,) array, never negative
    """

    x: FloatArray
    mean: FloatArray
    half: FloatArray
    var: FloatArray

    def __getitem__(self, index: IntArray) -> "Prediction":
        """Restrict to some of the points."""
        return Prediction(self.x[index], self.mean[index], self.half[:, index], self.var[index])

    def join(self, other: "Prediction") -> "Prediction":
        """Put the points of two predictions of one process together."""
        return Prediction(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.mean, other.mean]),
            np.concatenate([self.half, other.half], axis=1),
            np.concatenate([self.var, other.var]),
        )


@dataclass(frozen=True)
class GP:
    """A Gaussian process conditioned on data.

    Attributes
    ----------
    x : (n, d) array
    y : (n,) array
    kernel : Kernel
    mean : float
        Constant prior mean c.
    noise : (n,) array
        Noise variance of each datum, jitter included.
    factor : (n, n) array
        Lower Cholesky factor of K(X, X) + diag(noise).
    """

    x: FloatArray
    y: FloatArray
    kernel: Kernel
    mean: float
    noise: FloatArray
    factor: FloatArray

    @classmethod
    def condition(
        cls, x: FloatArray, y: FloatArray, kernel: Kernel, *, mean: float = 0.0, noise: FloatArray | float = 0.0
    ) -> "GP":
        """Condition the process on values y (n,) at x (n, d)."""
        variances = np.broadcast_to(np.asarray(noise, dtype=float), (len(x),)).copy()
        factor, jitter = cholesky(kernel(x, x) + np.diag(variances))
        return cls(x, y, kernel, mean, variances + jitter, factor)

    def __getstate__(self) -> dict[str, object]:
        """Everything but the bound function, which cannot be pickled and is made again when needed."""
        return {k: v for k, v in self.__dict__.items() if k != "_weighted_sum"}

    @cached_property
    def weights(self) -> FloatArray:
        """ω = Ω (y − c), (n,)."""
        return cho_solve(self.factor, self.y - self.mean)

    @cached_property
    def _weighted_sum(self) -> Callable[[FloatArray], FloatArray]:
        return self.kernel.weighted_sum(self.x, self.weights)

    @cached_property
    def precision(self) -> FloatArray:
        """Ω = (K + noise)⁻¹, (n, n). For weights and traces; variances go through the factor."""
        return cho_inverse(self.factor)

    @cached_property
    def log_marginal_likelihood(self) -> float:
        """Log-density of the data under the process."""
        misfit = float((self.y - self.mean) @ self.weights)
        return -0.5 * misfit - float(np.log(np.diag(self.factor)).sum()) - 0.5 * len(self.y) * LOG_2PI

    def predict_mean(self, x: FloatArray) -> FloatArray:
        """Posterior mean at the rows of x: (m, d) -> (m,)."""
        return self.mean + self._weighted_sum(x)

    def predict(self, x: FloatArray) -> Prediction:
        """Posterior mean and variance at the rows of x."""
        cross, prior_var = self.kernel.cross(self.x, x)
        mean = self.mean + self.weights @ cross
        half = solve_lower(self.factor, cross)
        var = prior_var - np.einsum("ij,ij->j", half, half)
        return Prediction(x, mean, half, np.maximum(var, 0.0))

    def var(self, p: Prediction) -> FloatArray:
        """Posterior variance at the points of a prediction: (m,)."""
        return p.var

    def cov(self, a: Prediction, b: Prediction) -> FloatArray:
        """Posterior covariance between the points of two predictions: (m_a, m_b)."""
        out: FloatArray = self.kernel(a.x, b.x)
        out -= a.half.T @ b.half
        return out

    def extend(self, x: FloatArray, y: FloatArray, *, noise: FloatArray | float = 0.0) -> "GP":
        """Add data without refactorising what is already there.

        Parameters
        ----------
        x : (m, d) array
        y : (m,) array
        noise : float or (m,) array
        """
        if not len(x):
            return self
        variances = np.broadcast_to(np.asarray(noise, dtype=float), (len(x),)).copy()
        corner = solve_lower(self.factor, self.kernel(self.x, x))
        own = self.kernel(x, x) + np.diag(variances)
        block, jitter = cholesky(own - corner.T @ corner, scale=float(np.mean(np.diag(own))))
        n, m = len(self.x), len(x)
        factor = np.zeros((n + m, n + m), order="F")
        factor[:n, :n], factor[n:, :n], factor[n:, n:] = self.factor, corner.T, block
        return GP(
            np.concatenate([self.x, x]),
            np.concatenate([self.y, y]),
            self.kernel,
            self.mean,
            np.concatenate([self.noise, variances + jitter]),
            factor,
        )

    def expecting(self, x: FloatArray, *, noise: float = 0.0) -> "GP":
        """Return this process as if x (m, d) had the values it expects: the mean stays, the variance shrinks."""
        return self.extend(x, self.predict_mean(x), noise=noise)
