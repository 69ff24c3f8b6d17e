"""The search for modes that the cells do not know yet."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from basq.cells import Cell, labels
from basq.selection.exploration import SEARCHES, Bulk, Explorer, outside, searches, spread_points
from basq.surrogate.log_model import window
from basq.surrogate.reference import Reference
from basq.types import BoolArray, FloatArray

EXPLAINED = 0.9
"""Share of the gap that a Gaussian extrapolation predicts, below which an observation is not explained by it."""
VALLEY = 3.0
"""Nats that the midpoint must lie below a suspect to prove a valley between it and the bulk."""


@dataclass(frozen=True)
class Suspect:
    """An observation that seems to lie in a basin of its own, and the point that would prove it.

    Attributes
    ----------
    index : int
        Of the observation.
    midpoint : (d,) array
        Between it and the nearest posterior sample.
    """

    index: int
    midpoint: FloatArray


def bulks(cells: Sequence[Cell]) -> list[Bulk]:
    """The known posterior, cell by cell."""
    return [Bulk.of(c.model.reference, c.population.u) for c in cells]


def find_suspect(
    cells: Sequence[Cell], explorer: Explorer, tested: frozenset[int], known: Sequence[Bulk]
) -> Suspect | None:
    """Find the best untested observation whose ascent ends outside the bulk, high enough to matter."""
    u, levels = explorer.gp.x, explorer.log_posterior
    matters = levels > levels.max() - 4.0 - 1.5 * u.shape[1]
    basin = matters & outside(known, explorer.ascents) & outside(known, u)
    basin[list(tested)] = False
    if not basin.any():
        return None
    index = int(np.where(basin, levels, -np.inf).argmax())
    nearest = [_nearest(c, u[index]) for c in cells]
    closest = min(nearest, key=lambda p: float(((p - u[index]) ** 2).sum()))
    return Suspect(index, 0.5 * (u[index] + closest))


def _nearest(cell: Cell, point: FloatArray) -> FloatArray:
    """Posterior sample of a cell that is nearest to a point in the cell's own metric: (d,)."""
    whiten = cell.model.reference.whiten
    difference = whiten(cell.population.u) - whiten(point[None])
    return cell.population.u[int((difference**2).sum(axis=1).argmin())]


def unexplained(cells: Sequence[Cell], u: FloatArray, log_posterior: FloatArray) -> BoolArray:
    """Observations that stand well above the Gaussian extrapolation of every resolved cell: (n,)."""
    gap = log_posterior.max() - log_posterior
    label = labels([c.gate for c in cells], u)
    predicted = np.full(len(u), np.inf)
    for k, cell in enumerate(cells):
        if cell.resolved and (label == k).any():
            z = Reference.of(cell.population.u).whiten(u)
            predicted = np.minimum(predicted, gap[label == k].min() + 0.5 * (z * z).sum(axis=1))
    return (gap < EXPLAINED * predicted) & (predicted > window(u.shape[1])) & np.isfinite(predicted)


def explore(
    cells: Sequence[Cell],
    explorer: Explorer,
    batch: FloatArray,
    n: int,
    rng: np.random.Generator,
    *,
    known: Sequence[Bulk],
    suspect: Suspect | None,
) -> FloatArray:
    """Choose n exploration points: a suspect's midpoint, searches for modes, points far from all others.

    Parameters
    ----------
    batch : (b, d) array
        Points chosen already.
    known : sequence of Bulk
        The known posterior, to stay away from.
    suspect : Suspect or None
    """
    seen = explorer.gp.x
    found = [np.empty((0, seen.shape[1]))]
    if suspect is not None and n > 1:
        found.append(suspect.midpoint[None])
    found.append(searches(explorer, seen, known, rng))
    strange = unexplained(cells, seen, explorer.log_posterior)
    if strange.sum() >= 3:  # a process of their own: the bulk's slopes drown them in the common one
        apart = Explorer.fit(seen[strange], explorer.log_posterior[strange], None)
        found.append(searches(apart, seen, known, rng))
    points = np.concatenate(found)[: int(np.ceil(SEARCHES * n))]
    return np.concatenate([points, spread_points(np.concatenate([seen, batch, points]), n - len(points), rng)])


def still_climbing(cells: Sequence[Cell], explorer: Explorer, u: FloatArray, log_posterior: FloatArray) -> int:
    """Count exploration points u (m, d) that rose above their basin's best, where no cell explains them."""
    if not len(u):
        return 0
    levels = np.where(np.isfinite(log_posterior), log_posterior, explorer.log_posterior.min())
    everything = np.concatenate([explorer.log_posterior, levels])
    strange = unexplained(cells, np.concatenate([explorer.gp.x, u]), everything)[len(explorer.log_posterior) :]
    basin = explorer.best_in_basin(u)
    rising = np.isfinite(basin) & (levels > basin + 1.0)
    return int((rising & strange & (levels > everything.max() - 2.0 * window(u.shape[1]))).sum())
