"""One call of the user's log-likelihood, checked."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from basq.errors import EvaluationError, InputError
from basq.types import FloatArray, LogLikelihood


@dataclass(frozen=True)
class Call:
    """The user's function with the form in which it wants its points.

    Attributes
    ----------
    function : callable
    names : tuple of str
    pass_dict : bool
        Give a dict of names instead of an array.
    vectorized : bool
        Give whole batches, (n, d) or a dict of (n,) arrays.
    """

    function: LogLikelihood
    names: tuple[str, ...]
    pass_dict: bool = False
    vectorized: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"log_likelihood must be callable, got {type(self.function).__name__}.")
        _check_arity(self.function)

    def one(self, x: FloatArray) -> tuple[float, float]:
        """Evaluate a single point (d,): its log-likelihood, and the standard deviation of its noise."""
        value = self._evaluate(x, f"x = {x.tolist()}")
        if isinstance(value, tuple) and len(value) == 2:
            return _as_float(value[0], x), _checked_noise(_as_float(value[1], x), x)
        return _as_float(value, x), 0.0

    def many(self, x: FloatArray) -> FloatArray:
        """Evaluate a batch (n, d) in one call of a vectorised function: log-likelihoods and noise sds, (n, 2)."""
        values = self._evaluate(x, f"a batch of {len(x)} points")
        if isinstance(values, tuple) and len(values) == 2 and np.ndim(values[0]) > 0:
            noise = [_checked_noise(s, row) for s, row in zip(self._column(values[1], x), x, strict=True)]
            return np.stack([self._column(values[0], x), noise], axis=1)
        return np.stack([self._column(values, x), np.zeros(len(x))], axis=1)

    def _column(self, values: Any, x: FloatArray) -> FloatArray:
        """One number per point of a batch, checked: (n,)."""
        if np.iscomplexobj(values):  # numpy would drop the imaginary part with a warning
            raise EvaluationError(f"log_likelihood returned complex values, {_short(values)}; they must be real.")
        try:
            out = np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            raise EvaluationError(f"log_likelihood returned {_short(values)}, not numbers.") from error
        if out.shape == (len(x), 1):
            out = out[:, 0]
        if out.shape != (len(x),):
            raise EvaluationError(
                f"log_likelihood (vectorized=True) was given {len(x)} points and returned shape {out.shape}; "
                f"it must return shape ({len(x)},)."
            )
        return np.array([_checked(v, row) for v, row in zip(out, x, strict=True)])

    def _evaluate(self, x: FloatArray, where: str) -> Any:
        """Call the function; whatever it raises becomes one error that says where."""
        try:
            return self.function(self._form(x))
        except Exception as error:
            raise EvaluationError(f"log_likelihood raised {type(error).__name__}: {error} at {where}.") from error

    def _form(self, x: FloatArray) -> Any:
        """Return a fresh copy in the form the function takes, so that it may overwrite what it gets."""
        if not self.pass_dict:
            return x.copy()
        return {n: v.copy() if v.ndim else float(v) for n, v in zip(self.names, x.T, strict=True)}


def _check_arity(function: LogLikelihood) -> None:
    """Refuse a function that cannot be called with one argument."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in or extension callables say nothing
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise InputError(
            f"log_likelihood{signature} must be callable with one argument, the point; "
            "fix further arguments with functools.partial."
        ) from error


def _as_float(value: Any, x: FloatArray) -> float:
    if isinstance(value, str | bytes) or value is None or np.iscomplexobj(value):
        raise EvaluationError(f"log_likelihood returned {_short(value)} at x = {x.tolist()}; it must return a number.")
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise EvaluationError(
            f"log_likelihood returned {_short(value)} at x = {x.tolist()}; it must return a number."
        ) from error
    if array.size != 1:
        raise EvaluationError(
            f"log_likelihood returned shape {array.shape} at x = {x.tolist()}; it must return one number "
            "(or set vectorized=True)."
        )
    return _checked(float(array.reshape(())), x)


def _checked(value: float, x: FloatArray) -> float:
    if np.isnan(value) or value == np.inf:
        raise EvaluationError(
            f"log_likelihood returned {value} at x = {x.tolist()}; "
            "allowed are finite numbers and -inf (zero likelihood)."
        )
    return float(value)


def _checked_noise(sd: float, x: FloatArray) -> float:
    if not 0.0 <= sd < np.inf:
        raise EvaluationError(
            f"log_likelihood returned a noise standard deviation of {sd} at x = {x.tolist()}; it must be 0 or more."
        )
    return sd


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
