"""How a clause of a contract is demanded."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from basq.types import FloatArray


def demand(holds: Any, clause: str, seen: Any) -> None:
    """Raise unless a clause holds."""
    if not holds:
        raise AssertionError(f"{clause}; seen: {seen}")


@contextmanager
def during(what: str) -> Iterator[None]:
    """Say what was being tried when an error came up."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{what} must work; seen: {type(error).__name__}: {error}") from error


def same(a: Any, b: Any) -> bool:
    """Whether two numbers or arrays are equal, bit for bit."""
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


def near(seen: Any, expected: FloatArray, clause: str, tolerance: float = 1e-7) -> None:
    """Demand that arrays agree, relative to the largest number."""
    demand(np.shape(seen) == expected.shape, f"{clause}: shape {expected.shape}", np.shape(seen))
    off = float(np.abs(seen - expected).max() / np.abs(expected).max(initial=1e-300))
    demand(off <= tolerance, clause, f"a relative difference of {off:.2g}")
