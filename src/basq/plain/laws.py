"""Frozen distributions of `scipy.stats` by an explicit recipe: which one, and its parameters."""

from typing import Any

from scipy import stats

Recipe = tuple[Any, ...]
"""A word for the kind, and what belongs to it: texts, numbers, arrays, and recipes of others inside."""

_SHIFTED = "ShiftedScaledDistribution"
_TRUNCATED = "TruncatedDistribution"


def recipe(law: Any) -> Recipe | None:
    """The recipe of a distribution; None if there is none, as for a family of the user's own."""
    family = getattr(law, "dist", None)
    if isinstance(family, stats.rv_histogram):
        options = family._updated_ctor_param()
        return "histogram", *options["histogram"], options["density"], dict(law.kwds)
    if isinstance(family, stats.rv_continuous):
        return ("frozen", family.name, tuple(law.args), dict(law.kwds)) if _is_scipys(family) else None
    return _newer(law) if hasattr(law, "iccdf") else None


def _is_scipys(family: stats.rv_continuous) -> bool:
    """Whether it is the family that scipy has under this name, and not one derived from it."""
    own = getattr(stats, family.name, None)
    if own is None or type(own) is not type(family):
        return False
    here, there = family._updated_ctor_param(), own._updated_ctor_param()
    return all(here[key] == there[key] for key in ("a", "b", "shapes"))


def _newer(law: Any) -> Recipe | None:
    """Of scipy's newer kind: a class by its name, perhaps shifted, scaled or truncated."""
    name, parameters = type(law).__name__, dict(getattr(law, "_original_parameters", {}))
    own = name.removeprefix("Standard")  # what scipy makes of a Normal() without parameters
    if isinstance(law, getattr(stats, own, ())) and type(law).__module__ == getattr(stats, own).__module__:
        return "newer", own, parameters
    inner = _newer(law._dist) if name in (_SHIFTED, _TRUNCATED) else None
    return None if inner is None else (name, inner, parameters)


def made(kind: str, *parts: Any) -> Any:
    """The distribution of a recipe; KeyError, TypeError or ValueError if it is none."""
    if kind == "frozen":
        name, args, kwds = parts
        family = getattr(stats, name, None) if isinstance(name, str) else None
        if not isinstance(family, stats.rv_continuous):
            raise ValueError(f"scipy.stats has no continuous distribution {name!r}")
        return family(*args, **kwds)
    if kind == "histogram":
        counts, edges, density, kwds = parts
        return stats.rv_histogram((counts, edges), density=density)(**kwds)
    if kind == "newer":
        name, parameters = parts
        family = getattr(stats, name, None) if isinstance(name, str) else None
        if not (isinstance(family, type) and hasattr(family, "iccdf")):
            raise ValueError(f"scipy.stats has no distribution {name!r}")
        return family(**parameters)
    inner, parameters = parts
    if kind == _SHIFTED:
        return made(*inner) * parameters["scale"] + parameters["loc"]
    if kind == _TRUNCATED:
        return stats.truncate(made(*inner), **parameters)
    raise ValueError(f"there is no kind of distribution {kind!r}")
