"""Names for the types that appear in every signature."""

from collections.abc import Callable
from numbers import Real
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
LogLikelihood = Callable[..., Any]


def is_number(value: object, kind: type = Real) -> TypeGuard[float]:
    """Whether a value is a number, of this kind; a bool is not."""
    return isinstance(value, kind) and not isinstance(value, bool)
