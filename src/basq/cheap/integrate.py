"""The likelihood at an expensive point, integrated over the cheap parameters in their own standard space."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from basq.cheap.cloud import integrate_cloud
from basq.cheap.line import integrate_line
from basq.numerics.gaussians import LOG_2PI, mean_and_root
from basq.numerics.linalg import solve_lower
from basq.types import FloatArray

N_KEPT = 128
"""Equal-weight draws that are kept of what is known about the cheap parameters at a point."""
N_MOMENTS = 4096
"""Draws whose mean and covariance several cheap parameters' kept ones are given: 128 would miss them by 0.1 sd."""
MOST_LOST = 0.5
"""Nats that this may cost in the mean."""


@dataclass(frozen=True)
class Marginal:
    """A likelihood integrated over its cheap parameters, and what it says about them.

    Attributes
    ----------
    log_likelihood : float
        log ∫ ℓ(v) N(v; 0, I) dv; −inf where the likelihood is zero for all of them.
    error : float
        Its standard error.
    draws : (m, k) array
        Of the cheap parameters' posterior at this point, in their standard space, with equal weights; none where the
        likelihood is zero.
    """

    log_likelihood: float
    error: float
    draws: FloatArray


def integrate(log_likelihood: Callable[[FloatArray], FloatArray], n_dim: int, rng: np.random.Generator) -> Marginal:
    """Integrate a likelihood, given as the function (m, k) -> (m,) of cheap parameters in standard space.

    One of them by adaptive quadrature, several by importance sampling about the peaks.
    """
    if n_dim == 1:
        found = integrate_line(lambda v: log_likelihood(v[:, None]) - 0.5 * (v * v + LOG_2PI))
        log_integral, error, v, log_w = found[0], found[1], found[2][:, None], found[3]
    else:
        log_integral, error, v, log_w = integrate_cloud(log_likelihood, n_dim, rng)
    if log_integral == -np.inf:
        return Marginal(-np.inf, 0.0, np.empty((0, n_dim)))
    if n_dim == 1:  # quantiles; between nodes, which few of them share the mass, and the same ones at many points
        below = np.cumsum(np.exp(log_w))
        levels = (np.arange(N_KEPT) + 0.5) / N_KEPT * below[-1]
        return Marginal(log_integral, error, np.interp(levels, below - 0.5 * np.exp(log_w), v[:, 0])[:, None])
    draws = _evenly(v, log_w, N_KEPT)
    moved = _with_moments(draws, _evenly(v, log_w, N_MOMENTS))
    # not over a wall, nor off two narrow peaks
    draws = moved if np.mean(log_likelihood(moved)) > np.mean(log_likelihood(draws)) - MOST_LOST else draws
    return Marginal(log_integral, error, draws)


def _evenly(v: FloatArray, log_w: FloatArray, n: int) -> FloatArray:
    """n of the points v (m, k), evenly by weight along the line on which they differ most: peaks keep their shares."""
    w = np.exp(log_w) / np.exp(log_w).sum()
    centred = v - w @ v
    line = np.linalg.eigh((centred.T * w) @ centred)[1][:, -1]
    order = np.argsort(v @ line, kind="stable")
    index = np.searchsorted(np.cumsum(w[order]), (np.arange(n) + 0.5) / n)
    return v[order[np.minimum(index, len(v) - 1)]]


def _with_moments(draws: FloatArray, of: FloatArray) -> FloatArray:
    """Draws (m, k) with the mean and covariance of other points (n, k)."""
    mean, root = mean_and_root(of)
    own_mean, own_root = mean_and_root(draws)
    return mean + solve_lower(own_root, (draws - own_mean).T).T @ root.T
