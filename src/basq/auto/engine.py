"""The default engine: a log-surrogate that follows the posterior, batches by recombination, audited errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from basq.auto.audit import overcaution
from basq.auto.batch import cell_batch, share_of, unsure_batch
from basq.auto.blind import Blind
from basq.auto.cells import Cell, Kinds, Plan, Total, allocate
from basq.auto.density import CellBand, CellDensity
from basq.auto.error import fixed_terms, standard_deviation
from basq.auto.exploration import Explorer, spread_points
from basq.auto.folded import FoldedBand, FoldedMeasure, Symmetries, folded_images
from basq.auto.images import Mirror, images, n_apart
from basq.auto.modes import Leads, explore
from basq.auto.news import News
from basq.auto.partition import first_plan, plan_cells
from basq.auto.recognised import Knowledge, RecognisedFit
from basq.auto.seen import Seen
from basq.auto.settings import Settings
from basq.auto.turned import TurnedBand, TurnedImage
from basq.auto.verdict import Facts, converged, doubts, missing, unexplored
from basq.errors import InputError
from basq.method import Audit, Batch, Fit, LogSurrogate, Posterior
from basq.numerics.fold import Fold, apart
from basq.numerics.gaussians import Measure
from basq.numerics.stopwatch import Stopwatch
from basq.observations import Observations
from basq.posterior.folded import FoldedPosterior
from basq.posterior.sampled import SampledPosterior
from basq.posterior.turned import TurnedPosterior
from basq.prior import Prior
from basq.prior.periodic import Turn
from basq.types import FloatArray


@dataclass(frozen=True)
class AutoFit(Fit):
    """The engine's state after a batch.

    Attributes
    ----------
    cells : tuple of Cell
    total : Total
        Evidence of all of them.
    explorer : Explorer
    leads : Leads
        What may lead to another mode.
    facts : Facts
        What the verdict looks at.
    tested : frozenset of int
        Observations whose valley has been looked for.
    measure : Measure
        The prior.
    n_seen : int
        Observations that it has learned from.
    seed : int
        Of the posterior's sampling.
    settings : Settings
    seconds : mapping
        Where the time went, by stage.
    turn : Turn or None
        Of periodic parameters: cells, explorer and leads are over turned points.
    fold : Fold or None
        Of a symmetric likelihood: cells, explorer and leads are over the part that is kept.
    symmetries : Symmetries or None
        What is known about them.
    knowledge : Knowledge or None
        Of parameters whose effect has a closed form.
    """

    cells: tuple[Cell, ...]
    total: Total
    explorer: Explorer
    leads: Leads
    facts: Facts
    tested: frozenset[int]
    measure: Measure
    n_seen: int
    seed: int
    settings: Settings
    seconds: Mapping[str, float]
    turn: Turn | None = None
    fold: Fold | None = None
    symmetries: Symmetries | None = None
    knowledge: Knowledge | None = None

    plain_cached: ClassVar = ("posterior",)

    @property
    def log_evidence(self) -> float:
        return self.facts.log_evidence

    @property
    def log_evidence_std(self) -> float:
        return self.facts.log_evidence_std

    @property
    def audits(self) -> tuple[Audit, ...]:
        return self.facts.audits

    @property
    def noise(self) -> float | None:
        """Estimated standard deviation of the values whose noise is not known, of the cell with the most evidence."""
        return self.cells[int(np.argmax(self.total.shares))].model.noise

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Whether all audits agree that the error is below dlogz."""
        done, why = converged(self.facts, dlogz, self.settings)
        return done, "; ".join([why, *self.notes])

    @property
    def notes(self) -> tuple[str, ...]:
        known = () if self.knowledge is None else self.knowledge.notes
        return known if self.fold is None or self.symmetries is None else (*known, self.symmetries.note(self.fold))

    @property
    def log_surrogate(self) -> LogSurrogate:
        """What is believed about the log-likelihood."""
        found: LogSurrogate = CellBand(self.cells)
        if self.fold is not None:
            return FoldedBand(found, self.fold)
        return found if self.turn is None else TurnedBand(found, self.turn)

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior in standard space."""
        parts = [(c.estimate, share) for c, share in zip(self.cells, self.total.shares, strict=True) if share > 0.0]
        u = np.concatenate([e.u for e, _ in parts])
        log_weights = np.concatenate([e.log_weights + np.log(share) for e, share in parts])
        log_density = CellDensity(self.cells, self.measure, self.total.log_mean)
        # the draws are nearly right already: the moves only part those that were drawn twice
        rng, n_moves = np.random.default_rng(self.seed), self.settings.samples.posterior_moves
        found = SampledPosterior.build(log_density, u, log_weights, rng, n_moves=n_moves)
        if self.fold is not None:
            return FoldedPosterior.of(found, self.fold)
        return found if self.turn is None else TurnedPosterior.of(found, self.turn)

    def turned(self) -> Turn | None:
        """Where periodic parameters should be cut, unless they are cut well."""
        if self.turn is None:
            return None
        found = self.posterior
        assert isinstance(found, SampledPosterior)
        return self.turn.better(found.points, np.exp(found.log_weights))


@dataclass(frozen=True)
class Auto:
    """The default engine: ``basq.infer(..., method=basq.Auto())``, or no method at all.

    Attributes
    ----------
    settings : Settings
        All its tuned numbers; ``print(basq.Auto())`` shows them.
    recognise : bool
        Whether noise scales among the parameters are looked for, by a few further calls, and integrated out of every
        call.

    Examples
    --------
    >>> import basq
    >>> basq.Auto()
    Auto()
    >>> basq.Auto(basq.auto.Settings().changed({"cells.most": 1}))
    Auto(Settings().changed({'cells.most': 1}))
    >>> basq.Auto(recognise=False)
    Auto(recognise=False)
    """

    settings: Settings = field(default_factory=Settings)
    recognise: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Settings):
            raise InputError(f"Auto({self.settings!r}): give basq.auto.Settings(), or nothing.")

    def __repr__(self) -> str:
        other = self.settings.differences()
        options = [f"Settings().changed({other!r})"] if other else []
        return f"Auto({', '.join(options + ([] if self.recognise else ['recognise=False']))})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.settings}"

    def check(self, batch_size: int) -> None:
        """Any batch size works."""

    def initial_size(self, n_dim: int) -> int:
        """Points of the first design."""
        return self.settings.start.size(n_dim)

    def fit(
        self,
        observations: Observations,
        prior: Prior,
        previous: AutoFit | Blind | RecognisedFit | None,
        rng: np.random.Generator,
    ) -> AutoFit | Blind | RecognisedFit:
        """Learn from everything seen, without the parameters that are integrated out of every call."""
        known = None
        if self.recognise:
            before = previous.knowledge if previous is not None else None
            known = Knowledge.of(observations, prior, before, self.settings.recognition, self.initial_size)
        if known is None or known.reduction is None:
            last = previous if isinstance(previous, AutoFit) else None
            return replace(self._learn(observations, prior, last, rng), knowledge=known)
        fitted, n = None, 0
        if isinstance(previous, RecognisedFit) and previous.reduction.form == known.reduction.form:
            fitted, n = previous.inner, len(previous.reduction.points)
        if fitted is None or n < len(known.reduction.points):
            fitted = self._learn(known.reduction.observations, known.rest, fitted, rng)
        return RecognisedFit(fitted, known, int(rng.integers(2**31)), self.settings)

    def _learn(
        self, observations: Observations, prior: Prior, previous: Fit | None, rng: np.random.Generator
    ) -> AutoFit | Blind:
        """Learn where periodic parameters are cut as before; anew, if the posterior turns out to lie there."""
        if not np.isfinite(observations.log_values).any():
            return Blind(observations.u)
        last, turn = previous if isinstance(previous, AutoFit) else None, None
        best = observations.u[np.argmax(observations.log_values)]
        if prior.periodic.any():
            turn = last.turn if last is not None else Turn.opposite(best, prior.periodic)
        symmetries = Symmetries.of(observations, prior, self.settings.exploration)
        fold = symmetries.fold(last.fold if last is not None else None, best)
        learn = partial(self._learn_at, observations=observations, prior=prior, rng=rng)
        if last is not None and fold is not last.fold:
            fitted = _anew(learn(turn, fold, last=None), last)
        else:
            fitted = learn(turn, fold, last=last)
        better = fitted.turned()
        if better is not None:
            fitted = _anew(learn(better, fold, last=None), fitted)
        return replace(fitted, symmetries=symmetries)

    def _learn_at(
        self,
        turn: Turn | None,
        fold: Fold | None,
        *,
        observations: Observations,
        prior: Prior,
        last: AutoFit | None,
        rng: np.random.Generator,
    ) -> AutoFit:
        """Audit the last batch, then learn from it: plan, cells, total, leads, facts for the verdict."""
        settings, clock = self.settings, Stopwatch()
        if turn is not None:
            observations = replace(observations, u=turn.of(observations.u))
        measure: Measure = prior.measure
        if fold is not None:
            observations = replace(observations, u=fold.of(observations.u))
            measure = FoldedMeasure(measure, fold)
        seen = Seen.of(observations, measure, settings.start.abyss)
        kinds = (None, prior.flat) if settings.chart.flat and prior.flat.any() else (None,)
        with clock("fit"):
            news = News.of(last, seen) if last else News.first()
            plans = _plans(last, news, seen, kinds, settings)
        learn = partial(Cell.learn, plans, seen=seen, rng=rng, settings=settings, kinds=kinds, clock=clock)
        cells = tuple(learn(k) for k in range(len(plans)))
        total, seed = Total.of(cells, overcaution(news.audits, settings.audit)), int(rng.integers(2**31))
        with clock("search"):
            explorer = Explorer.fit(seen.u, seen.log_posterior, last.explorer if last else None, settings)
            own = settings.exploration
            plain = images(prior, int(own.images * own.enough(prior.n_dim)))
            every: tuple[Mirror, ...] = plain
            if fold is not None:
                every = folded_images(plain, fold)
            elif turn is not None:
                every = tuple(TurnedImage(image, turn) for image in plain)
            draw = np.random.default_rng(seed)
            leads = Leads.of(cells, explorer, seen, news.tested, draw, settings, images=every)
        n_explored = int(observations.explores.sum())
        facts = _facts(cells, total, news, leads, last, n_explored=n_explored, settings=settings)
        return AutoFit(
            cells, total, explorer, leads, facts, news.tested, measure, len(seen), seed, settings, clock.seconds,
            turn, fold,
        )  # fmt: skip

    def select(
        self,
        fitted: AutoFit | Blind | RecognisedFit,
        batch_size: int,
        rng: np.random.Generator,
        *,
        cost_ratio: float,
        taken: FloatArray,
    ) -> Batch:
        """Choose a batch: what is wanted to recognise noise scales first, then what the engine chooses."""
        if isinstance(fitted, RecognisedFit):
            return fitted.select(batch_size, rng, taken, self._choose)
        due = fitted.knowledge.due(taken)[:batch_size] if fitted.knowledge is not None else taken[:0]
        if len(due) == batch_size:
            return Batch(due)
        batch = self._choose(fitted, batch_size - len(due), rng, taken=np.concatenate([taken, due]))
        explores = np.broadcast_to(batch.explores, len(batch.u))
        return Batch(
            np.concatenate([due, batch.u]), explores=np.concatenate([np.zeros(len(due), dtype=bool), explores])
        )

    def _choose(self, fitted: Fit, batch_size: int, rng: np.random.Generator, *, taken: FloatArray) -> Batch:
        """Choose a batch: most integrate the posterior, some explore."""
        assert isinstance(fitted, AutoFit | Blind)
        settings = self.settings
        own = settings.exploration
        if isinstance(fitted, Blind):
            everything = np.concatenate([fitted.u, taken])
            return Batch(spread_points(everything, batch_size, rng, own), explores=True)
        due = fitted.symmetries.due(taken)[:batch_size] if fitted.symmetries is not None else taken[:0]
        if len(due):
            rest = self._choose(replace(fitted, symmetries=None), batch_size - len(due), rng, taken=taken)
            first = np.ones(len(due), dtype=bool), np.broadcast_to(rest.explores, len(rest.u))
            return Batch(np.concatenate([due, rest.u]), explores=np.concatenate(first))
        turn = fitted.turn
        taken = taken if turn is None else turn.of(taken)
        taken = taken if fitted.fold is None else fitted.fold.of(taken)
        settled = not doubts(fitted.facts, own.generous, settings)
        only = settled and unexplored(fitted.facts, own.generous, settings)
        n_explore = share_of(batch_size, own.share_only if only else own.share, rng)
        counts = allocate(fitted.cells, fitted.total.shares, batch_size - n_explore, settings.cells)
        cells = [cell.expecting(taken) for cell in fitted.cells]
        parts = [cell_batch(c, n, len(cells), rng, settings.batch) for c, n in zip(cells, counts, strict=True)]
        points = np.concatenate(parts)
        unsure = share_of(n_explore, own.unsure if only else 0.0, rng)
        ends = apart(fitted.leads.ends, taken)[: unsure // 2]
        unsure -= len(ends)
        shares = allocate(fitted.cells, fitted.total.shares, unsure, settings.cells)
        far = [
            unsure_batch(c.expecting(points), n, rng, own.optimism, settings.samples)
            for c, n in zip(cells, shares, strict=True) if n
        ]  # fmt: skip
        points = np.concatenate([points, ends, *far])
        left = n_explore - unsure - len(ends)
        found = explore(fitted.explorer, np.concatenate([points, taken]), left, rng, fitted.leads, settings)
        every = np.concatenate([points, found])
        explores = np.arange(len(every)) >= batch_size - n_explore
        return Batch(every if turn is None else turn.back(every), explores=explores)


def _anew(fitted: AutoFit, last: AutoFit) -> AutoFit:
    """What was learned elsewhere: what was said about earlier batches still holds, and what they say of the error."""
    kept = {name: getattr(last.facts, name) for name in ("before", "audits", "explored", "climbing", "unseen")}
    now = fitted.facts.now[0], max(fitted.facts.now[1], last.facts.now[1])
    return replace(fitted, facts=replace(fitted.facts, now=now, **kept))


def _plans(last: AutoFit | None, news: News, seen: Seen, kinds: Kinds, settings: Settings) -> list[Plan]:
    """The cells to be modelled."""
    if last is None:
        return first_plan(seen.n_dim)
    rescue = news.audits[-1].z2 > settings.kernel.rescue
    return plan_cells(last.cells, seen.observations, news.foothold, settings, rescue=rescue, kinds=kinds)


def _facts(
    cells: tuple[Cell, ...],
    total: Total,
    news: News,
    leads: Leads,
    last: AutoFit | None,
    *,
    n_explored: int,
    settings: Settings,
) -> Facts:
    """What the verdict looks at."""
    before = last.facts.now if last else None
    n_dim = cells[0].model.n_dim
    # Z is no larger than the largest likelihood; what is promised beyond is an error
    log_z = min(total.log_mean, max(c.model.scale.top for c in cells) + settings.values.room(n_dim))
    sd = float(np.hypot(standard_deviation(total, news.audits, before, settings), total.log_mean - log_z))
    twins = len(cells) - n_apart(leads.images, [c.best for c in cells], leads.bulks)
    n_modes = sum(cell.n_modes(settings.cells.thin_border) for cell in cells) - twins
    matters = total.shares > settings.verdict.negligible
    facts = Facts(
        n_dim=n_dim,
        now=(log_z, sd),
        before=before,
        monte_carlo=total.monte_carlo,
        least=float(np.hypot(*fixed_terms(total, settings.error))),
        effective=total.effective,
        resolved=all(c.resolved for c, matter in zip(cells, matters, strict=True) if matter),
        audits=news.audits,
        n_modes=n_modes,
        unseen=0.0,
        explored=news.explored,
        climbing=news.climbing,
        n_outlying=leads.scout.n_outlying,
    )
    return replace(facts, unseen=missing(facts, n_explored, settings))
