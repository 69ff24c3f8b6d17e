"""Log-likelihoods that are sharp, curved, heavy-tailed or have several modes.

Random parts come from ``numpy.random.default_rng(seed)``, drawn in the order that the docstrings give.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import stats

from basq.errors import InputError
from basq.numerics.gaussians import LOG_2PI
from basq.problems.base import Pointwise, Problem, box_prior, check_n_dim, normal_prior
from basq.problems.mixtures import DiagonalMixture, mixture_problem
from basq.types import FloatArray

ROSEN_LOG_EVIDENCE = {2: -3.993938, 4: -10.223437, 5: -13.295512, 6: -16.366282}
"""True log Z of `rosen` by dimension, from quadrature."""
ROSEN_HALF_WIDTH = 4.0


@dataclass(frozen=True)
class RotatedGaussian:
    """N(mean, Q diag(sds²) Qᵀ), or a multiple of it, truncated to a box.

    Attributes
    ----------
    mean : (d,) array
    axes : (d, d) array
        Q: its columns are the principal axes.
    sds : (d,) array
        Standard deviations along the axes.
    log_peak : float
        Log of the value at the mean.
    half_width : float
        Samples outside [−half_width, half_width]ᵈ are drawn again.
    """

    mean: FloatArray
    axes: FloatArray
    sds: FloatArray
    log_peak: float = 0.0
    half_width: float = np.inf

    @property
    def cov(self) -> FloatArray:
        """Covariance, without the truncation, (d, d)."""
        out: FloatArray = (self.axes * self.sds**2) @ self.axes.T
        return out

    def log_density(self, x: FloatArray) -> FloatArray:
        """Log-density at the rows of x: (n, d) -> (n,)."""
        z = (x - self.mean) @ self.axes / self.sds
        out: FloatArray = self.log_peak - 0.5 * (z * z).sum(axis=1)
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n independent points: (n, d)."""
        x = np.empty((n, len(self.mean)))
        outside = np.arange(n)
        while len(outside):
            z = rng.standard_normal((len(outside), len(self.mean)))
            x[outside] = self.mean + (z * self.sds) @ self.axes.T
            outside = np.flatnonzero((np.abs(x) > self.half_width).any(axis=1))
        return x


def gauss(n_dim: int = 6, seed: int = 0) -> Problem:
    """Make one sharp, rotated Gaussian whose log-likelihood is −10⁴ at its peak.

    Parameters
    ----------
    n_dim : int
    seed : int
        Draws, in order: μ = 0.7 · normal(d), Q from the QR factorisation of normal((d, d)),
        s = 0.02 · exp(0.7 · normal(d)).

    Returns
    -------
    Problem
        Prior N(0, I); closed evidence and posterior.

    Notes
    -----
    log ℓ(x) = −½ (x−μ)ᵀ S⁻¹ (x−μ) − 10⁴ with S = Q diag(s²) Qᵀ. With a = Qᵀμ,
    log Z = −10⁴ + Σᵢ [log sᵢ − ½ log(1 + sᵢ²) − ½ aᵢ² / (1 + sᵢ²)]. The posterior is Gaussian, with standard
    deviations sᵢ / √(1 + sᵢ²) and means aᵢ / (1 + sᵢ²) along the axes Q.
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    centre = 0.7 * rng.standard_normal(n_dim)
    axes = np.linalg.qr(rng.standard_normal((n_dim, n_dim)))[0]
    sds = 0.02 * np.exp(0.7 * rng.standard_normal(n_dim))
    likelihood = RotatedGaussian(centre, axes, sds, log_peak=-1e4)
    total = 1.0 + sds**2
    along = centre @ axes
    posterior = RotatedGaussian(axes @ (along / total), axes, sds / np.sqrt(total))
    return Problem(
        name=f"gauss-{n_dim}",
        log_likelihood=Pointwise(likelihood.log_density, n_dim),
        prior=normal_prior(n_dim, 1.0),
        log_evidence=float(-1e4 + (np.log(sds) - 0.5 * np.log(total) - 0.5 * along**2 / total).sum()),
        posterior_mean=posterior.mean,
        posterior_cov=posterior.cov,
        sample_posterior=posterior.sample,
    )


def boxed(n_dim: int = 5, seed: int = 0) -> Problem:
    """Make one sharp, rotated Gaussian in a box: its ridges are straight there, and bent in standard space.

    Parameters
    ----------
    n_dim : int
    seed : int
        Draws, in order: μ = uniform(−0.3, 0.3, d), Q from the QR factorisation of normal((d, d)),
        s = 10^uniform(−2.5, −1, d).

    Returns
    -------
    Problem
        Uniform prior on [−1, 1]ᵈ; closed evidence and posterior, of which the box cuts off less than 10⁻¹⁰.

    Notes
    -----
    log ℓ(x) = −½ (x−μ)ᵀ S⁻¹ (x−μ) − 500 with S = Q diag(s²) Qᵀ, log Z = −500 + ½ d log 2π + Σᵢ log sᵢ − d log 2.
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-0.3, 0.3, n_dim)
    axes = np.linalg.qr(rng.standard_normal((n_dim, n_dim)))[0]
    likelihood = RotatedGaussian(centre, axes, 10.0 ** rng.uniform(-2.5, -1.0, n_dim), log_peak=-500.0, half_width=1.0)
    return Problem(
        name=f"boxed-{n_dim}",
        log_likelihood=Pointwise(likelihood.log_density, n_dim),
        prior=box_prior(n_dim, 1.0),
        log_evidence=float(-500.0 + n_dim * (0.5 * LOG_2PI - np.log(2.0)) + np.log(likelihood.sds).sum()),
        posterior_mean=likelihood.mean,
        posterior_cov=likelihood.cov,
        sample_posterior=likelihood.sample,
    )


def lumpy(n_dim: int = 4, seed: int = 0) -> Problem:
    """Make a lumpy bulk of 12 overlapping Gaussians.

    Parameters
    ----------
    n_dim : int
    seed : int
        Draws, in order: means m from U(0, 1), (12, d); standard deviations s from U(0.2, 0.6), (12, d);
        weights w from Dirichlet(1, …, 1).

    Returns
    -------
    Problem
        Prior N(0, I); closed evidence and posterior.

    Notes
    -----
    ℓ(u) = Σₖ wₖ N(½ + 2u; mₖ, diag(sₖ²)), a density in ½ + 2u and not in u, and
    Z = Σₖ wₖ N(mₖ; ½·1, diag(sₖ² + 4)).
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    means = rng.random((12, n_dim))
    sds = rng.uniform(0.2, 0.6, (12, n_dim))
    weights = rng.dirichlet(np.ones(12))
    # N(½ + 2u; m, s²) = ½ N(u; (m − ½)/2, (s/2)²) in each coordinate
    log_weights = np.log(weights) - n_dim * np.log(2.0)
    likelihood = DiagonalMixture(log_weights, (means - 0.5) / 2.0, (sds / 2.0) ** 2)
    return mixture_problem(f"lumpy-{n_dim}", likelihood, prior_variance=1.0)


def _log_student(x: FloatArray, dof: FloatArray) -> FloatArray:
    out: FloatArray = stats.t.logpdf(x, dof).sum(axis=1)
    return out


def _sample_student(n: int, rng: np.random.Generator, dof: FloatArray, half_width: float) -> FloatArray:
    low, high = stats.t.cdf(-half_width, dof), stats.t.cdf(half_width, dof)
    out: FloatArray = stats.t.ppf(rng.uniform(low, high, (n, len(dof))), dof)
    return out


def student(n_dim: int = 4) -> Problem:
    """Make a product of heavy-tailed Student t densities in a box.

    Parameters
    ----------
    n_dim : int

    Returns
    -------
    Problem
        Prior uniform on [−10, 10]ᵈ; closed evidence and posterior.

    Notes
    -----
    ℓ(x) = Πᵢ t(xᵢ; νᵢ) with ν = linspace(2.5, 4.5, d), and log Z = Σᵢ log Pᵢ − d log 20 with
    Pᵢ = F(10; νᵢ) − F(−10; νᵢ). The posterior has mean 0 and the variances
    νᵢ [(νᵢ−1)/(νᵢ−2) · Rᵢ / Pᵢ − 1], where Rᵢ is the probability of (−b, b), b = 10 √((νᵢ−2)/νᵢ), under
    Student's t with νᵢ − 2 degrees of freedom.
    """
    check_n_dim(n_dim)
    half_width = 10.0
    dof = np.linspace(2.5, 4.5, n_dim)
    inside = 1.0 - 2.0 * stats.t.sf(half_width, dof)
    lower_dof_inside = 1.0 - 2.0 * stats.t.sf(half_width * np.sqrt((dof - 2.0) / dof), dof - 2.0)
    variances = dof * ((dof - 1.0) / (dof - 2.0) * lower_dof_inside / inside - 1.0)
    return Problem(
        name=f"student-{n_dim}",
        log_likelihood=Pointwise(partial(_log_student, dof=dof), n_dim),
        prior=box_prior(n_dim, half_width),
        log_evidence=float(np.log(inside).sum() - n_dim * np.log(2.0 * half_width)),
        posterior_mean=np.zeros(n_dim),
        posterior_cov=np.diag(variances),
        sample_posterior=partial(_sample_student, dof=dof, half_width=half_width),
    )


def cigar(n_dim: int = 4, seed: int = 0) -> Problem:
    """Make a rotated Gaussian, ten times longer along one axis than along the others.

    Parameters
    ----------
    n_dim : int
    seed : int
        Draws Q from the QR factorisation of normal((d, d)).

    Returns
    -------
    Problem
        Prior uniform on [−5, 5]ᵈ; log Z = −d log 10, posterior N(0, S).

    Notes
    -----
    ℓ(x) = N(x; 0, S) with S = Q diag(1, 0.01, …, 0.01) Qᵀ. The box cuts off less than 6e-7 of the mass and
    changes no element of the covariance by more than 2e-5. The samples respect the box; log Z and the
    covariance ignore it.
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((n_dim, n_dim)))[0]
    sds = np.full(n_dim, 0.1)
    sds[0] = 1.0
    log_peak = -0.5 * n_dim * LOG_2PI - float(np.log(sds).sum())
    density = RotatedGaussian(np.zeros(n_dim), axes, sds, log_peak, half_width=5.0)
    return Problem(
        name=f"cigar-{n_dim}",
        log_likelihood=Pointwise(density.log_density, n_dim),
        prior=box_prior(n_dim, 5.0),
        log_evidence=float(-n_dim * np.log(10.0)),
        posterior_mean=np.zeros(n_dim),
        posterior_cov=density.cov,
        sample_posterior=density.sample,
    )


def _log_rosen(x: FloatArray) -> FloatArray:
    before, after = x[:, :-1], x[:, 1:]
    out: FloatArray = -(10.0 * (after - before**2) ** 2 + 0.5 * (1.0 - before) ** 2).sum(axis=1)
    return out


def _sample_rosen(n: int, rng: np.random.Generator, n_dim: int) -> FloatArray:
    """Draw n independent points by rejection from a Markov chain: (n, d).

    The chain x₁ ~ N(1, 1), xᵢ₊₁ ~ N(xᵢ², 1/20) has every term but Σ ½ (1 − xᵢ)², 1 < i < d, which is left to the
    acceptance with the box; 84 % of the proposals are kept for d = 2, 15 % for d = 6.
    """
    x = np.empty((n, n_dim))
    missing = np.arange(n)
    while len(missing):
        proposal = rng.standard_normal((len(missing), n_dim))
        proposal[:, 0] += 1.0
        for i in range(1, n_dim):
            proposal[:, i] = proposal[:, i - 1] ** 2 + proposal[:, i] / np.sqrt(20.0)
        log_kept = -0.5 * ((1.0 - proposal[:, 1:-1]) ** 2).sum(axis=1)
        kept = (-rng.standard_exponential(len(missing)) < log_kept) & (np.abs(proposal) <= ROSEN_HALF_WIDTH).all(axis=1)
        x[missing[kept]] = proposal[kept]
        missing = missing[~kept]
    return x


def rosen(n_dim: int = 2) -> Problem:
    """Make Rosenbrock's curved valley in a box.

    Parameters
    ----------
    n_dim : int
        2, 4, 5 or 6: the dimensions with a tabulated evidence.

    Returns
    -------
    Problem
        Prior uniform on [−4, 4]ᵈ; log Z = −3.993938 (d = 2), −10.223437 (4), −13.295512 (5), −16.366282 (6),
        to the digits shown; posterior samples, no moments.

    Notes
    -----
    log ℓ(x) = −Σᵢ [10 (xᵢ₊₁ − xᵢ²)² + ½ (1 − xᵢ)²], i = 1 … d−1.
    """
    if n_dim not in ROSEN_LOG_EVIDENCE:
        known = ", ".join(map(str, ROSEN_LOG_EVIDENCE))
        raise InputError(f"n_dim is {n_dim!r}; the evidence of rosen is known for {known}.")
    return Problem(
        name=f"rosen-{n_dim}",
        log_likelihood=Pointwise(_log_rosen, n_dim),
        prior=box_prior(n_dim, ROSEN_HALF_WIDTH),
        log_evidence=ROSEN_LOG_EVIDENCE[n_dim],
        sample_posterior=partial(_sample_rosen, n_dim=n_dim),
    )


def bimodal(n_dim: int = 3) -> Problem:
    """Make two separate modes of different width and equal likelihood mass.

    Parameters
    ----------
    n_dim : int

    Returns
    -------
    Problem
        Prior N(0, I); closed evidence and posterior.

    Notes
    -----
    ℓ(x) = ½ N(x; 1.2·1, 0.15² I) + ½ N(x; −1.2·1, 0.3² I), and
    Z = ½ N(1.2·1; 0, 1.0225 I) + ½ N(1.2·1; 0, 1.09 I).
    """
    check_n_dim(n_dim)
    means = np.outer([1.2, -1.2], np.ones(n_dim))
    variances = np.outer([0.15**2, 0.3**2], np.ones(n_dim))
    likelihood = DiagonalMixture(np.log([0.5, 0.5]), means, variances)
    return mixture_problem(f"bimodal-{n_dim}", likelihood, prior_variance=1.0)


def narrow_modes(n_dim: int = 4, seed: int = 0) -> Problem:
    """Make two to four narrow modes at random places.

    Parameters
    ----------
    n_dim : int
    seed : int
        Draws, in order: K from 2…4; centres c from N(0, I), (K, d); standard deviations
        s = exp(U(log 0.08, log 0.3)), (K,); weights w from Dirichlet(2, …, 2).

    Returns
    -------
    Problem
        Prior N(0, I); closed evidence and posterior.

    Notes
    -----
    ℓ(x) = Σₖ wₖ N(x; cₖ, sₖ² I), and Z = Σₖ wₖ N(cₖ; 0, (1 + sₖ²) I).
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    centres = rng.standard_normal((k, n_dim))
    sds = np.exp(rng.uniform(np.log(0.08), np.log(0.3), k))
    weights = rng.dirichlet(np.full(k, 2.0))
    variances = np.repeat(sds[:, None] ** 2, n_dim, axis=1)
    likelihood = DiagonalMixture(np.log(weights), centres, variances)
    return mixture_problem(f"narrow-modes-{n_dim}", likelihood, prior_variance=1.0)
