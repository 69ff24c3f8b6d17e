"""What a prior is made of, and what of it is missing where it was read from a file."""

from collections.abc import Iterable
from typing import Any

from basq.plain import Absent
from basq.prior.density import DensityMap
from basq.prior.joint import JointMap
from basq.prior.maps import PartOfTransform, SeparableMap, StandardMap, TransformMap
from basq.prior.marginals import NewStyle, ScipyMarginal


def parts_of(own: StandardMap) -> tuple[Any, ...]:
    """The marginals of a map, and the functions of the user's, in order."""
    if isinstance(own, JointMap):
        return (*parts_of(own.first), *parts_of(own.second))
    if isinstance(own, SeparableMap):
        return own.coordinates
    if isinstance(own, TransformMap):
        return (own.transform,)
    return (own.density.function,) if isinstance(own, DensityMap) else ()


def absent_among(parts: Iterable[Any]) -> tuple[Absent, ...]:
    """Those that a file did not hold."""
    return tuple(part for part in map(_given, parts) if isinstance(part, Absent))


def _given(part: Any) -> Any:
    """What the user gave: the distribution of a marginal, the function of a part of a transform."""
    if isinstance(part, ScipyMarginal):
        part = part.dist
    if isinstance(part, NewStyle):
        part = part.new
    return part.transform if isinstance(part, PartOfTransform) else part
