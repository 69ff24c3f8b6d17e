"""A Gaussian that is bent, tilted and in a box, in any number of dimensions."""

from dataclasses import dataclass

import numpy as np

from basq.numerics.gaussians import LOG_2PI
from basq.problems.base import Pointwise, Problem, box_prior, check_n_dim
from basq.types import FloatArray

TWIST = 0.7
"""How far the second axis is bent along the first, in standard deviations of both."""


@dataclass(frozen=True)
class TwistedGaussian:
    """x = centre + Q diag(s) t with t₂ − c (t₁² − 1) and all other t from N(0, 1); the twist keeps volumes.

    Attributes
    ----------
    centre : (d,) array
    axes : (d, d) array
        Q, orthogonal.
    sds : (d,) array
        s.
    """

    centre: FloatArray
    axes: FloatArray
    sds: FloatArray

    def log_density(self, x: FloatArray) -> FloatArray:
        """Up to its constant: zero at the highest point."""
        t = (x - self.centre) @ self.axes / self.sds
        t[:, 1] -= TWIST * (t[:, 0] ** 2 - 1.0)
        return -0.5 * (t * t).sum(axis=1)

    @property
    def cov(self) -> FloatArray:
        variances = self.sds**2
        variances[1] *= 1.0 + 2.0 * TWIST**2
        return (self.axes * variances) @ self.axes.T

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, d)."""
        t = rng.standard_normal((n, len(self.centre)))
        t[:, 1] += TWIST * (t[:, 0] ** 2 - 1.0)
        return self.centre + (t * self.sds) @ self.axes.T


def twisted(n_dim: int = 4, seed: int = 0) -> Problem:
    """Make one sharp, rotated and twisted Gaussian in a box.

    Parameters
    ----------
    n_dim : int
        At least 2.
    seed : int
        Draws, in order: μ = uniform(−0.3, 0.3, d), Q from the QR factorisation of normal((d, d)),
        s = 10^uniform(−2.2, −1.4, d).

    Returns
    -------
    Problem
        Uniform prior on [−1, 1]ᵈ; closed evidence and posterior, of which the box cuts off less than 10⁻⁶.

    Notes
    -----
    With t = diag(1/s) Qᵀ (x−μ), log ℓ(x) = −½ (t₁² + (t₂ − 0.7 (t₁² − 1))² + t₃² + … + t_d²), and
    log Z = ½ d log 2π + Σᵢ log sᵢ − d log 2.
    """
    check_n_dim(n_dim, 2)
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-0.3, 0.3, n_dim)
    axes = np.linalg.qr(rng.standard_normal((n_dim, n_dim)))[0]
    likelihood = TwistedGaussian(centre, axes, 10.0 ** rng.uniform(-2.2, -1.4, n_dim))
    return Problem(
        name=f"twisted-{n_dim}",
        log_likelihood=Pointwise(likelihood.log_density, n_dim),
        prior=box_prior(n_dim, 1.0),
        log_evidence=float(n_dim * (0.5 * LOG_2PI - np.log(2.0)) + np.log(likelihood.sds).sum()),
        posterior_mean=likelihood.centre,
        posterior_cov=likelihood.cov,
        sample_posterior=likelihood.sample,
    )
