"""Warps: how likelihood values become the data of a Gaussian process."""

from dataclasses import dataclass

import numpy as np

from basq.types import FloatArray


@dataclass(frozen=True)
class SquareRoot:
    """ℓ = α + ½ ỹ², so that a Gaussian ỹ keeps ℓ above α (WSABI, Gunter et al. 2014).

    Attributes
    ----------
    offset : float
        α, at or below every value seen.
    """

    offset: float

    @classmethod
    def below(cls, values: FloatArray) -> "SquareRoot":
        """Offset a fifth of |min| below the smallest value.

        For likelihoods, where min ≥ 0, this is the paper's α = 0.8 min; it stays below the data for integrands
        that go negative, where 0.8 min would not.
        """
        lowest = float(values.min())
        return cls(lowest - 0.2 * abs(lowest))

    def forward(self, values: FloatArray) -> FloatArray:
        """Warp values (n,) to GP data (n,)."""
        out: FloatArray = np.sqrt(2.0 * np.maximum(values - self.offset, 0.0))
        return out

    def inverse(self, y: FloatArray) -> FloatArray:
        """Likelihood values of warped data."""
        return self.offset + 0.5 * y * y


@dataclass(frozen=True)
class ShiftedLog:
    """y = log(ℓ/γ + 1), which stays finite where ℓ is zero (Osborne et al. 2012).

    Attributes
    ----------
    shift : float
        γ > 0, in units of ℓ.
    """

    shift: float

    def forward(self, values: FloatArray) -> FloatArray:
        """Warp values (n,) to GP data (n,)."""
        out: FloatArray = np.log1p(np.maximum(values, 0.0) / self.shift)
        return out

    def inverse(self, y: FloatArray) -> FloatArray:
        """Likelihood values of warped data."""
        out: FloatArray = self.shift * np.expm1(y)
        return out
