"""The search for modes that the cells do not know yet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from basq.auto.cells import Cell
from basq.auto.exploration import SEARCHES, Bulk, Explorer, outside, searches, spread_points
from basq.auto.log_model import window
from basq.auto.scouts import Scout, nearest_samples, unexplained
from basq.types import FloatArray

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
        Half-way between it and the nearest posterior sample.
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
    nearest = np.concatenate([nearest_samples(c, u[[index]]) for c in cells])
    closest = nearest[int(((nearest - u[index]) ** 2).sum(axis=1).argmin())]
    return Suspect(index, 0.5 * (u[index] + closest))


def proves_valley(probe: FloatArray, level: float, u: FloatArray, levels: FloatArray) -> bool | None:
    """Whether a probe (d,) lies far below the level it was to be compared with; None if not among the points u."""
    at = np.flatnonzero((u == probe).all(axis=1))
    return bool(levels[at[0]] < level - VALLEY) if len(at) else None


def explore(
    explorer: Explorer,
    batch: FloatArray,
    n: int,
    rng: np.random.Generator,
    *,
    known: Sequence[Bulk],
    suspect: Suspect | None,
    scout: Scout,
) -> FloatArray:
    """Choose n exploration points: what tests suspects, scouts, searches for modes, points far from all others.

    Parameters
    ----------
    batch : (b, d) array
        Points chosen already, in this batch or in one under way.
    known : sequence of Bulk
        The known posterior, to stay away from.
    suspect : Suspect or None
    scout : Scout
    """
    seen = explorer.gp.x
    everything = np.concatenate([seen, batch])
    points, most = np.empty((0, seen.shape[1])), int(np.ceil(SEARCHES * n))
    for found in _proposals(explorer, everything, n, rng, known=known, suspect=suspect, scout=scout):
        asked = (found[:, None] == batch).all(axis=2).any(axis=1)  # under way already
        points = np.concatenate([points, found[~asked]])[:most]
        if len(points) == most:
            break
    return np.concatenate([points, spread_points(np.concatenate([everything, points]), n - len(points), rng)])


def _proposals(
    explorer: Explorer,
    seen: FloatArray,
    n: int,
    rng: np.random.Generator,
    *,
    known: Sequence[Bulk],
    suspect: Suspect | None,
    scout: Scout,
) -> Iterator[FloatArray]:
    """Points that may lead to another mode, the most telling first; the later ones cost more than they look."""
    if suspect is not None and n > 1:
        yield suspect.midpoint[None]
    yield scout.probes[: n // 3]
    yield scout.u[rng.choice(len(scout.u), min(len(scout.u), (n + 1) // 2), replace=False)]
    yield searches(explorer, seen, known, rng)
    strange = scout.unexplained
    if strange.sum() >= 3:  # a process of their own: the bulk's slopes drown them in the common one
        apart = Explorer.fit(explorer.gp.x[strange], explorer.log_posterior[strange], None)
        yield searches(apart, seen, known, rng)


def still_climbing(cells: Sequence[Cell], explorer: Explorer, u: FloatArray, log_posterior: FloatArray) -> int:
    """Count exploration points u (m, d) that rose above their basin's best, where no cell explains them."""
    if not len(u):
        return 0
    levels = explorer.filled(log_posterior)
    everything = np.concatenate([explorer.log_posterior, levels])
    strange = unexplained(cells, np.concatenate([explorer.gp.x, u]), everything)[0][len(explorer.log_posterior) :]
    basin = explorer.best_in_basin(u)
    rising = np.isfinite(basin) & (levels > basin + 1.0)
    return int((rising & strange & (levels > everything.max() - 2.0 * window(u.shape[1]))).sum())
