"""Points that are handed out to be evaluated."""

from dataclasses import dataclass

from basq.types import FloatArray, IntArray


@dataclass(frozen=True)
class Points:
    """Points to evaluate.

    Attributes
    ----------
    ids : (n,) int array
        Under which their values are told.
    x : (n, d) array
        In the user's parameters.
    names : tuple of str
        Of the parameters.
    """

    ids: IntArray
    x: FloatArray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def as_dicts(self) -> list[dict[str, float]]:
        """Every point by the names of its parameters."""
        return [dict(zip(self.names, map(float, row), strict=True)) for row in self.x]
