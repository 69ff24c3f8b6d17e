"""The answer of a run, in the user's parameters."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from basq.diagnostics import Audit
from basq.errors import InputError
from basq.method import Density, Fit, LogSurrogate, Posterior
from basq.observations import Observations
from basq.prior import Prior
from basq.quadrature.sampled import KernelDensity, smooth_1d
from basq.state import Record, State
from basq.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_SUMMARY = 4000
"""Samples behind correlations and behind marginals without closed form."""


@dataclass(frozen=True)
class ParameterDensity:
    """A density over some of the user's parameters.

    Attributes
    ----------
    names : tuple of str
    density : Density
        Over the same coordinates, in standard space or in the user's.
    prior : Prior or None
        Maps standard space to parameters; None where ``density`` is in the user's space already.
    dims : tuple of int
        The parameters' places in the prior.
    """

    names: tuple[str, ...]
    density: Density
    prior: Prior | None
    dims: tuple[int, ...]

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at x: (k, d), or (k,) for a single parameter."""
        points = self._rows(x)
        if self.prior is None:
            return self.density.log_pdf(points)
        u, jacobian = np.empty_like(points), np.zeros(len(points))
        inside = np.ones(len(points), dtype=bool)
        for column, i in enumerate(self.dims):
            low, high = self.prior.bounds[i]
            inside &= (points[:, column] >= low) & (points[:, column] <= high)
        u[~inside] = 0.0
        for column, i in enumerate(self.dims):
            u[inside, column] = self.prior.coordinate_to_standard(i, points[inside, column])
            jacobian += self.prior.coordinate_log_jacobian(i, u[:, column])
        return np.where(inside, self.density.log_pdf(u) - jacobian, -np.inf)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at x: (k, d), or (k,) for a single parameter."""
        out: FloatArray = np.exp(self.log_pdf(x))
        return out

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Distribution function of a single parameter at t (k,)."""
        points = np.atleast_1d(np.asarray(t, dtype=float))
        if self.prior is None or len(self.dims) > 1:
            return self.density.cdf(points)
        low, high = self.prior.bounds[self.dims[0]]
        below = self.density.cdf(self.prior.coordinate_to_standard(self.dims[0], np.clip(points, low, high)))
        inside = 1.0 - below if self._falls else below
        return np.where(points <= low, 0.0, np.where(points >= high, 1.0, inside))

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles of a single parameter at levels q (k,)."""
        if self.prior is None or len(self.dims) > 1:
            return self.density.ppf(q)
        values = self.density.ppf(1.0 - np.asarray(q, dtype=float) if self._falls else q)
        return self.prior.coordinate_from_standard(self.dims[0], np.clip(values, -8.0, 8.0))

    @property
    def _falls(self) -> bool:
        """Whether a unit-cube transform turns the parameter round: large where the standard coordinate is small."""
        assert self.prior is not None
        low, high = self.prior.coordinate_from_standard(self.dims[0], np.array([-1.0, 1.0]))
        return bool(high < low)

    def sample(self, n: int, seed: Any = None) -> FloatArray:
        """Draw n equal-weight points: (n, d)."""
        points = self.density.sample(n, np.random.default_rng(seed))
        if self.prior is None:
            return points
        columns = [self.prior.coordinate_from_standard(i, points[:, c]) for c, i in enumerate(self.dims)]
        return np.stack(columns, axis=1)

    def _rows(self, x: ArrayLike) -> FloatArray:
        points = np.asarray(x, dtype=float)
        if len(self.dims) == 1:
            return points.reshape(-1, 1)
        points = np.atleast_2d(points)
        if points.shape[1] != len(self.dims):
            raise InputError(f"Points over {self.names} must have shape (k, {len(self.dims)}), got {points.shape}.")
        return points


@dataclass(frozen=True)
class Failure:
    """A call that has failed for good.

    Attributes
    ----------
    id : int
    x : (d,) array
        Where.
    error : str
        Why.
    traceback : str or None
        Where in the user's code, if it raised.
    attempts : int
        How often it was tried.
    """

    id: int
    x: FloatArray
    error: str
    traceback: str | None
    attempts: int

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Failure":
        """Read a row of the store."""
        return cls(row["id"], row["x"], row["error"], row["traceback"], row["attempt"])


@dataclass(frozen=True)
class Result:
    """Evidence and posterior of a run.

    Attributes
    ----------
    log_evidence, log_evidence_std : float
        log Z and its standard deviation (also as ``logz``, ``logzerr``).
    converged : bool
    message : str
        Why the run stopped, in a sentence.
    prior : Prior
    observations : Observations
        Every evaluated point with its value.
    history : tuple of Record
        One entry a batch.
    standard_posterior : Posterior or None
        The posterior in standard space; None if the run found no mass, as ``message`` says.
    audits : tuple of Audit
        How well each batch was predicted before it was evaluated, one row a batch (``pandas.DataFrame(result.audits)``
        makes a table); empty for methods without audits.
    failures : tuple of Failure
        Calls that gave no value.
    surrogate : LogSurrogate or None
        What is believed about the log-likelihood in standard space.
    settings : mapping
        How the run was made, as its store has it: method, seed, budget, versions, dates.
    """

    log_evidence: float
    log_evidence_std: float
    converged: bool
    message: str
    prior: Prior
    observations: Observations
    history: tuple[Record, ...]
    standard_posterior: Posterior | None
    audits: tuple[Audit, ...] = ()
    failures: tuple[Failure, ...] = ()
    surrogate: LogSurrogate | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, prior: Prior, state: State, failures: tuple[Failure, ...] = (), reason: str | None = None) -> "Result":
        """The answer that a state gives; ``reason`` says why the run ended where its stopping rule did not."""
        fitted, verdict = state.fitted, state.verdict
        return cls(
            fitted.log_evidence,
            fitted.log_evidence_std,
            verdict.converged,
            verdict.message if verdict.stop or reason is None else verdict.message.replace("Running", reason, 1),
            prior,
            state.observations,
            state.history,
            _posterior(fitted),
            getattr(fitted, "audits", ()),
            failures,
            getattr(fitted, "log_surrogate", None),
        )

    @property
    def logz(self) -> float:
        return self.log_evidence

    @property
    def logzerr(self) -> float:
        return self.log_evidence_std

    @property
    def evidence(self) -> float:
        """E[Z] itself; 0 or inf where it leaves the range of floating-point numbers (``log_evidence`` never does)."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(self.log_evidence))

    @property
    def evidence_std(self) -> float:
        """Standard deviation of Z itself, of the log-normal law with this log-evidence and its error."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(self.log_evidence) * np.sqrt(np.expm1(self.log_evidence_std**2)))

    @property
    def n_evals(self) -> int:
        """Calls that gave a value, and values given beforehand."""
        return len(self.observations)

    @property
    def n_failed(self) -> int:
        return len(self.failures)

    @property
    def n_batches(self) -> int:
        return len(self.history)

    @property
    def names(self) -> tuple[str, ...]:
        return self.prior.names

    @property
    def _standard(self) -> Posterior:
        """The posterior in standard space, or an error that says why there is none."""
        if self.standard_posterior is None:
            raise InputError(f"This result has no posterior. {self.message}")
        return self.standard_posterior

    @cached_property
    def _posterior(self) -> Posterior:
        """In the user's parameters for an affine prior, in standard space otherwise."""
        return self._standard if self.prior.affine is None else self._standard.affine(*self.prior.affine)

    @property
    def _map(self) -> Prior | None:
        return None if self.prior.affine is not None else self.prior

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log posterior density at the rows of x (k, d): (k,)."""
        points = np.atleast_2d(np.asarray(x, dtype=float))
        if self._map is not None and not self.prior.is_separable:
            u = self.prior.to_standard(points)  # says why a coupled transform has no density
            return self._standard.log_pdf(u) - self.prior.log_jacobian(u)
        full = ParameterDensity(self.names, self._posterior, self._map, tuple(range(self.prior.n_dim)))
        return full.log_pdf(points)

    def sample(self, n: int, seed: Any = None) -> FloatArray:
        """Draw n equal-weight posterior samples: (n, d)."""
        if n < 1 or n != int(n):
            raise InputError(f"sample({n!r}): give a positive whole number.")
        return self.prior.from_standard(self._standard.sample(int(n), np.random.default_rng(seed)))

    def marginal(self, names: str | Iterable[str]) -> ParameterDensity:
        """Posterior density of one or several parameters, by name."""
        dims = self.prior.index(names)
        if not dims or len(set(dims)) < len(dims):
            raise InputError(f"marginal({names!r}): give one or several different names out of {self.names}.")
        chosen = tuple(self.names[i] for i in dims)
        if self._map is not None and not self.prior.is_separable:
            points = self._samples[:, dims]
            density = smooth_1d(points[:, 0]) if len(dims) == 1 else KernelDensity(points)
            return ParameterDensity(chosen, density, None, tuple(dims))
        return ParameterDensity(chosen, self._posterior.marginal(dims), self._map, tuple(dims))

    def conditional(self, values: Mapping[str, float]) -> ParameterDensity:
        """Posterior density of the other parameters when some are held at values."""
        dims = self.prior.index(list(values))
        if not 0 < len(dims) < self.prior.n_dim:
            raise InputError(f"conditional() must hold some but not all of {self.names}, got {tuple(values)}.")
        if self._map is not None and not self.prior.is_separable:
            raise InputError("A prior transform that couples its parameters has no conditional densities.")
        at = np.array([float(values[self.names[i]]) for i in dims])
        if self._map is not None:
            at = np.array(
                [self.prior.coordinate_to_standard(i, np.array([t]))[0] for i, t in zip(dims, at, strict=True)]
            )
        free = tuple(i for i in range(self.prior.n_dim) if i not in dims)
        density = self._posterior.conditional(dims, at)
        return ParameterDensity(tuple(self.names[i] for i in free), density, self._map, free)

    @cached_property
    def _samples(self) -> FloatArray:
        """Posterior samples behind numerical summaries; a fixed stream, so that a result is one answer."""
        return self.sample(N_SUMMARY, seed=0)

    @cached_property
    def mean(self) -> FloatArray:
        """Posterior mean of the parameters (d,)."""
        return self._moments[0]

    @cached_property
    def cov(self) -> FloatArray:
        """Posterior covariance of the parameters (d, d)."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Exact for affine priors; else by quadrature of each marginal, with correlations from samples."""
        if self._map is None:
            return self._posterior.moments()
        if not self.prior.is_separable:
            return self._samples.mean(axis=0), np.atleast_2d(np.cov(self._samples.T))
        means, sds = np.array([self._coordinate_moments(i) for i in range(self.prior.n_dim)]).T
        correlation = np.atleast_2d(np.corrcoef(self._samples.T))
        return means, correlation * np.outer(sds, sds)

    def _coordinate_moments(self, i: int) -> tuple[float, float]:
        """Mean and standard deviation of one parameter of a separable prior."""
        density = self._standard.marginal([i])
        centre, spread = density.moments()
        # a surrogate that goes negative can have a negative "variance": then look everywhere
        sd = float(np.sqrt(spread[0, 0])) if spread[0, 0] > 0.0 else 8.0
        u = np.clip(centre[0] + sd * np.linspace(-9.0, 9.0, 1201), -8.0, 8.0)
        weight = np.maximum(density.pdf(u), 0.0) * np.gradient(u)
        if weight.sum() <= 0.0:
            return float(self._samples[:, i].mean()), float(self._samples[:, i].std())
        x = self.prior.coordinate_from_standard(i, u)
        mean = float(weight @ x / weight.sum())
        return mean, float(np.sqrt(weight @ (x - mean) ** 2 / weight.sum()))

    def summary(self) -> str:
        """Return a table of the posterior, one line per parameter."""
        if self.standard_posterior is None:
            return f"no posterior over {', '.join(self.names)}"
        width = max(9, *(len(n) for n in self.names))
        lines = [f"{'parameter':<{width}}  {'mean':>11} {'sd':>11} {'2.5%':>11} {'50%':>11} {'97.5%':>11}"]
        sds = np.sqrt(np.diag(self.cov))
        for name, mean, sd in zip(self.names, self.mean, sds, strict=True):
            low, middle, high = self.marginal(name).ppf([0.025, 0.5, 0.975])
            lines.append(f"{name:<{width}}  {mean:>11.5g} {sd:>11.4g} {low:>11.5g} {middle:>11.5g} {high:>11.5g}")
        return "\n".join(lines)

    def __str__(self) -> str:
        head = f"log Z = {self.log_evidence:.3f} ± {self.log_evidence_std:.3f}"
        lines = [f"{head}   ({self.n_evals} calls in {self.n_batches} batches)", self.message]
        if self.failures:
            lines.append(f"{self.n_failed} more calls failed (result.failures), the last: {self.failures[-1].error}")
        return "\n".join([*lines, "", self.summary()])

    def plot_corner(
        self, *, names: str | Sequence[str] | None = None, truths: ArrayLike | None = None, points: bool = True
    ) -> "Figure":
        """Draw the marginals of one and two parameters, with the evaluated points."""
        from basq.plots import plot_corner

        return plot_corner(self, names=names, truths=truths, points=points)

    def plot_run(self, *, truth: float | None = None) -> "Figure":
        """Draw log Z and its error after every batch, with the audits."""
        from basq.plots import plot_run

        return plot_run(self, truth=truth)

    def plot_calibration(self) -> "Figure":
        """Draw how far off the predictions of the batches were, against the normal law."""
        from basq.plots import plot_calibration

        return plot_calibration(self)

    def plot_slices(
        self,
        *,
        names: str | Sequence[str] | None = None,
        through: Literal["best", "mean"] | ArrayLike = "best",
    ) -> "Figure":
        """Draw the surrogate's log-likelihood along every parameter, with its error and the points nearby."""
        from basq.plots import plot_slices

        return plot_slices(self, names=names, through=through)

    def plot_time(self) -> "Figure":
        """Draw where the time of every batch went."""
        from basq.plots import plot_time

        return plot_time(self)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        truths: ArrayLike | None = None,
        truth: float | None = None,
    ) -> None:
        """Write one self-contained HTML page: verdict, posterior, pictures, audits, failures, settings.

        Parameters
        ----------
        path : path
            Of the file.
        title : str, optional
        truths : (d,) array, optional
            Parameters to mark in the corner plot, where known.
        truth : float, optional
            True log-evidence, where known.
        """
        from basq.report import write_report

        write_report(self, path, title=title, truths=truths, truth=truth)


def _posterior(fitted: Fit) -> Posterior | None:
    """Return the posterior, or None: a run that found no mass still has calls and a message worth giving back."""
    try:
        return fitted.posterior
    except InputError:
        return None
