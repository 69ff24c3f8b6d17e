"""The error of log Z: what is added up, and what is said of it."""

import numpy as np

from basq.auto.audit import calibration
from basq.auto.cells import Total
from basq.method import Audit

JENSEN = 0.4
"""Share of the C/2 correction that counts as error."""
WALL = 1.5
"""Standard deviation of log Z per mass that may lie where the likelihood is zero: a wall is shifted as a whole."""


def unseen(n_modes: int, n_explored: int, n_dim: int) -> float:
    """Standard deviation of log Z for modes not found yet, once there is more than one.

    Notes
    -----
    Of w basins found from n starts, w (w + 1) / (n − w − 2) more are expected (Boender and Rinnooy Kan 1987), each
    here of the mean size of those found. A start there is a search to the end; a single point shows a basin only where
    it lies well inside, which is the rarer the more dimensions there are.
    """
    if n_modes == 1:
        return 0.0
    n_starts = n_explored / max(n_dim - 2, 1)
    more = n_modes * (n_modes + 1) / max(n_starts - n_modes - 2, 1.0)
    return float(np.sqrt(more) * np.log1p(1.0 / n_modes))


def fixed_terms(total: Total) -> tuple[float, float]:
    """What more calls do not lower of the standard deviation of log Z: Monte Carlo error, and a floor."""
    return 1.2 * total.monte_carlo, 0.005


def target(total: Total, dlogz: float) -> str:
    """A target in words, and one that leaves a little to the surrogate if calls cannot reach it (0: spend them)."""
    least = float(np.hypot(*fixed_terms(total)))
    vain = f" (more calls do not lower {least:.2g} of it: give dlogz = {np.ceil(110.0 * least) / 100.0:g} or more)"
    return f"dlogz = {dlogz:g}{vain if 0.0 < dlogz < least else ''}"


def standard_deviation(total: Total, audits: tuple[Audit, ...], trail: tuple[tuple[float, float], ...]) -> float:
    """Standard deviation of log Z.

    Surrogate variance times the audits' calibration, a share of the C/2 term, Monte Carlo error, half the last change,
    the mass at the edge of zero likelihood and half as much again, what the surrogate promises above its ceiling, and a
    floor.
    """
    measured = calibration(audits)
    factor = float(np.clip(measured, 1.0, 25.0)) if np.isfinite(measured) else 4.0
    drift = abs(total.log_mean - trail[-1][0]) if trail else 0.0
    monte_carlo, floor = fixed_terms(total)
    terms = (JENSEN * total.jensen, monte_carlo, 0.5 * drift, WALL * total.wall, total.tamed, floor)
    return float(np.sqrt(factor * total.surrogate_var + sum(t * t for t in terms)))
