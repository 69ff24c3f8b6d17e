"""The answer of a run, in the user's parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from basq.certificate.certificate import Certificate
from basq.errors import InputError
from basq.method import Audit, LogSurrogate, Posterior
from basq.observations import Best, Failure, Observations
from basq.outputs.outputs import Outputs
from basq.posterior.densities import ParameterDensity
from basq.posterior.parameters import N_SUMMARY, ParameterPosterior
from basq.prior import Prior
from basq.prior.checks import Names
from basq.report.tables import QUANTILES, Row, Summary
from basq.results import archive, export, predictive, proof, words
from basq.results.evidence import Evidence
from basq.results.export import Draws
from basq.results.keepable import keepable
from basq.results.pictures import Drawable
from basq.results.record import Record
from basq.results.source import Askable, Source
from basq.status import Status
from basq.types import FloatArray
from basq.version import __version__

if TYPE_CHECKING:
    from anesthetic import Samples
    from getdist import MCSamples
    from pandas import DataFrame

__all__ = ["Failure", "ParameterDensity", "Result"]


@dataclass(frozen=True, eq=False)
class Result(Evidence, Askable, Drawable):
    """Evidence and posterior of a run.

    Attributes
    ----------
    log_evidence, log_evidence_std : float
        log Z and its standard deviation (also as ``logz``, ``logzerr``).
    status : Status
        How the run stands, or how it has ended.
    why : str
        Why, in a clause.
    prior : Prior
    observations : Observations
        Every evaluated point with its value.
    history : tuple of Record
        One entry a batch.
    standard_posterior : Posterior or None
        The posterior in standard space; None if the run found no mass, as ``why`` says.
    audits : tuple of Audit
        How well each batch was predicted before it was evaluated (``pandas.DataFrame(result.audits)`` makes a table).
    failures : tuple of Failure
        Calls that gave no value.
    surrogate : LogSurrogate or None
        What is believed about the log-likelihood in standard space.
    settings : mapping
        How the run was made, as its store has it: method, seed, budget, versions, dates.
    noise : float or None
        Estimated standard deviation of log-likelihoods whose noise is not known, ``(value, None)``, if there are such.
    sound : bool
        Whether nothing speaks against the answer but, perhaps, an error of log Z above ``dlogz``.
    cheap : tuple of str
        Parameters that were integrated over at every call, and put back into the posterior.
    notes : tuple of str
        What else has to be known, a sentence each.
    outputs : Outputs or None
        What the simulator gave at every observation.
    source : Source or None
        What is needed to ask it `again`.
    certificate : Certificate or None
        What independent calls say; see `certify`.
    """

    log_evidence: float
    log_evidence_std: float
    status: Status
    why: str
    prior: Prior
    observations: Observations
    history: tuple[Record, ...]
    standard_posterior: Posterior | None
    audits: tuple[Audit, ...] = ()
    failures: tuple[Failure, ...] = ()
    surrogate: LogSurrogate | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    noise: float | None = None
    sound: bool = False
    cheap: tuple[str, ...] = ()
    outputs: Outputs | None = None
    notes: tuple[str, ...] = ()
    source: Source | None = field(default=None, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)

    plain_cached: ClassVar = ("_posterior",)

    @classmethod
    def nothing(
        cls,
        prior: Prior,
        status: Status,
        why: str,
        failures: tuple[Failure, ...],
        settings: Mapping[str, Any] | None = None,
    ) -> "Result":
        """The answer of a run of which no call has succeeded."""
        empty, known = Observations.empty(prior.n_dim), dict(settings or {})
        return cls(-np.inf, np.inf, status, why, prior, empty, (), None, failures=failures, settings=known)

    @property
    def message(self) -> str:
        """How the run has ended and why, in a sentence."""
        return self.status.because(self.why)

    @property
    def n_evals(self) -> int:
        """Calls that gave a value, and values given beforehand."""
        return len(self.observations)

    @property
    def n_calls(self) -> int:
        """The same as `n_evals`."""
        return self.n_evals

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
    def expensive(self) -> tuple[str, ...]:
        """The parameters that calls were made with: all but the cheap ones."""
        return tuple(name for name in self.names if name not in self.cheap)

    @cached_property
    def _posterior(self) -> ParameterPosterior:
        """The posterior in the user's parameters, or an error that says why there is none."""
        if self.standard_posterior is None:
            raise InputError(f"This result has no posterior. {self.message}")
        return ParameterPosterior(self.prior, self.standard_posterior)

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log posterior density at the rows of x (k, d): (k,)."""
        return self._posterior.log_pdf(x)

    @property
    def best(self) -> Best:
        """The evaluated point of the largest likelihood, and its log: ``best.x``, ``best.log_likelihood``.

        The point has the `expensive` parameters; the value of a noisy likelihood has its noise in it.
        """
        seen = self.observations
        if not len(seen):
            raise InputError(f"This result has no evaluated point. {self.message}")
        at = int(np.argmax(seen.log_likelihood))
        return Best(seen.x[at, self.prior.index(self.expensive)], float(seen.log_likelihood[at]))

    @property
    def samples(self) -> FloatArray:
        """Equal-weight posterior samples, always the same ones: (4000, d)."""
        return self._posterior.samples.copy()

    def sample(self, n: int = N_SUMMARY, seed: Any = None, *, exact: bool = False) -> FloatArray:
        """Draw n equal-weight posterior samples: (n, d).

        ``exact`` draws from the calls of the `certificate` by their weights, whatever the surrogate believes: as many
        different points as there are calls, of which ``certificate.effective`` count.
        """
        if exact:
            draws = proof.draws(self)
            chosen = np.random.default_rng(seed).choice(len(draws.x), n, p=np.exp(draws.log_weights))
            return draws.x[chosen]
        return self._posterior.sample(n, seed)

    def marginal(self, names: Names) -> ParameterDensity:
        """Posterior density of one or several parameters, by name or place."""
        return self._posterior.marginal(names)

    def conditional(self, values: Mapping[str, float]) -> ParameterDensity:
        """Posterior density of the other parameters when some are held at values."""
        return self._posterior.conditional(values)

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of the parameters (d,)."""
        return self._posterior.moments[0]

    @property
    def cov(self) -> FloatArray:
        """Posterior covariance of the parameters (d, d)."""
        return self._posterior.moments[1]

    def summary(self) -> Summary:
        """The posterior in a table: mean, standard deviation and quantiles of every parameter.

        Examples
        --------
        ``print(result.summary())`` shows it, ``result.summary()["rate"].mean`` is a number of it, and
        ``result.summary().to_pandas()`` makes a data frame.
        """
        if self.standard_posterior is None:
            return Summary(self.names, ())
        moments = zip(self.names, self.mean.tolist(), np.sqrt(np.diag(self.cov)).tolist(), strict=True)
        return Summary(
            self.names, tuple(Row(n, m, sd, *self.marginal(n).ppf(QUANTILES).tolist()) for n, m, sd in moments)
        )

    @property
    def too_few(self) -> str | None:
        """Why there is no posterior to show yet: fewer calls than a first model needs; None if there are enough."""
        least = self.settings.get("initial_size", 0)
        if self.n_batches > 1 or self.n_evals >= least:
            return None
        return f"too few calls for a posterior ({self.n_evals} of {least})"

    def __repr__(self) -> str:
        return words.one_line(self)

    def __str__(self) -> str:
        return words.page(self)

    def _repr_html_(self) -> str:
        return words.html(self)

    def save(self, path: str | Path) -> None:
        """Write everything into one file, which `Result.load` reads; it appears only when it is complete."""
        archive.write(Path(path), keepable(self))

    @classmethod
    def load(cls, path: str | Path, *, allow_pickle: bool = False) -> "Result":
        """Read a file that `save` has written: the same samples, densities and plots, without the likelihood.

        It holds data and no code. Older ones hold pickled objects, which can run any code: ``allow_pickle`` reads them.
        """
        found = archive.read(Path(path), allow_pickle=allow_pickle)
        if not isinstance(found, cls):
            raise InputError(f"{path} holds a {type(found).__name__}, not a result.")
        return found

    emulator = cached_property(predictive.emulator)
    predict = predictive.predict
    derived = predictive.derived

    def weighted_samples(self, *, exact: bool = False) -> Draws:
        """The posterior as weighted points: the draws that the evidence was integrated with, where there are any.

        Methods with a posterior in closed form (`basq.Paper` with an RBF kernel) give equal weights. ``exact`` gives
        the calls of the `certificate`, with their true likelihoods.
        """
        return self._draws(None, 0, exact=exact)

    def to_pandas(
        self, table: Literal["posterior", "evaluations"] = "posterior", *, n: int = N_SUMMARY, seed: Any = 0
    ) -> "DataFrame":
        """A pandas data frame, one column per parameter.

        Parameters
        ----------
        table : "posterior" or "evaluations"
            n equal-weight samples; or every evaluated point with its log-likelihood, the standard deviation of its
            noise, whether it explored, and its batch. A point has no cheap parameters.
        n, seed
            Of the samples.
        """
        if table not in ("posterior", "evaluations"):
            raise InputError(f"to_pandas({table!r}): allowed are 'posterior' and 'evaluations'.")
        if table == "posterior":
            return export.to_frame(self.names, self.sample(n, seed))
        seen = self.observations
        more = {name: getattr(seen, name) for name in ("log_likelihood", "noise", "explores", "batch")}
        return export.to_frame(self.expensive, seen.x[:, self.prior.index(self.expensive)], more)

    def to_arviz(self, *, n: int = N_SUMMARY, seed: Any = 0) -> Any:
        """n equal-weight samples for ArviZ: an ``InferenceData`` for ArviZ 0.x, a ``DataTree`` for 1.x.

        Group ``posterior`` holds the parameters, ``prior`` as many draws of the prior, ``sample_stats`` the surrogate's
        log-likelihood at every sample and ``lp``, which adds the prior's log-density where it has one; the evidence and
        the verdict are attributes, labels and units those of the parameters. The independent draws are dealt into four
        chains, if n is a multiple of four: R-hat and effective sample size say nothing about the surrogate's error.
        """
        draws = self._draws(n, seed)
        other = np.random.default_rng(seed).spawn(1)[0]  # not the stream of the posterior's draws
        looks = dict(zip(self.names, zip(self.prior.labels, self.prior.units, strict=True), strict=True))
        return export.to_arviz(draws, self.prior.sample(n, other), self._attributes, looks)

    def to_getdist(
        self, root: str | Path | None = None, *, n: int | None = N_SUMMARY, seed: Any = 0, exact: bool = False
    ) -> "MCSamples":
        r"""Samples for GetDist, with names, labels and the prior's bounds.

        GetDist allows no spaces, ``*`` or ``?`` in names, so ``"$\alpha$"`` becomes ``alpha`` and ``"decay rate"``
        ``decay_rate``; the labels keep what was given. Its ``loglikes`` are minus the log of likelihood times prior, of
        the surrogate; minus the log-likelihood if the prior is a transform without a density.

        Parameters
        ----------
        root : path, optional
            Also write chain files: ``root.txt``, ``.paramnames``, ``.ranges`` and ``.properties.ini``, for
            ``getdist.loadMCSamples``, the GetDist program and ``anesthetic.read_chains``.
        n : int or None
            Number of equal-weight samples; None for those of `weighted_samples`.
        seed
            Of the samples.
        exact : bool
            Instead of them, the weighted calls of the `certificate`.
        """
        return export.to_getdist(self._draws(n, seed, exact=exact), self.prior, root, self._attributes)

    def to_anesthetic(self, *, n: int | None = N_SUMMARY, seed: Any = 0, exact: bool = False) -> "Samples":
        """Samples for anesthetic, with the surrogate's log-likelihood as ``logL``; the evidence is in ``attrs``.

        ``n``, ``seed`` and ``exact`` are those of `to_getdist`.
        """
        return export.to_anesthetic(self._draws(n, seed, exact=exact), self.prior, self._attributes)

    def _draws(self, n: int | None, seed: Any, *, exact: bool = False) -> Draws:
        if exact:
            return proof.draws(self)
        return Draws.of(self.prior, self._posterior.standard, self.log_evidence, n, np.random.default_rng(seed))

    @property
    def _attributes(self) -> dict[str, Any]:
        """What other packages keep beside samples: numbers and texts, which every file format can hold."""
        return {
            "log_evidence": float(self.log_evidence),
            "log_evidence_std": float(self.log_evidence_std),
            "converged": int(self.converged),
            "status": self.status.value,
            "message": self.message,
            "n_evals": self.n_evals,
            "inference_library": "basq",
            "inference_library_version": __version__,
        }
