"""A narrow log-likelihood whose tails reach across the whole prior."""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from basq.numerics.gaussians import LOG_2PI
from basq.problems.base import Pointwise, Problem, check_n_dim, normal_prior
from basq.types import FloatArray


@dataclass(frozen=True)
class StudentPosterior:
    """A multivariate t times N(0, I): a mixture of Gaussians N(c, S / w) times N(0, I) over the weight w.

    Attributes
    ----------
    centre : (d,) array
    axes : (d, d) array
        Of the scale matrix S.
    scales : (d,) array
        Roots of its eigenvalues.
    dof : float
    """

    centre: FloatArray
    axes: FloatArray
    scales: FloatArray
    dof: float

    def log_density(self, x: FloatArray) -> FloatArray:
        """Log-density of the t distribution at the rows of x: (n, d) -> (n,)."""
        d, z = len(self.centre), (x - self.centre) @ self.axes / self.scales
        constant = gammaln(0.5 * (self.dof + d)) - gammaln(0.5 * self.dof) - 0.5 * d * np.log(self.dof * np.pi)
        spread = 0.5 * (self.dof + d) * np.log1p((z * z).sum(axis=1) / self.dof)
        out: FloatArray = constant - np.log(self.scales).sum() - spread
        return out

    def by_weight(self) -> tuple[FloatArray, FloatArray]:
        """A grid of w (m,), and the log of the integral at each times its share of the weights' gamma law (m,)."""
        log_w = np.linspace(-12.0, 4.0, 4001)
        w = np.exp(log_w)[:, None]
        var, along = 1.0 + self.scales**2 / w, self.centre @ self.axes
        log_normal = -0.5 * (along**2 / var + np.log(var) + LOG_2PI).sum(axis=1)
        law = stats.gamma(0.5 * self.dof, scale=2.0 / self.dof)
        return w[:, 0], log_normal + law.logpdf(w[:, 0]) + log_w + np.log(log_w[1] - log_w[0])

    def given(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the product along the axes, given weights (m,): (m, d) each."""
        var = self.scales**2 / w[:, None]
        return self.centre @ self.axes / (1.0 + var), var / (1.0 + var)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d) of the product."""
        w, log_terms = self.by_weight()
        shares = np.exp(log_terms - logsumexp(log_terms))
        means, variances = self.given(w)
        mean = shares @ means
        cov = np.diag(shares @ variances) + (means - mean).T @ (shares[:, None] * (means - mean))
        return self.axes @ mean, self.axes @ cov @ self.axes.T

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n independent points of the product: (n, d)."""
        w, log_terms = self.by_weight()
        means, variances = self.given(w[rng.choice(len(w), n, p=np.exp(log_terms - logsumexp(log_terms)))])
        out: FloatArray = (means + np.sqrt(variances) * rng.standard_normal(means.shape)) @ self.axes.T
        return out


def heavy(n_dim: int = 4, seed: int = 0) -> Problem:
    """Make a narrow, rotated multivariate t distribution with four degrees of freedom.

    Parameters
    ----------
    n_dim : int
    seed : int
        Draws, in order: c = 0.5 · normal(d), Q from the QR factorisation of normal((d, d)), s = 10^uniform(−2, −1, d).

    Returns
    -------
    Problem
        Prior N(0, I); evidence and posterior moments by quadrature over one variable.

    Notes
    -----
    The t distribution is a mixture of N(c, S / w), S = Q diag(s²) Qᵀ, over w of a gamma law of mean one and shape 2, so
    Z = ∫ Gamma(w) N(c; 0, I + S / w) dw. Its tails reach across the whole prior, and its peak is far above what they
    suggest.
    """
    check_n_dim(n_dim)
    rng = np.random.default_rng(seed)
    centre = 0.5 * rng.standard_normal(n_dim)
    axes = np.linalg.qr(rng.standard_normal((n_dim, n_dim)))[0]
    likelihood = StudentPosterior(centre, axes, 10.0 ** rng.uniform(-2.0, -1.0, n_dim), dof=4.0)
    mean, cov = likelihood.moments()
    return Problem(
        name=f"heavy-{n_dim}",
        log_likelihood=Pointwise(likelihood.log_density, n_dim),
        prior=normal_prior(n_dim, 1.0),
        log_evidence=float(logsumexp(likelihood.by_weight()[1])),
        posterior_mean=mean,
        posterior_cov=cov,
        sample_posterior=likelihood.sample,
    )
