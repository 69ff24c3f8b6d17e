"""What a model of the zoo is, and the densities and priors that many of them share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special, stats

from basq.numerics.gaussians import LOG_2PI
from basq.problems.base import Pointwise
from basq.problems.zoo.references import Reference, reference
from basq.types import FloatArray, LogLikelihood

Rows = Callable[[FloatArray], FloatArray]
Marginals = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ZooProblem:
    """A model as people write it, with data simulated from a seed.

    Attributes
    ----------
    name : str
        Of the function that makes it.
    group : str
        What it is about, a key of `zoo.GROUPS`.
    seed : int
        Of the data and of the parameters that made them.
    prior : dict
        Marginals by the parameters' names, as `basq.infer` takes them: frozen `scipy.stats` distributions and pairs
        (lo, hi).
    truth : (d,) array
        The parameters that made the data.
    rows : callable
        The model's own log-likelihood, (n, d) -> (n,); may warn and give NaN, which `log_likelihood` does not.

    Examples
    --------
    >>> from basq.problems import zoo
    >>> problem = zoo.MODELS["ar1"](seed=3)
    >>> problem.names
    ('mu', 'phi', 'sigma')
    >>> problem.log_likelihood([problem.truth, problem.truth]).shape
    (2,)
    """

    name: str
    group: str
    seed: int
    prior: Marginals
    truth: FloatArray
    rows: Rows = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.prior)

    @property
    def n_dim(self) -> int:
        return len(self.prior)

    @property
    def log_likelihood(self) -> LogLikelihood:
        """Takes a (d,) array and returns a float, or an (n, d) array and returns an (n,) array; -inf, never NaN."""
        return Pointwise(Settled(self.rows), self.n_dim)

    @property
    def reference(self) -> Reference | None:
        """What brute force found, by two ways that agree; None where it has not been tried or they do not."""
        return reference(self.name, self.seed)

    @property
    def log_evidence(self) -> float | None:
        """The reference's log Z = log ∫ ℓ(x) π(x) dx, or None."""
        return None if self.reference is None else self.reference.log_evidence

    @property
    def log_evidence_std(self) -> float | None:
        return None if self.reference is None else self.reference.log_evidence_std

    @property
    def quantiles(self) -> FloatArray | None:
        """The 4, 8, …, 96 % points of every marginal of the posterior, (d, 24), or None."""
        return None if self.reference is None else self.reference.quantiles


@dataclass(frozen=True)
class Settled:
    """A log-likelihood without warnings: what cannot be computed has likelihood zero, as its authors would say."""

    rows: Rows

    def __call__(self, x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            values = np.asarray(self.rows(x), dtype=float)
        out: FloatArray = np.where(np.isfinite(values), values, -np.inf)
        return out


def columns(x: FloatArray) -> tuple[FloatArray, ...]:
    """Parameters of points (n, d) as d arrays (n, 1), to stand beside data (m,)."""
    return tuple(x.T[:, :, None])


def log_normal(residual: FloatArray, sd: FloatArray | float) -> FloatArray:
    """Log-density of N(0, sd²) at residuals, elementwise."""
    out: FloatArray = -0.5 * (residual / sd) ** 2 - np.log(sd) - 0.5 * LOG_2PI
    return out


def log_poisson(count: FloatArray, rate: FloatArray) -> FloatArray:
    """Log-probability of counts, elementwise."""
    out: FloatArray = special.xlogy(count, rate) - rate - special.gammaln(count + 1.0)
    return out


def log_negative_binomial(count: FloatArray, mean: FloatArray, size: FloatArray) -> FloatArray:
    """Log-probability of counts of a mean and the variance mean + mean²/size, elementwise."""
    combinations = special.gammaln(count + size) - special.gammaln(size) - special.gammaln(count + 1.0)
    out: FloatArray = combinations - size * np.log1p(mean / size) + special.xlogy(count, mean / (size + mean))
    return out


def draw_negative_binomial(rng: np.random.Generator, mean: FloatArray, size: float) -> FloatArray:
    """Counts of a mean and the variance mean + mean²/size."""
    return rng.negative_binomial(size, size / (size + mean)).astype(float)


def half_cauchy(scale: float) -> Any:
    """|Cauchy(0, scale)|."""
    return stats.halfcauchy(scale=scale)


def half_normal(scale: float) -> Any:
    """|N(0, scale²)|."""
    return stats.halfnorm(scale=scale)


def lognormal(median: float, sd: float) -> Any:
    """A lognormal law with this median and this standard deviation of the logarithm."""
    return stats.lognorm(sd, scale=median)


def gamma(shape: float, rate: float) -> Any:
    """A gamma law with mean shape/rate."""
    return stats.gamma(shape, scale=1.0 / rate)


def inverse_gamma(shape: float, scale: float) -> Any:
    """The law of scale over a gamma variable of this shape and rate one."""
    return stats.invgamma(shape, scale=scale)


def positive_normal(mean: float, sd: float) -> Any:
    """N(mean, sd²), given that it is positive."""
    return stats.truncnorm(-mean / sd, np.inf, loc=mean, scale=sd)
