"""The default engine: a log-surrogate that follows the posterior, batches by recombination, audited errors."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.diagnostics import Audit, audit, calibration
from basq.errors import InputError
from basq.gaussians import GaussianMixture
from basq.method import Batch, Posterior
from basq.observations import Observations
from basq.prior import Prior
from basq.quadrature.importance import Estimate, estimate
from basq.quadrature.sampled import SampledPosterior
from basq.quadrature.smc import Population, temper
from basq.selection.exploration import Explorer, explore, spread_points
from basq.selection.nystrom import nystrom_features
from basq.selection.recombination import recombine
from basq.surrogate.log_model import LogModel
from basq.surrogate.reference import Reference
from basq.types import FloatArray

N_PARTICLES, N_DRAWS = 1000, 4000
EXPLORING = 0.25
"""Share of a batch that explores."""
EXPLORING_ONLY = 0.75
"""The same when nothing but exploration is left to do."""
TAIL = 0.3
"""Share of the selection measure that is broadened beyond the posterior."""
JENSEN = 0.4
"""Share of the C/2 correction that counts as error."""


def quota(n_dim: int) -> float:
    """Exploration points without a surprise that make "no other mode" believable."""
    return 12.0 + 2.0 * n_dim


@dataclass(frozen=True)
class ModelDensity:
    """Log posterior density of a log-model in standard space, (m, d) -> (m,); a class, so that it can be pickled."""

    model: LogModel
    measure: GaussianMixture
    log_z: float

    def __call__(self, u: FloatArray) -> FloatArray:
        return self.model.integrand(u)[1] + self.measure.log_pdf(u) - self.log_z


@dataclass(frozen=True)
class Blind:
    """The state while every value seen is zero (−inf): nothing to model, only to search."""

    observations: Observations

    log_evidence = float("-inf")
    log_evidence_std = float("inf")

    @property
    def posterior(self) -> Posterior:
        raise InputError("Every likelihood value so far is zero (−inf): there is no posterior yet.")

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Nothing is known."""
        return False, f"all {len(self.observations)} likelihood values so far are zero (−inf)"


@dataclass(frozen=True)
class AutoFit:
    """The engine's state after a batch."""

    model: LogModel
    measure: GaussianMixture
    observations: Observations
    population: Population
    estimate: Estimate
    explorer: Explorer
    audits: tuple[Audit, ...]
    trail: tuple[tuple[float, float], ...]
    """log Z and its sd after every batch, this one last."""
    explored: int
    """Exploration points since the last surprise."""
    seed: int

    @property
    def log_evidence(self) -> float:
        return self.trail[-1][0]

    @property
    def log_evidence_std(self) -> float:
        return self.trail[-1][1]

    def doubts(self, dlogz: float) -> list[str]:
        """Reasons not to believe the answer yet."""
        out = []
        if self.population.beta < 1.0:
            out.append("the surrogate does not resolve the posterior yet")
        if not self.log_evidence_std <= dlogz:
            out.append(f"sd of log Z {self.log_evidence_std:.3g} is above dlogz = {dlogz:g}")
        if self.estimate.effective < 200:
            out.append("the evidence integral is uncertain")
        if not self.audits:
            out.append("no batch has tested the surrogate yet")
        else:
            last, factor = self.audits[-1], calibration(self.audits)
            if not factor <= 6.0 or (last.n_inside and not last.z2 <= 8.0):
                out.append(f"the last batches were {np.sqrt(factor):.1f} sd off their prediction")
            if last.n_inside and not last.rms <= 1.5:
                out.append(f"the last batch was {last.rms:.1f} nats off its prediction")
            (before, sd_before), (now, sd) = self.trail[-2:]
            if not abs(now - before) <= min(0.3, 2.5 * np.hypot(sd, sd_before)):
                out.append(f"log Z moved by {now - before:+.2f} with the last batch")
        if self.explored < quota(self.model.n_dim):
            out.append(f"only {self.explored} exploration points since the last surprise")
        return out

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Whether all audits agree that the error is below dlogz."""
        doubts = self.doubts(dlogz)
        if doubts:
            return False, "; ".join(doubts)
        return True, (
            f"sd of log Z {self.log_evidence_std:.3g} is below dlogz = {dlogz:g}, the last batches agree with their "
            f"prediction, and {self.explored} exploration points found nothing new"
        )

    @property
    def only_exploration_missing(self) -> bool:
        """Whether everything else is settled (at a generous accuracy)."""
        return self.explored < quota(self.model.n_dim) and len(self.doubts(0.1)) == 1

    @property
    def unhealthy(self) -> bool:
        """Whether the next fit should look for other hyperparameters as well."""
        failed = bool(self.audits) and self.audits[-1].z2 > 6.0
        return failed or self.estimate.effective < 100 or self.estimate.bulk_var > 0.7

    @property
    def lost(self) -> bool:
        """Whether the surrogate's posterior has collapsed and the next fit should start afresh."""
        return self.estimate.effective < 10

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior in standard space."""
        e = self.estimate
        log_density = ModelDensity(self.model, self.measure, e.log_mean - self.model.scale.top)
        return SampledPosterior.build(log_density, e.u, e.log_weights, np.random.default_rng(self.seed))


@dataclass(frozen=True)
class Auto:
    """The default engine; it has nothing to set."""

    def check(self, batch_size: int) -> None:
        """Any batch size works."""

    def initial_size(self, n_dim: int) -> int:
        """Enough points to see a quadratic's scale in every coordinate."""
        return max(32 if n_dim > 1 else 16, 4 * n_dim)

    def fit(
        self, observations: Observations, prior: Prior, previous: AutoFit | Blind | None, rng: np.random.Generator
    ) -> AutoFit | Blind:
        """Audit the last batch, then learn from it."""
        if not np.isfinite(observations.log_values).any():
            return Blind(observations)
        if isinstance(previous, Blind):
            previous = None
        measure = prior.measure
        log_measure = measure.log_pdf(observations.u)
        log_posterior = observations.log_values + log_measure
        known = None if previous is None or previous.lost else previous
        reference = Reference.of(known.population.u) if known else Reference.first(observations.u, log_posterior)
        rescue = previous is not None and previous.unhealthy
        model = LogModel.fit(observations, log_measure, reference, known.model if known else None, rescue=rescue)
        population = temper(model, measure, N_PARTICLES, rng)
        found = estimate(model, measure, population.u, N_DRAWS, rng)
        audits, explored = self._audits(observations, measure, previous)
        trail = previous.trail if previous else ()
        sd = self._sd(found, audits, trail)
        explorer = Explorer.fit(observations.u, log_posterior, previous.explorer if previous else None)
        return AutoFit(
            model,
            measure,
            observations,
            population,
            found,
            explorer,
            audits,
            (*trail, (found.log_mean, sd)),
            explored,
            int(rng.integers(2**31)),
        )

    def _audits(
        self, observations: Observations, measure: GaussianMixture, previous: AutoFit | None
    ) -> tuple[tuple[Audit, ...], int]:
        """Audits so far, and exploration points since the last surprise."""
        if previous is None:
            return (), 0
        n_before = len(previous.observations)
        new = observations.since(n_before)
        last = audit(previous.model, measure, previous.population.u, n_before, new)
        explored = 0 if last.surprise else previous.explored + int(new.explores.sum())
        return (*previous.audits, last), explored

    def _sd(self, e: Estimate, audits: tuple[Audit, ...], trail: tuple[tuple[float, float], ...]) -> float:
        """Surrogate variance × calibration, share of the C/2 term, Monte Carlo error, drift, floor."""
        measured = calibration(audits)
        factor = float(np.clip(measured, 1.0, 25.0)) if np.isfinite(measured) else 4.0
        drift = abs(e.log_mean - trail[-1][0]) if trail else 0.0
        parts = factor * e.surrogate_var, (JENSEN * e.jensen) ** 2, (1.2 * e.monte_carlo) ** 2, (0.5 * drift) ** 2
        return float(np.sqrt(sum(parts) + 0.005**2))

    def select(self, fitted: AutoFit | Blind, batch_size: int, rng: np.random.Generator, *, cost_ratio: float) -> Batch:
        """Choose a batch: most integrate the posterior, some explore."""
        if isinstance(fitted, Blind):
            return Batch(spread_points(fitted.observations.u, batch_size, rng), explores=True)
        share = EXPLORING_ONLY if fitted.only_exploration_missing else EXPLORING
        n_explore = int(np.floor(share * batch_size + rng.random()))  # right on average, for small batches too
        points = integrate_batch(fitted, batch_size - n_explore, rng)
        found, n_open = explore(fitted.explorer, fitted.model.reference, fitted.population.u, points, n_explore, rng)
        explores = np.repeat([False, True], [len(points), len(found)])
        return Batch(np.concatenate([points, found]), explores=explores, info={"open_searches": n_open})


def integrate_batch(fitted: AutoFit, n: int, rng: np.random.Generator) -> FloatArray:
    """n points that integrate the surrogate's leading uncertainties like its posterior does: (n, d)."""
    points, weights = selection_measure(fitted, rng)
    if n < 3:
        return points[rng.choice(len(points), n, replace=False, p=weights)]
    order = rng.permutation(len(points))  # the tree groups neighbours: none should be alike
    points, weights = points[order], weights[order]
    p = fitted.model.gp.predict(fitted.model.reference.whiten(points))
    features = nystrom_features(fitted.model.gp, p, n - 1, max(200, 3 * n), rng, weights=weights, randomised=False)
    index = recombine(features.values, weights).index
    spare = np.setdiff1d(np.arange(len(points)), index)
    short = max(n - len(index), 0)
    extra = rng.choice(spare, short, replace=False, p=weights[spare] / weights[spare].sum())
    return points[np.concatenate([index, extra])[:n]]


def selection_measure(fitted: AutoFit, rng: np.random.Generator, n_broad: int = 1500) -> tuple[FloatArray, FloatArray]:
    """Posterior samples, and a broadened copy of them weighted by an optimistic density.

    The second part looks where the posterior would be if the surrogate were too low there.

    Returns
    -------
    points : (N, d) array
    weights : (N,) array, sum to one
    """
    model, measure, beta, inner = fitted.model, fitted.measure, fitted.population.beta, fitted.population.u
    root = Reference.of(inner).root
    size = rng.choice([0.3, 0.7, 1.2], size=(n_broad, 1))
    outer = inner[rng.integers(len(inner), size=n_broad)] + size * (
        rng.standard_normal((n_broad, model.n_dim)) @ root.T
    )
    mean_inner = model.predict(inner)[0]
    mean, sd = model.predict(outer)
    typical = np.median(beta * mean_inner + measure.log_pdf(inner))
    optimistic = beta * (mean + np.minimum(sd, 3.0)) + measure.log_pdf(outer)
    broad = np.exp(np.minimum(optimistic - typical, 0.0))
    weights = np.concatenate([np.full(len(inner), (1.0 - TAIL) / len(inner)), TAIL * broad / broad.sum()])
    keep = weights > 1e-12
    return np.concatenate([inner, outer])[keep], weights[keep] / weights[keep].sum()
