"""Observations that no cell explains, and scouts that follow them to modes nobody knows yet.

A cell's posterior, extrapolated as a Gaussian, says how low the likelihood should be far away. An observation well
above that lies in the basin of another mode, or in a heavy tail. A tail lifts all far observations, a basin only its
own: those that stand out among the far ones are strange.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from basq.auto.cells import Cell
from basq.auto.chart import Chart
from basq.auto.exploration import Bulk, Explorer, outside
from basq.auto.log_model import LogModel
from basq.auto.seen import Seen
from basq.auto.settings import Scouts, Settings
from basq.auto.smc import temper
from basq.numerics.gaussians import log_normal_pdf
from basq.numerics.linalg import square_distances
from basq.types import BoolArray, FloatArray, IntArray


def nearest_samples(cell: Cell, u: FloatArray) -> FloatArray:
    """Posterior samples of a cell that are nearest to points u (m, d) in the cell's own metric: (m, d)."""
    whiten = cell.model.chart.whiten
    return cell.population.u[square_distances(whiten(u), whiten(cell.population.u)).argmin(axis=1)]


def unexplained(
    cells: Sequence[Cell], u: FloatArray, log_posterior: FloatArray, settings: Settings
) -> tuple[BoolArray, BoolArray]:
    """Find observations that stand well above the Gaussian extrapolation of every resolved cell.

    Returns
    -------
    unexplained : (n,) bool array
    outlying : (n,) bool array
        Those of them that also stand above what is usual among the far observations.
    """
    own, best = settings.scouts, float(log_posterior.max())
    gap, options = best - log_posterior, extrapolations(cells, u, best)
    # what is far in one of the coordinates tells which of them explains more; what is far in those may stand out
    beyond = own.far * settings.values.window(u.shape[1])
    far = (np.max(options, axis=0) > beyond) & np.isfinite(options).all(axis=0)
    residuals = []
    if far.sum() >= own.least_far:
        residuals = [from_usual(np.log(np.maximum([p[far], gap[far]], own.least_gap)), own) for p in options]
    spreads = [float(np.median(np.abs(residual))) for residual in residuals] or [0.0]
    chosen = int(np.argmin(spreads))
    predicted = options[chosen]
    out = far & (predicted > beyond) & (gap < own.explained * predicted)
    outlying = np.zeros(len(u), dtype=bool)
    if residuals:
        outlying[far] = residuals[chosen] < -own.outlying * spreads[chosen] - own.margin
    return out, outlying & out


def extrapolations(cells: Sequence[Cell], u: FloatArray, best: float) -> list[FloatArray]:
    """Gaps (n,) to the best log-posterior that resolved cells predict at points u (n, d), in both coordinates."""
    out, prior = [], log_normal_pdf(u, np.zeros(u.shape[1]), np.eye(u.shape[1]))
    for k, (points, log_prior) in enumerate(((u, np.zeros(len(u))), (ndtr(u), prior))):
        predicted = np.full(len(u), np.inf)
        for gaussian, peak in (cell.outline[k] for cell in cells if cell.outline):
            z = gaussian.whiten(points)
            predicted = np.minimum(predicted, best - peak + 0.5 * (z * z).sum(axis=1) - log_prior)
        out.append(predicted)
    return out


def from_usual(points: FloatArray, settings: Scouts) -> FloatArray:
    """Residuals of y (n,) from the straight line in x (n,), rows of points, with the least absolute residuals.

    Its slope is kept between that of a saturating tail and that of a Gaussian.
    """
    x, y = points
    centred, weights, slope = x - x.mean(), np.ones(len(x)), 1.0
    moments = np.stack([np.ones(len(x)), centred, y, centred * centred, centred * y])
    for _ in range(settings.line_steps):
        one, by_x, by_y, by_xx, by_xy = moments @ weights
        slope = (one * by_xy - by_x * by_y) / (one * by_xx - by_x * by_x + 1e-9)
        weights = 1.0 / np.maximum(np.abs(y - (by_y - slope * by_x) / one - slope * centred), 1e-3)
    residual: FloatArray = y - np.clip(slope, *settings.slopes) * x
    return residual - np.median(residual)


@dataclass(frozen=True)
class Scout:
    """Where the strange observations are heading.

    Attributes
    ----------
    unexplained : (n,) bool array
        Observations that no cell explains, tested or not.
    n_outlying : int
        Observations that suggest another mode.
    u : (m, d) array
        Samples, outside the known posterior, of a model that has seen only the strange observations.
    index : (k,) int array
        The best of these observations.
    probes : (k, d) array
        Points between each of them and the known posterior: where no valley is found, it belongs to what is known.
    """

    unexplained: BoolArray
    n_outlying: int
    u: FloatArray
    index: IntArray
    probes: FloatArray

    @classmethod
    def send(
        cls,
        cells: Sequence[Cell],
        explorer: Explorer,
        seen: Seen,
        rng: np.random.Generator,
        settings: Settings,
        *,
        known: Sequence[Bulk],
        tested: frozenset[int],
    ) -> "Scout":
        """Look at everything observed but what was tested already."""
        own, nowhere = settings.scouts, np.empty((0, seen.n_dim))
        if not own.sent:
            return cls(np.zeros(len(seen.u), dtype=bool), 0, nowhere, np.empty(0, dtype=np.intp), nowhere)
        odd, outlying = unexplained(cells, seen.u, explorer.log_posterior, settings)
        fresh = np.isfinite(seen.log_posterior)
        fresh[list(tested)] = False
        index = np.flatnonzero(odd & fresh)
        dips, depths = valleys(cells, explorer, seen.u[index], rng, own)
        strange = outlying[index] | (depths > own.dip)
        index, dips = index[strange], dips[strange]
        best = np.argsort(-seen.log_posterior[index], kind="stable")[: own.probes]
        heading = destinations(seen, index, rng, settings)
        n_outlying = int((outlying & fresh).sum())
        return cls(odd, n_outlying, heading[outside(known, heading)], index[best], dips[best])


def valleys(
    cells: Sequence[Cell], explorer: Explorer, u: FloatArray, rng: np.random.Generator, settings: Scouts
) -> tuple[FloatArray, FloatArray]:
    """Lowest points on the straight ways from points u (m, d) to the known posterior, as the explorer expects them.

    Returns
    -------
    dips : (m, d) array
        On the highest way of each point; its middle if it only rises.
    depths : (m,) array
        How far they lie below the point itself, on the explorer's scale.
    """
    if not len(u):
        return u, np.empty(0)
    ends = []
    for cell in cells:
        some = cell.population.u[rng.choice(len(cell.population.u), settings.ways, replace=False)]
        nearest = nearest_samples(cell, u)[:, None]
        ends.append(np.concatenate([np.tile(some, (len(u), 1, 1)), nearest], axis=1))
    steps = np.linspace(settings.way_ends, 1.0 - settings.way_ends, settings.way_points)[:, None]
    ways = u[:, None, None] + steps * (np.concatenate(ends, axis=1) - u[:, None])[:, :, None]
    levels = explorer.gp.predict_mean(ways.reshape(-1, u.shape[1])).reshape(ways.shape[:-1])
    rows, highest = np.arange(len(u)), levels.min(axis=2).argmax(axis=1)
    lowest = levels[rows, highest].argmin(axis=1)
    depths = explorer.gp.predict_mean(u) - levels[rows, highest, lowest]
    return ways[rows, highest, np.where(lowest == 0, len(steps) // 2, lowest)], depths


def destinations(seen: Seen, chosen: IntArray, rng: np.random.Generator, settings: Settings) -> FloatArray:
    """Samples of the tempered posterior of a model of some observations only: (m, d).

    Too few of them for a model are surrounded by a cloud.
    """
    d, n, observations = seen.n_dim, settings.scouts.particles, seen.observations
    if not len(chosen):
        return np.empty((0, d))
    mask = np.zeros(len(observations), dtype=bool)
    mask[chosen] = True
    own, own_levels = observations.where(mask), seen.log_posterior[mask]
    order = np.argsort(-own_levels, kind="stable")
    if len(own) < d + 2:
        best = own.u[order[0]]
        distance = np.sqrt(((observations.u[~mask] - best) ** 2).sum(axis=1).min())
        return best + settings.scouts.cloud * distance / np.sqrt(d) * rng.standard_normal((n, d))
    top = own.u[order[: len(own) // 2 + 1]]
    chart = Chart(top.mean(axis=0), np.eye(d) * np.sqrt(top.var(axis=0).mean()))
    model = LogModel.fit(own, seen.measure.log_pdf(own.u), chart, None, settings)
    return temper(model, seen.measure, n, rng, settings.samples).u
