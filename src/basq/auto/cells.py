"""Cells: one surrogate per separated mode.

One process with one whitening cannot describe several narrow modes; one process per mode, each with its own trend, can.
Space is divided by gates, each about the posterior samples of its cell. Each cell is modelled, sampled and integrated
over its own part of the prior, and Z is the sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import logsumexp, ndtr

from basq.auto.chart import Chart, bent, straight
from basq.auto.gates import CellMeasure, Halves, halves, labels
from basq.auto.importance import Estimate, estimate
from basq.auto.log_model import LogModel
from basq.auto.seen import Seen
from basq.auto.settings import Cells, Charts, Settings, Values, quadratic
from basq.auto.smc import Population, temper
from basq.auto.values import Reach
from basq.gp.kernels.sheared import places
from basq.numerics.gaussians import Measure
from basq.numerics.stopwatch import Stopwatch
from basq.observations import Observations
from basq.types import BoolArray, FloatArray

Kinds = Sequence[BoolArray | None]
"""Kinds of coordinates that the data choose from (see ``Chart.flat``)."""

Outline = tuple[tuple[Chart, float], tuple[Chart, float]]
"""Gaussians to extrapolate a cell with, and their peaks: of the log-posterior, and of the log-likelihood in Φ(u).

A normal prior's parameters are linear in standard space u, a uniform one's in its probabilities Φ(u), where the prior
is flat.
"""


@dataclass(frozen=True)
class Plan:
    """A cell to be modelled.

    Attributes
    ----------
    gate : Chart
    charts : tuple of Chart
        Ways to whiten the surrogate, of which the data choose one; none reads them off the data.
    warm : LogModel or None
        Hyperparameters to start from.
    population : Population or None
        Posterior samples of the last model, where this cell had one.
    rescue : bool
        Also try other hyperparameters.
    n_compared : int
        Observations when surrogates were last compared.
    compare : bool
        Whether they are compared again.
    """

    gate: Chart
    charts: tuple[Chart, ...]
    warm: LogModel | None
    population: Population | None
    rescue: bool
    n_compared: int = 0
    compare: bool = True


@dataclass(frozen=True)
class Cell:
    """A part of standard space with its own surrogate.

    Attributes
    ----------
    gate : Chart
    measure : Measure
        The prior inside.
    model : LogModel
    population : Population
    estimate : Estimate
    halves : tuple of Halves
        Ways in which the samples fall into two parts; none while the surrogate is not resolved.
    outline : Outline or None
        To extrapolate with; None while the surrogate is not resolved.
    n_inside : int
        Observations inside.
    n_compared : int
        As many there were when surrogates were last compared.
    best : (d,) array
        Where the log-posterior is highest of those seen,
    climbing : bool
        and whether it rose with the last batch, by some of the headroom or more.
    """

    gate: Chart
    measure: Measure
    model: LogModel
    population: Population
    estimate: Estimate
    halves: tuple[Halves, ...]
    outline: Outline | None
    n_inside: int
    n_compared: int
    best: FloatArray
    climbing: bool

    @property
    def resolved(self) -> bool:
        """Whether the surrogate can be sampled at full temperature."""
        return self.population.beta >= 1.0

    def expecting(self, u: FloatArray) -> "Cell":
        """Return this cell as if the points u (m, d) had been evaluated and found as predicted.

        The mean stays and the uncertainty near them goes: a variance needs no values.
        """
        inside = u[self.measure.inside(u)] if isinstance(self.measure, CellMeasure) else u
        return replace(self, model=self.model.expecting(inside)) if len(inside) else self

    def split(self, border: float) -> tuple[Chart, Chart] | None:
        """Two Gaussians, if the cell's samples fall into two parts with so empty a border between them; else None."""
        return next((h.parts for h in self.halves if h.border > border), None)

    def n_modes(self, border: float) -> int:
        """Modes that it describes: one, or two with so little between them."""
        return 2 if self.split(border) else 1

    @classmethod
    def learn(
        cls,
        plans: Sequence[Plan],
        k: int,
        *,
        seen: Seen,
        rng: np.random.Generator,
        settings: Settings,
        kinds: Kinds = (None,),
        clock: Stopwatch | None = None,
    ) -> "Cell":
        """Model, sample and integrate the k-th planned cell."""
        plan, gates, clock = plans[k], tuple(p.gate for p in plans), clock or Stopwatch()
        own, measure = seen.observations, seen.measure
        if len(plans) > 1:
            own = own.where(labels(gates, own.u) == k)
            measure = CellMeasure(measure, gates, k, own.u, settings.cells.draws)
        with clock("fit"):
            models, n_compared = _models(plan, own, measure.log_pdf(own.u), kinds, settings)
        with clock("integrate"):
            # what could be sampled before should not be lost by a surrogate that only predicts a little better
            before = plan.population is not None and plan.population.beta >= 1.0
            for model in models[: settings.cells.tries if before else 1]:
                population, found = _integrated(model, measure, rng, settings)
                resolved = population.beta >= 1.0
                if resolved:
                    break
            parts = tuple(halves(population.u, settings.cells)) if resolved else ()
            outline = _outline(model, measure, population.u, settings.chart) if resolved else None
        level = own.log_values + measure.log_pdf(own.u)
        earlier = level[own.batch < own.batch.max()]
        rise = level.max() - earlier.max(initial=-np.inf)
        climbing = bool(rise > settings.batch.climb_rise * settings.values.room(own.u.shape[1]))
        best = own.u[int(np.argmax(level))]
        return cls(plan.gate, measure, model, population, found, parts, outline, len(own), n_compared, best, climbing)


def _models(
    plan: Plan, own: Observations, log_measure: FloatArray, kinds: Kinds, settings: Settings
) -> tuple[list[LogModel], int]:
    """Surrogates of a cell, the one that predicts best first; and its observations when they were last compared."""
    charts: Sequence[Chart] = plan.charts
    if not settings.chart.follows:
        charts = [Chart.standard(own.u.shape[1])]
    elif not charts:
        log_posterior = own.log_values + log_measure
        charts = [Chart.first(own.u, log_posterior, settings.chart, kind) for kind in kinds]
    bends, least = _bends(plan, own, log_measure, settings.values)
    fit = partial(LogModel.fit, own, log_measure, previous=plan.warm, settings=settings, rescue=plan.rescue)
    bent = plan.warm is not None and plan.warm.sheared
    models = [fit(chart=chart, bend=bend, shear=bent and not plan.compare) for chart in charts for bend in bends]
    best = min(models, key=lambda m: -m.held_out - _custom(m, settings))
    own_kernel, n_dim = settings.kernel, best.n_dim
    wanted = own_kernel.sheared_from * quadratic(n_dim) + len(places(n_dim)[0])
    enough = best.reach.filled and best.in_play.sum() >= wanted
    if plan.compare and enough and n_dim > 1:
        models.append(fit(chart=best.chart, bend=best.scale.bend, shear=True))
    if plan.warm is not None and plan.warm.scale.bend >= least:
        models.append(plan.warm.again(own, log_measure, settings))
    compared = len(own) if len(charts) * len(bends) > 1 else plan.n_compared
    return sorted(models, key=lambda m: -m.held_out - _custom(m, settings)), compared


def _bends(plan: Plan, own: Observations, log_measure: FloatArray, settings: Values) -> tuple[tuple[float, ...], float]:
    """Gaps from which values may be compressed, and the least that their noise allows."""
    finite, d = np.isfinite(own.log_values), own.u.shape[1]
    values, log_posterior = own.log_values[finite], (own.log_values + log_measure)[finite]
    gap = log_posterior.max() - log_posterior
    reach = Reach.of(values, gap, d, settings.window(d))
    noise = own.noise[finite][gap <= reach.reach]
    estimated = plan.warm.noise or 0.0 if plan.warm is not None else 0.0
    least = settings.noisy_bend * float(np.median(np.where(np.isnan(noise), estimated, noise))) ** 2
    if plan.warm is not None and reach.filled and not plan.compare and plan.warm.reach.filled:
        return (plan.warm.scale.bend if plan.warm.scale.bend >= least else np.inf,), least
    return reach.bends(settings, least), least


def _custom(model: LogModel, settings: Settings) -> float:
    """Nats that speak for a surrogate beforehand: for plain values, and for probabilities of flat parameters."""
    plain, flat = np.isinf(model.scale.bend), model.chart.flat is not None
    return settings.values.unbent * plain + settings.chart.natural * flat - model.n_bends


def _integrated(
    model: LogModel, measure: Measure, rng: np.random.Generator, settings: Settings
) -> tuple[Population, Estimate]:
    """Samples and evidence of a surrogate, in its own coordinates, where the posterior is least bent."""
    flat, model = model.chart.flat, model.straight
    within = straight(measure, flat)
    population = temper(model, within, settings.samples.particles, rng, settings.samples)
    error = settings.evidence.monte_carlo if population.beta >= 1.0 else np.inf
    found = estimate(model, within, population.u, rng, settings.evidence, error=error)
    return (
        replace(population, u=bent(population.u, flat), warmer=bent(population.warmer, flat)),
        replace(found, u=bent(found.u, flat), heavy=bent(found.heavy, flat)),
    )


def _outline(model: LogModel, measure: Measure, u: FloatArray, settings: Charts) -> Outline:
    """Gaussians beneath a surrogate's posterior at its samples u (n, d)."""
    log_l = model.predict_mean(u)
    return Chart.beneath(u, log_l + measure.log_pdf(u), settings), Chart.beneath(ndtr(u), log_l, settings)


@dataclass(frozen=True)
class Total:
    """The evidence of all cells together; attributes as in ``Estimate``, and each cell's share (k,).

    ``taken_off`` is what audits have taken off the C/2 correction.
    """

    log_mean: float
    jensen: float
    taken_off: float
    surrogate_var: float
    monte_carlo: float
    effective: float
    wall: float
    tamed: float
    shares: FloatArray

    @classmethod
    def of(cls, cells: Sequence[Cell], overcaution: float = 1.0) -> "Total":
        """Add up the cells; ``overcaution`` is the factor by which their variances are too large."""
        parts = [c.estimate for c in cells]
        log_means = np.array([e.log_mean for e in parts])
        total = float(logsumexp(log_means))
        w = np.exp(log_means - total)
        jensen = float(w @ [e.jensen for e in parts])
        taken_off = (1.0 - overcaution) * jensen
        return cls(
            total - taken_off,
            jensen - taken_off,
            taken_off,
            float(w**2 @ [e.surrogate_var for e in parts]),
            float(np.sqrt(w**2 @ [e.monte_carlo**2 for e in parts])),
            float(1.0 / (w**2 @ [1.0 / e.effective for e in parts])),
            float(w @ [e.wall for e in parts]),
            float(w @ [e.tamed for e in parts]),
            w,
        )


def allocate(cells: Sequence[Cell], shares: FloatArray, n: int, settings: Cells) -> list[int]:
    """Divide n points among the cells, by share times uncertainty; unresolved cells count fully."""
    spread = np.clip([np.sqrt(c.estimate.surrogate_var) for c in cells], *settings.needs)
    need = np.where([c.resolved for c in cells], np.maximum(shares, settings.least_need) * spread, 1.0)
    wanted = need / need.sum() * n
    out = np.floor(wanted).astype(int)
    for i in np.argsort(out - wanted, kind="stable")[: n - int(out.sum())]:
        out[i] += 1
    return out.tolist()
