"""Two independent priors as one."""

from dataclasses import dataclass

import numpy as np

from basq.prior.maps import SeparableMap, StandardMap
from basq.prior.marginals import Coordinate
from basq.types import FloatArray


@dataclass(frozen=True)
class JointMap:
    """Two maps side by side, the first one's coordinates first.

    Attributes
    ----------
    first, second : StandardMap
    """

    first: StandardMap
    second: StandardMap

    @classmethod
    def of(cls, first: StandardMap, second: StandardMap) -> "JointMap | SeparableMap":
        """Side by side; marginals stay marginals."""
        if isinstance(first, SeparableMap) and isinstance(second, SeparableMap):
            return SeparableMap(first.coordinates + second.coordinates)
        return cls(first, second)

    @property
    def n_dim(self) -> int:
        return self.first.n_dim + self.second.n_dim

    @property
    def bounds(self) -> FloatArray:
        return np.concatenate([self.first.bounds, self.second.bounds])

    @property
    def coordinates(self) -> tuple[Coordinate, ...] | None:
        both = self.first.coordinates, self.second.coordinates
        return None if both[0] is None or both[1] is None else (*both[0], *both[1])

    def describe(self, names: tuple[str, ...]) -> str:
        d = self.first.n_dim
        return f"{self.first.describe(names[:d])}, {self.second.describe(names[d:])}"

    def _parts(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return points[:, : self.first.n_dim], points[:, self.first.n_dim :]

    def from_standard(self, u: FloatArray) -> FloatArray:
        a, b = self._parts(u)
        return np.concatenate([self.first.from_standard(a), self.second.from_standard(b)], axis=1)

    def to_standard(self, x: FloatArray) -> FloatArray:
        a, b = self._parts(x)
        return np.concatenate([self.first.to_standard(a), self.second.to_standard(b)], axis=1)

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        a, b = self._parts(u)
        return self.first.log_jacobian(a) + self.second.log_jacobian(b)

    def log_pdf(self, x: FloatArray) -> FloatArray:
        a, b = self._parts(x)
        return self.first.log_pdf(a) + self.second.log_pdf(b)
