"""Candidates: N weighted points that stand for the measure of interest, drawn where the surrogate is unsure.

A proposal g draws the points and f/g weights them, so that the weighted points always represent f:

* ``ivr``     (1 − r) f + r A, A ∝ uncertainty × prior: half where the integral is, half where it is unknown;
* ``ub``      nearly all from A (a hundredth from f, which keeps the weights bounded);
* ``igb``     (1 − r) prior + r Gaussians about the points seen so far: for a good initial guess;
* ``prior``   the prior;
* ``optimal`` ∝ √uncertainty × f, which minimises the bound of Lemma 1.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from basq.gaussians import GaussianMixture, log_normal_pdf
from basq.linalg import cholesky
from basq.quadrature.blocks import Blocks, is_rbf
from basq.quadrature.mixture import Group
from basq.selection.target import Target
from basq.surrogate.gp import GP, Prediction
from basq.types import FloatArray, IntArray

ProposalName = Literal["ivr", "ub", "igb", "prior", "optimal"]

SUPERSAMPLES = 2
"""Prior draws per resampled candidate."""

MIN_ACCEPTANCE = 0.2
"""Below this predicted acceptance the mixture sampler costs more than resampling the prior."""

DEFENSIVE = 0.01
"""Share of f in the UB proposal: pure uncertainty sampling has weights of infinite variance at the data."""


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
    gp = target.surrogate.gp
    if name == "igb":
        return _propose_local(target, measure, r, n, rng)
    if name == "optimal":
        p = gp.predict(measure.sample(SUPERSAMPLES * n, rng))
        root = np.sqrt(target.var(p))
        chosen = resample(root * target.interest(p.mean), n, rng)
        # f/g = 1/√uncertainty, infinite at the data only, where the resampling never goes
        weights = 1.0 / np.maximum(root[chosen], 1e-6 * root.max())
        return Candidates(p[chosen], weights / weights.sum(), "resampling")
    share = {"ivr": r, "ub": 1.0 - DEFENSIVE, "prior": 0.0}[name]
    n_uncertain = round(share * n)
    if name == "prior":
        p = gp.predict(measure.sample(n, rng))
        weights = target.interest(p.mean)
        return Candidates(p, weights / weights.sum())
    p_f, z_f = _draw_interest(target, measure, n - n_uncertain, rng)
    p_a, z_a, sampler, acceptance = _draw_uncertain(target, measure, n_uncertain, rng)
    p = p_f.join(p_a)
    f, a = target.interest(p.mean) / z_f, target.var(p) / z_a
    weights = f / np.maximum((1.0 - share) * f + share * a, 1e-300)
    return Candidates(p, weights / weights.sum(), sampler, acceptance)


def _draw_interest(
    target: Target, measure: GaussianMixture, n: int, rng: np.random.Generator
) -> tuple[Prediction, float]:
    """Draw n points from f, and estimate the mean of f/π under π."""
    gp = target.surrogate.gp
    if not target.follows_mean:
        return gp.predict(measure.sample(n, rng)), 1.0
    x = measure.sample(max(SUPERSAMPLES * n, 2000), rng)
    interest = target.interest(gp.predict_mean(x))
    return gp.predict(x[resample(interest, n, rng)]), float(interest.mean())


def _draw_uncertain(
    target: Target, measure: GaussianMixture, n: int, rng: np.random.Generator
) -> tuple[Prediction, float, str, float]:
    """Draw n points from uncertainty × prior; also the mean uncertainty under the prior.

    The paper's sampler (positive components of the Gaussian mixture that C̃π is) is used where its acceptance,
    known beforehand, is worth it; else prior draws are resampled, which cannot collapse.
    """
    gp = target.surrogate.gp
    sparse = PositiveMixture.of(gp, measure, n) if target.uses_process and is_rbf(gp.kernel) else None
    acceptance = sparse.acceptance if sparse else float("nan")
    if sparse and acceptance >= MIN_ACCEPTANCE:
        p = sparse.sample(gp, measure, n, rng)
        return p, sparse.total, "mixture", acceptance
    p = gp.predict(measure.sample(SUPERSAMPLES * n, rng))
    uncertainty = target.var(p)
    return p[resample(uncertainty, n, rng)], float(uncertainty.mean()), "resampling", acceptance


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
    for centre in seen:
        density += np.exp(log_normal_pdf(x, centre, cov) - log_pi) / len(seen)
    p = gp.predict(x)
    weights = target.interest(p.mean) / ((1.0 - r) + r * density)
    return Candidates(p, weights / weights.sum())


def resample(weights: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Choose n distinct indices with probability about proportional to the weights.

    Sampling without replacement by exponential races: no point is chosen twice, since a batch must not pay for one
    point twice.
    """
    if n >= len(weights):
        return np.arange(len(weights))
    safe = np.maximum(weights, 1e-12 * max(float(weights.max()), 1e-300))
    races = rng.exponential(size=len(weights)) / safe
    return np.argpartition(races, n)[:n]


@dataclass(frozen=True)
class PositiveMixture:
    """The components of C̃π with positive weight: π itself and the pairs with Ωᵢⱼ < 0.

    C̃(x, x) π(x) = v π(x) − Σ Ωᵢⱼ Qᵢⱼ N(x; …), so the positive part dominates it and resampling from the one to the
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

    def sample(self, gp: GP, measure: GaussianMixture, n: int, rng: np.random.Generator) -> Prediction:
        """Draw n points of C̃π by importance resampling."""
        pool = int(2.0 * n / self.acceptance) + 16
        n_prior = int(rng.binomial(pool, self.prior_mass / self.positive))
        x = np.concatenate([measure.sample(n_prior, rng), self.pairs.sample_absolute(pool - n_prior, rng)])
        density = self.prior_mass * np.exp(measure.log_pdf(x)) + self.pairs.pdf(x)
        p = gp.predict(x)
        weights = p.var * np.exp(measure.log_pdf(x)) / density
        return p[resample(weights, n, rng)]
