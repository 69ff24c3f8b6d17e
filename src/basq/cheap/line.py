"""The integral of a likelihood over one cheap parameter: adaptive quadrature in its own standard space.

A noise scale known to one part in a hundred under a prior of many decades is a spike of width 0.001 in standard space.
So the logarithm is searched for its peaks first, on a grid and ever finer ones about each peak; the grids are the mesh
that quadrature begins with.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from basq.types import FloatArray

LogDensity = Callable[[FloatArray], FloatArray]
"""Points (m,) to logarithms (m,)."""

FARTHEST = 8.5
"""End of the standard normal: 1e-17 of it lies beyond."""
N_GRID = 137
"""Points of the first grid."""
N_ZOOM, MOST_ZOOMS = 9, 40
"""Points of every finer grid about a peak, and most of these grids."""
N_PEAKS = 16
"""Most peaks that are looked at."""
FLAT = 0.2
"""Nats between neighbours at which a peak is resolved."""
NEGLIGIBLE = 45.0
"""Nats below the highest peak at which nothing counts any more."""
STEEP, WIDE = 3.0, 1.0
"""Largest step of the mesh that quadrature begins with: in nats, and in standard deviations of the prior."""
ACCURACY, MOST_SPLITS = 1e-7, 30
"""Relative error at which quadrature ends, and most halvings of an interval."""

# Gauss-Kronrod rule with 7 and 15 points on [-1, 1] (Kronrod 1965)
_HALF = np.array([
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926,
    0.741531185599394439863864773280788, 0.586087235467691130294144691693013, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
])  # fmt: skip
_KRONROD = np.array([
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518,
    0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
])  # fmt: skip
_GAUSS = np.array([
    0.129484966168869693270611432679082, 0.279705391489276667901467771423780, 0.381830050505118944950369775488975,
])  # fmt: skip
NODES = np.concatenate([-_HALF, [0.0], _HALF[::-1]])
KRONROD = np.concatenate([_KRONROD, [0.209482141084727828012999174891714], _KRONROD[::-1]])
GAUSS = np.zeros(15)
GAUSS[1::2] = np.concatenate([_GAUSS, [0.417959183673469387755102040816327], _GAUSS[::-1]])


def integrate_line(log_density: LogDensity) -> tuple[float, float, FloatArray, FloatArray]:
    """Integrate exp(log_density) over the line.

    Returns
    -------
    log_integral : float
        −inf where the density is nowhere positive.
    error : float
        Of it, as quadrature sees it.
    nodes, log_weights : (m,) arrays
        Weighted nodes of the normalised density, in ascending order.
    """
    v, level = peaks(log_density)
    if not np.isfinite(level).any():
        return -np.inf, 0.0, np.empty(0), np.empty(0)
    return _adaptive(log_density, mesh(v, level), float(level.max()))


def peaks(log_density: LogDensity) -> tuple[FloatArray, FloatArray]:
    """Points (m,) in ascending order, dense about every peak, and the log-density there (m,)."""
    v = np.linspace(-FARTHEST, FARTHEST, N_GRID)
    level = log_density(v)
    lower, upper = _brackets(v, level)
    every_v, every_level = [v], [level]
    for _ in range(MOST_ZOOMS):
        if not len(lower):
            break
        grid = np.linspace(lower, upper, N_ZOOM, axis=1)
        found = log_density(grid.ravel()).reshape(grid.shape)
        every_v.append(grid.ravel())
        every_level.append(found.ravel())
        best, rows = found.argmax(axis=1), np.arange(len(grid))
        low, high = np.maximum(best - 1, 0), np.minimum(best + 1, N_ZOOM - 1)
        drop = found[rows, best] - np.minimum(found[rows, low], found[rows, high])
        unresolved = ~(drop < FLAT) & (upper - lower > 1e-12)
        lower, upper = grid[rows, low][unresolved], grid[rows, high][unresolved]
    order = np.unique(np.concatenate(every_v), return_index=True)[1]
    return np.concatenate(every_v)[order], np.concatenate(every_level)[order]


def _brackets(v: FloatArray, level: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intervals about the highest local maxima of a grid."""
    padded = np.concatenate([[-np.inf], level, [-np.inf]])
    top = np.flatnonzero((level >= padded[:-2]) & (level >= padded[2:]) & np.isfinite(level))
    top = top[np.argsort(-level[top], kind="stable")[:N_PEAKS]]
    return v[np.maximum(top - 1, 0)], v[np.minimum(top + 1, len(v) - 1)]


def mesh(v: FloatArray, level: FloatArray) -> FloatArray:
    """Of points (m,) and their levels (m,), those that quadrature begins with: (k, 2) intervals that matter."""
    counts = level > level.max() - NEGLIGIBLE
    kept = [0]
    for k in range(1, len(v)):
        last = kept[-1]
        near = np.isclose(level[k], level[last], atol=STEEP, rtol=0.0) or not (counts[k] or counts[last])
        if not (near and v[k] - v[last] < WIDE) or k == len(v) - 1 or counts[k] != counts[last]:
            kept += [k - 1, k] if k - 1 > last and not near else [k]
    index = np.unique(kept)
    intervals = np.stack([v[index[:-1]], v[index[1:]]], axis=1)
    return intervals[counts[index[:-1]] | counts[index[1:]]]


def _adaptive(
    log_density: LogDensity, intervals: FloatArray, top: float
) -> tuple[float, float, FloatArray, FloatArray]:
    """Gauss-Kronrod on all intervals (k, 2) at once, halving those that are not accurate yet."""
    nodes, log_terms, done, error = [], [], 0.0, 0.0
    for split in range(MOST_SPLITS):
        half = 0.5 * (intervals[:, 1] - intervals[:, 0])
        points = intervals.mean(axis=1)[:, None] + half[:, None] * NODES
        level = log_density(points.ravel()).reshape(points.shape)
        values = np.exp(np.minimum(level - top, 600.0))
        fine, coarse = half * (values @ KRONROD), half * (values @ GAUSS)
        wrong = np.abs(fine - coarse)
        total = done + fine.sum()
        good = (wrong <= ACCURACY * max(total, 1e-300) / len(wrong)) | (split == MOST_SPLITS - 1)
        nodes.append(points[good].ravel())
        log_terms.append((level[good] + np.log(half[good, None] * KRONROD)).ravel())
        done, error = done + float(fine[good].sum()), error + float(wrong[good].sum())
        rest = intervals[~good]
        if not len(rest):
            break
        middle = rest.mean(axis=1)
        intervals = np.concatenate([np.stack([rest[:, 0], middle], axis=1), np.stack([middle, rest[:, 1]], axis=1)])
    v, log_w = np.concatenate(nodes), np.concatenate(log_terms)
    order = np.argsort(v, kind="stable")
    log_total = float(logsumexp(log_w))
    return log_total, error / max(done, 1e-300), v[order], log_w[order] - log_total
