"""The search for modes that the cells do not know yet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from basq.auto.cells import Cell
from basq.auto.ends import unseen_ends
from basq.auto.exploration import Bulk, Explorer, outside, searches, spread_points
from basq.auto.gates import labels
from basq.auto.images import Mirror, unseen_images
from basq.auto.scouts import Scout, nearest_samples, unexplained
from basq.auto.seen import Seen
from basq.auto.settings import Settings
from basq.types import FloatArray

SAME = 1e-8
"""Distance within which two points are one: on circles they come back with other last digits."""


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


def find_suspect(
    cells: Sequence[Cell], explorer: Explorer, tested: frozenset[int], known: Sequence[Bulk]
) -> Suspect | None:
    """Find the best untested observation whose ascent ends outside the bulk, high enough to matter."""
    u, levels = explorer.gp.x, explorer.log_posterior
    own = explorer.settings
    matters = levels > levels.max() - own.matters - own.matters_per_dim * u.shape[1]
    basin = matters & outside(known, explorer.ascents) & outside(known, u)
    basin[list(tested)] = False
    if not basin.any():
        return None
    index = int(np.where(basin, levels, -np.inf).argmax())
    nearest = np.concatenate([nearest_samples(c, u[[index]]) for c in cells])
    closest = nearest[int(((nearest - u[index]) ** 2).sum(axis=1).argmin())]
    return Suspect(index, 0.5 * (u[index] + closest))


@dataclass(frozen=True)
class Leads:
    """What may lead to another mode.

    Attributes
    ----------
    bulks : tuple of Bulk
        The known posterior, cell by cell, to stay away from.
    suspect : Suspect or None
        What the next batch looks at first, and is then judged by.
    scout : Scout
        Where the observations that no cell explains are heading.
    images : tuple of Mirror
        Of the posterior, where other modes are to be expected.
    unseen : (m, d) array
        Those of the best point near which nothing was seen yet.
    ends : (m, d) array
        Of the posterior, near which nothing was seen yet.
    """

    bulks: tuple[Bulk, ...]
    suspect: Suspect | None
    scout: Scout
    images: tuple[Mirror, ...]
    unseen: FloatArray
    ends: FloatArray

    @classmethod
    def of(
        cls,
        cells: Sequence[Cell],
        explorer: Explorer,
        seen: Seen,
        tested: frozenset[int],
        rng: np.random.Generator,
        settings: Settings,
        *,
        images: tuple[Mirror, ...] = (),
    ) -> "Leads":
        """Follow up everything observed but what was tested already."""
        bulks = tuple(Bulk.of(c.model.chart, c.population.u, settings.exploration) for c in cells)
        suspect = find_suspect(cells, explorer, tested, bulks)
        scout = Scout.send(cells, explorer, seen, rng, settings, known=bulks, tested=tested)
        best = seen.u[int(np.argmax(seen.log_posterior))]
        k = int(labels([c.gate for c in cells], best[None])[0])
        unseen = unseen_images(images if cells[k].resolved else (), best, seen.u, bulks[k], bulks)
        ends = unseen_ends(cells[k], seen.u, settings.exploration) if cells[k].resolved else seen.u[:0]
        return cls(bulks, suspect, scout, images, unseen, ends)


def proves_valley(probe: FloatArray, level: float, u: FloatArray, levels: FloatArray, depth: float) -> bool | None:
    """Whether a probe (d,) lies far below the level it was to be compared with; None if not among the points u."""
    at = np.flatnonzero((np.abs(u - probe) < SAME).all(axis=1))
    return bool(levels[at[0]] < level - depth) if len(at) else None


def explore(
    explorer: Explorer,
    batch: FloatArray,
    n: int,
    rng: np.random.Generator,
    leads: Leads,
    settings: Settings,
) -> FloatArray:
    """Choose n exploration points: what tests suspects, scouts, searches for modes, points far from all others.

    Parameters
    ----------
    batch : (b, d) array
        Points chosen already, in this batch or in one under way.
    leads : Leads
    settings : Settings
    """
    seen = explorer.gp.x
    everything = np.concatenate([seen, batch])
    points, most = np.empty((0, seen.shape[1])), int(np.ceil(settings.exploration.searches * n))
    for found in _proposals(explorer, everything, n, rng, leads, settings):
        apart: FloatArray = np.abs(found[:, None] - batch).max(axis=2)
        asked = np.any(apart < SAME, axis=1)  # under way already
        points = np.concatenate([points, found[~asked]])[:most]
        if len(points) == most:
            break
    everything = np.concatenate([everything, points])
    return np.concatenate([points, spread_points(everything, n - len(points), rng, settings.exploration)])


def _proposals(
    explorer: Explorer,
    seen: FloatArray,
    n: int,
    rng: np.random.Generator,
    leads: Leads,
    settings: Settings,
) -> Iterator[FloatArray]:
    """Points that may lead to another mode, the most telling first; the later ones cost more than they look."""
    known, scout = leads.bulks, leads.scout
    if leads.suspect is not None and n > 1:
        yield leads.suspect.midpoint[None]
    yield scout.probes[: n // 3]
    yield leads.unseen
    yield scout.u[rng.choice(len(scout.u), min(len(scout.u), (n + 1) // 2), replace=False)]
    yield searches(explorer, seen, known, rng)
    strange = scout.unexplained
    # a process of their own: the bulk's slopes drown them in the common one
    if strange.sum() >= settings.exploration.strange:
        apart = Explorer.fit(explorer.gp.x[strange], explorer.log_posterior[strange], None, settings)
        yield searches(apart, seen, known, rng)


def still_climbing(
    cells: Sequence[Cell], explorer: Explorer, u: FloatArray, log_posterior: FloatArray, settings: Settings
) -> int:
    """Count exploration points u (m, d) that rose above their basin's best, where no cell explains them."""
    if not len(u):
        return 0
    levels = explorer.filled(log_posterior)
    everything = np.concatenate([explorer.log_posterior, levels])
    points, own = np.concatenate([explorer.gp.x, u]), settings.exploration
    strange = unexplained(cells, points, everything, settings)[0][len(explorer.log_posterior) :]
    basin = explorer.best_in_basin(u)
    rising = np.isfinite(basin) & (levels > basin + own.rise)
    near = levels > everything.max() - own.rise_windows * settings.values.window(u.shape[1])
    return int((rising & strange & near).sum())
