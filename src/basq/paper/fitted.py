"""The surrogate after a batch, and the answers that it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from basq.errors import InputError
from basq.method import Audit, Fit, Posterior
from basq.numerics.gaussians import GaussianMixture
from basq.observations import Observations
from basq.paper.audit import audit, calibrated, doubts
from basq.paper.evidence import Evidence, closed_form_evidence, empirical_evidence
from basq.paper.models.base import Surrogate
from basq.paper.posterior import closed_form_posterior
from basq.posterior.sampled import SampledPosterior
from basq.types import FloatArray

N_CURVATURE = 1024
"""Points of an empirical measure that variances are averaged over; all of them would cost more than the rest."""


@dataclass(frozen=True)
class SurrogateDensity:
    """Log posterior density of a surrogate in standard space, (m, d) -> (m,); a class, so that it can be pickled."""

    surrogate: Surrogate
    measure: GaussianMixture
    log_z: float

    def __call__(self, u: FloatArray) -> FloatArray:
        mean = self.surrogate.mean(self.surrogate.gp.predict(u))
        log_mean = np.log(mean, out=np.full_like(mean, -np.inf), where=mean > 0)
        out: FloatArray = log_mean + self.measure.log_pdf(u) - self.log_z
        return out


@dataclass(frozen=True)
class LikelihoodBand:
    """What a surrogate of the likelihood itself believes about its logarithm."""

    surrogate: Surrogate
    log_scale: float

    def band(self, u: FloatArray) -> FloatArray:
        """Log of mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m); −inf where they are not positive."""
        p = self.surrogate.gp.predict(u)
        mean, sd = self.surrogate.mean(p), np.sqrt(np.maximum(self.surrogate.var(p), 0.0))
        values = np.stack([mean - 2.0 * sd, mean, mean + 2.0 * sd])
        return self.log_scale + np.log(values, out=np.full_like(values, -np.inf), where=values > 0.0)


def integrate(surrogate: Surrogate, measure: GaussianMixture, log_scale: float, points: FloatArray) -> Evidence | None:
    """Moments of Z: in closed form where there is one, else over the empirical measure of points (N, d)."""
    if log_scale == -np.inf:
        return None
    if surrogate.has_closed_form:
        return closed_form_evidence(surrogate, measure, log_scale)
    return empirical_evidence(surrogate, surrogate.gp.predict(points), np.ones(len(points)), log_scale)


def curvature(surrogate: Surrogate, measure: GaussianMixture, points: FloatArray) -> float:
    """½∫C̃π of a square model, in closed form or over the first points (N, d); zero for others."""
    if not surrogate.is_square:
        return 0.0
    if surrogate.has_closed_form:
        return surrogate.neglected(measure)
    return 0.5 * float(surrogate.gp.predict(points[:N_CURVATURE]).var.mean())


@dataclass(frozen=True)
class PaperFit(Fit):
    """The surrogate after a batch, with what follows from it.

    Attributes
    ----------
    surrogate : Surrogate
        Of the likelihood scaled by exp(−log_scale), over ``measure`` in standard space.
    measure : GaussianMixture
    log_scale : float
        −inf while every value seen is zero.
    points : (N, d) array
        Empirical measure; used only where no closed form exists.
    evidence : Evidence or None
        Moments of Z (Algorithm 1, line 15); None while every value seen is zero.
    seed : int
        Of the posterior's sampling.
    seconds : mapping
        Where the time went, by stage.
    n_seen : int
        Observations that the surrogate has learned from.
    audits : tuple of Audit
        What every batch said about the surrogate that chose it.
    curvature : float
        ½∫C̃π of a square model, on the scale of the evidence.
    audited : bool
        Whether the error is calibrated by the audits; otherwise it is what the surrogate claims, as in the paper.
    """

    surrogate: Surrogate
    measure: GaussianMixture
    log_scale: float
    points: FloatArray
    evidence: Evidence | None
    seed: int
    seconds: Mapping[str, float]
    n_seen: int = 0
    audits: tuple[Audit, ...] = ()
    curvature: float = 0.0
    audited: bool = True

    def tested(self, before: "PaperFit | None", observations: Observations) -> "PaperFit":
        """Add what the observations since an earlier fit say about it, and with it about this one."""
        if before is None or before.evidence is None:
            return self
        new, moved = observations.since(before.n_seen), self.log_evidence - before.log_evidence
        if not len(new):
            return replace(self, audits=before.audits)
        found = audit(before.surrogate, before.log_scale, new, before.n_seen, moved, before.claimed_std)
        return replace(self, audits=(*before.audits, found))

    @property
    def claimed_std(self) -> float:
        """Standard deviation of log Z that the surrogate claims."""
        return self.evidence.log_std if self.evidence else np.inf

    plain_cached: ClassVar = ("posterior",)

    @property
    def log_evidence(self) -> float:
        """Log E[Z]; −inf while every value seen is zero, NaN where the surrogate integrates to less than zero."""
        return self.evidence.log_mean if self.evidence else -np.inf

    @property
    def log_evidence_std(self) -> float:
        if self.evidence is None or not self.audited:
            return self.claimed_std
        return calibrated(self.evidence, self.audits, self.curvature)

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior in standard space."""
        if self.evidence is None:
            raise InputError("Every likelihood value so far is zero (−inf): there is no posterior yet.")
        if self.surrogate.has_closed_form:
            return closed_form_posterior(self.surrogate, self.measure)
        log_z = float(np.log(max(self.evidence.scaled_mean, 1e-300)))
        log_density = SurrogateDensity(self.surrogate, self.measure, log_z)
        log_w = log_density(self.points) - self.measure.log_pdf(self.points)
        if not np.isfinite(logsumexp(log_w)):
            raise InputError("The surrogate's likelihood is nowhere positive: there is no posterior yet.")
        return SampledPosterior.build(log_density, self.points, log_w, np.random.default_rng(self.seed))

    @property
    def log_surrogate(self) -> LikelihoodBand | None:
        """What is believed about the log-likelihood; nothing while every value seen is zero."""
        return None if self.log_scale == -np.inf else LikelihoodBand(self.surrogate, self.log_scale)

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Whether the error is below a threshold and the batches agree with their predictions.

        Without audits this is the paper's criterion, var[Z|y] below a threshold, on the scale of log Z.
        """
        if self.log_scale == -np.inf:
            return False, "every likelihood value so far is zero (−inf)"
        if not np.isfinite(self.log_evidence):
            return False, "the surrogate's evidence is not positive"
        sd = self.log_evidence_std
        if not self.audited:  # a variance clipped at zero is no reason to stop at 0
            met = sd <= dlogz and dlogz > 0.0
            return met, f"the surrogate's sd of log Z, {sd:.3g}, is {'' if met else 'not '}below dlogz = {dlogz:g}"
        missing = doubts(self.audits, sd, dlogz)
        if missing or not dlogz > 0.0:
            return False, "; ".join(missing) or f"dlogz = {dlogz:g} asks for all calls"
        return (
            True,
            f"sd of log Z {sd:.3g} is below dlogz = {dlogz:g}, and the last batches agree with their prediction",
        )
