"""Gaussian-process regression with a constant mean and a noise variance per point: eq. (2) of the paper, with both."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from basq.errors import FitError
from basq.gp.kernels.base import Kernel
from basq.numerics.gaussians import LOG_2PI
from basq.numerics.linalg import cho_inverse, cho_solve, cholesky, inverse_lower, product_lower, row_blocks, solve_lower
from basq.numerics.search import Optimum
from basq.types import FloatArray, IntArray


class Moments(Protocol):
    """Mean and variance of a process at points x (m, d)."""

    @property
    def x(self) -> FloatArray: ...

    @property
    def mean(self) -> FloatArray: ...

    @property
    def var(self) -> FloatArray: ...


@dataclass(frozen=True)
class Prediction:
    """The process at a set of points, with what later covariances can reuse.

    The variance costs far more than the mean, so it is computed when it is asked for.

    Attributes
    ----------
    x : (m, d) array
    mean : (m,) array
    cross : (n, m) array
        K(X, x).
    prior_var : (m,) array
    inverse_factor : (n, n) array
        L⁻¹, of the process's Cholesky factor.
    """

    x: FloatArray
    mean: FloatArray
    cross: FloatArray
    prior_var: FloatArray
    inverse_factor: FloatArray

    @cached_property
    def half(self) -> FloatArray:
        """L⁻¹ K(X, x), (n, m); covariances between two predictions are K − halfᵀ half′."""
        return product_lower(self.inverse_factor, self.cross)

    @cached_property
    def var(self) -> FloatArray:
        """Posterior variance, (m,), never negative."""
        return np.maximum(self.prior_var - np.einsum("ij,ij->j", self.half, self.half), 0.0)

    def __getitem__(self, index: IntArray | slice) -> "Prediction":
        """Restrict to some of the points."""
        cross = self.cross[:, index]
        part = Prediction(self.x[index], self.mean[index], cross, self.prior_var[index], self.inverse_factor)
        if "half" in self.__dict__:  # not to be solved for again
            part.__dict__["half"] = self.half[:, index]
        return part


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
    n_learned : int
        Data, the first ones, that the hyperparameters were learned from; 0 if they were not learned.
    optimum : Optimum or None
        Where the search for the hyperparameters ended, for the next one to begin with.
    """

    x: FloatArray
    y: FloatArray
    kernel: Kernel
    mean: float
    noise: FloatArray
    factor: FloatArray
    n_learned: int = 0
    optimum: Optimum | None = None

    @classmethod
    def condition(
        cls, x: FloatArray, y: FloatArray, kernel: Kernel, *, mean: float = 0.0, noise: FloatArray | float = 0.0
    ) -> "GP":
        """Condition the process on values y (n,) at x (n, d)."""
        variances = np.broadcast_to(np.asarray(noise, dtype=float), (len(x),)).copy()
        factor, jitter = cholesky(kernel(x, x), plus=variances)
        return cls(x, y, kernel, mean, variances + jitter, factor)

    def __getstate__(self) -> dict[str, object]:
        """Everything but what is made again when needed: bound functions, which cannot be pickled, and the inverse."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_weighted_sum", "_against", "_inverse_factor")}

    @cached_property
    def weights(self) -> FloatArray:
        """ω = Ω (y − c), (n,)."""
        return cho_solve(self.factor, self.y - self.mean)

    @cached_property
    def _weighted_sum(self) -> Callable[[FloatArray], FloatArray]:
        return self.kernel.weighted_sum(self.x, self.weights)

    @cached_property
    def _against(self) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        return self.kernel.against(self.x)

    @cached_property
    def _inverse_factor(self) -> FloatArray:
        """L⁻¹: products with it take half the time of solves with L, and lose no digits."""
        return inverse_lower(self.factor)

    @cached_property
    def precision(self) -> FloatArray:
        """Ω = (K + noise)⁻¹, (n, n). For weights and traces; variances go through the factor."""
        return cho_inverse(self.factor)

    @property
    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Each datum minus its prediction from all others, and the variance of that prediction: (n,), (n,)."""
        variances = 1.0 / np.einsum("ij,ij->j", self._inverse_factor, self._inverse_factor)
        return self.weights * variances, variances

    @property
    def misfit(self) -> float:
        """Mean square of the data in the process's own units."""
        return float((self.y - self.mean) @ self.weights) / len(self.y)

    @cached_property
    def log_marginal_likelihood(self) -> float:
        """Log-density of the data under the process."""
        log_det = 2.0 * float(np.log(np.diag(self.factor)).sum())
        return -0.5 * (len(self.y) * (self.misfit + LOG_2PI) + log_det)

    def predict_mean(self, x: FloatArray) -> FloatArray:
        """Posterior mean at the rows of x: (m, d) -> (m,)."""
        return self.mean + self._weighted_sum(x)

    def predict(self, x: FloatArray) -> Prediction:
        """Posterior mean and variance at the rows of x."""
        cross, prior_var = self._against(x)
        return Prediction(x, self.mean + self.weights @ cross, cross, prior_var, self._inverse_factor)

    def var(self, p: Prediction) -> FloatArray:
        """Posterior variance at the points of a prediction: (m,)."""
        return p.var

    def cov(self, a: Prediction, b: Prediction) -> FloatArray:
        """Posterior covariance between the points of two predictions: (m_a, m_b)."""
        out: FloatArray = self.kernel(a.x, b.x)
        out -= a.half.T @ b.half
        return out

    def project(self, p: Prediction, centres: Prediction, vectors: FloatArray) -> FloatArray:
        """C(p, centres) vectors, (m, k), without solving for every point of p.

        Parameters
        ----------
        vectors : (m_centres, k) array
        """
        out: FloatArray = p.cross.T @ -cho_solve(self.factor, centres.cross @ vectors)
        against = self.kernel.against(centres.x)
        for rows in row_blocks(len(p.x), len(centres.x) // 4):
            out[rows] += against(p.x[rows])[0].T @ vectors
        return out

    def sketch(self, size: int) -> "GP":
        """The process conditioned on its most telling data only, greedily those of the largest variance left.

        Its variance is never below the whole process's, is right far from data, and costs O(size²) a point.
        """
        if len(self.x) <= size:
            return self
        chosen = pivots(self.kernel, self.x, size)
        noise = self.noise[chosen]
        factor, jitter = cholesky(self.kernel(self.x[chosen], self.x[chosen]), plus=noise)
        return GP(self.x[chosen], self.y[chosen], self.kernel, self.mean, noise + jitter, factor)

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
        try:
            block, jitter = cholesky(own - corner.T @ corner, scale=float(np.mean(np.diag(own))))
        except FitError:  # rounding has eaten what is left, as after many data at one point
            return self._anew(x, y, variances)
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
            self.n_learned,
            self.optimum,
        )

    def _anew(self, x: FloatArray, y: FloatArray, variances: FloatArray) -> "GP":
        """Add data, with the same hyperparameters, by factorising everything."""
        everything, noise = np.concatenate([self.x, x]), np.concatenate([self.noise, variances])
        gp = GP.condition(everything, np.concatenate([self.y, y]), self.kernel, mean=self.mean, noise=noise)
        return replace(gp, n_learned=self.n_learned, optimum=self.optimum)

    def grown(self, x: FloatArray, y: FloatArray, noise: FloatArray) -> "GP | None":
        """Add the data that come after this process's own; None where x (n, d) or the noise (n,) begin with others.

        The values y (n,) may all be new ones: the factor does not depend on them.
        """
        n = len(self.x)
        if not (np.array_equal(x[:n], self.x) and np.allclose(noise[:n], self.noise, rtol=1e-6, atol=0.0)):
            return None
        return replace(self.extend(x[n:], y[n:], noise=noise[n:]), y=y)

    def expecting(self, x: FloatArray, *, noise: float = 0.0) -> "GP":
        """Return this process as if x (m, d) had the values it expects: the mean stays, the variance shrinks."""
        return self.extend(x, self.predict_mean(x), noise=noise)


def pivots(kernel: Kernel, x: FloatArray, size: int) -> IntArray:
    """Rows of x (n, d) in the order in which a pivoted Cholesky factorisation of K(x, x) takes them: (size,)."""
    left = kernel.diagonal(x)
    least = 1e-12 * float(left.max())  # below it is rounding, however the kernel is scaled
    rows, chosen, against = np.zeros((size, len(x))), np.empty(size, dtype=np.intp), kernel.against(x)
    for k in range(size):
        i = chosen[k] = int(np.argmax(left))
        row = against(x[i : i + 1])[0][:, 0] - rows[:k, i] @ rows[:k]
        rows[k] = row / np.sqrt(max(left[i], least))
        left = np.maximum(left - rows[k] ** 2, 0.0)
        left[i] = -1.0  # taken
        left[chosen[:k]] = -1.0
    return chosen
