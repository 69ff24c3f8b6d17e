"""The contract of a covariance function."""

import pickle

import cloudpickle
import numpy as np

from basq.gp.kernels.base import Kernel
from basq.testing.clauses import demand, during, near, same
from basq.types import FloatArray


def check_kernel(kernel: Kernel) -> None:
    """Check a covariance function against the contract of ``Kernel`` (``basq.gp.kernels``).

    Symmetry, positive semi-definiteness, the diagonal, the forms that predictions use, hyperparameters there and back,
    and the gradient that fits use against finite differences.

    Parameters
    ----------
    kernel : Kernel
        With hyperparameters that are all different, so that none can stand for another.

    Raises
    ------
    AssertionError
    """
    rng, n_dim = np.random.default_rng(0), len(kernel.lengthscale)
    x, other = rng.standard_normal((12, n_dim)), rng.standard_normal((9, n_dim))
    x[-1] = x[0]  # a point that was evaluated twice
    kept = x.copy(), other.copy(), kernel.theta.copy()
    _check_theta(kernel)
    with during("the kernel at points (n, d) and (m, d)"):
        k = kernel(x, other)
    demand(k.shape == (12, 9), "kernel(a, b) of 12 and 9 points has shape (12, 9)", k.shape)
    near(k, kernel(other, x).T, "kernel(a, b) is the transpose of kernel(b, a)")
    _check_square(kernel, x)
    _check_square(kernel, x + 100.0)
    _check_predictions(kernel, x, other)
    _check_gradient(kernel, x)
    with during("pickling the kernel"):
        near(pickle.loads(cloudpickle.dumps(kernel))(x, other), k, "a pickled kernel is the same")
    fine = same(x, kept[0]) and same(other, kept[1]) and same(kernel.theta, kept[2])
    demand(fine, "a kernel changes neither its arguments nor itself", "other points or other hyperparameters")


def _check_theta(kernel: Kernel) -> None:
    theta, at = kernel.theta, kernel.variance_index
    demand(theta.ndim == 1 and np.isfinite(theta).all(), "theta is an array (p,) of finite logarithms", theta)
    demand(0 <= at < len(theta), "variance_index is a place in theta", at)
    near(np.exp(theta[at]), np.asarray(kernel.variance), "theta[variance_index] is the log of variance")
    moved = theta + np.linspace(0.1, 0.2, len(theta))
    with during("with_theta"):
        near(kernel.with_theta(moved).theta, moved, "with_theta(theta).theta is theta again")


def _check_square(kernel: Kernel, x: FloatArray) -> None:
    """Check the covariance of points with themselves."""
    k, diagonal = kernel(x, x), kernel.diagonal(x)
    near(k, k.T, "kernel(x, x) is symmetric")
    near(np.diag(k), diagonal, "diagonal(x) is the diagonal of kernel(x, x)")
    values = np.linalg.eigvalsh(k)
    least = float(values[0] / np.abs(values).max())
    demand(least > -1e-9, "kernel(x, x) is positive semi-definite", f"an eigenvalue of {least:.2g} of the largest")


def _check_predictions(kernel: Kernel, data: FloatArray, x: FloatArray) -> None:
    weights = np.linspace(-1.0, 2.0, len(data))
    with during("against and weighted_sum"):
        k, variances = kernel.against(data)(x)
        near(k, kernel(data, x), "against(data)(x) gives kernel(data, x)")
        near(variances, kernel.diagonal(x), "against(data)(x) gives diagonal(x) with it")
        clause = "weighted_sum(data, w)(x) is kernel(x, data) @ w"
        near(kernel.weighted_sum(data, weights)(x), kernel(x, data) @ weights, clause)
        demand(kernel.weighted_sum(data, weights)(x[:0]).shape == (0,), f"{clause}, also of no points", "another shape")


def _check_gradient(kernel: Kernel, x: FloatArray) -> None:
    """Check the contraction with ∂K/∂θ against central differences."""
    g = np.triu(np.random.default_rng(1).standard_normal((len(x), len(x))))

    def contracted(theta: FloatArray) -> float:
        return float(np.vdot(g, kernel.with_theta(theta)(x, x)))

    steps = 1e-4 * np.eye(len(kernel.theta))
    expected = np.array([contracted(kernel.theta + h) - contracted(kernel.theta - h) for h in steps]) / 2e-4
    for name, prepared in (("with_gradient(x)", kernel), ("prepared(x).with_gradient(x)", kernel.prepared(x))):
        with during(name):
            k, contract = prepared.with_gradient(x)
            near(np.triu(k), np.triu(kernel(x, x)), f"{name} gives the upper triangle of kernel(x, x)")
            near(contract(g), expected, f"{name} gives the map G -> Σ G ∘ ∂K/∂θ, as finite differences do", 1e-4)
