"""A zoo of real models: as people write them, with the priors that they publish, and data simulated from a seed.

``zoo.MODELS["ar1"](seed=3)`` is a `ZooProblem`; every seed is a new problem. The evidence of such models has no closed
form: references by brute force, in two ways that agree within 0.02, are shipped for the first seeds.
"""

from collections.abc import Callable

from basq.problems.zoo import (
    curves,
    dynamics,
    glm,
    hierarchical,
    kinetics,
    mixtures,
    psychometrics,
    regression,
    science,
    signals,
    survival,
    time_series,
)
from basq.problems.zoo.base import ZooProblem
from basq.problems.zoo.references import Reference

Maker = Callable[..., ZooProblem]

_MODULES = (
    regression,
    glm,
    time_series,
    dynamics,
    kinetics,
    signals,
    hierarchical,
    mixtures,
    survival,
    psychometrics,
    curves,
    science,
)
GROUPS: dict[str, tuple[str, ...]] = {m.GROUP: tuple(make.__name__ for make in m.MODELS) for m in _MODULES}
"""Names of the models by what they are about."""

MODELS: dict[str, Maker] = {make.__name__: make for module in _MODULES for make in module.MODELS}
"""Functions of a seed by their names."""

__all__ = ["GROUPS", "MODELS", "Reference", "ZooProblem"]
