"""The part of a batch that integrates: recombination of a cell's posterior under its surrogate's covariance."""

import numpy as np

from basq.cells import Cell
from basq.selection.nystrom import nystrom_features
from basq.selection.recombination import recombine
from basq.surrogate.reference import Reference
from basq.types import FloatArray

TAIL = 0.3
"""Share of the selection measure that is broadened beyond the posterior."""


def cell_batch(cell: Cell, n: int, n_cells: int, rng: np.random.Generator) -> FloatArray:
    """n new points for a cell: a cloud while it has too few for a model, then what integrates it best."""
    d = cell.model.n_dim
    if n_cells > 1 and cell.n_inside < d + 3:
        return cell.gate.mean + 2.0 * rng.standard_normal((n, d)) @ cell.gate.root.T
    points, weights = selection_measure(cell, rng)
    if cell.model.feasible is None or n < 3:
        return integrate_batch(cell, points, weights, n, rng)
    # a third goes to the edge of the zero-likelihood region, which the samples alone would leave blurred
    p = cell.model.feasibility(points)
    edge = weights * p * (1.0 - p) + 1e-300
    chosen = rng.choice(len(points), n // 3, replace=False, p=edge / edge.sum())
    rest = np.setdiff1d(np.arange(len(points)), chosen)
    others = integrate_batch(cell, points[rest], weights[rest] / weights[rest].sum(), n - n // 3, rng)
    return np.concatenate([points[chosen], others])


def integrate_batch(
    cell: Cell, points: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """n points that integrate the surrogate's leading uncertainties like the weighted ones do: (n, d)."""
    if n < 3:
        return points[rng.choice(len(points), n, replace=False, p=weights)]
    order = rng.permutation(len(points))  # the tree groups neighbours: none should be alike
    points, weights = points[order], weights[order]
    gp = cell.model.gp
    p = gp.predict(cell.model.reference.whiten(points))
    features = nystrom_features(gp, p, n - 1, max(200, 3 * n), rng, weights=weights, randomised=False)
    index = recombine(features.values, weights).index
    spare = np.setdiff1d(np.arange(len(points)), index)
    short = max(n - len(index), 0)
    extra = rng.choice(spare, short, replace=False, p=weights[spare] / weights[spare].sum())
    return points[np.concatenate([index, extra])[:n]]


def selection_measure(cell: Cell, rng: np.random.Generator, n_broad: int = 1500) -> tuple[FloatArray, FloatArray]:
    """Posterior samples, and a broadened copy of them weighted by an optimistic density.

    The second part looks where the posterior would be if the surrogate were too low there.

    Returns
    -------
    points : (N, d) array
    weights : (N,) array, sum to one
    """
    model, measure, beta, inner = cell.model, cell.measure, cell.population.beta, cell.population.u
    root = Reference.of(inner).root
    size = rng.choice([0.3, 0.7, 1.2], size=(n_broad, 1))
    outer = inner[rng.integers(len(inner), size=n_broad)] + size * (
        rng.standard_normal((n_broad, model.n_dim)) @ root.T
    )
    mean, sd = model.predict(outer)
    typical = np.median(beta * model.predict(inner)[0] + measure.log_pdf(inner))
    optimistic = beta * (mean + np.minimum(sd, 3.0)) + measure.log_pdf(outer)
    broad = np.exp(np.minimum(optimistic - typical, 0.0))
    weights = np.concatenate([np.full(len(inner), (1.0 - TAIL) / len(inner)), TAIL * broad / max(broad.sum(), 1e-300)])
    keep = weights > 1e-12
    return np.concatenate([inner, outer])[keep], weights[keep] / weights[keep].sum()
