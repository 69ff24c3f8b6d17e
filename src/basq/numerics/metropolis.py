"""Metropolis moves of a whole population, which leave a density invariant."""

from collections.abc import Callable

import numpy as np

from basq.numerics.linalg import cholesky
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
    state, level = state.copy(), level.copy()
    # each half moves while the other stands still: moved together, by each other, they would contract
    halves = np.array_split(np.arange(n), 2)
    for k in range(n_moves):
        mine, others = (halves[0], halves[1]) if k // 2 % 2 else (halves[1], halves[0])
        for rows, rest in ((mine, others), (others, mine)):
            m = len(rows)
            if k % 2 and len(rest) > 1:
                # differences of two members carry the shape of ridges and jump between modes
                a, b = rng.choice(rest, size=(2, m))
                step = rng.choice([1.0, 0.5], size=(m, 1)) * (state[a] - state[b])
                step += 0.05 * rng.standard_normal((m, d)) @ root.T
            else:
                step = rng.choice([1.0, 0.3], size=(m, 1)) * (rng.standard_normal((m, d)) @ root.T)
            trial = state[rows] + step
            trial_level = log_density(trial)
            accept = np.log(rng.random(m)) < trial_level - level[rows]
            state[rows[accept]], level[rows[accept]] = trial[accept], trial_level[accept]
    return state
