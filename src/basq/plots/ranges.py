"""What is shown of a parameter: most of its mass, hard edges that are near, and what lies beyond them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from basq.types import FloatArray


def shown_range(values: FloatArray, bounds: FloatArray, truth: float) -> tuple[float, float]:
    """All but a thousandth of the mass at either end, a truth that is not far off, and a hard edge if it is near."""
    first, last = np.quantile(values, [0.001, 0.999])
    span = float(last - first) or abs(float(first)) or 1.0
    if abs(truth - 0.5 * (first + last)) < 2.0 * span:
        first, last = min(first, truth), max(last, truth)
    start, end = float(first) - 0.06 * span, float(last) + 0.06 * span
    return max(start, float(bounds[0]) - 0.04 * span), min(end, float(bounds[1]) + 0.04 * span)


def inside(shown: Sequence[float] | FloatArray, bounds: FloatArray) -> tuple[float, float]:
    """The part of a range within bounds, less a hair: the very edge of a prior is infinitely far in standard space."""
    low, high = np.clip(shown, *bounds)
    hair = 1e-3 * (high - low)
    return float(low + hair * (low == bounds[0])), float(high - hair * (high == bounds[1]))


def hatch_outside(draw: Any, bounds: FloatArray, shown: FloatArray) -> None:
    """Hatch what lies outside the prior's support."""
    for start, end in ((shown[0], bounds[0]), (bounds[1], shown[1])):
        if np.isfinite(start) and np.isfinite(end) and end > start:
            draw(start, end, facecolor="#eeeeee", edgecolor="#bbbbbb", hatch="////", lw=0.0, zorder=1)
