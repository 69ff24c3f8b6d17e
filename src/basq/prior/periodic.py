"""Parameters on a circle: a uniform prior whose ends meet, and circles turned in standard space."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from basq.errors import InputError
from basq.prior.marginals import Uniform
from basq.types import BoolArray, FloatArray

LEAST_PROBABILITY = 1e-15
"""Distance of a probability from zero and one, so that u is finite."""
PLACES = np.arange(64) / 64.0
"""Where a circle may be cut."""
SHARPNESS = 20.0
"""Of the kernel that looks for an empty place: it is a fifteenth of a circle wide."""


class Periodic(Uniform):
    """Uniform on [lo, hi), whose ends meet."""

    @property
    def label(self) -> str:
        return f"periodic({self.lo:g}, {self.hi:g})"


def periodic(lo: float, hi: float) -> Periodic:
    """Return the prior of an angle, a phase or a time of day: uniform on [lo, hi), and the two ends are one point.

    Parameters
    ----------
    lo, hi : float
        Finite, lo < hi.

    Examples
    --------
    >>> import basq
    >>> basq.Prior({"phase": basq.periodic(0, 1)})
    Prior(phase ~ periodic(0, 1))
    """
    try:
        low, high = float(lo), float(hi)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(high - low) and low < high):
        raise InputError(
            f"periodic({lo!r}, {hi!r}): give two finite numbers, the first one less, such as periodic(0, 2 * np.pi)."
        )
    return Periodic(low, high)


@dataclass(frozen=True)
class Turn:
    """Circles turned in standard space, to be cut elsewhere: Φ(u) + shift modulo one takes the place of Φ(u).

    The prior N(0, I) stays what it is.

    Attributes
    ----------
    shift : (d,) array
        In turns; NaN for parameters that are not periodic.
    """

    shift: FloatArray

    @classmethod
    def opposite(cls, u: FloatArray, periodic: BoolArray) -> "Turn":
        """Cut opposite to a point (d,)."""
        return cls(np.where(periodic, (0.5 - ndtr(u)) % 1.0, np.nan))

    def of(self, u: FloatArray) -> FloatArray:
        """Turn points (n, d)."""
        return self._turned(u, self.shift)

    def back(self, u: FloatArray) -> FloatArray:
        """Inverse of `of`."""
        return self._turned(u, -self.shift)

    def _turned(self, u: FloatArray, shift: FloatArray) -> FloatArray:
        on, out = ~np.isnan(shift), u.copy()
        p = (ndtr(u[:, on]) + shift[on]) % 1.0
        out[:, on] = ndtri(np.clip(p, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))
        return out

    def better(self, u: FloatArray, weights: FloatArray) -> "Turn | None":
        """Cut where there is little, if there is much where the circles are cut now; None if they may stay.

        Parameters
        ----------
        u : (n, d) array
            Of the posterior, not turned.
        weights : (n,) array
            Sum to one.
        """
        shift = self.shift.copy()
        for i in np.flatnonzero(~np.isnan(shift)):
            p = ndtr(u[:, i])
            cut = emptiest(p, weights)
            here, there = crowd(np.array([-shift[i] % 1.0, cut]), p, weights)
            if here > 0.1 and here > 4.0 * there:
                shift[i] = -cut % 1.0
        return None if np.array_equal(shift, self.shift, equal_nan=True) else Turn(shift)


def crowd(places: FloatArray, p: FloatArray, weights: FloatArray) -> FloatArray:
    """Density at places (k,) of a circle of length one, relative to an even one, of points p (n,) with weights (n,)."""
    kernel = np.exp(SHARPNESS * (np.cos(2.0 * np.pi * (places[:, None] - p)) - 1.0))
    out: FloatArray = kernel @ weights / np.sqrt(1.0 / (2.0 * np.pi * SHARPNESS))
    return out


def emptiest(p: FloatArray, weights: FloatArray) -> float:
    """Where a circle of length one is emptiest, of points p (n,) with weights (n,)."""
    return float(PLACES[np.argmin(crowd(PLACES, p, weights))])
