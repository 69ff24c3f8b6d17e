"""Log-likelihoods that end at a boundary: skewed, cut off by a plane, or piled up at an edge.

Every prior is N(0, I), and every evidence has a closed form.

Random parts come from ``numpy.random.default_rng(seed)``, drawn in the order that the docstrings give.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special, stats

from basq.numerics.gaussians import LOG_2PI
from basq.problems.base import Pointwise, Problem, check_n_dim, normal_prior
from basq.types import FloatArray


def _log_skew(x: FloatArray, shape: FloatArray) -> FloatArray:
    z = (x + 0.5) / 0.15
    inside = z > 0.0
    log_gamma = (shape - 1.0) * np.log(np.where(inside, z, 1.0)) - z - special.gammaln(shape) - np.log(0.15)
    each = log_gamma + 0.5 * x**2 + 0.5 * LOG_2PI
    out: FloatArray = np.where(inside, each, -np.inf).sum(axis=1)
    return out


def _sample_skew(n: int, rng: np.random.Generator, shape: FloatArray) -> FloatArray:
    out: FloatArray = 0.15 * rng.gamma(shape, size=(n, len(shape))) - 0.5
    return out


def skew(n_dim: int = 3) -> Problem:
    """Make a posterior of independent, shifted Gamma variables, with zero likelihood below −½.

    Parameters
    ----------
    n_dim : int

    Returns
    -------
    Problem
        Prior N(0, I); log Z = 0; closed posterior, with samples.

    Notes
    -----
    ℓ(x) = Πᵢ Gamma((xᵢ + ½) / 0.15; aᵢ) / 0.15 / N(xᵢ; 0, 1) with the shapes a = linspace(1.5, 4, d) and unit
    rate, and 0 where any xᵢ ≤ −½. The posterior has the means 0.15 aᵢ − ½ and the variances 0.15² aᵢ. Beyond
    xᵢ ≈ 7 the likelihood rises without bound, more slowly than the prior falls.
    """
    check_n_dim(n_dim)
    shape = np.linspace(1.5, 4.0, n_dim)
    return Problem(
        name=f"skew-{n_dim}",
        log_likelihood=Pointwise(partial(_log_skew, shape=shape), n_dim),
        prior=normal_prior(n_dim, 1.0),
        log_evidence=0.0,
        posterior_mean=0.15 * shape - 0.5,
        posterior_cov=np.diag(0.15**2 * shape),
        sample_posterior=partial(_sample_skew, shape=shape),
    )


@dataclass(frozen=True)
class CutGaussian:
    """exp(−½ |x − centre|² / sd²) where normal · x < limit, and 0 elsewhere.

    Attributes
    ----------
    centre : (d,) array
    sd : float
    normal : (d,) array
        Unit vector.
    limit : float
    """

    centre: FloatArray
    sd: float
    normal: FloatArray
    limit: float

    @property
    def bound(self) -> float:
        """Distance from the centre to the cut, in standard deviations; negative if the centre is cut off."""
        return float((self.limit - self.normal @ self.centre) / self.sd)

    @property
    def hazard(self) -> float:
        """φ(bound) / Φ(bound)."""
        return float(np.exp(stats.norm.logpdf(self.bound) - special.log_ndtr(self.bound)))

    @property
    def mean(self) -> FloatArray:
        out: FloatArray = self.centre - self.sd * self.hazard * self.normal
        return out

    @property
    def cov(self) -> FloatArray:
        loss = self.hazard * (self.bound + self.hazard)
        out: FloatArray = self.sd**2 * (np.eye(len(self.centre)) - loss * np.outer(self.normal, self.normal))
        return out

    def log_value(self, x: FloatArray) -> FloatArray:
        """Log of the function at the rows of x: (n, d) -> (n,)."""
        z = (x - self.centre) / self.sd
        return np.where(x @ self.normal < self.limit, -0.5 * (z * z).sum(axis=1), -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n independent points from the normalised function: (n, d)."""
        z = rng.standard_normal((n, len(self.centre)))
        across = stats.truncnorm.rvs(-np.inf, self.bound, size=n, random_state=rng)
        z += np.outer(across - z @ self.normal, self.normal)
        out: FloatArray = self.centre + self.sd * z
        return out


def wall(n_dim: int = 3, seed: int = 0) -> Problem:
    """Make a Gaussian cut by a plane near its centre, with zero likelihood behind it.

    Parameters
    ----------
    n_dim : int
    seed : int
        Draws, in order: μ = 0.5 · normal(d), and a = normal(d), divided by its length.

    Returns
    -------
    Problem
        Prior N(0, I); log Z = −6.1272765 for d = 3 and seed 0; closed posterior, with samples.

    Notes
    -----
    log ℓ(x) = −½ |x − μ|² / s² where a · (x − μ) < s / 2, and −∞ elsewhere, with s = 0.15. With p = μ / (1 + s²)
    and v = s² / (1 + s²), log Z = ½ d log v − ½ |μ|² / (1 + s²) + log Φ[(s / 2 − a · (p − μ)) / √v]. The posterior
    is N(p, v I) in front of the plane.
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    centre = 0.5 * rng.standard_normal(n_dim)
    normal = rng.standard_normal(n_dim)
    normal /= np.linalg.norm(normal)
    sd = 0.15
    total = 1.0 + sd**2
    likelihood = CutGaussian(centre, sd, normal, float(normal @ centre + 0.5 * sd))
    posterior = CutGaussian(centre / total, sd / np.sqrt(total), normal, likelihood.limit)
    log_uncut = 0.5 * n_dim * np.log(sd**2 / total) - 0.5 * centre @ centre / total
    return Problem(
        name=f"wall-{n_dim}",
        log_likelihood=Pointwise(likelihood.log_value, n_dim),
        prior=normal_prior(n_dim, 1.0),
        log_evidence=float(log_uncut + special.log_ndtr(posterior.bound)),
        posterior_mean=posterior.mean,
        posterior_cov=posterior.cov,
        sample_posterior=posterior.sample,
    )


def _log_edge(x: FloatArray, rate: FloatArray) -> FloatArray:
    out: FloatArray = -(special.ndtr(x) @ rate)
    return out


def _sample_edge(n: int, rng: np.random.Generator, rate: FloatArray) -> FloatArray:
    level = -np.log1p(rng.random((n, len(rate))) * np.expm1(-rate)) / rate
    out: FloatArray = special.ndtri(level)
    return out


def edge(n_dim: int = 5) -> Problem:
    """Make an exponential that piles up at the edge of a box, the box mapped to a normal prior.

    Parameters
    ----------
    n_dim : int

    Returns
    -------
    Problem
        Prior N(0, I); log Z = −5.0173960 (d = 2), −13.4675606 (5); posterior samples, no posterior moments.

    Notes
    -----
    log ℓ(x) = −Σᵢ kᵢ Φ(xᵢ) with k = linspace(5, 30, d). Since Φ(xᵢ) is uniform on (0, 1) under the prior,
    log Z = Σᵢ log[(1 − exp(−kᵢ)) / kᵢ], and in the posterior it is exponential with rate kᵢ, cut off at 1.
    """
    check_n_dim(n_dim)
    rate = np.linspace(5.0, 30.0, n_dim)
    return Problem(
        name=f"edge-{n_dim}",
        log_likelihood=Pointwise(partial(_log_edge, rate=rate), n_dim),
        prior=normal_prior(n_dim, 1.0),
        log_evidence=float(np.log(-np.expm1(-rate) / rate).sum()),
        sample_posterior=partial(_sample_edge, rate=rate),
    )
