"""The synthetic problems of the BASQ paper; the prior is N(0, 2I), of covariance 2.

The names are the paper's. The "Branin-Hoo" and "Ackley" functions are not the standard ones of those names.

References
----------
Adachi, Hayakawa, Jørgensen, Oberhauser, Osborne, "Fast Bayesian Inference with Batch Bayesian Quadrature via
Kernel Recombination", NeurIPS 2022, arXiv:2206.04734.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from basq.problems.base import Pointwise, Problem, check_n_dim, normal_prior
from basq.problems.mixtures import DiagonalMixture, mixture_problem
from basq.types import FloatArray

PRIOR_VARIANCE = 2.0


@dataclass(frozen=True)
class RejectionSampler:
    """Exact draws from the posterior of a bounded 2-D likelihood, by rejection from the prior.

    Attributes
    ----------
    log_likelihood : callable
        Maps (n, 2) to (n,).
    log_bound : float
        At least the supremum of the log-likelihood.
    """

    log_likelihood: Callable[[FloatArray], FloatArray]
    log_bound: float

    def __call__(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n independent points: (n, 2)."""
        accepted = np.empty((0, 2))
        while len(accepted) < n:
            x = np.sqrt(PRIOR_VARIANCE) * rng.standard_normal((4 * n, 2))
            log_uniform = -rng.standard_exponential(4 * n)
            accept = log_uniform < self.log_likelihood(x) - self.log_bound
            accepted = np.concatenate([accepted, x[accept]])
        return accepted[:n]


def mixture(n_dim: int = 10, seed: int = 0, *, shared: bool = False) -> Problem:
    """Make a mixture of 10 to 15 wide Gaussians, with evidence 1.

    Parameters
    ----------
    n_dim : int
        The paper uses 2 to 16.
    seed : int
        Of the random mixture. Draws, in order: K from 10…15, means from U(−3, 3)ᵈ, variances from U(1, 4),
        u from U(0, 1).
    shared : bool
        All components share one diagonal covariance, with entries from U(1, 4), and have the same part in Z. The paper
        describes the other kind; its figures are of this one, which is easier: one set of lengthscales fits everywhere.

    Returns
    -------
    Problem
        log Z = 0; exact posterior moments and samples.

    Notes
    -----
    Eqs. (145) to (150), of which (146) lacks uₖ / Σu:
    ℓ(x) = Σₖ wₖ N(x; μₖ, vₖI) with wₖ = (uₖ / Σu) / N(μₖ; 0, (vₖ + 2)I). The posterior is the mixture with
    weights uₖ / Σu, means 2μₖ / (vₖ + 2) and covariances 2vₖ / (vₖ + 2) I. With ``shared``, uₖ = 1 and vₖI is the one
    diagonal covariance.
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    k = int(rng.integers(10, 16))
    means = rng.uniform(-3.0, 3.0, (k, n_dim))
    if shared:
        variances, u = np.tile(rng.uniform(1.0, 4.0, n_dim), (k, 1)), np.ones(k)
    else:
        variances, u = np.repeat(rng.uniform(1.0, 4.0, k)[:, None], n_dim, axis=1), rng.random(k)
    normalised = DiagonalMixture(np.zeros(k), means, variances)
    log_overlap = normalised.times_prior(PRIOR_VARIANCE).log_weights
    likelihood = replace(normalised, log_weights=np.log(u / u.sum()) - log_overlap)
    problem = mixture_problem(f"mixture-{n_dim}{'-shared' if shared else ''}", likelihood, PRIOR_VARIANCE)
    return replace(problem, log_evidence=0.0)


def _log_branin_hoo(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):  # log 0 = −inf on the lines where the likelihood is zero
        log_numerator = 2.0 * np.log(np.abs(np.sin(x) + 0.5 * np.cos(3.0 * x)))
    out: FloatArray = (log_numerator - np.log(0.25 * x**2 + 0.3)).sum(axis=1)
    return out


def branin_hoo() -> Problem:
    """Make the paper's "Branin-Hoo": a product of two oscillating ratios, with zeros.

    Returns
    -------
    Problem
        Z = 0.9134163868873017, posterior mean −0.23950381961391301 · (1, 1) and covariance
        1.3201162552221808 · I.

    Notes
    -----
    Eq. (151): ℓ(x) = Πᵢ [sin xᵢ + ½ cos 3xᵢ]² / [(xᵢ/2)² + 0.3], in two dimensions.
    """
    return Problem(
        name="branin-hoo",
        log_likelihood=Pointwise(_log_branin_hoo, 2),
        prior=normal_prior(2, PRIOR_VARIANCE),
        log_evidence=float(np.log(0.91341638688730168)),
        posterior_mean=np.full(2, -0.23950381961391301),
        posterior_cov=1.3201162552221808 * np.eye(2),
        # each factor is at most 3.25643, at x = −1.02543
        sample_posterior=RejectionSampler(_log_branin_hoo, 2.0 * float(np.log(3.2565))),
    )


def _log_ackley(x: FloatArray) -> FloatArray:
    radius = np.sqrt(0.5 * (x**2).sum(axis=1))
    ripple = np.exp(0.5 * np.cos(2.0 * np.pi * x).sum(axis=1))
    out: FloatArray = np.log(ripple - 20.0 * np.expm1(-0.2 * radius))
    return out


def ackley() -> Problem:
    """Make the paper's "Ackley": a cone at the origin with ripples.

    Returns
    -------
    Problem
        Z = 5.434775439504182, posterior mean 0, covariance 2.6763719574000735 · I.

    Notes
    -----
    Eq. (155): ℓ(x) = −20 exp(−0.2 √(½ Σ xᵢ²)) + exp(½ Σ cos 2πxᵢ) + 20, in two dimensions, and
    Z = 4 e^0.02 √(π/2) erfc(0.2/√2) + I₀(½)² up to 1e-17.
    """
    return Problem(
        name="ackley",
        log_likelihood=Pointwise(_log_ackley, 2),
        prior=normal_prior(2, PRIOR_VARIANCE),
        log_evidence=float(np.log(5.4347754395041821)),
        posterior_mean=np.zeros(2),
        posterior_cov=2.6763719574000735 * np.eye(2),
        sample_posterior=RejectionSampler(_log_ackley, float(np.log(20.0 + np.e))),
    )


def _log_oscillatory(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):  # log 0 = −inf on the lines where the likelihood is zero
        # 1 + cos 2a = 2 cos² a, without the cancellation near the zeros
        out: FloatArray = np.log(2.0) + 2.0 * np.log(np.abs(np.cos(2.5 * x.sum(axis=1))))
    return out


def oscillatory() -> Problem:
    """Make the paper's oscillatory problem: a plane wave with zeros.

    Returns
    -------
    Problem
        Z = 1 + e⁻⁵⁰, posterior mean 0, covariance 2I up to 1e-20.

    Notes
    -----
    Eq. (158): ℓ(x) = cos(2π + 5 Σ xᵢ) + 1, in two dimensions; the phase 2π has no effect.
    """
    return Problem(
        name="oscillatory",
        log_likelihood=Pointwise(_log_oscillatory, 2),
        prior=normal_prior(2, PRIOR_VARIANCE),
        log_evidence=float(np.log1p(np.exp(-50.0))),
        posterior_mean=np.zeros(2),
        posterior_cov=PRIOR_VARIANCE * np.eye(2),
        sample_posterior=RejectionSampler(_log_oscillatory, float(np.log(2.0))),
    )
