"""The error of log Z: what is added up, and what is said of it."""

import numpy as np

from basq.auto.audit import calibration
from basq.auto.cells import Total
from basq.auto.settings import Errors, Settings
from basq.method import Audit


def unseen(n_modes: int, n_explored: int, n_dim: int, settings: Errors) -> float:
    """Standard deviation of log Z for modes not found yet, from as many points that looked for them.

    Notes
    -----
    Of w basins found from n starts, w (w + 1) / (n − w − 2) more are expected (Boender and Rinnooy Kan 1987), each
    here of the mean size of those found. A start there is a search to the end; a single point shows a basin only where
    it lies well inside, which is the rarer the more dimensions there are.
    """
    if not settings.unseen:
        return 0.0
    n_starts = n_explored / max(n_dim - settings.starts, 1)
    more = n_modes * (n_modes + 1) / max(n_starts - n_modes - 2, 1.0)
    return float(np.sqrt(more) * np.log1p(1.0 / n_modes))


def fixed_terms(total: Total, settings: Errors) -> tuple[float, float]:
    """What more calls do not lower of the standard deviation of log Z: Monte Carlo error, and a floor."""
    return settings.monte_carlo * total.monte_carlo, settings.floor


def out_of_reach(least: float, dlogz: float) -> str:
    """What to say where calls cannot reach a target (0: spend them); what can leaves a little to the surrogate.

    ``least`` is what more calls do not lower of the standard deviation of log Z.
    """
    if not 0.0 < dlogz < least:
        return ""
    return f" (more calls do not lower {least:.2g} of it: give dlogz = {np.ceil(110.0 * least) / 100.0:g} or more)"


def standard_deviation(
    total: Total, audits: tuple[Audit, ...], before: tuple[float, float] | None, settings: Settings
) -> float:
    """Standard deviation of log Z.

    Surrogate variance times the audits' calibration, a share of the C/2 term, Monte Carlo error, half the last change,
    the mass at the edge of zero likelihood and half as much again, what the surrogate promises above its ceiling, and a
    floor. ``before`` is log Z before the last batch, with its own standard deviation.
    """
    own, measured = settings.error, calibration(audits, settings.audit)
    factor = float(np.clip(measured, 1.0, own.largest)) if np.isfinite(measured) else own.untested
    drift = abs(total.log_mean - before[0]) if before else 0.0
    monte_carlo, floor = fixed_terms(total, own)
    jensen = own.jensen * total.jensen + own.taken_off * total.taken_off
    terms = (jensen, monte_carlo, own.drift * drift, own.wall * total.wall, total.tamed, floor)
    return float(np.sqrt(factor * total.surrogate_var + sum(t * t for t in terms)))
