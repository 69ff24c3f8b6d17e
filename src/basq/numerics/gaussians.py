"""Gaussian mixtures: the measures that integrals are taken over."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from basq.numerics.linalg import cholesky, solve_lower
from basq.types import FloatArray

LOG_2PI = float(np.log(2.0 * np.pi))

NARROWEST = 1e-8
"""Least standard deviation that samples are given. A prior has one of order one: samples of less have collapsed, or lie
so close to the edge of a box that their probabilities have no digits left."""


def log_normal_pdf(x: FloatArray, mean: FloatArray, cov: FloatArray) -> FloatArray:
    """Log-density of N(mean, cov) at the rows of x.

    Parameters
    ----------
    x : (m, d) array
    mean : (d,) array
    cov : (d, d) array

    Returns
    -------
    (m,) array
    """
    return _log_normal(x, mean, cholesky(cov)[0])


def _log_normal(x: FloatArray, mean: FloatArray, root: FloatArray) -> FloatArray:
    """`log_normal_pdf` from the covariance's Cholesky factor."""
    z = solve_lower(root, (x - mean).T)
    out: FloatArray = np.einsum("ij,ij->j", z, z)
    out *= -0.5
    out -= 0.5 * len(mean) * LOG_2PI + float(np.log(root.diagonal()).sum())
    return out


class Measure(Protocol):
    """Something to integrate over: a density, perhaps not normalised, that can be sampled."""

    def log_pdf(self, u: FloatArray) -> FloatArray:
        """Log-density at the rows of u: (m,)."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, d)."""
        ...


@dataclass(frozen=True)
class GaussianMixture:
    """A normalised mixture of Gaussians.

    Attributes
    ----------
    weights : (k,) array, sums to one
    means : (k, d) array
    covs : (k, d, d) array
    """

    weights: FloatArray
    means: FloatArray
    covs: FloatArray

    @classmethod
    def standard(cls, n_dim: int) -> "GaussianMixture":
        """N(0, I), the prior in standard space."""
        return cls(np.ones(1), np.zeros((1, n_dim)), np.eye(n_dim)[None])

    @property
    def n_dim(self) -> int:
        return self.means.shape[1]

    @property
    def cov(self) -> FloatArray:
        """Covariance of the whole mixture, (d, d)."""
        offset = self.means - self.weights @ self.means
        within = np.einsum("k,kij->ij", self.weights, self.covs)
        between: FloatArray = (self.weights[:, None] * offset).T @ offset
        return within + between

    @cached_property
    def roots(self) -> FloatArray:
        """Cholesky factors of the covariances, (k, d, d)."""
        return np.stack([cholesky(s)[0] for s in self.covs])

    def log_pdf(self, u: FloatArray) -> FloatArray:
        """Log-density at the rows of u: (m, d) -> (m,)."""
        if len(self.weights) == 1:
            return _log_normal(u, self.means[0], self.roots[0])
        terms = [np.log(w) + _log_normal(u, m, r) for w, m, r in zip(self.weights, self.means, self.roots, strict=True)]
        out: FloatArray = logsumexp(np.stack(terms), axis=0)
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, d)."""
        counts = rng.multinomial(n, self.weights)
        parts = [
            m + rng.standard_normal((c, self.n_dim)) @ root.T
            for c, m, root in zip(counts, self.means, self.roots, strict=True)
        ]
        return rng.permutation(np.concatenate(parts), axis=0)

    def sample_quasi(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n evenly spread points (scrambled Sobol): (n, d)."""
        sobol = qmc.Sobol(self.n_dim + 1, rng=rng)
        cube = sobol.random_base2(max(int(np.ceil(np.log2(n))), 0))[:n]
        normal = ndtri(np.clip(cube[:, 1:], 1e-15, 1.0 - 1e-15))
        # the first coordinate picks the component, the others the point in it
        which = np.minimum(np.searchsorted(np.cumsum(self.weights), cube[:, 0]), len(self.weights) - 1)
        out: FloatArray = self.means[which] + np.einsum("nij,nj->ni", self.roots[which], normal)
        return out


def mean_and_root(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and Cholesky factor (d, d) of the covariance of points (n, d); the unit matrix for a single one."""
    n, d = points.shape
    mean = points.mean(axis=0)
    centred = points - mean
    cov = centred.T @ centred / (n - 1) if n > 1 else np.eye(d)
    # coordinates may differ in scale by many orders: factorise the correlations
    sd = np.maximum(np.sqrt(np.diag(cov)), NARROWEST)
    correlation = cov / np.outer(sd, sd)
    np.fill_diagonal(correlation, 1.0 + 1e-9)
    return mean, sd[:, None] * cholesky(correlation)[0]
