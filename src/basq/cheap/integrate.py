"""The likelihood at an expensive point, integrated over the cheap parameters in their own standard space."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from basq.cheap.cloud import integrate_cloud
from basq.cheap.line import integrate_line
from basq.numerics.gaussians import LOG_2PI
from basq.types import FloatArray

N_KEPT = 128
"""Equal-weight draws that are kept of what is known about the cheap parameters at a point."""


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
    levels, weights = (np.arange(N_KEPT) + 0.5) / N_KEPT, np.exp(log_w)
    below = np.cumsum(weights)
    if n_dim == 1:  # quantiles; between nodes, which few of them share the mass, and the same ones at many points
        return Marginal(log_integral, error, np.interp(levels * below[-1], below - 0.5 * weights, v[:, 0])[:, None])
    index = np.searchsorted(below, levels * below[-1])  # evenly by weight
    return Marginal(log_integral, error, v[np.minimum(index, len(v) - 1)])
