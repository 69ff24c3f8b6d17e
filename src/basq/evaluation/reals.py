"""What is a real number: NumPy and Python would make one of much that is none."""

from typing import Any

import numpy as np

from basq.types import FloatArray

NOT_NUMBERS: tuple[type, ...] = (
    *(bool, str, bytes, complex, type(None)),
    *(np.bool_, np.character, np.complexfloating, np.datetime64, np.timedelta64, np.void),
)
"""What is no real number, though NumPy or Python would make one of some of these."""


def real(value: Any) -> float:
    """A real number, infinite or NaN ones too; a TypeError for what is none, or is masked."""
    if type(value) in (float, np.float64):
        return float(value)
    item: Any = np.asanyarray(value).reshape(())[()]
    if np.ma.is_masked(value) or np.ma.is_masked(item) or isinstance(item, NOT_NUMBERS):
        raise TypeError(f"{short(value)} is no real number")
    try:
        return float(item)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{short(value)} is no real number") from error


def reals(values: Any) -> FloatArray:
    """An array of real numbers from one, or from nested lists; a TypeError or ValueError for what is none."""
    if _masked(values):
        raise TypeError(f"{short(values)} is masked, in part or all of it")
    array = np.asanyarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if array.dtype.kind in "fiu":
        return np.array(array, dtype=float)
    return np.array([real(item) for item in array.ravel()], dtype=float).reshape(array.shape)


def _masked(values: Any) -> bool:
    """Whether something is masked: of arrays in lists, NumPy would take what lies under the mask."""
    if isinstance(values, list | tuple):
        return any(map(_masked, values))
    return bool(np.ma.is_masked(values))


def short(value: Any) -> str:
    """A value for a message, which may be long or unable to say what it is."""
    try:
        text = " ".join(f"{value!r}".split())
    except Exception:
        text = f"an object of {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
