"""What the loop asks of an inference method, and what a method gives back."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from basq.numerics.gaussians import GaussianMixture
from basq.observations import Observations
from basq.prior import Prior
from basq.types import BoolArray, FloatArray


class Density(Protocol):
    """A density over some coordinates of standard space."""

    @property
    def n_dim(self) -> int: ...

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at the rows of x: (k,)."""
        ...

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at the rows of x: (k,)."""
        ...

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Distribution function of a single coordinate at t: (k,)."""
        ...

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles of a single coordinate at levels q: (k,)."""
        ...

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n equal-weight points."""
        ...


class Posterior(Density, Protocol):
    """The posterior in standard space."""

    def marginal(self, dims: list[int]) -> Density:
        """Density of some coordinates."""
        ...

    def conditional(self, fixed: list[int], value: ArrayLike) -> Density:
        """Density of the other coordinates, given some."""
        ...

    def affine(self, a: FloatArray, b: FloatArray) -> "Posterior":
        """Posterior of a x + b."""
        ...


class LogSurrogate(Protocol):
    """What is believed about the log-likelihood, relative to the measure."""

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d) of standard space: (3, m)."""
        ...


@dataclass(frozen=True)
class Batch:
    """Points to evaluate next.

    Attributes
    ----------
    u : (b, d) array
        In standard space.
    weights : (b,) array
        Quadrature weights over the prior measure, where the selection gives any; the history keeps them.
    explores : (b,) bool array or bool
        Which points look for something new rather than integrate.
    info : dict
        What the selection has to say for the record.
    """

    u: FloatArray
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    explores: BoolArray | bool = False
    info: dict[str, Any] = field(default_factory=dict)

    def noted(self, number: int) -> dict[str, Any]:
        """For the record of a run in which this is batch ``number``: what the selection says, and its weights."""
        return self.info | ({"batch": number, "weights": self.weights.tolist()} if len(self.weights) else {})


@dataclass(frozen=True)
class Audit:
    """What one batch said about the surrogate that chose it.

    Attributes
    ----------
    n_evals : int
        Likelihood values before the batch: what it was predicted with. Failed calls are not among them; the history
        (``Record.n_evals``) counts them.
    n_inside : int
        Points of the batch that matter to the posterior, by prediction or in truth.
    z2 : float
        Mean square of their standardised residuals (capped); 1 if the surrogate is calibrated, NaN if there are none.
    rms : float
        Root mean square of their residuals in nats, without what declared noise explains.
    log_ratio : float
        Log of the mean of true over predicted likelihood: the error of log Z as this batch sees it.
    surprise : bool
        A point of the posterior lay far above its prediction: a mode or a ridge that was not known.
    z : tuple of float
        Their standardised residuals (capped), one by one.
    memory : int
        Batches, this one and those before it, whose z2 are judged together.
    accepted : float
        Mean z2 over them up to which they agree with their prediction.
    """

    n_evals: int
    n_inside: int
    z2: float
    rms: float
    log_ratio: float
    surprise: bool
    z: tuple[float, ...] = field(default=(), repr=False)
    memory: int = field(default=1, repr=False)
    accepted: float = field(default=np.inf, repr=False)


class Default:
    """A value for objects whose class has none of its own: a property could not become a field of a dataclass."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            raise AttributeError("no attribute of the class")  # or a dataclass would take it for the default of a field
        return self._value


class Fit(Protocol):
    """A surrogate after a batch, with the answers it gives; the class of a fit has to be a subclass of this one.

    The answers may be attributes, fields of a dataclass, or properties. Those with a default may be left out.

    Attributes
    ----------
    log_evidence : float
        −inf while every value seen is zero, NaN where there is no answer.
    log_evidence_std : float
    posterior : Posterior
        Raises InputError while there is none.
    audits : tuple of Audit
        What every batch said about the surrogate that chose it; () by default.
    log_surrogate : LogSurrogate or None
        What is believed about the log-likelihood, for pictures; None by default.
    noise : float or None
        Estimated standard deviation of values whose noise is not known; None, the default, if none was estimated.
    seconds : mapping of str to float
        Time of its stages by name; "fit" and "integrate" are then not what the run measures. Empty by default.
    notes : tuple of str
        What people should know about how the answer was found, a clause each; () by default.
    """

    if TYPE_CHECKING:

        @property
        def log_evidence(self) -> float: ...

        @property
        def log_evidence_std(self) -> float: ...

        @property
        def posterior(self) -> Posterior: ...

        @property
        def audits(self) -> tuple[Audit, ...]:
            return ()

        @property
        def log_surrogate(self) -> LogSurrogate | None:
            return None

        @property
        def noise(self) -> float | None:
            return None

        @property
        def seconds(self) -> Mapping[str, float]:
            return {}

        @property
        def notes(self) -> tuple[str, ...]:
            return ()
    else:
        audits = Default(())
        log_surrogate = Default(None)
        noise = Default(None)
        seconds = Default(MappingProxyType({}))
        notes = Default(())

    @abstractmethod
    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Whether the answer is good enough, and why in a clause; never if dlogz is 0."""
        ...


F = TypeVar("F", bound=Fit)


class Method(Protocol[F]):
    """An inference method: how to learn from observations, and where to look next.

    It holds options only, never what it has learned: that is in the fits, which are replaced. Its ``repr`` says which
    options, so that a store recognises it.
    """

    def check(self, batch_size: int) -> None:
        """Raise InputError if batches of this size cannot be chosen."""
        ...

    def initial_size(self, n_dim: int) -> int:
        """Least number of points of the initial design."""
        ...

    def fit(self, observations: Observations, prior: Prior, previous: F | None, rng: np.random.Generator) -> F:
        """Learn from everything seen."""
        ...

    def select(
        self, fitted: F, batch_size: int, rng: np.random.Generator, *, cost_ratio: float, taken: FloatArray
    ) -> Batch:
        """Choose the next points.

        ``cost_ratio`` is the time of the last batch of calls over that of the last selection; ``taken`` (m, d) are
        points without a value, under way or failed, near which another one would learn little.
        """
        ...


@runtime_checkable
class Designer(Protocol):
    """A method that chooses its first points itself; for others they are spread evenly over the prior."""

    def design(self, measure: GaussianMixture, n: int, rng: np.random.Generator, *, seen: FloatArray) -> Batch | None:
        """Choose n points where there is no value yet, or not enough to model; None for an even spread.

        ``measure`` is the prior in standard space, ``seen`` (m, d) are the points that were chosen or given so far.
        """
        ...
