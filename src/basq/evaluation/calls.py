"""Some calls of a store as columns of one table."""

from dataclasses import dataclass

import numpy as np

from basq.evaluation.call import UNKNOWN
from basq.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Calls:
    """Some calls as columns.

    Attributes
    ----------
    table : (n, 5 + 2 d) array
        id, batch, explores, log-likelihood (NaN where there is none), noise, x, u.
    """

    table: FloatArray

    @classmethod
    def none(cls, n_dim: int) -> "Calls":
        return cls(np.empty((0, 5 + 2 * n_dim)))

    def __len__(self) -> int:
        return len(self.table)

    def join(self, other: "Calls") -> "Calls":
        return Calls(np.concatenate([self.table, other.table]))

    @property
    def ids(self) -> IntArray:
        return self.table[:, 0].astype(np.intp)

    @property
    def batch(self) -> IntArray:
        return self.table[:, 1].astype(np.intp)

    @property
    def explores(self) -> BoolArray:
        return self.table[:, 2].astype(bool)

    @property
    def log_likelihood(self) -> FloatArray:
        return self.table[:, 3]

    @property
    def noise(self) -> FloatArray:
        return self.table[:, 4]

    @property
    def x(self) -> FloatArray:
        return self.table[:, 5 : 5 + self._n_dim]

    @property
    def u(self) -> FloatArray:
        return self.table[:, 5 + self._n_dim :]

    def silent(self, on_error: str) -> BoolArray:
        """Which calls, (n,), say nothing: those that failed; if that means zero, only those ended from outside."""
        failed: BoolArray = np.isnan(self.log_likelihood)
        return failed & (self.noise == UNKNOWN) if on_error == "zero" else failed

    @property
    def _n_dim(self) -> int:
        return (self.table.shape[1] - 5) // 2
