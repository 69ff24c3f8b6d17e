"""The integral of a likelihood over several cheap parameters: importance sampling about its peaks.

Laplace's approximation at every peak makes a mixture of t distributions, and the prior keeps its weights bounded. Where
too few draws carry weight, the mixture is fitted to what was drawn; and where that does not help, tempering from the
prior finds what the peaks did not show.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtri
from scipy.stats import chi2, qmc

from basq.numerics.gaussians import LOG_2PI, mean_and_root
from basq.numerics.linalg import cholesky
from basq.numerics.metropolis import metropolis
from basq.numerics.student import MixtureSettings, StudentMixture
from basq.types import FloatArray

LogDensity = Callable[[FloatArray], FloatArray]
"""Points (m, k) to logarithms (m,)."""

N_STARTS, N_PEAKS = 1024, 12
"""Prior draws that ascents may start from, and the best of them that do, none close to another:"""
APART = 0.6
"""standard deviations of the prior per root of the dimension."""
SAME = 0.5
"""Standard deviations within which two ascents have ended at one peak."""
STEP = 1e-3
"""Of finite differences, in standard deviations of the prior; curvatures come from steps of the peak's own width."""
WALL = -1e12
"""Stands for −inf in ascents."""
DEFENSIVE = 0.1
"""Share of the prior in the proposal."""
WIDENED = 1.3
"""Factor on the covariances of Laplace's approximation: a proposal had better be too wide."""
BLOCK, FIRST_DRAWS, MOST_DRAWS = 128, 1024, 16_384
"""Draws of a block, at first, and at most: they are doubled until the error is small."""
ENOUGH = 0.2
"""Share of the draws that must carry weight for a proposal to be good."""
ERROR = 0.005
"""Standard error of the log-integral that is aimed at."""
N_TEMPERED, KEPT, MOVES = 1000, 0.5, 4
"""Particles of tempering, share of their effective number that a stage keeps, and moves at each stage."""


def integrate_cloud(
    log_likelihood: LogDensity, n_dim: int, rng: np.random.Generator
) -> tuple[float, float, FloatArray, FloatArray]:
    """Integrate exp(log_likelihood) over N(0, I).

    Returns
    -------
    log_integral : float
        −inf where no draw has a positive likelihood.
    error : float
        Its standard error.
    draws, log_weights : (m, k) and (m,) arrays
        Of the normalised density.
    """
    log_density = _with_prior(log_likelihood)
    proposal = about_peaks(log_density, n_dim, rng)
    found = Draws.of(log_density, proposal, FIRST_DRAWS, rng)
    for improve in (_refitted, _refitted, _tempered, _refitted):
        if found.share >= ENOUGH:
            break
        other = Draws.of(log_density, improve(log_density, found, n_dim, rng), FIRST_DRAWS, rng)
        found = other if other.share > found.share else found
    while found.error > ERROR and len(found.v) < MOST_DRAWS and np.isfinite(found.log_integral):
        found = found.join(Draws.of(log_density, found.proposal, len(found.v), rng))
    return found.log_integral, found.error, found.v, found.log_weights


def _with_prior(log_likelihood: LogDensity) -> LogDensity:
    def log_density(v: FloatArray) -> FloatArray:
        return log_likelihood(v) - 0.5 * (np.einsum("ij,ij->i", v, v) + v.shape[1] * LOG_2PI)

    return log_density


class Draws:
    """Weighted draws of a proposal.

    Attributes
    ----------
    proposal : StudentMixture
    v : (m, k) array
    log_terms : (m,) array
        Log of density over proposal.
    """

    def __init__(self, proposal: StudentMixture, v: FloatArray, log_terms: FloatArray) -> None:
        self.proposal, self.v, self.log_terms = proposal, v, log_terms
        total = float(logsumexp(log_terms)) if np.isfinite(log_terms).any() else -np.inf
        self.log_integral = total - float(np.log(len(v)))
        self.log_weights = log_terms - total if np.isfinite(total) else np.full(len(v), -np.log(len(v)))
        w = np.exp(self.log_weights)
        self.share = float(1.0 / (w @ w) / len(v)) if np.isfinite(total) else 0.0
        # draws are spread evenly within each block, blocks are independent of each other
        blocks = w.reshape(-1, BLOCK).sum(axis=1) * (len(v) / BLOCK)
        self.error = float(blocks.std(ddof=1) / np.sqrt(len(blocks)))

    @classmethod
    def of(cls, log_density: LogDensity, proposal: StudentMixture, n: int, rng: np.random.Generator) -> "Draws":
        """Draw n points, in blocks that are spread evenly."""
        v = np.concatenate([spread_draws(proposal, BLOCK, rng) for _ in range(n // BLOCK)])
        return cls(proposal, v, log_density(v) - proposal.log_pdf(v))

    def join(self, other: "Draws") -> "Draws":
        """These and more of the same proposal."""
        log_terms = np.concatenate([self.log_terms, other.log_terms])
        return Draws(self.proposal, np.concatenate([self.v, other.v]), log_terms)


def spread_draws(proposal: StudentMixture, n: int, rng: np.random.Generator) -> FloatArray:
    """n draws (n, k) of a mixture by a scrambled Sobol sequence: its error is a fraction of random draws'."""
    d = proposal.means.shape[1]
    cube = qmc.Sobol(d + 2, seed=rng).random_base2(int(np.ceil(np.log2(n))))[:n]
    cube = np.clip(cube, 1e-12, 1.0 - 1e-12)
    which = np.minimum(np.searchsorted(np.cumsum(proposal.weights), cube[:, 0]), len(proposal.weights) - 1)
    normal = ndtri(cube[:, 2:]) / np.sqrt(chi2.ppf(cube[:, 1:2], proposal.freedom) / proposal.freedom)
    return proposal.means[which] + np.einsum("nij,nj->ni", proposal.roots[which], normal)


def about_peaks(log_density: LogDensity, n_dim: int, rng: np.random.Generator) -> StudentMixture:
    """A mixture by Laplace's approximation at every peak found, and of the prior."""
    starts = ndtri(np.clip(qmc.Sobol(n_dim, seed=rng).random(N_STARTS), 1e-9, 1.0 - 1e-9))
    starts[0] = 0.0
    level = log_density(starts)
    means: list[FloatArray] = []
    roots: list[FloatArray] = []
    log_mass: list[float] = []
    for start in apart(starts[np.isfinite(level)], level[np.isfinite(level)]):
        peak, top = ascend(log_density, start)
        root = laplace_root(log_density, peak, top)
        if any(np.linalg.norm(np.linalg.solve(r, peak - m)) < SAME for m, r in zip(means, roots, strict=True)):
            continue
        means.append(peak)
        roots.append(root)
        log_mass.append(top + float(np.log(np.diag(root)).sum()))
    if not means:
        return StudentMixture(np.ones(1), np.zeros((1, n_dim)), np.eye(n_dim)[None], MixtureSettings().freedom)
    mass = np.exp(np.array(log_mass) - max(log_mass))
    shares = (1.0 - DEFENSIVE) * (0.8 * mass / mass.sum() + 0.2 / len(mass))  # a peak's shape may hide its mass
    return StudentMixture(
        np.append(shares, DEFENSIVE),
        np.vstack([*means, np.zeros(n_dim)]),
        np.stack([*(np.sqrt(WIDENED) * r for r in roots), np.eye(n_dim)]),
        MixtureSettings().freedom,
    )


def apart(starts: FloatArray, level: FloatArray) -> FloatArray:
    """The highest of all starts (m, k), then always the highest one that is far from those chosen before."""
    left = np.ones(len(starts), dtype=bool)
    chosen: list[FloatArray] = []
    while left.any() and len(chosen) < N_PEAKS:
        best = int(np.where(left, level, -np.inf).argmax())
        chosen.append(starts[best])
        left &= np.linalg.norm(starts - starts[best], axis=1) > APART * np.sqrt(starts.shape[1])
    return np.array(chosen).reshape(-1, starts.shape[1])


def ascend(log_density: LogDensity, start: FloatArray) -> tuple[FloatArray, float]:
    """Climb to a peak from a point (k,); the peak and its level."""
    steps = STEP * np.eye(len(start))

    def objective(v: FloatArray) -> tuple[float, FloatArray]:
        level = log_density(np.concatenate([v[None], v + steps, v - steps]))
        level = np.where(np.isfinite(level), level, WALL)  # the search turns back
        return -float(level[0]), (level[len(v) + 1 :] - level[1 : len(v) + 1]) / (2.0 * STEP)

    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(-8.0, 8.0)] * len(start))
    return found.x, -float(found.fun)


def laplace_root(log_density: LogDensity, peak: FloatArray, top: float) -> FloatArray:
    """Cholesky factor (k, k) of the covariance that the curvature at a peak (k,) gives; no wider than the prior."""
    d = len(peak)
    step = np.full(d, 0.1)
    for _ in range(6):  # as wide as half a nat or so in every direction
        ends = log_density(np.concatenate([peak + np.diag(step), peak - np.diag(step)]))
        drop = np.maximum(top - 0.5 * (ends[:d] + ends[d:]), 1e-12)
        step = np.clip(step * np.sqrt(0.5 / np.where(np.isfinite(drop), drop, 50.0)), 1e-7, 1.0)
    rows, columns = np.triu_indices(d, 1)
    both = np.diag(step)[rows] + np.diag(step)[columns]
    level = log_density(np.concatenate([peak + np.diag(step), peak - np.diag(step), peak + both, peak - both]))
    single = np.where(np.isfinite(level[: 2 * d]), level[: 2 * d], top - 50.0).reshape(2, d).mean(axis=0) - top
    pairs = np.where(np.isfinite(level[2 * d :]), level[2 * d :], top - 50.0).reshape(2, -1).mean(axis=0) - top
    curvature = np.diag(-2.0 * single)  # in units of the steps
    curvature[rows, columns] = curvature[columns, rows] = -(pairs - single[rows] - single[columns])
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(values, (step**2).min())  # a direction without curvature is the prior's
    cov = step[:, None] * (vectors / values @ vectors.T) * step
    shrink = np.minimum(1.0, 1.5 / np.sqrt(np.diag(cov)))
    return cholesky(shrink[:, None] * cov * shrink + 1e-14 * np.eye(d))[0]


def _refitted(log_density: LogDensity, found: Draws, n_dim: int, rng: np.random.Generator) -> StudentMixture:
    """A mixture fitted to the draws that carry weight."""
    w = np.exp(found.log_weights)
    index = rng.choice(len(w), 1000, p=w / w.sum())
    width = 0.1 * mean_and_root(found.v[index])[1]
    return _defended(
        StudentMixture.of(found.v[index] + rng.standard_normal((1000, n_dim)) @ width.T, rng, MixtureSettings())
    )


def _tempered(log_density: LogDensity, found: Draws, n_dim: int, rng: np.random.Generator) -> StudentMixture:
    """A mixture fitted to samples of tempered sequential Monte Carlo from the prior."""
    prior = _with_prior(lambda v: np.zeros(len(v)))
    v, beta = rng.standard_normal((N_TEMPERED, n_dim)), 0.0
    while beta < 1.0:
        log_l = log_density(v) - prior(v)
        log_l = np.where(np.isfinite(log_l), log_l, -np.inf)
        if not np.isfinite(log_l).any():
            break
        following = next_power(log_l, beta)
        w = np.exp((following - beta) * (log_l - log_l.max()))
        v, beta = v[rng.choice(len(v), len(v), p=w / w.sum())], following
        power = beta

        def tempered(u: FloatArray, power: float = power) -> FloatArray:
            base = prior(u)
            out: FloatArray = np.nan_to_num(power * (log_density(u) - base) + base, nan=-np.inf)
            return out

        root = mean_and_root(v)[1]
        v = metropolis(tempered, v, root @ root.T, rng, n_moves=MOVES)
    return _defended(StudentMixture.of(v, rng, MixtureSettings()))


def next_power(log_l: FloatArray, beta: float) -> float:
    """Largest inverse temperature that keeps enough of the effective number of particles."""
    if _share(log_l, 1.0 - beta) > KEPT:
        return 1.0
    low, high = 1e-12, 1.0 - beta  # of the step
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _share(log_l, middle) > KEPT else (low, middle)
    return min(beta + low, 1.0)


def _share(log_l: FloatArray, power: float) -> float:
    """Effective share of weights exp(power log_l)."""
    w = np.exp(power * (log_l - log_l.max()))
    return float(w.sum() ** 2 / (w @ w) / len(w))


def _defended(mixture: StudentMixture) -> StudentMixture:
    """With the prior as a further component, which keeps the weights bounded."""
    d = mixture.means.shape[1]
    return StudentMixture(
        np.append((1.0 - DEFENSIVE) * mixture.weights, DEFENSIVE),
        np.vstack([mixture.means, np.zeros(d)]),
        np.concatenate([mixture.roots, np.eye(d)[None]]),
        mixture.freedom,
    )
