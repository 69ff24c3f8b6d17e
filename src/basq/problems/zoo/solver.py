"""A fixed-step solver of ordinary differential equations for many parameters at once."""

from collections.abc import Callable

import numpy as np

from basq.types import FloatArray

Slope = Callable[[FloatArray], FloatArray]


def trajectory(slope: Slope, start: FloatArray, n_times: int, n_steps: int, step: float) -> FloatArray:
    """States at the start and after each of n_times stretches of n_steps steps, by the classical Runge–Kutta method.

    Parameters
    ----------
    slope : callable
        Maps states (k, n), one column for each set of parameters, to their derivatives (k, n).
    start : (k, n) array
    n_times, n_steps : int
    step : float

    Returns
    -------
    (n_times + 1, k, n) array
    """
    out = np.empty((n_times + 1, *start.shape))
    out[0] = state = start
    for i in range(n_times):
        for _ in range(n_steps):
            k1 = slope(state)
            k2 = slope(state + 0.5 * step * k1)
            k3 = slope(state + 0.5 * step * k2)
            k4 = slope(state + step * k3)
            state = state + step / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        out[i + 1] = state
    return out
