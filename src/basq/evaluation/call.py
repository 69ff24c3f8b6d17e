"""One call of the user's log-likelihood, checked."""

import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from basq.errors import EvaluationError, InputError
from basq.evaluation.forks import OneProcess
from basq.evaluation.form import Form
from basq.evaluation.reals import NOT_NUMBERS, real, short
from basq.types import FloatArray, LogLikelihood

OURS = [Path(__file__).parents[1] / room for room in ("evaluation", "cheap")]
"""Where functions of the user's are called from."""

UNKNOWN = float("inf")
"""Noise of a failed call that was ended from outside: nothing is known of its value, not even that there is none."""


@dataclass(frozen=True)
class Outcome:
    """What became of one call: a value, or the reason why there is none.

    Attributes
    ----------
    log_likelihood : float or None
        None for a failed call.
    noise : float
        Standard deviation of the value; NaN if it is noisy and nobody knows how much, `UNKNOWN` if the system has
        ended the call.
    extra : str or None
        Further outputs of the function, as JSON.
    output : bytes or None
        What a simulator gave, packed; a failed call may have one, if it was the likelihood that failed.
    error : str or None
        Why the call failed, in a sentence.
    traceback : str or None
        Where in the user's code, if it raised.
    lost : bool
        Whether the call never came back (its worker died), which says little about the point.
    together : bool
        Whether it is the failure of a whole batch, any of whose points may be to blame.
    seconds : float
        Time in the user's function.
    worker : str
        Who evaluated it.
    """

    log_likelihood: float | None
    noise: float = 0.0
    extra: str | None = None
    output: bytes | None = None
    error: str | None = None
    traceback: str | None = None
    lost: bool = False
    together: bool = False
    seconds: float = 0.0
    worker: str = ""

    @classmethod
    def failed(cls, error: str, trace: str | None = None, **details: Any) -> "Outcome":
        return cls(None, error=error, traceback=trace, **details)

    @classmethod
    def failed_together(cls, n: int, error: str, **details: Any) -> "list[Outcome]":
        """The outcomes of n points that were evaluated together."""
        return [cls.failed(error, together=n > 1, **details)] * n


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
        Give whole batches, (n, d) or (n,) arrays by name.
    form : Form
        What it is given, as far as its signature says.
    """

    function: LogLikelihood
    names: tuple[str, ...]
    pass_dict: bool = False
    vectorized: bool = False

    form: Form = field(init=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"log_likelihood must be callable, got {type(self.function).__name__}.")
        form = Form.of(self.function, self.names, pass_dict=self.pass_dict, what="log_likelihood")
        object.__setattr__(self, "form", form)

    def attempt(self, x: FloatArray) -> list[Outcome]:
        """Evaluate points (n, d), in one call if the function takes many; a failure is an outcome, not an exception."""
        if self.vectorized:
            where = place(self.names, x[0]) if len(x) == 1 else f"a batch of {len(x)} points"
            return self._timed(x, where, self._many)
        return [self._timed(row, place(self.names, row), self._one)[0] for row in x]

    def _timed(self, x: FloatArray, where: str, read: Any) -> list[Outcome]:
        """Call the function and read what it returns; whatever it raises becomes an outcome that says where."""
        start, n = time.perf_counter(), len(x) if self.vectorized else 1
        with guarded("log_likelihood", where, self.form.hint) as failed:
            outcomes = read(self.form.call(self.function, x), x)
        seconds = (time.perf_counter() - start) / n
        if failed:  # what it returned may be wrong for other reasons than a bad point: it is not asked again
            outcomes = [replace(failed[0], together=n > 1 and failed[0].traceback is not None)] * n
        return [replace(outcome, seconds=seconds) for outcome in outcomes]

    def _one(self, value: Any, x: FloatArray) -> list[Outcome]:
        """Read the answer at a single point (d,): a number, (number, noise), or either followed by a dict of extras."""
        value, extra = _without_extra(value)
        noise: Any = 0.0
        if isinstance(value, tuple) and len(value) == 2:
            value, noise = value
        return [_outcome(value, noise, extra, place(self.names, x))]

    def _many(self, values: Any, x: FloatArray) -> list[Outcome]:
        """Read the answers of a vectorised function at (n, d); a bad number costs its own row only."""
        values, extra = _without_extra(values)
        noises: Any = [0.0] * len(x)
        if isinstance(values, tuple) and len(values) == 2 and _is_column(values[0]):
            values, noises = values[0], [None] * len(x) if values[1] is None else _column(values[1], x)
        outcomes = []
        for value, noise, row in zip(_column(values, x), noises, x, strict=True):
            try:
                outcomes.append(_outcome(value, noise, extra, place(self.names, row)))
            except EvaluationError as error:
                outcomes.append(Outcome.failed(_storable(str(error))))
        return outcomes


@contextmanager
def guarded(what: str, where: str, hint: Callable[[BaseException], str] = lambda _: "") -> Iterator[list[Outcome]]:
    """Turn whatever a function of the user's raises at a place into the one outcome of the list that is given.

    A child that it has forked and that gets this far ends here. The hint is what to do about an error.
    """
    failed: list[Outcome] = []
    try:
        with OneProcess():
            yield failed
    except EvaluationError as error:
        failed.append(Outcome.failed(_storable(str(error))))
    except KeyboardInterrupt:  # the user's, not the function's
        raise
    except BaseException as error:  # a simulator that calls sys.exit, or panics, has failed, not ended our run
        message = f"{what} raised {_told(error)}{_line(error)} at {where}.{hint(error)}"
        failed.append(Outcome.failed(message, _storable(traceback.format_exc())))


def place(names: Sequence[str], x: FloatArray) -> str:
    """A point (d,) for people, with as many digits as tell where it is; failures have it in full beside their text."""
    if not names:
        return f"x = [{', '.join(f'{value:.4g}' for value in x)}]"
    return ", ".join(f"{name} = {value:.4g}" for name, value in zip(names, x, strict=True))


def _without_extra(value: Any) -> tuple[Any, str | None]:
    """Split off a dict of further outputs, as JSON."""
    if not (isinstance(value, tuple) and len(value) >= 2 and isinstance(value[-1], dict)):
        return value, None
    rest = value[:-1]
    try:
        text = json.dumps(value[-1], default=_as_json, skipkeys=True)
    except Exception as error:  # one that holds itself, for example
        text = json.dumps({"error": f"The further outputs cannot be written as JSON: {_told(error)}"})
    return rest[0] if len(rest) == 1 else rest, text


def _as_json(value: Any) -> Any:
    """Arrays as lists; what JSON cannot hold as text: a value that was paid for is not refused for its company."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def _outcome(value: Any, noise: Any, extra: str | None, where: str) -> Outcome:
    """What a call gave at a point, as it was given; what is not allowed raises."""
    number = _number(value, f" at {where}; it must return a number, finite or -inf (zero likelihood).")
    if np.isnan(number) or number == np.inf:
        raise EvaluationError(
            f"log_likelihood returned {number} at {where}; allowed are finite numbers and -inf (zero likelihood)."
        )
    return Outcome(number, np.nan if noise is None else _checked_noise(noise, where), extra)


def _checked_noise(noise: Any, where: str) -> float:
    allowed = f" at {where}; it must be finite, and 0 or more, or None where nobody knows it."
    sd = _number(noise, f" as the noise of its value{allowed}")
    if not 0.0 <= sd < np.inf:
        raise EvaluationError(f"log_likelihood returned a noise standard deviation of {sd}{allowed}")
    return sd


def _number(value: Any, rest: str) -> float:
    """A real number, or NaN, of which there is one; the rest of the sentence is for whoever gave something else."""
    if type(value) in (float, np.float64):
        return float(value)
    if isinstance(value, list | tuple) and len(value) == 1:
        return _number(value[0], rest)
    array = _as_given(value)
    if array.size != 1:
        raise EvaluationError(
            f"log_likelihood returned shape {array.shape}{rest} "
            "For whole batches at once set vectorized=True, on the command line --vectorized."
        )
    try:
        return real(array)
    except TypeError as error:
        raise EvaluationError(f"log_likelihood returned {short(value)}{rest}") from error


def _as_given(values: Any) -> Any:
    """An array of what was given: of a list, NumPy would make numbers of some."""
    if not isinstance(values, list | tuple):
        return np.asanyarray(values)
    try:
        return np.array(values, dtype=object)
    except ValueError as error:
        raise EvaluationError(
            f"log_likelihood returned {short(values)}, whose parts have different shapes; it must return a number, "
            "or one for each point of a batch (vectorized)."
        ) from error


def _is_column(values: Any) -> bool:
    return isinstance(values, list | tuple) or np.ndim(values) > 0


def _column(values: Any, x: FloatArray) -> list[Any]:
    """What was given for each point of a batch, unread, so that a bad one costs its own point."""
    array, n = _as_given(values), len(x)
    if array.shape not in ((n,), (n, 1)):
        raise EvaluationError(
            f"log_likelihood (vectorized) was given {n} points and returned shape {array.shape}; "
            f"it must return shape ({n},)."
        )
    rows = list(values if isinstance(values, list | tuple) else array)  # an array of a list has lost masks in it
    if all(isinstance(row, NOT_NUMBERS) for row in rows):
        raise EvaluationError(
            f"log_likelihood (vectorized) returned {short(values)}, not numbers; "
            "it must return one for each point, finite or -inf (zero likelihood)."
        )
    return rows


def _told(error: BaseException) -> str:
    """Type and text of an exception, which may be unable to say what it is."""
    try:
        return _storable(f"{type(error).__name__}: {error}")
    except Exception:
        return type(error).__name__


def _line(error: BaseException) -> str:
    """File and line of the user's function that an exception came through; nothing if it has no Python code."""
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    theirs = [(name, line) for name, line in frames if Path(name).parent not in OURS]
    if not theirs:
        return ""
    name = theirs[0][0]  # what it calls may be anyone's
    line = next(line for other, line in reversed(theirs) if other == name)
    return _storable(f" ({Path(name).name}, line {line})")


def _storable(text: str) -> str:
    """Text that can be encoded: file names may hold what is no character."""
    return text.encode(errors="backslashreplace").decode()
