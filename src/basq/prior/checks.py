"""What users say of a prior, checked: names, labels, samples."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from basq.errors import InputError
from basq.types import FloatArray

Names: TypeAlias = str | int | Iterable[str | int]
"""Parameters, one or several, by their names or places."""
Looks: TypeAlias = Mapping[str, str] | Sequence[str] | None
"""Texts of parameters, by name or one for each."""


def checked_names(names: Sequence[str] | None, n_dim: int) -> tuple[str, ...]:
    """Return distinct non-empty names, x1, x2, … by default."""
    if names is None:
        return tuple(f"x{i + 1}" for i in range(n_dim))
    given = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) and name for name in given):
        raise InputError(f"Parameter names must be non-empty strings; given: {list(given)}.")
    if len(given) != n_dim:
        raise InputError(f"{len(given)} names {list(given)} for {n_dim} parameters; give one for each.")
    repeated = sorted({name for name in given if given.count(name) > 1})
    if repeated:
        raise InputError(f"Parameter names must be unique; repeated: {', '.join(map(repr, repeated))}.")
    return given


def checked_looks(what: str, looks: Looks, names: tuple[str, ...]) -> dict[str, str]:
    """Labels or units by name."""
    if looks is None:
        return {}
    one_each = isinstance(looks, list | tuple) and len(looks) == len(names)
    given = dict(zip(names, looks, strict=True)) if one_each else looks
    if (
        not isinstance(given, Mapping)
        or not set(given) <= set(names)
        or not all(isinstance(t, str) for t in given.values())
    ):
        raise InputError(f"{what}={looks!r}: give a text for some of {', '.join(names)}, by name, or one for each.")
    return dict(given)


def checked_samples(samples: Any) -> FloatArray:
    """Return samples of a density as a finite (n, d) array with n >= 10 d."""
    points = np.asarray(samples, dtype=float)
    if points.ndim != 2 or points.shape[1] == 0:
        raise InputError(f"samples has shape {points.shape}; expected (n, d), one draw of the prior in each row.")
    n, d = points.shape
    if n < 10 * d:
        raise InputError(f"{n} samples of {d} parameters are too few to fit the prior; give at least {10 * d}.")
    bad = np.argwhere(~np.isfinite(points))
    if len(bad):
        i, j = bad[0]
        raise InputError(f"samples[{i}, {j}] is {points[i, j]}; all samples must be finite.")
    return points
