"""The part of a batch that integrates: recombination of a cell's posterior, and the tails that it may have missed."""

from dataclasses import dataclass

import numpy as np

from basq.auto.cells import Cell
from basq.auto.chart import Chart, bent, straight, straightened
from basq.auto.log_model import LogModel
from basq.auto.settings import Batches, Samples
from basq.auto.smc import temper
from basq.numerics.linalg import square_distances
from basq.selection.nystrom import nystrom_features
from basq.selection.recombination import recombine
from basq.types import BoolArray, FloatArray


def share_of(n: int, share: float, rng: np.random.Generator) -> int:
    """Whole number of points that is a share of n on average: right for small batches too."""
    return int(np.floor(share * n + rng.random()))


def cell_batch(cell: Cell, n: int, n_cells: int, rng: np.random.Generator, settings: Batches) -> FloatArray:
    """n new points for a cell: a cloud while it has too few for a model, then what integrates it best."""
    d = cell.model.n_dim
    if n_cells > 1 and cell.n_inside < d + settings.cloud_points:
        return gate_cloud(cell, n, rng, settings.cloud)
    top = summit(cell, rng, settings) if share_of(n, settings.summit, rng) else np.empty((0, d))
    cell, n = cell.expecting(top), n - len(top)
    if cell.model.feasible is not None and n >= settings.edge:
        return np.concatenate([top, edge_batch(cell, n, rng, settings)])
    way = climb(cell, share_of(n, settings.climb, rng), rng, settings) if cell.climbing else np.empty((0, d))
    cell, n, top = cell.expecting(way), n - len(way), np.concatenate([top, way])
    n_tail = share_of(n, settings.tail, rng)
    points = integrate_batch(cell, *selection_measure(cell, rng, settings), n - n_tail, rng, settings)
    return np.concatenate([top, points, tail_batch(cell.expecting(points), n_tail, settings.optimism)])


def gate_cloud(cell: Cell, n: int, rng: np.random.Generator, width: float) -> FloatArray:
    """n points about a cell's gate, so many times as wide: (n, d)."""
    return cell.gate.mean + width * rng.standard_normal((n, cell.model.n_dim)) @ cell.gate.root.T


def summit(cell: Cell, rng: np.random.Generator, settings: Batches) -> FloatArray:
    """Return where the surrogate's posterior is highest, unless something was seen close to it: (1, d) or (0, d).

    In many dimensions samples hardly ever lie near the top of a density: if it is far higher than the surrogate
    believes, as a heavy-tailed one is, they would not show it.
    """
    u, model, beta, flat = cell.population.u, cell.model, cell.population.beta, cell.model.chart.flat
    cloud = u
    for _ in range(settings.summit_steps):
        levels = beta * model.mean(cloud) + cell.measure.log_pdf(cloud)
        best = cloud[np.argsort(-levels, kind="stable")[: settings.summit_best]]
        about = Chart.of(best, flat)
        around = about.mean + rng.standard_normal((settings.summit_cloud, u.shape[1])) @ about.root.T
        cloud = np.concatenate([best, bent(around, flat)])
    whiten = model.chart.whiten
    own = Chart.of(whiten(u))
    distance2 = square_distances(own.whiten(whiten(best[:1])), own.whiten(model.gp.x)).min()
    return best[:1] if distance2 > settings.seen**2 else best[:0]


def climb(cell: Cell, n: int, rng: np.random.Generator, settings: Batches) -> FloatArray:
    """n points on the way up from the best one, (n, d): where the posterior may be highest within several distances.

    Far below the posterior the samples lie around what is known; a surrogate that is no good farther on is good enough
    to say where it goes up. How far it can be believed is not known: so the distances differ.
    """
    model, flat = cell.model, cell.model.chart.flat
    root, d, out = model.chart.root, model.n_dim, np.empty((0, model.n_dim))
    start = straightened(cell.best[None], flat)[0]
    for k in range(n):
        radius = settings.climb_radii[k % len(settings.climb_radii)]
        optimism = settings.climb_optimism[k % len(settings.climb_optimism)]
        sd, centre = np.full((settings.summit_cloud, 1), radius / np.sqrt(d)), np.zeros(d)
        for _ in range(settings.summit_steps):
            z = centre + sd * rng.standard_normal((settings.summit_cloud, d))
            z[0] = centre
            z *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300))
            u = bent(start + z @ root.T, flat)
            p = model.gp.predict(model.chart.whiten(u))
            level = model.scale.nats(p.mean + optimism * np.sqrt(p.var)) + cell.measure.log_pdf(u)
            level[_near(model, p.x, settings.climb_apart * radius)] = -np.inf
            order = np.argsort(-level, kind="stable")[: settings.summit_best]
            centre, sd = z[order[0]], z[order].std(axis=0)
        if np.isfinite(level[order[0]]):  # else everything there has been seen
            out = np.concatenate([out, u[order[:1]]])
            model = model.expecting(out[-1:])
    return out


def _near(model: LogModel, z: FloatArray, distance: float) -> BoolArray:
    """Which of the whitened points z (m, d) lie so near to one that was seen or is expected: (m,)."""
    return square_distances(z, model.gp.x).min(axis=1) < distance**2


def edge_batch(cell: Cell, n: int, rng: np.random.Generator, settings: Batches) -> FloatArray:
    """n points of a cell that borders on zero likelihood: (n, d)."""
    points, weights = selection_measure(cell, rng, settings)
    # some go to the edge of the zero-likelihood region, which the samples alone would leave blurred
    n_edge = n // settings.edge
    p = cell.model.feasibility(points)
    edge = weights * p * (1.0 - p) + 1e-300
    chosen = rng.choice(len(points), n_edge, replace=False, p=edge / edge.sum())
    rest = np.setdiff1d(np.arange(len(points)), chosen)
    others = integrate_batch(cell, points[rest], weights[rest] / weights[rest].sum(), n - n_edge, rng, settings)
    return np.concatenate([points[chosen], others])


def integrate_batch(
    cell: Cell, points: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator, settings: Batches
) -> FloatArray:
    """n points that integrate the surrogate's leading uncertainties like the weighted ones do: (n, d)."""
    if n < 3 or not settings.recombined:
        return points[rng.choice(len(points), n, replace=False, p=weights)]
    order = rng.permutation(len(points))  # the tree groups neighbours: none should be alike
    points, weights = points[order], weights[order]
    gp = cell.model.gp
    p = gp.predict(cell.model.chart.whiten(points))
    n_nystrom = max(settings.nystrom, settings.nystrom_each * n)
    features = nystrom_features(gp, p, n - 1, n_nystrom, rng, weights=weights, randomised=False)
    index = recombine(features.values, weights).index
    spare = np.setdiff1d(np.arange(len(points)), index)
    short = max(n - len(index), 0)
    extra = rng.choice(spare, short, replace=False, p=weights[spare] / weights[spare].sum())
    return points[np.concatenate([index, extra])[:n]]


@dataclass(frozen=True)
class Optimist:
    """A log-likelihood that is so many standard deviations above the surrogate's mean, and no higher than believed."""

    model: LogModel
    sds: float

    def mean(self, u: FloatArray) -> FloatArray:
        p = self.model.gp.predict(self.model.chart.whiten(u))
        level = p.mean + self.sds * np.sqrt(p.var)
        return self.model.scale.nats(np.minimum(level, self.model.ceiling)) + np.log(self.model.feasibility(u) + 1e-300)

    def correction(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(u)), np.zeros(len(u))


def unsure_batch(cell: Cell, n: int, rng: np.random.Generator, optimism: float, settings: Samples) -> FloatArray:
    """n samples of the posterior as it would be with the surrogate too low by so many standard deviations: (n, d).

    The samples' own tails end where the surrogate falls steeply; this looks behind. Where it is sure there is little to
    see, so they are weighted by the standard deviation, up to a number of scaled nats.
    """
    flat = cell.model.chart.flat
    within = straight(cell.measure, flat)
    found = temper(Optimist(cell.model.straight, optimism), within, settings.particles, rng, settings)
    u = bent(found.u, flat)
    sd = np.sqrt(cell.model.gp.predict(cell.model.chart.whiten(u)).var)
    weights = np.minimum(sd, settings.unresolved) * ~under_way(cell, u) + 1e-12
    return u[rng.choice(len(u), n, replace=False, p=weights / weights.sum())]


def tail_batch(cell: Cell, n: int, optimism: float) -> FloatArray:
    """n points that the surrogate is least sure of among those that may belong to the posterior: (n, d).

    They are taken from the warmer stages of the sampling and the heavy draws of the integral, each as if those before
    it had been evaluated.
    """
    model, beta = cell.model, cell.population.beta
    u = np.concatenate([cell.population.warmer, cell.estimate.heavy])
    p = model.gp.predict(model.chart.whiten(u))
    optimistic = beta * model.optimistic(p, optimism) + cell.measure.log_pdf(u)
    worth = np.exp(np.minimum(optimistic - typical_level(cell), 0.0))
    taken = under_way(cell, u)
    cov = model.gp.cov(p, p)
    chosen: list[int] = []
    for _ in range(n):
        var = np.maximum(np.diag(cov), 0.0)
        score = np.where(taken, -1.0, worth * np.sqrt(var))
        score[chosen] = -1.0
        j = int(np.argmax(score))
        chosen.append(j)
        cov -= np.outer(cov[:, j], cov[j]) / (var[j] + 1e-9 * model.gp.kernel.variance)
    return u[chosen]


def under_way(cell: Cell, u: FloatArray) -> BoolArray:
    """Which of the points u (m, d) the cell expects already: (m,). Where all is sure, variances do not tell."""
    return _near(cell.model, cell.model.chart.whiten(u), 1e-4)


def typical_level(cell: Cell) -> float:
    """Median log-density of the cell's samples, at their temperature and before normalisation."""
    u = cell.population.u
    return float(np.median(cell.population.beta * cell.model.predict_mean(u) + cell.measure.log_pdf(u)))


def selection_measure(cell: Cell, rng: np.random.Generator, settings: Batches) -> tuple[FloatArray, FloatArray]:
    """Posterior samples, and a broadened copy of them weighted by an optimistic density.

    The second part looks where the posterior would be if the surrogate were too low there.

    Returns
    -------
    points : (N, d) array
    weights : (N,) array, sum to one
    """
    model, measure, beta, inner = cell.model, cell.measure, cell.population.beta, cell.population.u
    flat, n_broad, share = model.chart.flat, settings.broad_points, settings.broad
    size, root = rng.choice(settings.broad_steps, size=(n_broad, 1)), Chart.of(inner, flat).root
    step = size * (rng.standard_normal((n_broad, model.n_dim)) @ root.T)
    outer = bent(straightened(inner[rng.integers(len(inner), size=n_broad)], flat) + step, flat)
    mean, sd = model.predict(outer)
    optimistic = beta * (mean + np.minimum(sd, settings.broad_sd)) + measure.log_pdf(outer)
    broad = np.exp(np.minimum(optimistic - typical_level(cell), 0.0))
    broad *= share / max(broad.sum(), 1e-300)
    weights = np.concatenate([np.full(len(inner), (1.0 - share) / len(inner)), broad])
    points = np.concatenate([inner, outer])
    keep = (weights > 1e-12) & ~under_way(cell, points)
    if keep.sum() < settings.least_left * n_broad:  # the samples have collapsed onto known points: look everywhere
        cloud = gate_cloud(cell, n_broad, rng, settings.cloud)
        points = np.concatenate([points[keep], measure.sample(n_broad, rng), cloud])
        weights, keep = np.ones(len(points)), ~under_way(cell, points)
    return points[keep], weights[keep] / weights[keep].sum()
