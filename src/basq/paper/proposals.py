"""Candidates: N weighted points that stand for the measure of interest, drawn where the surrogate is unsure.

A proposal g draws the points and f/g weights them (eqs. 8 to 10 of the paper), so that the weighted points always
represent f. `PROPOSALS` has those with a name; any function of the same arguments (`Proposal`) is another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np

from basq.gp.gp import GP, Prediction
from basq.numerics.gaussians import GaussianMixture, log_normal_pdf
from basq.numerics.linalg import cholesky, row_blocks
from basq.paper.positive_mixture import PositiveMixture
from basq.paper.target import Target
from basq.types import FloatArray, IntArray

ProposalName = Literal["ivr", "ub", "igb", "prior", "optimal"]

SUPERSAMPLES = 2
"""Prior draws per resampled candidate: the more, the nearer to the proposal; `Paper` has it as an option."""

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
    mass : float
        Integral of f, of which the weights are shares, as the points estimate it; NaN where it is not known.
    """

    prediction: Prediction
    weights: FloatArray
    sampler: str = "none"
    acceptance: float = float("nan")
    mass: float = float("nan")


class Proposal(Protocol):
    """How candidates are drawn and weighted: a function, or an object that is called like one."""

    def __call__(
        self, target: Target, measure: GaussianMixture, r: float, n: int, rng: np.random.Generator, /
    ) -> Candidates:
        """Draw n weighted candidates.

        Parameters
        ----------
        target : Target
            ``target.interest`` is f/π, ``target.var`` the uncertainty and ``target.surrogate.gp`` the process.
        measure : GaussianMixture
            The prior measure π in standard space.
        r : float
            A share in [0, 1], the option of ``Paper``.
        n : int
        rng : numpy.random.Generator
        """
        ...


class Named(Protocol):
    """A proposal that has a name; those that resample draw so many points from the prior for each candidate."""

    def __call__(
        self,
        target: Target,
        measure: GaussianMixture,
        r: float,
        n: int,
        rng: np.random.Generator,
        /,
        *,
        supersamples: int = SUPERSAMPLES,
    ) -> Candidates: ...


def ivr(
    target: Target,
    measure: GaussianMixture,
    r: float,
    n: int,
    rng: np.random.Generator,
    *,
    supersamples: int = SUPERSAMPLES,
) -> Candidates:
    """(1 − r) f + r A, A ∝ uncertainty × prior: half where the integral is, half where it is unknown (eq. 8)."""
    return _mixed(target, measure, draw_uncertain, (r, supersamples), n, rng)


def ub(
    target: Target,
    measure: GaussianMixture,
    r: float,
    n: int,
    rng: np.random.Generator,
    *,
    supersamples: int = SUPERSAMPLES,
) -> Candidates:
    """Nearly all from A (eq. 9); a hundredth from f, which keeps the weights bounded."""
    return _mixed(target, measure, draw_uncertain, (1.0 - DEFENSIVE, supersamples), n, rng)


def optimal(
    target: Target,
    measure: GaussianMixture,
    r: float,
    n: int,
    rng: np.random.Generator,
    *,
    supersamples: int = SUPERSAMPLES,
) -> Candidates:
    """∝ √uncertainty × f, which minimises the bound of Lemma 1; again with a hundredth from f."""
    return _mixed(target, measure, draw_optimal, (1.0 - DEFENSIVE, supersamples), n, rng)


def prior(
    target: Target,
    measure: GaussianMixture,
    r: float,
    n: int,
    rng: np.random.Generator,
    *,
    supersamples: int = SUPERSAMPLES,
) -> Candidates:
    """The prior."""
    return weighted(target, [draw_prior(measure, n, rng)])


def igb(
    target: Target,
    measure: GaussianMixture,
    r: float,
    n: int,
    rng: np.random.Generator,
    *,
    supersamples: int = SUPERSAMPLES,
) -> Candidates:
    """(1 − r) prior + r Gaussians about the points seen so far: for a good initial guess.

    The Gaussians have one kernel width of spread. The paper's weights of 0 and 1 do not make them a density; here those
    about points with a value above the least are even and sum to one.
    """
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
    return Candidates(p, weights / weights.sum(), mass=float(weights.mean()))


PROPOSALS: Mapping[str, Named] = MappingProxyType(
    {"ivr": ivr, "ub": ub, "igb": igb, "prior": prior, "optimal": optimal}
)


def propose(
    target: Target,
    measure: GaussianMixture,
    proposal: ProposalName | Proposal,
    r: float,
    n: int,
    rng: np.random.Generator,
    *,
    supersamples: int = SUPERSAMPLES,
) -> Candidates:
    """Draw n weighted candidates from a proposal, given by its name or as one."""
    if isinstance(proposal, str):
        return PROPOSALS[proposal](target, measure, r, n, rng, supersamples=supersamples)
    return proposal(target, measure, r, n, rng)


def over_prior(target: Target, candidates: Candidates, chosen: IntArray, weights: FloatArray) -> FloatArray:
    """Weights (k,) of chosen candidates with respect to f, as weights with respect to the prior.

    ∫ h f = Σ w h makes Z ≈ Σ v ℓ with v = w ∫f / (f/π): what the factorisation has taken out of the integrand.
    """
    interest = _interest(target, candidates.prediction.mean[chosen])
    out: FloatArray = weights * candidates.mass / np.maximum(interest, 1e-300)
    return out


Draw = Callable[[Target, GaussianMixture, int, int, np.random.Generator], "Part"]


@dataclass(frozen=True)
class Part:
    """Points of one part of a proposal.

    Attributes
    ----------
    x : (n, d) array
    density : callable, Prediction -> (m,)
        How densely this part puts its points at all candidates, relative to the prior. The sum over the parts is what
        weights all of them (the balance heuristic of Veach & Guibas 1995). The points of the uncertain part come last.
    sampler, acceptance : str, float
        As in `Candidates`.
    """

    x: FloatArray
    density: Callable[[Prediction], FloatArray]
    sampler: str = "none"
    acceptance: float = float("nan")


def weighted(target: Target, parts: list[Part]) -> Candidates:
    """Weight the points of all parts by f over the sum of the parts' densities (eq. 10)."""
    p = target.surrogate.gp.predict(np.concatenate([part.x for part in parts]))
    density = sum((part.density(p) for part in parts), np.zeros(len(p.x)))
    weights = _interest(target, p.mean) / np.maximum(density, 1e-300)
    total = float(weights.sum())
    return Candidates(p, weights / total, parts[-1].sampler, parts[-1].acceptance, total)


def _mixed(
    target: Target,
    measure: GaussianMixture,
    draw: Draw,
    sizes: tuple[float, int],
    n: int,
    rng: np.random.Generator,
) -> Candidates:
    """Draw a share of n points by a function of its own, the others from f, both from so many prior draws for each."""
    share, supersamples = sizes
    n_drawn = round(share * n)
    counts = ((draw_interest, n - n_drawn), (draw, n_drawn))
    return weighted(target, [d(target, measure, k, k * supersamples, rng) for d, k in counts if k > 0])


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


def draw_prior(measure: GaussianMixture, n: int, rng: np.random.Generator) -> Part:
    """Draw n points from the prior."""
    return Part(measure.sample(n, rng), lambda p: np.full(len(p.x), float(n)))


def draw_interest(target: Target, measure: GaussianMixture, n: int, n_pool: int, rng: np.random.Generator) -> Part:
    """Draw n points from f, of n_pool from the prior."""
    if not target.follows_mean:
        return draw_prior(measure, n, rng)
    x = measure.sample(n_pool, rng)
    chosen, chance = race(_interest(target, target.surrogate.gp.predict_mean(x)), n, rng)
    return Part(x[chosen], lambda p: len(x) * chance(_interest(target, p.mean)))


def draw_optimal(target: Target, measure: GaussianMixture, n: int, n_pool: int, rng: np.random.Generator) -> Part:
    """Draw n points from √uncertainty × f, of n_pool from the prior."""
    gp = target.surrogate.gp
    pool = measure.sample(n_pool, rng)
    uncertainty = Uncertainty(target, gp.sketch(SKETCH))

    def root(x: FloatArray, mean: FloatArray) -> FloatArray:
        return np.sqrt(uncertainty(x, mean)) * _interest(target, mean)

    chosen, chance = race(root(pool, gp.predict_mean(pool)), n, rng)
    return Part(pool[chosen], lambda p: len(pool) * chance(root(p.x, p.mean)), "resampling")


def draw_uncertain(target: Target, measure: GaussianMixture, n: int, n_pool: int, rng: np.random.Generator) -> Part:
    """Draw n points from uncertainty × prior; where they are resampled, of n_pool from the prior.

    The paper's sampler (positive components of the Gaussian mixture that C̃π is) is used where its acceptance,
    known beforehand, is worth it; else prior draws are resampled, which cannot collapse.
    """
    gp = target.surrogate.gp
    sparse = None
    if target.uses_process and gp.kernel.gaussian and len(gp.x) <= MAX_PAIRED:
        sparse = PositiveMixture.of(gp, measure, n)
    acceptance = sparse.acceptance if sparse else float("nan")
    if sparse and acceptance >= MIN_ACCEPTANCE:
        total = sparse.total
        return Part(sparse.sample(gp, measure, n, rng), lambda p: n / total * target.var(p), "mixture", acceptance)
    pool = measure.sample(n_pool, rng)
    uncertainty = Uncertainty(target, gp.sketch(SKETCH))
    mean = np.zeros(len(pool)) if target.uses_process else gp.predict_mean(pool)
    weights = uncertainty(pool, mean)
    chosen, chance = race(weights, n, rng)

    def density(p: Prediction) -> FloatArray:
        others = p[: len(p.x) - n]
        elsewhere = target.var(others) if uncertainty.sketch is gp else uncertainty(others.x, others.mean)
        return len(pool) * chance(np.concatenate([elsewhere, weights[chosen]]))

    return Part(pool[chosen], density, "resampling", acceptance)


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
