"""What fresh calls, drawn independently of all that was seen, say about the evidence: an estimate without bias."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from basq.certificate import pareto
from basq.certificate.design import Design
from basq.errors import counted
from basq.report.tables import with_error
from basq.status import Finding
from basq.types import BoolArray, FloatArray, IntArray

DISAGREES = 2.5
"""Standard deviations between certificate and surrogate at which one contradicts the other."""
DIFFERS = 0.12
"""Total variation between the true posterior and the surrogate's above which the surrogate is wrong."""
SURPRISE, MISSED = 5.0, 0.01
"""Nats above its prediction at which a call, if it weighs half as much as an average one, is a surprise; and the share
of the posterior's mass that all of them have to stand for, to contradict the surrogate."""
FEWEST = 25
"""Calls below which nothing is stated: the shape of their weights' tail cannot be told."""
LARGEST_LOG = 300.0
"""Weights above exp of this are as good as this."""
LEVEL = 1.959963984540054
"""Standard deviations of 95 %."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """An unbiased estimate of the evidence by importance sampling, with the surrogate as control variate.

    Attributes
    ----------
    design : Design
        What was drawn, and with which density.
    x : (n, d) array
        The points in the user's (expensive) parameters.
    log_likelihood : (n,) array
        NaN where a call has failed.
    noise : (n,) array
        Standard deviation of each value's noise.
    n_pending : int
        Calls of it that have no value yet.
    surrogate : (float, float)
        log Z and its standard deviation as the run had them.
    target : float
        Standard deviation of log Z that a certified answer has at most.
    """

    design: Design
    x: FloatArray
    log_likelihood: FloatArray
    noise: FloatArray
    n_pending: int
    surrogate: tuple[float, float]
    target: float
    sound: bool = True
    doubt: str | None = None

    @property
    def n_evals(self) -> int:
        """Calls that gave a value."""
        return int((~self._failed).sum())

    @property
    def n_failed(self) -> int:
        return int(self._failed.sum())

    @property
    def log_evidence(self) -> float:
        """log Ẑ; −inf where the calls say less than nothing."""
        return self._estimate[0]

    @property
    def log_evidence_std(self) -> float:
        """Its standard error: larger than the plain one where few of the calls make up the estimate."""
        return self._estimate[1]

    @property
    def z(self) -> float:
        """By how many standard deviations, of both together, certificate and surrogate differ."""
        log_z, sd = self.surrogate
        if not np.isfinite(self.log_evidence_std):
            return 0.0
        return float((self.log_evidence - log_z) / np.hypot(self.log_evidence_std, sd))

    @cached_property
    def log_weights(self) -> FloatArray:
        """Log of true posterior over drawn density, of every call: (n,); −inf where the likelihood is zero."""
        with np.errstate(invalid="ignore"):
            found = self._log_values + self.design.log_prior - self.design.log_drawn
        return np.where(self._failed, -np.inf, found)

    @cached_property
    def k_hat(self) -> float:
        """Shape of the weights' tail: above 0.7 neither the estimate nor its error can be believed."""
        finite = self.log_weights[np.isfinite(self.log_weights)]
        return pareto.shape(finite) if len(finite) else np.inf

    @property
    def effective(self) -> float:
        """Effective number of the calls as posterior samples."""
        w = self.weights
        return float(1.0 / (w @ w)) if w.any() else 0.0

    @cached_property
    def weights(self) -> FloatArray:
        """Pareto-smoothed weights of the calls as posterior samples, normalised: (n,)."""
        finite, out = np.isfinite(self.log_weights), np.zeros(len(self.log_weights))
        if finite.any():
            out[finite] = pareto.smoothed(self.log_weights[finite])
        return out

    def expectation(self, values: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Posterior means of what has these values at the calls, (n,) or (n, k), and their standard errors."""
        v = np.asarray(values, dtype=float)
        w, n = self.weights, max(self.effective, 2.0)
        mean = w @ v
        few = stats.t.ppf(stats.norm.cdf(LEVEL), n - 1.0) / LEVEL
        return mean, few * np.sqrt(n / (n - 1.0) * (w**2 @ (v - mean) ** 2))

    @property
    def residuals(self) -> FloatArray:
        """Nats by which true log-likelihoods exceed the surrogate's expectation, (n,); NaN where one is not known."""
        with np.errstate(invalid="ignore"):  # zero, as expected
            found: FloatArray = self._log_values + self.design.log_prior - self.design.log_expected
        return found

    @property
    def contributions(self) -> FloatArray:
        """What every call adds to the surrogate's integral, in units of it: (n,); Ẑ changes by their mean."""
        return self._terms

    @property
    def total_variation(self) -> float:
        """Between the true posterior and the surrogate's: the share of the mass that lies in the wrong place."""
        return float(self._misplaced.mean())

    @property
    def surprises(self) -> IntArray:
        """Calls that matter and lie far above their prediction, by the places of their points."""
        with np.errstate(invalid="ignore"):
            high = self.residuals > SURPRISE
        return np.flatnonzero(high & (self.log_weights > self.log_evidence + np.log(0.5)))

    @property
    def finding(self) -> Finding:
        """What it says."""
        if self._too_little is not None:
            return Finding.UNDECIDED
        if self._against is not None:
            return Finding.CONTRADICTED
        return Finding.CERTIFIED if self.sound and self._unsure is None else Finding.UNDECIDED

    @property
    def certified(self) -> bool:
        return self.finding is Finding.CERTIFIED

    def good_to(self, error: float) -> bool:
        """Whether log Ẑ is known to this standard deviation."""
        return self.k_hat <= pareto.LARGEST and self.log_evidence_std <= error

    @property
    def why(self) -> str:
        """The finding's reason, in a clause."""
        if self._too_little is not None:
            return self._too_little
        found = with_error(self.log_evidence, self.log_evidence_std)
        shape = f" (k̂ = {self.k_hat:.2f})" if np.isfinite(self.k_hat) else ""
        failed = f", {self.n_failed} more failed" if self.n_failed else ""
        return f"{self.n_evals} independent calls{failed} give log Z = {found}{shape}, {self._compared}"

    @property
    def _compared(self) -> str:
        """How they compare with the surrogate, in a clause."""
        if self._against is not None:
            return self._against
        if self._unsure is not None:
            return self._unsure
        if not self.sound:
            return "but the run has not passed its own tests: what it has not seen, they have hardly looked for"
        return (
            f"{abs(self.z):.1f} sd from the surrogate's {with_error(*self.surrogate)}; the posteriors differ by "
            f"{100.0 * self.total_variation:.1f} % of the mass"
        )

    @property
    def _against(self) -> str | None:
        """What the calls say against the surrogate; None if they agree, or do not say enough to disagree."""
        odd = self.log_weights[self.surprises] - self.log_evidence
        if np.exp(odd).sum() > MISSED * self.n_evals:
            k = self.surprises[np.argmax(self.log_weights[self.surprises])]
            where = ", ".join(f"{value:.4g}" for value in self.x[k])
            return f"but the surrogate was {self.residuals[k]:.3g} nats too low at ({where}), where posterior mass lies"
        if self.k_hat <= pareto.LARGEST and abs(self.z) > DISAGREES:
            return f"{abs(self.z):.1f} sd from the surrogate's {with_error(*self.surrogate)}"
        misplaced = self._misplaced
        if misplaced.mean() - misplaced.std() / np.sqrt(len(misplaced)) > DIFFERS:
            return f"but {100.0 * self.total_variation:.0f} % of the surrogate's posterior lie in the wrong place"
        return None

    @property
    def message(self) -> str:
        """Finding and reason in a sentence."""
        text = self.finding.value
        return f"{text[0].upper()}{text[1:]}: {self.why}."

    @property
    def _too_little(self) -> str | None:
        """Why nothing can be stated; None if something can."""
        if self.doubt is not None:
            return self.doubt
        if self.n_pending:
            return f"{self.n_pending} of {len(self.design) + 1 + self.n_pending} calls have no value yet"
        if self.n_evals < FEWEST:
            return f"{counted(self.n_evals, 'value')} of {len(self.design)} calls are too few; {FEWEST} are needed"
        return None

    @property
    def _unsure(self) -> str | None:
        """Why their estimate is not sure enough to certify anything, in a clause; None if it is."""
        if not self.k_hat <= pareto.LARGEST:
            return f"but a few of them outweigh all others (k̂ above {pareto.LARGEST}): its error cannot be believed"
        if not self.log_evidence_std <= self.target:
            return f"which is not as sure as asked for ({self.target:g})"
        return None

    @cached_property
    def _misplaced(self) -> FloatArray:
        """Of every call with a value, what it adds to the mass that lies in the wrong place."""
        true, expected = self._shares
        found = true * np.exp(self.design.log_pool - self.log_evidence) if true.any() else true
        return 0.5 * np.abs(found - expected)[~self._failed]

    @property
    def _failed(self) -> BoolArray:
        return np.isnan(self.log_likelihood)

    @property
    def _log_values(self) -> FloatArray:
        """Log of the expected likelihood: that of a noisy log-likelihood is too large by half of its variance."""
        values: FloatArray = self.log_likelihood - 0.5 * np.nan_to_num(self.noise) ** 2
        return values

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """Of every call, f/(M p q) and g/(M p q) in units of the surrogate's integral."""
        level = -self.design.log_pool
        with np.errstate(over="ignore"):  # a surrogate may be too low by any number of nats
            true = np.exp(np.minimum(self.log_weights + level, LARGEST_LOG))
        return true, np.exp(self.design.log_expected - self.design.log_drawn + level)

    @cached_property
    def _terms(self) -> FloatArray:
        """(f − g)/(M p q) in units of the surrogate's integral; 0 where a call has failed: nothing is known there."""
        true, expected = self._shares
        return np.where(self._failed, 0.0, true - expected)

    @cached_property
    def _estimate(self) -> tuple[float, float]:
        """log Ẑ and its standard error."""
        if len(self.design) < 2 or not self._shares[0].any():
            return -np.inf, np.inf
        # where calls have failed, all that was expected there may be missing, or as much again be there
        unknown = self._shares[1][self._failed].sum() / len(self.design)
        z, error = 1.0 + float(self._terms.mean()), np.hypot(_error(self._terms), self.design.pool_error)
        if (
            z <= 0.0
        ):  # a surrogate with more than all calls together is no help; to choose by the errors would be a bias
            plain = np.where(self._failed, self._shares[1], self._shares[0])
            z, error = float(plain.mean()), _error(plain)
        return self.design.log_pool + float(np.log(z)), float(np.hypot(error, unknown)) / z


def _error(terms: FloatArray) -> float:
    """Standard error of the mean of terms (n,), wider where few of them make up their variance."""
    squares = (terms - terms.mean()) ** 2
    if not squares.any():
        return 0.0
    # a mean of which few terms make up the variance is no more normal than that of so few
    shares = squares / squares.max()
    many = float(shares.sum() ** 2 / (shares**2).sum())
    wider = stats.t.ppf(stats.norm.cdf(LEVEL), max(many, 1.0)) / LEVEL
    return float(wider * np.sqrt(squares.sum() / (len(terms) - 1) / len(terms)))
