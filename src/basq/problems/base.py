"""What a test problem is: a log-likelihood, a prior, and the answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from basq.errors import InputError
from basq.prior import Prior
from basq.types import FloatArray, LogLikelihood

SamplePosterior = Callable[[int, np.random.Generator], FloatArray]


@dataclass(frozen=True)
class Pointwise:
    """A log-likelihood that accepts one point or many.

    Attributes
    ----------
    rows : callable
        Maps an (n, d) array to the (n,) log-likelihoods of its rows.
    n_dim : int
        Number of parameters, d.
    """

    rows: Callable[[FloatArray], FloatArray]
    n_dim: int

    def __call__(self, x: ArrayLike) -> Any:
        """Log-likelihood at x: a float for a (d,) array, (n,) for an (n, d) array."""
        points = np.asarray(x, dtype=float)
        if points.ndim not in (1, 2) or points.shape[-1] != self.n_dim:
            raise InputError(
                f"The log-likelihood was given an array of shape {points.shape}; "
                f"it takes ({self.n_dim},) or (n, {self.n_dim})."
            )
        values = self.rows(np.atleast_2d(points))
        return values if points.ndim == 2 else float(values[0])


@dataclass(frozen=True, eq=False)
class Problem:
    """A likelihood and a prior with known answers.

    Everything is in the parameters of `prior`, not in standard space.

    Attributes
    ----------
    name : str
        The family and its dimension, such as ``"gauss-6"``.
    log_likelihood : callable
        Takes a (d,) array and returns a float, or an (n, d) array and returns an (n,) array.
    prior : Prior
    log_evidence : float
        The true log Z = log ∫ ℓ(x) π(x) dx.
    posterior_mean : (d,) array or None
        None where no closed form is known.
    posterior_cov : (d, d) array or None
    sample_posterior : callable or None
        ``sample_posterior(n, rng)`` draws n independent points exactly from the posterior, (n, d).

    Examples
    --------
    >>> from basq import problems
    >>> problem = problems.mixture(n_dim=2)
    >>> problem.log_evidence
    0.0
    >>> problem.log_likelihood([[0.0, 0.0], [1.0, 1.0]]).shape
    (2,)
    """

    name: str
    log_likelihood: LogLikelihood
    prior: Prior
    log_evidence: float
    posterior_mean: FloatArray | None = None
    posterior_cov: FloatArray | None = None
    sample_posterior: SamplePosterior | None = None

    @property
    def n_dim(self) -> int:
        return self.prior.n_dim

    def log_posterior(self, x: ArrayLike) -> FloatArray:
        """True log posterior density at the rows of x (n, d): (n,)."""
        points = np.atleast_2d(np.asarray(x, dtype=float))
        out: FloatArray = self.log_likelihood(points) + self.prior.log_pdf(points) - self.log_evidence
        return out

    def kl_divergence(
        self, log_pdf: Callable[[FloatArray], FloatArray], n: int = 10_000, seed: Any = 0
    ) -> tuple[float, float]:
        """Kullback-Leibler divergence of the true posterior from an estimate of it, as the paper measures it.

        Parameters
        ----------
        log_pdf : callable
            Log-density of the estimate at points (n, d): (n,), such as ``Result.log_pdf``.
        n : int
            Samples of the true posterior.
        seed
            Of these.

        Returns
        -------
        divergence, share : float
            The mean of log p − log q over the samples at which the estimate has a density, and the share of those at
            which it has none: a surrogate may be negative. Where that share is not zero, the divergence is infinite.
        """
        if self.sample_posterior is None:
            raise InputError(f"{self.name} has no exact posterior samples, which the divergence is the mean over.")
        x = self.sample_posterior(n, np.random.default_rng(seed))
        log_q = np.asarray(log_pdf(x), dtype=float)
        positive = np.isfinite(log_q)
        if not positive.any():
            return np.inf, 1.0
        return float(np.mean(self.log_posterior(x)[positive] - log_q[positive])), float(np.mean(~positive))


def check_n_dim(n_dim: int, least: int = 1) -> None:
    """Raise InputError unless `n_dim` is an integer of at least `least`."""
    if not isinstance(n_dim, int | np.integer) or n_dim < least:
        raise InputError(f"n_dim is {n_dim!r}; this problem needs an integer of at least {least}.")


def normal_prior(n_dim: int, variance: float) -> Prior:
    """N(0, variance · I)."""
    return Prior(stats.multivariate_normal(mean=np.zeros(n_dim), cov=variance * np.eye(n_dim)))


def box_prior(n_dim: int, half_width: float) -> Prior:
    """Uniform on [−half_width, half_width]ᵈ."""
    return Prior({f"x{i + 1}": (-half_width, half_width) for i in range(n_dim)})
