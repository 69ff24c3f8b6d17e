"""Cells: one surrogate per separated mode.

One process with one whitening cannot describe several narrow modes; one process per mode, each with its own trend, can.
Space is divided by Gaussians (gates), each about the posterior samples of its cell: a point belongs to the gate under
which it is most likely. Each cell is modelled, sampled and integrated over its own part of the prior, and Z is the sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, ndtr

from basq.auto.chart import Reference, StraightMeasure, bent
from basq.auto.importance import Estimate, estimate
from basq.auto.log_model import LogModel
from basq.auto.smc import Population, temper
from basq.numerics.gaussians import Measure
from basq.observations import Observations
from basq.types import BoolArray, FloatArray, IntArray

N_PARTICLES, MAX_DRAWS = 1000, 20_000
MONTE_CARLO = 0.01
"""Nats: error of the importance sampling that is reached by more draws, once little else is uncertain."""
MAX_CELLS = 8
EMPTY_BORDER = 3.0
"""Margin of log-densities that nearly all samples must keep for a population to count as separated."""
THIN_BORDER = 1.0
"""The same for two modes that one surrogate describes, but that are counted as two."""
APART = 4.0
"""Standard deviations between the centres of two separated parts."""
COMPARED_AGAIN = 1.25
"""Growth of the number of observations after which kinds of coordinates are compared again."""

NATURAL = 10.0
"""Nats by which standard space has to predict better than the probabilities of flat parameters."""

Kinds = Sequence[BoolArray | None]


def n_draws(n_dim: int) -> int:
    """Draws at which the integrand is computed in full: the more dimensions, the fewer of them carry weight."""
    return 500 * max(n_dim, 8)


def gate_scores(gates: Sequence[Reference], u: FloatArray) -> FloatArray:
    """Log-density of points u (n, d) under every gate, up to a constant: (n, k)."""
    columns = []
    for gate in gates:
        z = gate.whiten(u)
        columns.append(-0.5 * (z * z).sum(axis=1) - np.log(np.diag(gate.root)).sum())
    return np.stack(columns, axis=1)


def labels(gates: Sequence[Reference], u: FloatArray) -> IntArray:
    """Which cell each point belongs to: (n,)."""
    return gate_scores(gates, u).argmax(axis=1)


@dataclass(frozen=True)
class CellMeasure:
    """The prior measure inside one cell (not normalised).

    Attributes
    ----------
    base : Measure
    gates : tuple of Reference
    k : int
        Which of them.
    known : (m, d) array
        Points inside, used as draws where the cell is so rare that the prior has none there.
    """

    base: Measure
    gates: tuple[Reference, ...]
    k: int
    known: FloatArray

    def inside(self, u: FloatArray) -> BoolArray:
        return labels(self.gates, u) == self.k

    def log_pdf(self, u: FloatArray) -> FloatArray:
        return np.where(self.inside(u), self.base.log_pdf(u), -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        draws = self.base.sample(100 * n, rng)
        draws = np.concatenate([draws[self.inside(draws)], self.known])
        return draws[rng.choice(len(draws), n, replace=len(draws) < n)]


@dataclass(frozen=True)
class Plan:
    """A cell to be modelled.

    Attributes
    ----------
    gate : Reference
    references : tuple of Reference
        Ways to whiten the surrogate, of which the data choose one; none reads them off the data.
    warm : LogModel or None
        Hyperparameters to start from.
    population : Population or None
        Posterior samples of the last model, where this cell had one.
    rescue : bool
        Also try other hyperparameters.
    n_compared : int
        Observations when the ways to whiten were last compared.
    """

    gate: Reference
    references: tuple[Reference, ...]
    warm: LogModel | None
    population: Population | None
    rescue: bool
    n_compared: int = 0


@dataclass(frozen=True)
class Cell:
    """A part of standard space with its own surrogate.

    Attributes
    ----------
    gate : Reference
    measure : Measure
        The prior inside.
    model : LogModel
    population : Population
    estimate : Estimate
    n_inside : int
        Observations inside.
    n_compared : int
        As many there were when ways to whiten the surrogate were last compared.
    """

    gate: Reference
    measure: Measure
    model: LogModel
    population: Population
    estimate: Estimate
    n_inside: int
    n_compared: int

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

    @cached_property
    def gaussians(self) -> tuple[tuple[Reference, float], tuple[Reference, float]]:
        """Gaussians to extrapolate with, and their peaks: of the log-posterior, and of the log-likelihood in Φ(u).

        A normal prior's parameters are linear in standard space u, a uniform one's in its probabilities Φ(u), where the
        prior is flat.
        """
        u = self.population.u
        log_l = self.model.predict_mean(u)
        return Reference.beneath(u, log_l + self.measure.log_pdf(u)), Reference.beneath(ndtr(u), log_l)

    @cached_property
    def _halves(self) -> "list[Halves]":
        return halves(self.population.u) if self.resolved else []

    def split(self, border: float) -> tuple[Reference, Reference] | None:
        """Two Gaussians, if the cell's samples fall into two parts with so empty a border between them; else None."""
        return next((h.parts for h in self._halves if h.border > border), None)

    @property
    def n_modes(self) -> int:
        """Modes that it describes: one, or two with hardly anything between them."""
        return 2 if self.split(THIN_BORDER) else 1

    @property
    def lost(self) -> bool:
        """Whether the surrogate's posterior has collapsed and the next fit should start afresh."""
        return self.estimate.effective < 10

    @property
    def unhealthy(self) -> bool:
        """Whether the next fit should look for other hyperparameters as well."""
        return self.estimate.effective < 100 or self.estimate.bulk_var > 0.7

    @classmethod
    def learn(
        cls,
        plans: Sequence[Plan],
        k: int,
        observations: Observations,
        measure: Measure,
        rng: np.random.Generator,
        kinds: Kinds = (None,),
    ) -> "Cell":
        """Model, sample and integrate the k-th planned cell."""
        plan, gates = plans[k], tuple(p.gate for p in plans)
        own = observations
        if len(plans) > 1:
            own = observations.where(labels(gates, observations.u) == k)
            measure = CellMeasure(measure, gates, k, own.u)
        log_measure = measure.log_pdf(own.u)
        references = plan.references or [Reference.first(own.u, own.log_values + log_measure, kind) for kind in kinds]
        models = [LogModel.fit(own, log_measure, r, plan.warm, rescue=plan.rescue) for r in references]
        model = models[0] if len(models) == 1 else max(models, key=preference)
        # in the model's own coordinates, where the posterior is least bent
        flat, straight = model.reference.flat, model.straight
        within = measure if flat is None else StraightMeasure(measure, flat)
        population = temper(straight, within, N_PARTICLES, rng)
        error = MONTE_CARLO if population.beta >= 1.0 else np.inf
        found = estimate(straight, within, population.u, n_draws(model.n_dim), rng, error=error, most=MAX_DRAWS)
        population = replace(population, u=bent(population.u, flat), warmer=bent(population.warmer, flat))
        found = replace(found, u=bent(found.u, flat), heavy=bent(found.heavy, flat))
        n_compared = len(own) if len(models) > 1 else plan.n_compared
        return cls(plan.gate, measure, model, population, found, len(own), n_compared)


def preference(model: LogModel) -> float:
    """What the data say for a surrogate, and custom for its coordinates."""
    return model.held_out + NATURAL * (model.reference.flat is not None)


def first_plan(n_dim: int) -> list[Plan]:
    """One cell, before anything is known."""
    return [Plan(Reference(np.zeros(n_dim), np.eye(n_dim)), (), None, None, False)]


def plan_cells(
    cells: Sequence[Cell],
    observations: Observations,
    seed: FloatArray | None,
    *,
    rescue: bool,
    kinds: Kinds = (None,),
) -> list[Plan]:
    """Let cells follow their populations, split, start and merge.

    Parameters
    ----------
    cells : sequence of Cell
    observations : Observations
    seed : (d,) array or None
        A point behind a proven valley: starts a cell.
    rescue : bool
        The last batch was badly predicted.
    kinds : sequence of (d,) bool array or None
        Kinds of coordinates that the data choose from (see ``Reference.flat``).
    """
    plans: list[Plan] = []
    for cell in cells:
        parts = cell.split(EMPTY_BORDER) if len(cells) < MAX_CELLS else None
        if parts:
            plans += [Plan(part, part.in_all(kinds), cell.model, None, True) for part in parts]
        else:
            plans.append(_continued(cell, kinds, alone=len(cells) == 1, rescue=rescue))
    if seed is not None and len(plans) < MAX_CELLS:
        parent = plans[int(labels([p.gate for p in plans], seed[None])[0])]
        gate = Reference(seed, parent.gate.root)
        plans.append(Plan(gate, gate.in_all(kinds), parent.warm, None, True))
    return _occupied(_merged(plans), observations)


def _continued(cell: Cell, kinds: Kinds, *, alone: bool, rescue: bool) -> Plan:
    u, rescue = cell.population.u, rescue or cell.unhealthy
    gate = Reference.of(u) if cell.resolved else cell.gate
    if cell.lost:
        return Plan(gate, () if alone else gate.in_all(kinds), None, cell.population, True)
    if not rescue and cell.n_inside < COMPARED_AGAIN * cell.n_compared:
        kinds = (cell.model.reference.flat,)
    references = tuple(Reference.of(u, kind) for kind in kinds)
    return Plan(gate, references, cell.model, cell.population, rescue, cell.n_compared)


@dataclass(frozen=True)
class Halves:
    """Two parts that samples fall into.

    Attributes
    ----------
    parts : tuple of two Reference
    border : float
        Margin of log-densities that nearly all samples keep from the border between them.
    """

    parts: tuple[Reference, Reference]
    border: float


def halves(u: FloatArray) -> list[Halves]:
    """Ways in which samples u (n, d) fall into two parts whose centres lie apart."""
    found = (_parted(u, label) for label in partings(Reference.of(u).whiten(u)))
    return [h for h in found if h]


def _parted(u: FloatArray, label: BoolArray, n_steps: int = 5) -> Halves | None:
    """Let two parts of samples u (n, d) settle, each sample going to the Gaussian that explains it better."""
    n, d = u.shape
    for _ in range(n_steps):
        if min(int(label.sum()), n - int(label.sum())) < max(0.02 * n, 2 * d + 2):
            return None
        parts = Reference.of(u[~label]), Reference.of(u[label])
        scores = gate_scores(parts, u)
        moved = scores[:, 1] > scores[:, 0]
        if (moved == label).all():
            break
        label = moved
    distances = [float(np.linalg.norm(a.whiten(b.mean[None]))) for a, b in (parts, parts[::-1])]
    border = float(np.quantile(np.abs(scores[:, 0] - scores[:, 1]), 0.01))
    return Halves(parts, border) if min(distances) > APART else None


def partings(x: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Two ways in which white samples x (n, d) may fall into two parts: (n,) each.

    Of the directions between pairs of samples, that of the least kurtosis is across two equal parts (one for two
    points, three for a Gaussian), and that of the largest is towards a small part far away.
    """
    n = min(len(x) // 2, 250)
    ways = x[:n] - x[n : 2 * n]
    ways /= np.linalg.norm(ways, axis=1)[:, None] + 1e-300
    along = x @ ways.T
    along -= along.mean(axis=0)
    square = along**2
    kurtosis = (square**2).mean(axis=0) / (square.mean(axis=0) ** 2 + 1e-300)
    flat, peaked = along[:, int(kurtosis.argmin())], along[:, int(kurtosis.argmax())]
    peaked = peaked * np.sign(peaked[int(np.abs(peaked).argmax())])
    return flat > 0.0, peaked > 0.5 * peaked.max()


def _merged(plans: list[Plan]) -> list[Plan]:
    """Drop the newer of two cells whose common border is populated."""
    for k, plan in enumerate(plans):
        if len(plans) > 1 and plan.population is not None and plan.population.beta >= 1.0:
            scores = gate_scores([p.gate for p in plans], plan.population.u)
            others = np.delete(scores, k, axis=1)
            close = scores[:, k] - others.max(axis=1) < 1.0
            if close.mean() > 0.05:
                j = int(np.bincount(others[close].argmax(axis=1)).argmax())
                j += j >= k
                return _merged([p for i, p in enumerate(plans) if i != max(k, j)])
    return plans


def _occupied(plans: list[Plan], observations: Observations) -> list[Plan]:
    """Drop cells in which nothing finite has been observed."""
    u = observations.u[np.isfinite(observations.log_values)]
    count = np.bincount(labels([p.gate for p in plans], u), minlength=len(plans))
    if count.all():
        return plans
    return _occupied([p for i, p in enumerate(plans) if i != int(count.argmin())], observations)


@dataclass(frozen=True)
class Total:
    """The evidence of all cells together; attributes as in ``Estimate``, and each cell's share (k,)."""

    log_mean: float
    jensen: float
    surrogate_var: float
    monte_carlo: float
    effective: float
    wall: float
    tamed: float
    shares: FloatArray

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> "Total":
        parts = [c.estimate for c in cells]
        log_means = np.array([e.log_mean for e in parts])
        total = float(logsumexp(log_means))
        w = np.exp(log_means - total)
        return cls(
            total,
            float(w @ [e.jensen for e in parts]),
            float(w**2 @ [e.surrogate_var for e in parts]),
            float(np.sqrt(w**2 @ [e.monte_carlo**2 for e in parts])),
            float(1.0 / (w**2 @ [1.0 / e.effective for e in parts])),
            float(w @ [e.wall for e in parts]),
            float(w @ [e.tamed for e in parts]),
            w,
        )


def allocate(cells: Sequence[Cell], shares: FloatArray, n: int) -> list[int]:
    """Divide n points among the cells, by share times uncertainty; unresolved cells count fully."""
    spread = np.clip([np.sqrt(c.estimate.surrogate_var) for c in cells], 0.03, 1.0)
    need = np.where([c.resolved for c in cells], np.maximum(shares, 0.02) * spread, 1.0)
    wanted = need / need.sum() * n
    out = np.floor(wanted).astype(int)
    for i in np.argsort(out - wanted, kind="stable")[: n - int(out.sum())]:
        out[i] += 1
    return out.tolist()
