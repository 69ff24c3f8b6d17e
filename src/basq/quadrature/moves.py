"""Metropolis moves of a whole population, which leave a density invariant."""

from collections.abc import Callable

import numpy as np

from basq.linalg import cholesky
from basq.types import FloatArray

LogDensity = Callable[[FloatArray], FloatArray]


def metropolis(
    log_density: LogDensity,
    state: FloatArray,
    cov: FloatArray,
    rng: np.random.Generator,
    *,
    n_moves: int = 20,
) -> FloatArray:
    """Move every member of a population n_moves times.

    Parameters
    ----------
    log_density : callable, (n, d) -> (n,)
    state : (n, d) array
    cov : (d, d) array
        Shape of the small random steps.

    Returns
    -------
    (n, d) array
    """
    n, d = state.shape
    level = log_density(state)
    root = cholesky(cov)[0] * (2.38 / np.sqrt(d))
    for k in range(n_moves):
        if k % 2:
            # differences of two other members carry the shape of ridges and jump between modes
            a, b = rng.integers(n, size=(2, n))
            step = rng.choice([1.0, 0.5], size=(n, 1)) * (state[a] - state[b])
            step += 0.05 * rng.standard_normal((n, d)) @ root.T
        else:
            step = rng.choice([1.0, 0.3], size=(n, 1)) * (rng.standard_normal((n, d)) @ root.T)
        trial = state + step
        trial_level = log_density(trial)
        accept = np.log(rng.random(n)) < trial_level - level
        state, level = np.where(accept[:, None], trial, state), np.where(accept, trial_level, level)
    return state
