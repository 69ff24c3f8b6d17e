"""A simulator, and a likelihood that is cheap once it has run."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from basq.cheap.integrate import Marginal, integrate
from basq.errors import EvaluationError, InputError
from basq.evaluation.form import Form
from basq.evaluation.reals import real, reals, short
from basq.prior import Prior, as_prior
from basq.types import FloatArray

N_TRIED = 3
"""Values of the cheap parameters that a likelihood is tried with, to see whether it takes many at once."""


@dataclass(frozen=True, eq=False)
class Model:
    """A simulator that is expensive, and a likelihood of its output that is not.

    ``basq.infer(model)`` spends its calls on the expensive parameters only: at every simulated point the likelihood is
    integrated over the cheap ones. The answer is over all of them.

    Parameters
    ----------
    simulate : callable
        Takes the expensive parameters, (d,) or by name, and returns an output: an array, or a dict of arrays.
    log_likelihood : callable
        ``log_likelihood(output, **cheap)`` returns the natural log of the likelihood, a float. One that takes arrays
        (m,) of the cheap parameters and returns an array (m,) is called with many values at once.
    prior : Prior, dict, list or frozen scipy.stats distribution
        Of the expensive parameters.
    cheap : the same, optional
        Of the cheap ones: noise scales, offsets and whatever else needs no new simulation; up to about eight.
    keep : callable, optional
        Reduces an output to what is stored with its call, and given to the likelihood.
    pass_dict : bool
        ``simulate`` takes a dict of parameter names instead of an array.

    Examples
    --------
    >>> import numpy as np, basq
    >>> from scipy import stats
    >>> time, data = np.arange(5.0), np.array([2.1, 1.2, 0.8, 0.4, 0.3])
    >>> def simulate(x):
    ...     return 2.0 * np.exp(-x[0] * time)
    >>> def log_likelihood(output, sigma):
    ...     return stats.norm.logpdf(data, output, sigma).sum()
    >>> model = basq.Model(simulate, log_likelihood, {"rate": (0, 2)}, cheap={"sigma": stats.halfcauchy(scale=0.5)})
    >>> basq.infer(model, seed=1, max_evals=32, progress=False).names
    ('rate', 'sigma')
    """

    simulate: Callable[[Any], Any]
    log_likelihood: Callable[..., Any]
    prior: Any
    cheap: Any = None
    keep: Callable[[Any], Any] | None = None
    pass_dict: bool = False

    def __post_init__(self) -> None:
        for name in ("simulate", "log_likelihood", "keep"):
            function = getattr(self, name)
            if not callable(function) and not (name == "keep" and function is None):
                raise InputError(f"Model({name}={function!r}): give a function.")
        object.__setattr__(self, "prior", as_prior(self.prior))
        object.__setattr__(self, "cheap", None if self.cheap is None else as_prior(self.cheap))
        if self.cheap is not None:
            both = sorted(set(self.prior.names) & set(self.cheap.names))
            if both:
                raise InputError(f"Model: {', '.join(both)} is both an expensive and a cheap parameter; choose one.")
            _ = self.joint  # there is one
        self._check_names()

    def _check_names(self) -> None:
        """Refuse functions that do not take what they are given, before anything is simulated."""
        names = self.cheap.names if self.cheap is not None else ()
        _ = self._form  # there is one
        try:
            _bind(self.log_likelihood, **dict.fromkeys(names))
        except TypeError as error:
            signature = inspect.signature(self.log_likelihood)
            takes = ", ".join(list(signature.parameters)[1:]) or "nothing besides the output"
            raise InputError(
                f"Model: log_likelihood{signature} must take the output and the cheap parameters by name, "
                f"{', '.join(names) or 'of which there are none'}; it takes {takes} ({error})."
            ) from error

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters, the expensive ones first."""
        return self.joint.names

    @cached_property
    def joint(self) -> Prior:
        """The prior of all parameters."""
        joint: Prior = self.prior if self.cheap is None else self.prior.joined(self.cheap)
        return joint

    @cached_property
    def _form(self) -> Form:
        """What the simulator is given."""
        return Form.of(self.simulate, self.prior.names, pass_dict=self.pass_dict, what="Model: simulate")

    def with_likelihood(self, log_likelihood: Callable[..., Any], cheap: Any = None) -> "Model":
        """The same simulator under another likelihood: in `compare`, both share its calls."""
        return replace(self, log_likelihood=log_likelihood, cheap=cheap)

    def run(self, x: FloatArray) -> Any:
        """Simulate at a point (d,), and keep what is to be kept."""
        output = self._form.call(self.simulate, x)
        return output if self.keep is None else self.keep(output)

    def marginal(self, output: Any, x: FloatArray) -> Marginal:
        """The likelihood of an output, integrated over the cheap parameters; x (d,) only seeds the random numbers."""
        if self.cheap is None:
            return Marginal(self._value(output, {}), 0.0, np.empty((0, 0)))
        cheap: Prior = self.cheap
        many = self._takes_many(output)

        def log_likelihood(v: FloatArray) -> FloatArray:
            values = cheap.from_standard(v)
            return self._many(output, values) if many else self._each(output, values)

        rng = np.random.default_rng(np.ascontiguousarray(x, dtype="<f8").view("<u4"))
        return integrate(log_likelihood, cheap.n_dim, rng)

    def _takes_many(self, output: Any) -> bool:
        """Whether the likelihood takes arrays of cheap parameters: it gives then what it gives one by one."""
        values = self.cheap.from_standard(np.linspace(-0.5, 0.5, N_TRIED)[:, None] * np.ones(self.cheap.n_dim))
        one_by_one = self._each(output, values)
        try:
            with np.errstate(all="ignore"):
                together = reals(self.log_likelihood(output, **self._named(values)))
        except Exception:  # it wants single numbers
            return False
        return together.shape == (N_TRIED,) and bool(np.allclose(together, one_by_one, rtol=1e-9, equal_nan=True))

    def _named(self, values: FloatArray) -> dict[str, Any]:
        return dict(zip(self.cheap.names, values.T, strict=True))

    def _many(self, output: Any, values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            found = _read(reals, self.log_likelihood(output, **self._named(values)))
        return np.array([_checked(value, i, values, self.cheap.names) for i, value in enumerate(found)])

    def _each(self, output: Any, values: FloatArray) -> FloatArray:
        found = [self._value(output, dict(zip(self.cheap.names, map(float, row), strict=True))) for row in values]
        return np.array([_checked(value, i, values, self.cheap.names) for i, value in enumerate(found)])

    def _value(self, output: Any, cheap: dict[str, float]) -> float:
        value = self.log_likelihood(output, **cheap)
        return float(_read(real, value))


def _read(read: Callable[[Any], Any], value: Any) -> Any:
    """Read what the likelihood gave."""
    try:
        return read(value)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"log_likelihood returned {short(value)}; it must return a number.") from error


def _bind(function: Callable[..., Any], **options: Any) -> None:
    """Raise a TypeError if a function cannot be called with one argument and these options."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in or extension callables say nothing
        return
    signature.bind(None, **options)


def _checked(value: float, i: int, values: FloatArray, names: tuple[str, ...]) -> float:
    if np.isnan(value) or value == np.inf:
        at = ", ".join(f"{name} = {v:.4g}" for name, v in zip(names, values[i], strict=True))
        raise EvaluationError(
            f"log_likelihood returned {value} at {at}; allowed are finite numbers and -inf (zero likelihood)."
        )
    return value
