"""Candidates: N weighted points that stand for the measure of interest, drawn where the surrogate is unsure.

A proposal g draws the points and f/g weights them, so that the weighted points always represent f:

* ``ivr``     (1 − r) f + r A, A ∝ uncertainty × prior: half where the integral is, half where it is unknown;
* ``ub``      nearly all from A (a hundredth from f, which keeps the weights bounded);
* ``igb``     (1 − r) prior + r Gaussians about the points seen so far: for a good initial guess;
* ``prior``   the prior;
* ``optimal`` ∝ √uncertainty × f, which minimises the bound of Lemma 1 (again with a hundredth from f).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from basq.gp.gp import GP, Prediction
from basq.numerics.gaussians import GaussianMixture, log_normal_pdf
from basq.numerics.linalg import cholesky, row_blocks
from basq.paper.blocks import Blocks, is_rbf
from basq.paper.target import Target
from basq.posterior.mixture import Group
from basq.types import FloatArray, IntArray

ProposalName = Literal["ivr", "ub", "igb", "prior", "optimal"]

SUPERSAMPLES = 2
"""Prior draws per resampled candidate."""

MIN_ACCEPTANCE = 0.2
"""Below this predicted acceptance the mixture sampler costs more than resampling the prior."""

SKETCH = 256
"""Data that a proposal's variance is conditioned on; all of them up to this number."""

MAX_PAIRED = 300
"""Data up to which the mixture sampler is considered: its acceptance has collapsed long before."""

DEFENSIVE = 0.01
"""Share of f in the UB and optimal proposals: without it the weights have infinite variance, from the data and from
where the surrogate vanishes."""


@dataclass(frozen=True)
class Candidates:
    """Weighted points that represent the measure of interest.

    Attributes
    ----------
    prediction : Prediction
        The surrogate's process at the points.
    weights : (N,) array
        Non-negative, sum to one.
    sampler : str
        How the uncertain part was drawn: "mixture", "resampling" or "none".
    acceptance : float
        Predicted acceptance of the mixture sampler (NaN where it does not apply).
    """

    prediction: Prediction
    weights: FloatArray
    sampler: str = "none"
    acceptance: float = float("nan")


def propose(
    target: Target, measure: GaussianMixture, name: ProposalName, r: float, n: int, rng: np.random.Generator
) -> Candidates:
    """Draw n weighted candidates.

    Parameters
    ----------
    target : Target
    measure : GaussianMixture
        The prior measure in standard space.
    name : "ivr", "ub", "igb", "prior" or "optimal"
    r : float
        Share of the uncertain (or local) part, in [0, 1].
    n : int
    rng : numpy.random.Generator
    """
    if name == "igb":
        return _propose_local(target, measure, r, n, rng)
    share = {"ivr": r, "ub": 1.0 - DEFENSIVE, "prior": 0.0, "optimal": 1.0 - DEFENSIVE}[name]
    n_uncertain = round(share * n)
    parts, sampler, acceptance = [], "none", float("nan")
    if n_uncertain < n:
        parts.append(_draw_interest(target, measure, n - n_uncertain, rng, resampled=name != "prior"))
    if name == "optimal":
        parts.append(_draw_optimal(target, measure, n_uncertain, rng))
        sampler = "resampling"
    elif n_uncertain > 0:
        part, sampler, acceptance = _draw_uncertain(target, measure, n_uncertain, rng)
        parts.append(part)
    p = target.surrogate.gp.predict(np.concatenate([part.x for part in parts]))
    density = sum((part.density(p) for part in parts), np.zeros(len(p.x)))
    weights = _interest(target, p.mean) / np.maximum(density, 1e-300)
    return Candidates(p, weights / weights.sum(), sampler, acceptance)


@dataclass(frozen=True)
class Part:
    """Points of one part of a proposal.

    Attributes
    ----------
    x : (n, d) array
    density : callable, Prediction -> (m,)
        How densely this part puts its points at all candidates, relative to the prior. The sum over the parts is what
        weights all of them (the balance heuristic of Veach & Guibas 1995). The points of the uncertain part come last.
    """

    x: FloatArray
    density: Callable[[Prediction], FloatArray]


@dataclass(frozen=True)
class SomeMoments:
    """Mean and variance of a process at points, from wherever."""

    x: FloatArray
    mean: FloatArray
    var: FloatArray


@dataclass(frozen=True)
class Uncertainty:
    """Where to draw the uncertain part: the target's variance with that of a sketch of its process.

    Any positive function will do for a proposal, as long as the same one weights the points; the exact variance would
    cost more than everything else.
    """

    target: Target
    sketch: GP

    def __call__(self, x: FloatArray, mean: FloatArray) -> FloatArray:
        """At points x (m, d) where the whole process has this mean (m,): (m,)."""
        parts = [self.sketch.predict(x[rows]).var for rows in row_blocks(len(x), 64)]
        return self.target.var(SomeMoments(x, mean, np.concatenate([np.empty(0), *parts])))


def _interest(target: Target, mean: FloatArray) -> FloatArray:
    """f/π; the prior itself while the surrogate is zero everywhere, as after a first batch of zeros."""
    interest = target.interest(mean)
    return interest if interest.max(initial=0.0) > 0.0 else np.ones_like(interest)


def _draw_interest(
    target: Target, measure: GaussianMixture, n: int, rng: np.random.Generator, *, resampled: bool
) -> Part:
    """Draw n points from f, or from the prior."""
    gp = target.surrogate.gp
    if not (target.follows_mean and resampled):
        return Part(measure.sample(n, rng), lambda p: np.full(len(p.x), float(n)))
    x = measure.sample(SUPERSAMPLES * n, rng)
    chosen, chance = race(_interest(target, gp.predict_mean(x)), n, rng)
    return Part(x[chosen], lambda p: len(x) * chance(_interest(target, p.mean)))


def _draw_optimal(target: Target, measure: GaussianMixture, n: int, rng: np.random.Generator) -> Part:
    """Draw n points from √uncertainty × f."""
    gp = target.surrogate.gp
    pool = measure.sample(SUPERSAMPLES * n, rng)
    uncertainty = Uncertainty(target, gp.sketch(SKETCH))

    def root(x: FloatArray, mean: FloatArray) -> FloatArray:
        return np.sqrt(uncertainty(x, mean)) * _interest(target, mean)

    chosen, chance = race(root(pool, gp.predict_mean(pool)), n, rng)
    return Part(pool[chosen], lambda p: len(pool) * chance(root(p.x, p.mean)))


def _draw_uncertain(
    target: Target, measure: GaussianMixture, n: int, rng: np.random.Generator
) -> tuple[Part, str, float]:
    """Draw n points from uncertainty × prior; also how, and the predicted acceptance of the paper's sampler.

    The paper's sampler (positive components of the Gaussian mixture that C̃π is) is used where its acceptance,
    known beforehand, is worth it; else prior draws are resampled, which cannot collapse.
    """
    gp = target.surrogate.gp
    sparse = None
    if target.uses_process and is_rbf(gp.kernel) and len(gp.x) <= MAX_PAIRED:
        sparse = PositiveMixture.of(gp, measure, n)
    acceptance = sparse.acceptance if sparse else float("nan")
    if sparse and acceptance >= MIN_ACCEPTANCE:
        total = sparse.total
        return Part(sparse.sample(gp, measure, n, rng), lambda p: n / total * target.var(p)), "mixture", acceptance
    pool = measure.sample(SUPERSAMPLES * n, rng)
    uncertainty = Uncertainty(target, gp.sketch(SKETCH))
    mean = np.zeros(len(pool)) if target.uses_process else gp.predict_mean(pool)
    weights = uncertainty(pool, mean)
    chosen, chance = race(weights, n, rng)

    def density(p: Prediction) -> FloatArray:
        others = p[: len(p.x) - n]
        elsewhere = target.var(others) if uncertainty.sketch is gp else uncertainty(others.x, others.mean)
        return len(pool) * chance(np.concatenate([elsewhere, weights[chosen]]))

    return Part(pool[chosen], density), "resampling", acceptance


def _propose_local(target: Target, measure: GaussianMixture, r: float, n: int, rng: np.random.Generator) -> Candidates:
    """Candidates about the points seen, with one kernel width of spread."""
    gp = target.surrogate.gp
    cov = np.diag(gp.kernel.lengthscale**2)
    seen = gp.x[gp.y > gp.y.min()] if np.ptp(gp.y) > 0 else gp.x
    n_local = round(r * n)
    centres = seen[rng.integers(len(seen), size=n_local)]
    local = centres + rng.standard_normal(centres.shape) @ cholesky(cov)[0].T
    x = np.concatenate([measure.sample(n - n_local, rng), local])
    log_pi = measure.log_pdf(x)
    density = np.zeros(len(x))
    with np.errstate(over="ignore"):  # far outside the prior: an infinite density is a weight of zero
        for centre in seen:
            density += np.exp(log_normal_pdf(x, centre, cov) - log_pi) / len(seen)
    p = gp.predict(x)
    weights = _interest(target, p.mean) / np.maximum((1.0 - r) + r * density, 1e-300)
    return Candidates(p, weights / weights.sum())


def race(weights: FloatArray, n: int, rng: np.random.Generator) -> tuple[IntArray, Callable[[FloatArray], FloatArray]]:
    """Choose n distinct indices by exponential races: the larger the weight, the sooner it arrives.

    Returns
    -------
    index : (n,) int array
    chance : callable, (m,) -> (m,)
        Chance that a point of given weight was chosen. It is proportional to small weights only: a point cannot be
        chosen twice, however large its weight, so draws that are to be unbiased have to be divided by it
        (Cohen & Kaplan 2007, rank conditioning).
    """
    peak = float(weights.max(initial=0.0))
    floor = 1e-12 * peak if peak > 1e-280 else 1.0  # a weight of zero is a last resort
    if n >= len(weights):
        return np.arange(len(weights)), np.ones_like
    times = rng.exponential(size=len(weights)) / np.maximum(weights, floor)
    order = np.argpartition(times, n)
    last = float(times[order[n]])
    return order[:n], lambda w: -np.expm1(-last * np.maximum(w, floor))


def resample(weights: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Choose n distinct indices with probability about proportional to the weights.

    Without replacement, since a batch must not pay for one point twice.
    """
    return race(weights, n, rng)[0]


@dataclass(frozen=True)
class PositiveMixture:
    """The components of C̃π with positive weight: π itself and the pairs with Ωᵢⱼ < 0.

    C̃(x, x) π(x) = v π(x) − Σ Ωᵢⱼ Qᵢⱼ N(x; …), so the positive part dominates it and rejection from the one to the
    other is exact. The share that survives is known in closed form, and collapses when K is ill-conditioned.

    Attributes
    ----------
    prior_mass : float
        v, the weight of π.
    pairs : Group
        Positive pairs, thinned to those that n draws would show.
    positive, total : float
        Integrals of the positive part and of C̃π.
    """

    prior_mass: float
    pairs: Group
    positive: float
    total: float

    @classmethod
    def of(cls, gp: GP, measure: GaussianMixture, n: int) -> "PositiveMixture | None":
        """Build from a process; None for a mixture measure (its components would multiply)."""
        if len(measure.weights) > 1:
            return None
        block = Blocks(gp, measure).pairs[0]
        mass = gp.precision * np.exp(block.log_mass)
        prior = float(gp.kernel.variance)
        # n draws would hardly show a component of less than 1/n; dropping it is safe, for vπ alone dominates C̃π
        shown = -mass > (prior - float(np.minimum(mass, 0.0).sum())) / n
        pairs = Group(np.where(shown, -gp.precision, 0.0), block.log_mass, block.left, block.right, block.cov)
        return cls(prior, pairs, prior + float(pairs.weights.sum()), prior - float(mass.sum()))

    @property
    def acceptance(self) -> float:
        """Share of draws that survive; 0 where rounding has eaten the total."""
        return max(self.total, 0.0) / self.positive

    def sample(self, gp: GP, measure: GaussianMixture, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points of C̃π by rejection."""
        kept: list[FloatArray] = []
        found = 0
        while found < n:
            pool = int(1.1 * (n - found) / self.acceptance) + 16
            n_prior = int(rng.binomial(pool, self.prior_mass / self.positive))
            x = np.concatenate([measure.sample(n_prior, rng), self._sample_pairs(pool - n_prior, rng)])
            pi = np.exp(measure.log_pdf(x))
            bound = self.prior_mass * pi + self.pairs.pdf(x)
            kept.append(rng.permutation(x[rng.random(pool) * bound < gp.predict(x).var * pi]))
            found += len(kept[-1])
        return np.concatenate(kept)[:n]

    def _sample_pairs(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the positive pairs, of which there may be none."""
        return self.pairs.sample_absolute(n, rng) if n else np.empty((0, self.pairs.left.shape[1]))
