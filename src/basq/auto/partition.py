"""The partition of standard space into cells: they follow their populations, split, start and merge."""

from collections.abc import Sequence

import numpy as np

from basq.auto.cells import Cell, Kinds, Plan
from basq.auto.chart import Chart
from basq.auto.gates import gate_scores, labels
from basq.auto.importance import Estimate
from basq.auto.settings import Cells, Settings
from basq.observations import Observations
from basq.types import FloatArray


def first_plan(n_dim: int) -> list[Plan]:
    """One cell, before anything is known."""
    return [Plan(Chart.standard(n_dim), (), None, None, False)]


def plan_cells(
    cells: Sequence[Cell],
    observations: Observations,
    foothold: FloatArray | None,
    settings: Settings,
    *,
    rescue: bool,
    kinds: Kinds = (None,),
) -> list[Plan]:
    """Let cells follow their populations, split, start and merge.

    Parameters
    ----------
    cells : sequence of Cell
    observations : Observations
    foothold : (d,) array or None
        A point behind a proven valley: starts a cell.
    settings : Settings
    rescue : bool
        The last batch was badly predicted.
    kinds : sequence of (d,) bool array or None
        Kinds of coordinates that the data choose from (see ``Chart.flat``).
    """
    plans: list[Plan] = []
    own = settings.cells
    for cell in cells:
        parts = cell.split(own.empty_border) if len(cells) < own.most else None
        if parts:
            plans += [Plan(part, part.in_all(kinds), cell.model, None, True) for part in parts]
        else:
            plans.append(_continued(cell, kinds, settings, alone=len(cells) == 1, rescue=rescue))
    if foothold is not None and len(plans) < own.most:
        parent = plans[int(labels([p.gate for p in plans], foothold[None])[0])]
        gate = Chart(foothold, parent.gate.root)
        plans.append(Plan(gate, gate.in_all(kinds), parent.warm, None, True))
    return _occupied(_merged(plans, settings), observations)


def _continued(cell: Cell, kinds: Kinds, settings: Settings, *, alone: bool, rescue: bool) -> Plan:
    """Let a cell follow its population."""
    u, rescue = cell.population.u, rescue or _unhealthy(cell.estimate, settings.cells)
    gate = Chart.of(u) if cell.resolved else cell.gate
    if cell.estimate.effective < settings.cells.lost:  # it has collapsed: start afresh
        return Plan(gate, () if alone else gate.in_all(kinds), None, cell.population, True)
    compare = rescue or cell.n_inside >= settings.chart.compared_again * cell.n_compared
    charts = tuple(Chart.of(u, kind) for kind in (kinds if compare else (cell.model.chart.flat,)))
    return Plan(gate, charts, cell.model, cell.population, rescue, cell.n_compared, compare)


def _unhealthy(found: Estimate, settings: Cells) -> bool:
    """Whether the next fit should look for other hyperparameters as well."""
    return found.effective < settings.unhealthy or found.bulk_var > settings.unhealthy_var


def _merged(plans: list[Plan], settings: Settings) -> list[Plan]:
    """Drop the newer of two cells whose common border is populated."""
    for k, plan in enumerate(plans):
        if len(plans) > 1 and plan.population is not None and plan.population.beta >= 1.0:
            scores = gate_scores([p.gate for p in plans], plan.population.u)
            others = np.delete(scores, k, axis=1)
            close = scores[:, k] - others.max(axis=1) < settings.cells.touching
            if close.mean() > settings.cells.touched:
                j = int(np.bincount(others[close].argmax(axis=1)).argmax())
                j += j >= k
                return _merged([p for i, p in enumerate(plans) if i != max(k, j)], settings)
    return plans


def _occupied(plans: list[Plan], observations: Observations) -> list[Plan]:
    """Drop cells in which nothing finite has been observed."""
    u = observations.u[np.isfinite(observations.log_values)]
    count = np.bincount(labels([p.gate for p in plans], u), minlength=len(plans))
    if count.all():
        return plans
    return _occupied([p for i, p in enumerate(plans) if i != int(count.argmin())], observations)
