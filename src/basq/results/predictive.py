"""What the posterior says about the simulator's output: methods of `Result`."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from basq.errors import InputError, NumericsWarning
from basq.outputs.emulator import Emulator
from basq.outputs.layout import Layout, Table
from basq.outputs.outputs import Outputs
from basq.posterior.parameters import N_SUMMARY
from basq.report.tables import QUANTILES, Row, Summary
from basq.types import FloatArray, IntArray

if TYPE_CHECKING:
    from basq.results.result import Result

Noise = Callable[..., Any]
"""``noise(output, rng, **cheap)`` returns the output with observation noise added."""
LARGE = 0.1
"""Error of the interpolation, in posterior standard deviations, that is warned about."""


@dataclass(frozen=True)
class Points:
    """Posterior samples or evaluated points, in both of their spaces: (n, d) each, all parameters."""

    u: FloatArray
    x: FloatArray

    def __getitem__(self, rows: IntArray) -> "Points":
        return Points(self.u[rows], self.x[rows])


@dataclass(frozen=True)
class Predictive:
    """The simulator's output, or what is derived from it, between the calls of a run.

    Attributes
    ----------
    layout : Layout
    emulator : Emulator
    standard : bool
        Whether it interpolates in standard space; else in the user's parameters.
    dims : (d,) int array
        The parameters that the simulator takes.
    """

    layout: Layout
    emulator: Emulator
    standard: bool
    dims: IntArray

    def rows(self, points: Points) -> FloatArray:
        """Rows (n, p) at points."""
        return self.emulator((points.u if self.standard else points.x)[:, self.dims])

    @property
    def error(self) -> float:
        """Of the interpolation, in standard deviations of the posterior: every call predicted from all others."""
        return self.emulator.error

    def __repr__(self) -> str:
        return f"{self.layout} by {self.emulator!r}"


@dataclass(frozen=True, repr=False)
class Derived:
    """The posterior of a derived quantity.

    Attributes
    ----------
    name : str
    samples : (n,) or (n, …) array
        Equal weights.
    error : float
        Of its interpolation between the calls, in its standard deviations.
    """

    name: str
    samples: FloatArray
    error: float

    @property
    def mean(self) -> FloatArray:
        """Posterior mean, of the quantity's shape."""
        return self.samples.mean(axis=0)

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviation."""
        return self.samples.std(axis=0)

    def quantiles(self, q: ArrayLike) -> FloatArray:
        """Quantiles at levels q (k,): (k, …)."""
        return np.quantile(self.samples, _levels(q), axis=0)

    def summary(self) -> Summary:
        """A table as that of the parameters, one row for each number."""
        places = [""] if self.samples.ndim == 1 else [str(list(i)) for i in np.ndindex(self.samples.shape[1:])]
        names = tuple(f"{self.name}{place}" for place in places)
        columns = self.samples.reshape(len(self.samples), -1).T
        rows = (
            Row(name, float(c.mean()), float(c.std()), *np.quantile(c, QUANTILES).tolist())
            for name, c in zip(names, columns, strict=True)
        )
        return Summary(names, tuple(rows))

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def emulator(result: "Result") -> Predictive:
    """The simulator's output between the calls, and how far off that is: ``result.emulator.error``."""
    outputs = _outputs(result)
    return _learned(result, Table.of(outputs.load(), outputs.ids, "simulate"), "the output")


def predict(
    result: "Result", q: ArrayLike | None = None, *, n: int = 1000, noise: Noise | None = None, seed: Any = 0
) -> Any:
    """The simulator's output over the posterior, from the stored outputs: no call is made.

    Parameters
    ----------
    q : float or (k,) array, optional
        Levels: quantiles of every entry of the output. Without them, samples.
    n : int
        Posterior samples: those of ``result.sample(n, seed)``, in their order.
    noise : callable, optional
        ``noise(output, rng, **cheap)`` returns the output with observation noise added, for bands that hold data. It
        may name any parameter; their values are those of the sample.
    seed
        Of the samples and of the noise.

    Returns
    -------
    array or dict of arrays
        As the simulator's output, with an axis (k,) or (n,) in front.
    """
    levels = None if q is None else _levels(q)
    found: Predictive = result.emulator
    points = _sampled(result, n, seed)
    rows = found.rows(points)
    if noise is not None:
        rows = _noisy(result, found.layout, rows, points.x, noise, np.random.default_rng(seed).spawn(1)[0])
    return found.layout.shaped(rows if levels is None else np.quantile(rows, levels, axis=0))


def derived(
    result: "Result", f: Callable[..., Any], name: str | None = None, *, n: int = N_SUMMARY, seed: Any = 0
) -> Derived:
    """The posterior of a function of the output, from the stored outputs: no call is made.

    Parameters
    ----------
    f : callable
        ``f(output)`` returns a number or a small array; it may take parameters by name, ``f(output, rate)``. It is
        evaluated at every stored output and interpolated; one that takes cheap parameters is evaluated at interpolated
        outputs instead.
    name : str, optional
        For the summary; that of the function by default.
    n, seed
        Of the samples: those of ``result.sample(n, seed)``, in their order.
    """
    if not callable(f):
        raise InputError(f"derived({f!r}): give a function of the output.")
    name = name or (own if (own := getattr(f, "__name__", "<lambda>")) != "<lambda>" else "derived")
    wanted = _wanted(f, 1, result.names, result.names)
    points = _sampled(result, n, seed)
    if set(wanted) & set(result.cheap):
        found: Predictive = result.emulator
        outputs = [found.layout.shaped(row) for row in found.rows(points)]
        table = _evaluated(f, wanted, outputs, points.x, result, np.arange(n))
        if len(table.calls) < n:
            raise InputError(f"{name} is not finite at {n - len(table.calls)} of {n} samples.")
        return Derived(name, table.layout.shaped(table.values), found.error)
    stored = _outputs(result)
    table = _evaluated(f, wanted, stored.load(), result.observations.x, result, stored.ids)
    found = _learned(result, table, name)
    return Derived(name, found.layout.shaped(found.rows(points)), found.error)


def _outputs(result: "Result") -> Outputs:
    if result.outputs is None:
        raise InputError(
            "This result has no outputs: it comes from a log_likelihood, whose values are all that was kept. Run a "
            "basq.Model(simulate, log_likelihood, prior) instead: what simulate returns is stored with every call."
        )
    return result.outputs


def _sampled(result: "Result", n: int, seed: Any) -> Points:
    """The samples of ``result.sample(n, seed)``."""
    if n < 1 or n != int(n):
        raise InputError(f"n={n!r}: give a positive whole number of samples.")
    u = result._posterior.standard.sample(int(n), np.random.default_rng(seed))
    return Points(u, result.prior.from_standard(u))


def _learned(result: "Result", table: Table, what: str) -> Predictive:
    """Interpolate a table of values at the calls, and warn where that is rough.

    Outputs may be smoother in standard space, as for logarithmic priors, or in the parameters, as towards the edge of a
    box: both are tried.
    """
    dims = np.array([i for i, name in enumerate(result.names) if name not in result.cheap], dtype=np.intp)
    seen, samples = result.observations, _sampled(result, N_SUMMARY, 0)
    calls = Points(seen.u, seen.x)[table.calls]
    place = np.zeros_like(calls.u)
    place[:, dims] = calls.u[:, dims]  # the cheap parameters are integrated over, not at a place
    log_density = seen.log_values[table.calls] + result.prior.measure.log_pdf(place)
    in_standard, in_own = (
        Emulator.learn(at[:, dims], table.values, log_density, over[:, dims])
        for at, over in ((calls.u, samples.u), (calls.x, samples.x))
    )
    standard = in_standard.error <= in_own.error
    found = Predictive(table.layout, in_standard if standard else in_own, standard, dims)
    if found.error > LARGE:
        warnings.warn(
            f"Between the calls, {what} is known to {100.0 * found.error:.0f} % of its posterior spread only (each "
            f"of {found.emulator.n_points} calls predicted from the others): bands and quantiles are rough. More calls "
            "make them better, unless the output jumps or is random.",
            NumericsWarning,
            stacklevel=3,
        )
    return found


def _evaluated(
    f: Callable[..., Any],
    wanted: tuple[str, ...],
    outputs: Sequence[Any],
    x: FloatArray,
    result: "Result",
    ids: IntArray,
) -> Table:
    """A function at outputs and parameters x (n, d)."""
    columns = result.prior.index(wanted)
    values: list[Any] = []
    for i, output in enumerate(outputs):
        given = dict(zip(wanted, x[i, columns].tolist(), strict=True))
        try:
            values.append(None if output is None else f(output, **given))
        except Exception as error:
            error.add_note(f"raised by the function given to derived, at output {ids[i]}")
            raise
        if isinstance(values[-1], Mapping | str):
            raise InputError(f"derived(f): f returned {values[-1]!r:.60}; give a number or an array.")
    return Table.of(values, ids, "f, given to derived,")


def _noisy(
    result: "Result", layout: Layout, rows: FloatArray, x: FloatArray, noise: Noise, rng: np.random.Generator
) -> FloatArray:
    """Rows (n, p) with noise added to each, at parameters x (n, d)."""
    wanted = _wanted(noise, 2, result.names, result.cheap)
    columns, out = result.prior.index(wanted), np.empty_like(rows)
    for i, row in enumerate(rows):
        made = noise(layout.shaped(row), rng, **dict(zip(wanted, x[i, columns].tolist(), strict=True)))
        if (own := Layout.of(made)) != layout:
            raise InputError(f"noise returned {own}; it must return what it was given, with noise: {layout}.")
        out[i] = layout.row(made)
    return out


def _wanted(
    function: Callable[..., Any], skip: int, names: tuple[str, ...], starred: tuple[str, ...]
) -> tuple[str, ...]:
    """Parameters that a function takes by name, after its first arguments; with ``**`` those that are starred."""
    try:
        takes = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):  # built-in or extension callables say nothing
        return ()
    strange = [p.name for p in takes if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    strange = [name for name in strange if name not in names]
    if strange:
        raise InputError(
            f"{getattr(function, '__name__', function)} takes {', '.join(strange)}; besides "
            f"{'the output' if skip == 1 else 'output and rng'} it may take {', '.join(names)}."
        )
    if any(p.kind is p.VAR_KEYWORD for p in takes):
        return tuple(dict.fromkeys([*starred, *(p.name for p in takes if p.name in names)]))
    return tuple(p.name for p in takes if p.name in names and p.kind is not p.VAR_POSITIONAL)


def _levels(q: ArrayLike) -> FloatArray:
    levels = np.asarray(q, dtype=float)
    if levels.ndim > 1 or not ((levels >= 0.0) & (levels <= 1.0)).all():
        raise InputError(f"q={q!r}: give quantile levels between 0 and 1.")
    return levels
