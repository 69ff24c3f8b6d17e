"""A search for hyperparameters that begins with the curvature the last one ended with.

BFGS within bounds. A batch changes the best hyperparameters a little and the curvature around them hardly at all, so
that a search which remembers it takes two or three steps, and knows from the first on how much is left to gain.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from basq.types import FloatArray

FIRST_STEP, LONGEST = 0.03, 2.0
"""Length of the first step when nothing is known of the curvature, and most that any parameter moves in a step."""

ENOUGH, WINDOW = 0.1, 3
"""The search ends when three steps together gain less than this many nats. Data tell hyperparameters apart by nats, and
the search after the next batch goes on from here. One step alone proves nothing: the first are often tiny."""

LEFT = 0.02
"""A search that remembers a curvature also ends, after its first step, when that promises less than so many nats."""

SHORTENED = 8
"""Most attempts at one step, each shorter than the last."""

Objective = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True)
class Optimum:
    """Where a search ended.

    Attributes
    ----------
    theta : (p,) array
    value : float
    spread : (p, p) array
        Inverse of the matrix of second derivatives, as far as the search has seen it: about the covariance of what the
        data leave open.
    """

    theta: FloatArray
    value: float
    spread: FloatArray


def descend(
    objective: Objective,
    theta: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    max_steps: int,
    spread: FloatArray | None = None,
) -> Optimum:
    """Minimise a function, given with its gradient, within bounds.

    Parameters
    ----------
    objective : function of a (p,) array
        Its value, in nats, and gradient (p,).
    theta : (p,) array
        Where to begin; moved within the bounds (p,).
    spread : (p, p) array, optional
        That of the last search.
    """
    recalled = spread is not None
    theta = np.clip(theta, lower, upper)
    value, gradient = objective(theta)
    if spread is None:
        spread = np.eye(len(theta)) * min(FIRST_STEP / max(float(np.linalg.norm(gradient)), 1e-300), 1.0)
    trail, n_updates = [value], 0
    for _ in range(max_steps):
        # a parameter that is pushed against its bound stays there
        free = np.where(gradient > 0.0, theta > lower, theta < upper)
        step = -(spread @ (gradient * free)) * free
        left = -0.5 * float(gradient @ step)
        slow = len(trail) > WINDOW and trail[-1 - WINDOW] - value < ENOUGH
        near = recalled and n_updates > 0 and left < LEFT
        if slow or near:
            break
        step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        found = _shortened(objective, theta, (value, gradient), step, lower, upper)
        if found is None:
            break
        moved, change = found[0] - theta, found[2] - gradient
        theta, value, gradient = found
        trail.append(value)
        if moved @ change > 1e-8 * np.linalg.norm(moved) * np.linalg.norm(change):
            if not recalled:  # where nothing was seen yet, it is of the size of what was seen last
                spread *= float(moved @ change / (change @ spread @ change))
            spread, n_updates = _updated(spread, moved, change), n_updates + 1
    return Optimum(theta, value, spread)


def _shortened(
    objective: Objective,
    theta: FloatArray,
    here: tuple[float, FloatArray],
    step: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, float, FloatArray] | None:
    """Shorten a step (p,) until it gains something; where it leads to, with value and gradient as given of here."""
    (value, gradient), length = here, 1.0
    for _ in range(SHORTENED):
        there = np.clip(theta + length * step, lower, upper)
        found, slope = objective(there), min(float(gradient @ (there - theta)), 0.0)  # bounds may bend it upwards
        if found[0] <= value + 1e-4 * slope:
            return there, *found
        # the lowest point of the parabola through both values with this slope
        lowest = -0.5 * slope / (found[0] - value - slope)
        length *= min(max(lowest, 0.1), 0.5)
    return None


def _updated(spread: FloatArray, moved: FloatArray, change: FloatArray) -> FloatArray:
    """BFGS: the nearest spread (p, p) that maps a change of the gradient (p,) to the move (p,) that caused it."""
    scale = 1.0 / float(moved @ change)
    left = np.eye(len(moved)) - scale * np.outer(moved, change)
    return left @ spread @ left.T + scale * np.outer(moved, moved)
