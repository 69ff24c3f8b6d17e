"""Where a certificate's calls go: points drawn from an explicit density, thinned to few by what the surrogate believes.

A pool of many draws from a mixture q whose density is known exactly costs no call. Of the pool, n points are drawn with
known probabilities p. Then

    Z = E[ 1/n Σ f(u) / (M p(u) q(u)) ],

whatever p is, and also with f − g in the place of f, if the mean of g/q over the whole pool is added: g, the
surrogate's integrand, is a control variate. So the estimate is unbiased, and its error is that of f − g: small where
the surrogate is right, honest where it is wrong.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from basq.method import Posterior
from basq.numerics.gaussians import GaussianMixture, mean_and_root
from basq.numerics.linalg import cholesky
from basq.numerics.student import MixtureSettings, StudentMixture
from basq.posterior.sampled import N_POPULATION
from basq.prior import Prior
from basq.types import FloatArray, IntArray

N_POOL = 20_000
"""Draws of the pool. Their own error is part of the estimate's."""
BROAD, BROAD_WIDTH = 0.1, 2.0
"""Share and width of a broadened copy of the mixture that is fitted to the posterior;"""
STRETCHED, STRETCH = 0.3, 3.0
"""of copies of the whole posterior that are stretched along one of its principal axes each: in many dimensions hardly
any draw of a broad copy lies just beyond one side of the posterior;"""
FREEDOM = 3.0
"""degrees of freedom of both."""
PRIOR = 0.1
"""Share of the prior in the pool."""
BELIEVED, TEMPERED = 0.2, 0.1
"""Shares of the points drawn as the surrogate's posterior has them, and at the temperature `HEAT`; the others are drawn
from where the pool is denser than the surrogate's posterior: these carry the proof."""
HEAT = 2.0
DOUBT = 2.0
"""A draw is worth (1 + g/q)^−DOUBT of one where the surrogate has nothing: g/q is its posterior's density over the
pool's."""
HEADROOM, LEAST = 10.0, -9.0
"""A draw is not worth a call that would weigh less than exp(LEAST) average ones even if its likelihood were
exp(HEADROOM) times the largest seen."""
CHUNK = 4096
"""Points that the surrogate is asked for at once."""


@dataclass(frozen=True)
class Design:
    """Points of a certificate, in the order in which they are evaluated, which is random.

    Attributes
    ----------
    u : (n, d) array
        In standard space.
    log_prior : (n,) array
        The prior's log-density there.
    log_expected : (n,) array
        Of the surrogate's integrand.
    log_drawn : (n,) array
        Of what they were drawn from: M p q.
    log_pool : float
        Of the surrogate's integral, by the whole pool,
    pool_error : float
        and its standard error.
    """

    u: FloatArray
    log_prior: FloatArray
    log_expected: FloatArray
    log_drawn: FloatArray
    log_pool: float
    pool_error: float

    @classmethod
    def draw(
        cls, posterior: Posterior, log_evidence: float, prior: Prior, best: float, n: int, rng: np.random.Generator
    ) -> "Design":
        """Draw n points, where the largest log-likelihood seen is ``best``."""
        u, log_q = _pool(posterior, prior, rng)
        log_prior = prior.measure.log_pdf(u) + prior.log_weight(u)
        matters = log_prior + best + HEADROOM - log_q > log_evidence + LEAST
        parts = [posterior.log_pdf(part) for part in np.array_split(u, max(len(u) // CHUNK, 1))]
        # a control variate may be any function: one that is zero where no call is worth making
        log_expected = np.where(matters, np.concatenate(parts) + log_evidence, -np.inf)
        believed = log_expected - log_q
        with np.errstate(invalid="ignore"):
            tempered = np.where(matters, log_prior + (log_expected - log_prior) / HEAT - log_q, -np.inf)
        doubted = np.where(matters, -DOUBT * np.logaddexp(0.0, believed - log_evidence), -np.inf)
        p = BELIEVED * _shares(believed) + TEMPERED * _shares(tempered)
        p += (1.0 - BELIEVED - TEMPERED) * _shares(doubted)
        # systematic: as many of every part of the pool as it should have, but for rounding
        order = rng.permutation(len(u))
        total = np.cumsum(p[order])
        marks = (np.arange(n) + rng.random()) / n * total[-1]
        chosen = rng.permutation(order[np.searchsorted(total, marks)])
        log_pool = float(logsumexp(believed)) - float(np.log(len(u)))
        error = float(np.exp(believed - log_pool).std() / np.sqrt(len(u)))
        log_drawn = np.log(len(u) * p[chosen]) + log_q[chosen]
        return cls(u[chosen], log_prior[chosen], log_expected[chosen], log_drawn, log_pool, error)

    def __len__(self) -> int:
        return len(self.u)

    def at(self, rows: IntArray) -> "Design":
        """Only some of the points."""
        return Design(
            self.u[rows], self.log_prior[rows], self.log_expected[rows], self.log_drawn[rows], self.log_pool,
            self.pool_error,
        )  # fmt: skip


def _pool(posterior: Posterior, prior: Prior, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draws from a mixture about the posterior, and the log of its density there: (M, d), (M,)."""
    points = posterior.sample(N_POPULATION, rng)
    close = StudentMixture.of(points, rng, MixtureSettings())
    broad = StudentMixture(close.weights, close.means, BROAD_WIDTH * close.roots, FREEDOM)
    parts: tuple[tuple[StudentMixture | GaussianMixture, float], ...] = (
        (close, 1.0 - BROAD - STRETCHED - PRIOR), (broad, BROAD), (_stretched(points), STRETCHED),
        (prior.measure, PRIOR),
    )  # fmt: skip
    counts = rng.multinomial(N_POOL, [share for _, share in parts])
    u = np.concatenate([part.sample(int(n), rng) for (part, _), n in zip(parts, counts, strict=True)])
    log_q: FloatArray = logsumexp([np.log(share) + part.log_pdf(u) for part, share in parts], axis=0)
    return u, log_q


def _stretched(points: FloatArray) -> StudentMixture:
    """Components with the mean and covariance of points (n, d), each stretched along another principal axis."""
    mean, root = mean_and_root(points)
    axes, lengths, _ = np.linalg.svd(root)
    scaled = axes * lengths  # the covariance is scaled @ scaledᵀ
    d = len(mean)
    wide = np.stack([scaled * np.where(np.arange(d) == k, STRETCH, 1.0) for k in range(d)])
    roots = np.stack([cholesky(a @ a.T)[0] for a in wide])
    return StudentMixture(np.full(d, 1.0 / d), np.tile(mean, (d, 1)), roots, FREEDOM)


def _shares(log_weights: FloatArray) -> FloatArray:
    """Weights normalised to one."""
    out: FloatArray = np.exp(log_weights - logsumexp(log_weights))
    return out
