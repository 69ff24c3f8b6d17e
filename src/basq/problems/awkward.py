"""Log-likelihoods whose shapes are hard to model: hollow, ridged, skewed, cut off, or of two kinds at once.

Every prior is N(0, I). Where the evidence has no closed form it is one integral over a line, by the trapezoidal
rule. The integrands are smooth and vanish at both ends, so the rule is exact to rounding.

Random parts come from ``numpy.random.default_rng(seed)``, drawn in the order that the docstrings give.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special, stats

from basq.numerics.gaussians import LOG_2PI
from basq.problems.base import Pointwise, Problem, check_n_dim, normal_prior
from basq.types import FloatArray

N_NODES = 20_001


def _integrate(
    log_integrand: Callable[[FloatArray], FloatArray], low: float, high: float
) -> tuple[float, FloatArray, FloatArray]:
    """Trapezoidal rule for exp(log_integrand), which vanishes at both ends.

    Returns
    -------
    log_integral : float
    nodes, weights : (n,) arrays
        A discrete distribution in proportion to the integrand, for its moments.
    """
    nodes = np.linspace(low, high, N_NODES)
    values = log_integrand(nodes)
    log_total = float(special.logsumexp(values))
    return log_total + float(np.log((high - low) / (N_NODES - 1))), nodes, np.exp(values - log_total)


def _log_ring(x: FloatArray) -> FloatArray:
    radius = np.hypot(x[:, 0], x[:, 1])
    out: FloatArray = -0.5 * ((radius - 1.5) / 0.12) ** 2 + 0.5 * x[:, 0]
    return out


def _log_ring_radius(r: FloatArray) -> FloatArray:
    # ive is scaled by exp(−r/2)
    out: FloatArray = np.log(r * special.ive(0, r / 2.0)) + r / 2.0 - 0.5 * r**2 - 0.5 * ((r - 1.5) / 0.12) ** 2
    return out


def ring() -> Problem:
    """Make a thin ring, heavier on one side.

    Returns
    -------
    Problem
        Prior N(0, I) in two dimensions; log Z = −1.7914735; posterior moments, no samples.

    Notes
    -----
    log ℓ(x) = −½ ((|x| − 1.5) / 0.12)² + ½ x₁. The angle integrates to a modified Bessel function:
    Z = ∫ r I₀(r/2) exp[−½ r² − ½ ((r − 1.5) / 0.12)²] dr, taken over 1.5 ± 12 · 0.12. Given r, the cosine of the
    angle has the mean I₁/I₀ and the mean square ½ (1 + I₂/I₀), all at r/2.
    """
    log_evidence, r, weights = _integrate(_log_ring_radius, 0.06, 2.94)
    first, second = (special.ive(k, r / 2.0) / special.ive(0, r / 2.0) for k in (1, 2))
    mean = np.array([weights @ (r * first), 0.0])
    squares = np.array([weights @ (r**2 * (1.0 + second)), weights @ (r**2 * (1.0 - second))]) / 2.0
    return Problem(
        name="ring",
        log_likelihood=Pointwise(_log_ring, 2),
        prior=normal_prior(2, 1.0),
        log_evidence=log_evidence,
        posterior_mean=mean,
        posterior_cov=np.diag(squares - mean**2),
    )


def _log_shell(x: FloatArray) -> FloatArray:
    radius = np.sqrt((x * x).sum(axis=1))
    out: FloatArray = -0.5 * ((radius - 2.0) / 0.15) ** 2
    return out


def _log_shell_radius(r: FloatArray, n_dim: int) -> FloatArray:
    out: FloatArray = (n_dim - 1) * np.log(r) - 0.5 * r**2 - 0.5 * ((r - 2.0) / 0.15) ** 2
    return out


def shell(n_dim: int = 3) -> Problem:
    """Make a thin spherical shell: no mass in the middle, no preferred direction.

    Parameters
    ----------
    n_dim : int
        At least 2.

    Returns
    -------
    Problem
        Prior N(0, I); log Z = −2.2744004 (d = 2), −1.8235601 (3), −1.5520911 (5); posterior moments, no samples.

    Notes
    -----
    log ℓ(x) = −½ ((|x| − 2) / 0.15)², and
    Z = 2^(1−d/2) / Γ(d/2) · ∫ r^(d−1) exp[−½ r² − ½ ((r − 2) / 0.15)²] dr. The integral is taken over the mode
    of its integrand ± 12 · 0.15. The posterior has mean 0 and covariance E[r²] / d · I.
    """
    check_n_dim(n_dim, least=2)
    # the derivative (d−1)/r − r − (r−2)/w² of the logarithm vanishes
    square = 0.15**2
    mode = (1.0 + np.sqrt(1.0 + square * (1.0 + square) * (n_dim - 1))) / (1.0 + square)
    log_integral, r, weights = _integrate(partial(_log_shell_radius, n_dim=n_dim), mode - 1.8, mode + 1.8)
    log_sphere = (1.0 - n_dim / 2.0) * np.log(2.0) - special.gammaln(n_dim / 2.0)
    return Problem(
        name=f"shell-{n_dim}",
        log_likelihood=Pointwise(_log_shell, n_dim),
        prior=normal_prior(n_dim, 1.0),
        log_evidence=float(log_integral + log_sphere),
        posterior_mean=np.zeros(n_dim),
        posterior_cov=np.eye(n_dim) * (weights @ r**2 / n_dim),
    )


def _log_funnel(x: FloatArray) -> FloatArray:
    # the bound keeps the square finite; the prior has no mass there
    scale = np.exp(np.minimum(0.8 * x[:, :1], 200.0))
    out: FloatArray = -0.5 * (((x[:, 1:] * scale - 0.7) / 0.25) ** 2).sum(axis=1)
    return out


def _log_funnel_neck(v: FloatArray, n_dim: int) -> FloatArray:
    total = 0.25**2 + np.exp(1.6 * v)
    log_each = 0.5 * np.log(0.25**2 / total) - 0.5 * 0.7**2 / total
    out: FloatArray = (n_dim - 1) * log_each - 0.5 * v**2 - 0.5 * LOG_2PI
    return out


def funnel(n_dim: int = 4) -> Problem:
    """Make a funnel: the first parameter sets the scale of the others.

    Parameters
    ----------
    n_dim : int
        At least 2.

    Returns
    -------
    Problem
        Prior N(0, I); log Z = −1.8576419 (d = 2), −5.3031751 (4), −6.9598863 (5); posterior moments, no samples.

    Notes
    -----
    log ℓ(x) = −½ Σᵢ ((xᵢ exp(0.8 x₁) − 0.7) / 0.25)², i = 2 … d. Given v = x₁ the others are independent and
    Gaussian, with means 0.7 e / t and variances 0.25² / t, where e = exp(0.8 v) and t = 0.25² + e². Hence
    Z = ∫ N(v; 0, 1) [0.25 t^(−½) exp(−½ 0.7² / t)]^(d−1) dv, taken over (−12, 12).
    """
    check_n_dim(n_dim, least=2)
    log_evidence, v, weights = _integrate(partial(_log_funnel_neck, n_dim=n_dim), -12.0, 12.0)
    scale = np.exp(0.8 * v)
    total = 0.25**2 + scale**2
    given = np.stack([v, 0.7 * scale / total])  # means given v: of the neck, and of each other parameter
    means = given @ weights
    between = (given - means[:, None]) * weights @ (given - means[:, None]).T
    kind = np.minimum(np.arange(n_dim), 1)
    cov = between[np.ix_(kind, kind)] + np.diag(kind * (weights @ (0.25**2 / total)))
    return Problem(
        name=f"funnel-{n_dim}",
        log_likelihood=Pointwise(_log_funnel, n_dim),
        prior=normal_prior(n_dim, 1.0),
        log_evidence=log_evidence,
        posterior_mean=means[kind],
        posterior_cov=cov,
    )


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


def _log_eggbox(x: FloatArray) -> FloatArray:
    out: FloatArray = 5.0 * np.cos(2.2 * x[:, 0]) * np.cos(2.2 * x[:, 1])
    return out


def eggbox() -> Problem:
    """Make a chequerboard of equal bumps over the whole prior.

    Returns
    -------
    Problem
        Prior N(0, I) in two dimensions; log Z = 2.4057276; closed moments, no samples.

    Notes
    -----
    log ℓ(x) = 5 cos(2.2 x₁) cos(2.2 x₂) = 2.5 cos(c a) + 2.5 cos(c b), where a, b = (x₁ ± x₂) / √2 and
    c = 2.2 √2. By the Jacobi–Anger expansion Z = S², S = I₀(2.5) + 2 Σₖ Iₖ(2.5) exp(−½ c² k²), k ≥ 1. The posterior
    has mean 0 and covariance I · [I₀(2.5) + 2 Σₖ Iₖ(2.5) (1 − c² k²) exp(−½ c² k²)] / S.
    """
    k = np.arange(12)  # the terms fall as exp(−4.84 k²)
    square = (2.2 * k) ** 2 * 2.0
    terms = np.where(k == 0, 1.0, 2.0) * special.iv(k, 2.5) * np.exp(-0.5 * square)
    return Problem(
        name="eggbox",
        log_likelihood=Pointwise(_log_eggbox, 2),
        prior=normal_prior(2, 1.0),
        log_evidence=float(2.0 * np.log(terms.sum())),
        posterior_mean=np.zeros(2),
        posterior_cov=np.eye(2) * float((terms * (1.0 - square)).sum() / terms.sum()),
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


def _log_banana_and_gauss(x: FloatArray) -> FloatArray:
    first, second = x[:, 0], x[:, 1]
    banana = -0.5 * ((second - 1.2 * first**2 + 1.0) / 0.1) ** 2 - 0.5 * ((first - 0.3) / 0.6) ** 2
    blob = 0.5 - 0.5 * ((first - 1.6) ** 2 + (second + 1.2) ** 2) / 0.15**2
    return np.logaddexp(banana, blob)


def _log_banana_line(x: FloatArray) -> FloatArray:
    # the second parameter integrated out
    bend = 1.2 * x**2 - 1.0
    log_across = 0.5 * np.log(0.1**2 / 1.01) - 0.5 * bend**2 / 1.01
    out: FloatArray = log_across - 0.5 * ((x - 0.3) / 0.6) ** 2 - 0.5 * x**2 - 0.5 * LOG_2PI
    return out


def banana_and_gauss() -> Problem:
    """Make a curved ridge and a separate round mode.

    Returns
    -------
    Problem
        Prior N(0, I) in two dimensions; log Z = −3.1753769; posterior moments, no samples.

    Notes
    -----
    ℓ(x) = exp[−½ ((x₂ − b) / 0.1)² − ½ ((x₁ − 0.3) / 0.6)²] + exp[½ − ½ |x − c|² / 0.15²] with b = 1.2 x₁² − 1 and
    c = (1.6, −1.2). The second term contributes 0.15² / 1.0225 · exp(½ − ½ |c|² / 1.0225) to Z. The first
    contributes ∫ N(x₁; 0, 1) 0.1 / √1.01 · exp[−½ b² / 1.01 − ½ ((x₁ − 0.3) / 0.6)²] dx₁, taken over (−6, 6).
    """
    log_ridge, x, weights = _integrate(_log_banana_line, -6.0, 6.0)
    given = np.stack([x, (1.2 * x**2 - 1.0) / 1.01])
    ridge_mean = given @ weights
    ridge_cov = (given - ridge_mean[:, None]) * weights @ (given - ridge_mean[:, None]).T + np.diag([0.0, 0.01 / 1.01])
    total = 1.0 + 0.15**2
    centre = np.array([1.6, -1.2])
    log_blob = 0.5 + np.log(0.15**2 / total) - 0.5 * centre @ centre / total
    blob_mean, blob_cov = centre / total, np.eye(2) * 0.15**2 / total
    log_evidence = float(np.logaddexp(log_ridge, log_blob))
    share = np.exp(log_ridge - log_evidence)
    between = share * (1.0 - share) * np.outer(ridge_mean - blob_mean, ridge_mean - blob_mean)
    return Problem(
        name="banana-and-gauss",
        log_likelihood=Pointwise(_log_banana_and_gauss, 2),
        prior=normal_prior(2, 1.0),
        log_evidence=log_evidence,
        posterior_mean=share * ridge_mean + (1.0 - share) * blob_mean,
        posterior_cov=share * ridge_cov + (1.0 - share) * blob_cov + between,
    )
