"""Batch WSABI (Wagstaff et al. 2018): greedy maxima of the acquisition, each penalised about the ones before."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from basq.gp.kernels.base import Differentiable
from basq.numerics.gaussians import GaussianMixture, log_normal_pdf
from basq.numerics.linalg import cho_solve
from basq.paper.target import Target
from basq.types import FloatArray

POWER = 5.0
"""Sharpness of the penalty's transition from cone to one (Alvi et al. 2019)."""

Objective = Callable[[FloatArray], tuple[float, FloatArray]]


def log_acquisition(target: Target, measure: GaussianMixture) -> Objective:
    """Log-variance of ℓπ, 2 log π + log var, with its gradient.

    For squares (WSABI) var = m̃² C̃; for the others the process's own variance.
    """
    gp = target.surrogate.gp
    kernel = gp.kernel
    if not isinstance(kernel, Differentiable):
        raise TypeError(f"no input gradient for {type(kernel).__name__}")
    precisions = np.linalg.inv(measure.covs)
    by_mean = target.surrogate.is_square

    def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
        cross = kernel(x[None], gp.x)[0]
        slopes = kernel.input_gradient(x, gp.x)
        solved = cho_solve(gp.factor, cross)
        prior_var = float(kernel.diagonal(x[None])[0])
        var = max(prior_var - float(cross @ solved), 1e-12 * prior_var)
        # a stationary kernel's own diagonal is flat; for others its slope is twice that of K(x, ·) at x
        own = 2.0 * kernel.input_gradient(x, x[None])[0]
        value, gradient = np.log(var), (own - 2.0 * solved @ slopes) / var
        if by_mean:
            mean = gp.mean + float(cross @ gp.weights)
            square = mean * mean + 1e-300
            value += np.log(square)
            gradient = gradient + 2.0 * mean / square * (gp.weights @ slopes)
        log_terms = np.log(measure.weights) + np.array(
            [log_normal_pdf(x[None], m, c)[0] for m, c in zip(measure.means, measure.covs, strict=True)]
        )
        log_pi = float(np.logaddexp.reduce(log_terms))
        share = np.exp(log_terms - log_pi)
        slope_pi = -sum(
            (s * q @ (x - m) for s, q, m in zip(share, precisions, measure.means, strict=True)), np.zeros(len(x))
        )
        return float(value + 2.0 * log_pi), gradient + 2.0 * slope_pi

    return evaluate


def penalise(objective: Objective, chosen: list[FloatArray], slopes: list[float]) -> Objective:
    """Multiply the acquisition by a soft cone about every point chosen so far.

    Slopes are relative to the acquisition at the chosen point, so a cone's radius is 1/slope: nearer than that, the
    acquisition could have fallen to zero.
    """

    def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(x)
        for point, slope in zip(chosen, slopes, strict=True):
            difference = x - point
            distance = float(np.sqrt(difference @ difference)) + 1e-12
            inverse = (1.0 / (slope * distance)) ** POWER
            value -= np.log1p(inverse) / POWER
            gradient = gradient + inverse / (1.0 + inverse) * difference / distance**2
        return value, gradient

    return evaluate


def local_penalisation(
    target: Target,
    measure: GaussianMixture,
    batch_size: int,
    rng: np.random.Generator,
    *,
    n_starts: int = 100,
    n_refined: int = 5,
) -> FloatArray:
    """Choose a batch point by point, each by multi-start optimisation.

    Parameters
    ----------
    n_starts : int
        Prior draws that are scored for each point.
    n_refined : int
        Best of them that L-BFGS-B refines.

    Returns
    -------
    (batch_size, d) array
    """
    base = log_acquisition(target, measure)
    chosen: list[FloatArray] = []
    slopes: list[float] = []
    for _ in range(batch_size):
        objective = penalise(base, chosen, slopes)
        starts = measure.sample(n_starts, rng)
        scores = np.array([objective(x)[0] for x in starts])
        best, best_value = starts[int(np.argmax(scores))], float(scores.max())
        for x in starts[np.argsort(scores)[-n_refined:]]:
            found = minimize(_negated(objective), x, jac=True, method="L-BFGS-B", options={"maxiter": 50})
            if -found.fun > best_value:
                best, best_value = found.x, float(-found.fun)
        chosen.append(best)
        slopes.append(_relative_slope(base, best, target, rng))
    return np.array(chosen)


def _negated(objective: Objective) -> Objective:
    def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(x)
        return -value, -gradient

    return evaluate


def _relative_slope(objective: Objective, x: FloatArray, target: Target, rng: np.random.Generator) -> float:
    """Largest slope of the acquisition near x, relative to its value there: a local Lipschitz constant."""
    level = objective(x)[0]
    around = x + 0.5 * target.surrogate.gp.kernel.lengthscale * rng.standard_normal((20, len(x)))
    steepest = 0.0
    for point in around:
        value, gradient = objective(point)
        steepest = max(steepest, float(np.exp(min(value - level, 50.0)) * np.sqrt(gradient @ gradient)))
    return max(steepest, 1e-6)
