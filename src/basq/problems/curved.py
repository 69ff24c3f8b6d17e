"""Log-likelihoods whose shapes are hard to model: hollow, curved, chequered, or of two kinds at once.

Every prior is N(0, I). Where the evidence has no closed form it is one integral over a line, by the trapezoidal
rule. The integrands are smooth and vanish at both ends, so the rule is exact to rounding.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import special

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
