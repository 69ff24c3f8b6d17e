"""Ways from one point to another: two hills are separate only if every way between them is low somewhere.

The straight way between two points of a curved ridge leaves it, and crosses a valley that separates nothing.
"""

from collections.abc import Callable

import numpy as np

from basq.types import FloatArray

VALLEY = 3.0
"""Nats that a way must fall below its ends to cross a valley."""
N_BENDS = 3
"""Most bends of a way."""
N_STEPS = 8
"""Steps between two bends."""


def best_way(
    level: Callable[[FloatArray], FloatArray], start: FloatArray, end: FloatArray, through: FloatArray
) -> FloatArray:
    """Points of the way whose lowest point is highest, its ends left out: (m, d).

    Parameters
    ----------
    level : callable
        Levels at points, (n, d) -> (n,).
    start, end : (d,) arrays
    through : (k, d) array
        Where the way may bend. The part that holds its lowest point is bent until this helps no more.
    """
    corners, parts = [start, end], [straight_ways(start, end[None])[0]]
    lows = [float(level(parts[0]).min())]
    for _ in range(N_BENDS):
        i = int(np.argmin(lows))
        bent = np.stack([straight_ways(corners[i], through), straight_ways(corners[i + 1], through)[:, ::-1]])
        bent_lows = level(bent.reshape(-1, len(start))).reshape(bent.shape[:3]).min(axis=2)
        k = int(bent_lows.min(axis=0).argmax())
        if bent_lows[:, k].min() <= lows[i]:
            break
        corners.insert(i + 1, through[k])
        parts[i : i + 1] = bent[:, k]
        lows[i : i + 1] = bent_lows[:, k].tolist()
    return np.concatenate(parts)


def straight_ways(start: FloatArray, ends: FloatArray) -> FloatArray:
    """Points between a point (d,) and each of others (k, d), in a straight line: (k, m, d)."""
    steps = np.arange(1, N_STEPS)[:, None] / N_STEPS
    return start + steps * (ends - start)[:, None]
