"""The default engine: a log-surrogate that follows the posterior, batches by recombination, audited errors."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from basq.auto.audit import AGREES, audit, calibration
from basq.auto.batch import cell_batch, share_of
from basq.auto.cells import Cell, Total, allocate, first_plan, labels, plan_cells
from basq.auto.error import standard_deviation, target, unseen
from basq.auto.exploration import Bulk, Explorer, spread_points
from basq.auto.modes import Suspect, bulks, explore, find_suspect, proves_valley, still_climbing
from basq.auto.scouts import Scout
from basq.errors import InputError, counted
from basq.method import Audit, Batch, Posterior
from basq.numerics.gaussians import Measure
from basq.observations import Observations
from basq.posterior.sampled import SampledPosterior
from basq.prior import Prior
from basq.types import FloatArray

EXPLORING = 0.125
"""Share of a batch that explores."""
EXPLORING_ONLY = 0.875
"""The same when nothing but exploration is left to do."""
GENEROUS = 0.1
"""Standard deviation of log Z below which nothing but exploration is left to do, whatever the user's target."""
PATIENCE = 2.0
"""Quotas of exploration points after which signs of a second mode are no reason to go on."""
ABYSS = 1e12
"""Nats below the best that count as zero likelihood: a stand-in for −inf, which no process could follow."""


def quota(n_dim: int) -> float:
    """Exploration points without a surprise that make "no other mode" believable."""
    return 16.0 + 2.0 * n_dim


def without_abyss(observations: Observations) -> Observations:
    """Replace log-likelihoods that only stand for zero by −inf."""
    values = observations.log_values
    deep = values < values.max() - ABYSS
    if not deep.any():
        return observations
    return replace(observations, log_likelihood=np.where(deep, -np.inf, observations.log_likelihood))


@dataclass(frozen=True)
class CellDensity:
    """Log posterior density of all cells in standard space, (m, d) -> (m,); a class, so that it can be pickled."""

    cells: tuple[Cell, ...]
    measure: Measure
    log_z: float

    def __call__(self, u: FloatArray) -> FloatArray:
        out = self.measure.log_pdf(u) - self.log_z
        label = labels([c.gate for c in self.cells], u)
        for k, cell in enumerate(self.cells):
            mine = label == k
            if mine.any():
                out[mine] += cell.model.integrand(u[mine]).expected + cell.model.scale.top
        return out


@dataclass(frozen=True)
class CellBand:
    """What the surrogates of all cells believe about the log-likelihood, relative to the measure."""

    cells: tuple[Cell, ...]

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m); −inf where zero likelihood is expected."""
        out = np.empty((3, len(u)))
        label = labels([c.gate for c in self.cells], u)
        for k, cell in enumerate(self.cells):
            mine = label == k
            if mine.any():
                mean, sd = cell.model.predict(u[mine])
                band = np.stack([mean - 2.0 * sd, mean, mean + 2.0 * sd])
                out[:, mine] = np.where(cell.model.feasibility(u[mine]) < 0.5, -np.inf, band)
        return out


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
    """The engine's state after a batch.

    Attributes
    ----------
    cells : tuple of Cell
    total : Total
        Evidence of all of them.
    measure : Measure
        The prior.
    observations : Observations
    explorer : Explorer
    audits : tuple of Audit
    trail : tuple of (float, float)
        log Z and its standard deviation after every batch, this one last.
    explored : int
        Exploration points since the last surprise.
    climbing : int
        Searches of the last batch that are still on their way up.
    tested : frozenset of int
        Observations whose valley has been looked for.
    seed : int
        Of the posterior's sampling.
    """

    cells: tuple[Cell, ...]
    total: Total
    measure: Measure
    observations: Observations
    explorer: Explorer
    audits: tuple[Audit, ...]
    trail: tuple[tuple[float, float], ...]
    explored: int
    climbing: int
    tested: frozenset[int]
    seed: int

    @property
    def n_dim(self) -> int:
        return self.observations.u.shape[1]

    @property
    def log_evidence(self) -> float:
        return self.trail[-1][0]

    @property
    def log_evidence_std(self) -> float:
        return float(np.hypot(self.trail[-1][1], self.unseen))

    @property
    def noise(self) -> float | None:
        """Estimated standard deviation of the values whose noise is not known, of the cell with the most evidence."""
        return self.cells[int(np.argmax(self.total.shares))].model.noise

    @property
    def n_modes(self) -> int:
        """Modes found so far."""
        return sum(cell.n_modes for cell in self.cells)

    @property
    def unseen(self) -> float:
        """Standard deviation of log Z for modes not found yet."""
        return unseen(self.n_modes, int(self.observations.explores.sum()), self.n_dim)

    def doubts(self, dlogz: float) -> list[str]:
        """Reasons not to believe the answer yet, exploration aside."""
        out = []
        if not all(c.resolved for c, share in zip(self.cells, self.total.shares, strict=True) if share > 0.01):
            out.append("the surrogate does not resolve the posterior yet")
        if not self.trail[-1][1] <= dlogz:
            out.append(f"sd of log Z {self.log_evidence_std:.3g} is above {target(self.total, dlogz)}")
        if self.total.effective < 200:
            out.append("the evidence integral is uncertain")
        if not self.audits:
            return [*out, "no batch has tested the surrogate yet"]
        last, factor = self.audits[-1], calibration(self.audits)
        if not factor <= AGREES or (last.n_inside and not last.z2 <= 8.0):
            out.append(f"the last batches were {np.sqrt(factor):.1f} sd off their prediction")
        if last.n_inside and not last.rms <= 1.5:
            out.append(f"the last batch was {last.rms:.1f} nats off its prediction")
        (before, sd_before), (now, sd) = self.trail[-2:]
        if not abs(now - before) <= min(0.3, 2.5 * np.hypot(sd, sd_before)):
            out.append(f"log Z moved by {now - before:+.3g} with the last batch")
        return out

    def unexplored(self, dlogz: float) -> list[str]:
        """Reasons to look further for other modes."""
        out = []
        if self.n_modes > 1 and not self.log_evidence_std <= dlogz:
            out.append(f"{self.n_modes} modes were found, and a further one would add sd {self.unseen:.2g}")
        if self.explored < quota(self.n_dim):
            n = f"only {counted(self.explored, 'exploration point')}" if self.explored else "no exploration point"
            out.append(f"{n} since the last surprise")
        # a ridge can look like many modes for ever; where there are several, it hardly is one
        patient = self.n_modes > 1 or self.explored < PATIENCE * quota(self.n_dim)
        if self.scout.n_outlying and patient:
            out.append(f"{counted(self.scout.n_outlying, 'observation suggests', 'observations suggest')} another mode")
        if self.climbing and patient:
            out.append(f"{counted(self.climbing, 'search for a mode is', 'searches for modes are')} still climbing")
        return out

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Whether all audits agree that the error is below dlogz."""
        doubts = self.doubts(dlogz) + self.unexplored(dlogz)
        if doubts:
            return False, "; ".join(doubts)
        return True, (
            f"sd of log Z {self.log_evidence_std:.3g} (Monte Carlo {self.total.monte_carlo:.1g}) is below "
            f"dlogz = {dlogz:g}, the last batches agree with their prediction, and {self.explored} exploration points "
            "found nothing new"
        )

    @property
    def log_surrogate(self) -> CellBand:
        """What is believed about the log-likelihood."""
        return CellBand(self.cells)

    @cached_property
    def bulks(self) -> list[Bulk]:
        """The known posterior, cell by cell."""
        return bulks(self.cells)

    @cached_property
    def suspect(self) -> Suspect | None:
        """What the next batch looks at first for another mode, and is then judged by."""
        return find_suspect(self.cells, self.explorer, self.tested, self.bulks)

    @cached_property
    def scout(self) -> Scout:
        """Where the observations that no cell explains are heading."""
        rng = np.random.default_rng(self.seed)
        return Scout.send(
            self.cells, self.explorer, self.observations, self.measure, rng, known=self.bulks, tested=self.tested
        )

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior in standard space."""
        parts = [(c.estimate, share) for c, share in zip(self.cells, self.total.shares, strict=True) if share > 0.0]
        u = np.concatenate([e.u for e, _ in parts])
        log_weights = np.concatenate([e.log_weights + np.log(share) for e, share in parts])
        log_density = CellDensity(self.cells, self.measure, self.total.log_mean)
        # the draws are nearly right already: the moves only part those that were drawn twice
        return SampledPosterior.build(log_density, u, log_weights, np.random.default_rng(self.seed), n_moves=10)


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
        observations = without_abyss(observations)
        measure: Measure = prior.measure
        log_posterior = observations.log_values + measure.log_pdf(observations.u)
        last = None if isinstance(previous, Blind) else previous
        kinds = (None, prior.flat) if prior.flat.any() else (None,)
        news = News.first() if last is None else News.of(last, observations, log_posterior)
        if last is None:
            plans = first_plan(prior.n_dim)
        else:
            plans = plan_cells(last.cells, observations, news.seed, rescue=news.audits[-1].z2 > 6.0, kinds=kinds)
        cells = tuple(Cell.learn(plans, k, observations, measure, rng, kinds) for k in range(len(plans)))
        total = Total.of(cells)
        trail = last.trail if last else ()
        return AutoFit(
            cells,
            total,
            measure,
            observations,
            Explorer.fit(observations.u, log_posterior, last.explorer if last else None),
            news.audits,
            (*trail, (total.log_mean, standard_deviation(total, news.audits, trail))),
            news.explored,
            news.climbing,
            news.tested,
            int(rng.integers(2**31)),
        )

    def select(
        self,
        fitted: AutoFit | Blind,
        batch_size: int,
        rng: np.random.Generator,
        *,
        cost_ratio: float,
        taken: FloatArray,
    ) -> Batch:
        """Choose a batch: most integrate the posterior, some explore."""
        if isinstance(fitted, Blind):
            return Batch(spread_points(np.concatenate([fitted.observations.u, taken]), batch_size, rng), explores=True)
        settled = not fitted.doubts(GENEROUS)
        share = EXPLORING_ONLY if settled and fitted.unexplored(GENEROUS) else EXPLORING
        n_explore = share_of(batch_size, share, rng)
        counts = allocate(fitted.cells, fitted.total.shares, batch_size - n_explore)
        cells = [cell.expecting(taken) for cell in fitted.cells]
        parts = [cell_batch(c, n, len(cells), rng) for c, n in zip(cells, counts, strict=True)]
        points = np.concatenate(parts)
        found = explore(
            fitted.explorer,
            np.concatenate([points, taken]),
            n_explore,
            rng,
            known=fitted.bulks,
            suspect=fitted.suspect,
            scout=fitted.scout,
        )
        return Batch(np.concatenate([points, found]), explores=np.repeat([False, True], [len(points), len(found)]))


@dataclass(frozen=True)
class News:
    """What the last batch says before it is learned from; attributes as in ``AutoFit``.

    Attributes
    ----------
    seed : (d,) array or None
        A point behind a valley that the batch has proven.
    """

    audits: tuple[Audit, ...]
    explored: int
    climbing: int
    tested: frozenset[int]
    seed: FloatArray | None

    @classmethod
    def first(cls) -> "News":
        return cls((), 0, 0, frozenset(), None)

    @classmethod
    def of(cls, last: AutoFit, observations: Observations, log_posterior: FloatArray) -> "News":
        """Compare the new observations with the state that chose them."""
        n_before = len(last.observations)
        new, levels = observations.since(n_before), log_posterior[n_before:]
        found = audit(last.cells, last.total.shares, last.measure, n_before, new)
        explored = 0 if found.surprise else last.explored + int(new.explores.sum())
        climbing = still_climbing(last.cells, last.explorer, new.u[new.explores], levels[new.explores])
        tested, seed = last.tested, None
        if last.suspect is not None:
            proven = proves_valley(last.suspect.midpoint, log_posterior[last.suspect.index], new.u, levels)
            if proven is not None:
                tested = tested | {last.suspect.index}
                seed = observations.u[last.suspect.index] if proven else None
        for index, probe in zip(last.scout.index, last.scout.probes, strict=True):
            if proves_valley(probe, log_posterior[index], new.u, levels) is False:
                tested = tested | {int(index)}
        return cls((*last.audits, found), explored, climbing, tested, seed)
