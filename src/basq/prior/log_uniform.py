"""A shorthand for the prior of scales: rates, widths and masses that may be of any order."""

from typing import Any

import numpy as np
from scipy import stats

from basq.errors import InputError


def log_uniform(lo: float, hi: float) -> Any:
    """Return the prior of a scale: its logarithm is uniform between those of lo and hi.

    Parameters
    ----------
    lo, hi : float
        Finite, 0 < lo < hi.

    Examples
    --------
    >>> import basq
    >>> basq.Prior({"rate": basq.log_uniform(1e-3, 10)})
    Prior(rate ~ loguniform(0.001, 10))
    """
    try:
        low, high = float(lo), float(hi)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0.0 < low < high < np.inf:
        raise InputError(f"log_uniform({lo!r}, {hi!r}): give two positive numbers, the first one less.")
    return stats.loguniform(low, high)
