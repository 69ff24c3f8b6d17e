"""Likelihoods that are mixtures of Gaussians, under a Gaussian prior: every answer is closed."""

from dataclasses import dataclass

import numpy as np

from basq.numerics.gaussians import LOG_2PI, GaussianMixture
from basq.problems.base import Pointwise, Problem, normal_prior
from basq.types import FloatArray


@dataclass(frozen=True)
class DiagonalMixture:
    """Σₖ exp(log_weightsₖ) N(x; meansₖ, diag(variancesₖ)), not necessarily normalised.

    Attributes
    ----------
    log_weights : (k,) array
    means : (k, d) array
    variances : (k, d) array
    """

    log_weights: FloatArray
    means: FloatArray
    variances: FloatArray

    @property
    def log_total(self) -> float:
        """Log of the integral over all x."""
        return float(np.logaddexp.reduce(self.log_weights))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Log of the sum at the rows of x: (n, d) -> (n,)."""
        square = np.zeros((len(x), len(self.means)))
        for j in range(x.shape[1]):  # coordinate by coordinate: no (n, k, d) array
            square += (x[:, j, None] - self.means[:, j]) ** 2 / self.variances[:, j]
        log_root_det = 0.5 * (LOG_2PI + np.log(self.variances)).sum(axis=1)
        out: FloatArray = np.logaddexp.reduce(self.log_weights - log_root_det - 0.5 * square, axis=1)
        return out

    def times_prior(self, prior_variance: float) -> "DiagonalMixture":
        """Multiply by N(x; 0, prior_variance · I).

        Notes
        -----
        N(x; m, v) N(x; 0, p) = N(m; 0, v + p) N(x; m p / (v + p), v p / (v + p)), coordinate by coordinate.
        """
        total = self.variances + prior_variance
        shrink = prior_variance / total
        log_overlap = -0.5 * (LOG_2PI + np.log(total) + self.means**2 / total).sum(axis=1)
        return DiagonalMixture(self.log_weights + log_overlap, self.means * shrink, self.variances * shrink)

    def normalised(self) -> GaussianMixture:
        """Divide by the integral."""
        weights = np.exp(self.log_weights - self.log_total)
        covs = self.variances[:, :, None] * np.eye(self.variances.shape[1])
        return GaussianMixture(weights / weights.sum(), self.means, covs)


def mixture_problem(name: str, likelihood: DiagonalMixture, prior_variance: float) -> Problem:
    """Make the problem with this likelihood and the prior N(0, prior_variance · I)."""
    n_dim = likelihood.means.shape[1]
    joint = likelihood.times_prior(prior_variance)
    posterior = joint.normalised()
    return Problem(
        name=name,
        log_likelihood=Pointwise(likelihood.log_density, n_dim),
        prior=normal_prior(n_dim, prior_variance),
        log_evidence=joint.log_total,
        posterior_mean=posterior.weights @ posterior.means,
        posterior_cov=posterior.cov,
        sample_posterior=posterior.sample,
    )
