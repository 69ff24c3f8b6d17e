"""The engine on the parameters that are left when noise scales were recognised and integrated out of every call."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from basq.auto.following import following
from basq.auto.form import Form, form_at
from basq.auto.leaps import leaps
from basq.auto.placing import (
    best_s,
    completing,
    expected_log_a,
    folded,
    lacking,
    n_tested,
    offsets,
    partners,
    placed,
    test_calls,
)
from basq.auto.reduction import Reduction
from basq.auto.scales import Probes, classify
from basq.auto.settings import Recognition, Settings
from basq.auto.unfolded import FullBand, unfolded
from basq.cheap.joint import joint_posterior
from basq.method import Audit, Batch, Fit, LogSurrogate, Posterior
from basq.observations import Observations
from basq.prior import Prior
from basq.types import FloatArray


@dataclass(frozen=True)
class Knowledge:
    """What is known of parameters whose effect has a closed form.

    Attributes
    ----------
    prior : Prior
        Of all parameters.
    probes : Probes
        Calls by which they are recognised.
    wanted : (m, d) array
        Points to call next, before all others.
    reduction : Reduction or None
        All observations without these parameters; None if there are none, or while too few calls can be reduced.
    given_up : tuple of str
        Parameters that were recognised at first, and contradicted later.
    """

    prior: Prior
    probes: Probes
    wanted: FloatArray
    reduction: Reduction | None = None
    given_up: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        seen: Observations,
        prior: Prior,
        last: "Knowledge | None",
        settings: Recognition,
        enough: Callable[[int], int],
    ) -> "Knowledge | None":
        """What the observations say; None while there are fewer than ``enough`` for so many parameters."""
        if last is None and (len(seen) < enough(prior.n_dim) or not np.isfinite(seen.log_likelihood).any()):
            return None
        if last is None and seen.log_likelihood.max() > 1e100:  # whose square would overflow
            return None
        deep = np.abs(seen.log_likelihood) > 1e100
        seen = replace(seen, log_likelihood=np.where(deep, -np.inf, seen.log_likelihood))
        probes = Probes.plan(seen, prior, settings) if last is None else last.probes
        wanted = probes.missing(seen)
        before = last.reduction if last is not None else None
        reduction = reduced(seen, prior, probes, before, settings)
        given_up = last.given_up if last is not None else ()
        if before is not None:
            left = reduction.form.gone if reduction is not None else ()
            given_up = (*given_up, *(prior.names[i] for i in before.form.gone if i not in left))
        if reduction is not None and len(reduction.points) < enough(len(reduction.form.dims)):
            wanted = np.concatenate([wanted, completing(reduction, prior, settings)])
            reduction = None
        return cls(prior, probes, wanted, reduction, given_up)

    @cached_property
    def rest(self) -> Prior:
        """The prior of the parameters that are left."""
        assert self.reduction is not None
        return self.prior.only(self.reduction.form.dims.tolist())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done, for people."""
        notes = () if self.reduction is None else self.reduction.form.describe(self.prior.names)
        return (*notes, *(f"{n} was integrated exactly at first, until a call contradicted it" for n in self.given_up))

    def due(self, taken: FloatArray) -> FloatArray:
        """Wanted points that are not under way, (m, d)."""
        under_way = {point.tobytes() for point in np.ascontiguousarray(taken)}
        return self.wanted[[point.tobytes() not in under_way for point in self.wanted]]


def reduced(
    seen: Observations, prior: Prior, probes: Probes, last: Reduction | None, settings: Recognition
) -> Reduction | None:
    """The observations in the first of all forms that they do not contradict; None if there is no such form."""
    for form in (*([last.form] if last is not None and last.form.rise else []), *forms(seen, prior, probes, settings)):
        reduction = Reduction.of(form, seen, prior, last, settings) if len(form.dims) else None
        if reduction is not None:
            known = following(reduction, prior, settings) if form.constant is None else None
            once = Reduction.of(known, seen, prior, None, settings) if known is not None else None
            return once or reduction
    return None


def forms(seen: Observations, prior: Prior, probes: Probes, settings: Recognition) -> Iterator[Form]:
    """Forms that the probes suggest, the best first."""
    lines, idle = classify(seen, probes, settings)
    scales = sorted(lines, key=lambda k: -k.width(prior))
    for without in [tuple(idle), ()] if idle else [()]:
        if scales:
            form = form_at(seen, probes.base, scales, [lines[k] for k in scales], prior)
            yield replace(form, idle=without)
        # a c that depends on the other parameters takes two calls: only for a scale that is hard to follow otherwise
        if scales and scales[0].width(prior) > settings.wide:
            form = form_at(seen, probes.base, scales[:1], [lines[scales[0]]], prior)
            yield replace(form, constant=None, idle=without)
    if idle:
        yield Form(prior.n_dim, (), tuple(idle), 0.0)


@dataclass(frozen=True)
class RecognisedFit(Fit):
    """The engine's state where some parameters are integrated out of every call.

    Attributes
    ----------
    inner : Fit
        Of the other parameters.
    knowledge : Knowledge
    seed : int
        Of the posterior's samples.
    settings : Settings
    """

    inner: Fit
    knowledge: Knowledge
    seed: int
    settings: Settings

    plain_cached: ClassVar = ("posterior",)

    @property
    def reduction(self) -> Reduction:
        """All observations without these parameters."""
        assert self.knowledge.reduction is not None
        return self.knowledge.reduction

    @property
    def log_evidence(self) -> float:
        return self.inner.log_evidence

    @property
    def log_evidence_std(self) -> float:
        return float(np.hypot(self.inner.log_evidence_std, self.reduction.shared_error))

    @property
    def audits(self) -> tuple[Audit, ...]:
        """What every batch said, counted in calls."""
        rows = [*(p.row for p in self.reduction.points), len(self.reduction.seen)]
        return tuple(replace(a, n_evals=rows[a.n_evals]) for a in self.inner.audits)

    @property
    def noise(self) -> float | None:
        return self.inner.noise

    @property
    def seconds(self) -> Mapping[str, float]:
        return self.inner.seconds

    @property
    def notes(self) -> tuple[str, ...]:
        return self.knowledge.notes

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Whether the engine has converged on the other parameters, and the form has been tested."""
        done, why = self.inner.converged(dlogz)
        none = np.empty((0, self.knowledge.prior.n_dim))
        if done and self.log_evidence_std > dlogz:
            done, why = False, f"sd of log Z {self.log_evidence_std:.3g} is above dlogz = {dlogz:g}"
        if done and not n_tested(self.reduction, self.knowledge.probes.base, none, self.knowledge.prior):
            done, why = False, "what was integrated out has not been tested yet"
        if done and self.reduction.form.may_vanish:
            done, why = False, "the likelihood may grow without bound where the misfit of a scale vanishes"
        return done, "; ".join([why, *self.notes])

    @property
    def log_surrogate(self) -> LogSurrogate | None:
        """What is believed about the log-likelihood of all parameters."""
        inner = self.inner.log_surrogate
        return None if inner is None else FullBand(inner, self.reduction, self.knowledge.prior)

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of all parameters in standard space."""
        own, form = self.reduction, self.reduction.form
        posterior = self.inner.posterior
        draws = np.stack([own.points[i].draws for i in own.finite])
        joint = joint_posterior(posterior, own.observations.u[own.finite], draws, self.seed, form.dims)
        return unfolded(joint, form, self.knowledge.prior) if form.ratios else joint

    def calls(self, u: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Calls (m × calls, d) that give the integrated likelihood at points u (m, e) of the others."""
        form, prior, own = self.reduction.form, self.knowledge.prior, self.settings.recognition
        at, s = np.repeat(u, form.n_calls, axis=0), np.empty(len(u) * form.n_calls)
        if form.scales:
            best = best_s(form, self._log_a(u), u[:, form.ratio_places], prior, own)
            s = (best[:, None] + offsets(form) / form.kappa).ravel()
        return placed(form, s, at, prior, rng, own)

    def _log_a(self, u: FloatArray) -> FloatArray:
        """About what log A will be at points u (m, e) of the others: (m,)."""
        surrogate = self.inner.log_surrogate
        if surrogate is None or not len(u):
            return np.zeros(len(u))
        return expected_log_a(self.reduction, u, surrogate.band(u)[1])

    def select(
        self, batch_size: int, rng: np.random.Generator, taken: FloatArray, choose: Callable[..., Batch]
    ) -> Batch:
        """Choose a batch: calls that are due first, the others by the engine (``choose``) on the other parameters."""
        own, form, prior = self.reduction, self.reduction.form, self.knowledge.prior
        due = np.concatenate([self.knowledge.due(taken), self._checks(taken, rng)])[:batch_size]
        at = leaps(own, self.knowledge.rest, batch_size - len(due), rng, self.settings)
        due = np.concatenate([due, self.calls(at, rng)])[:batch_size]
        n = batch_size - len(due)
        if not n:
            return Batch(due)
        away = folded(form, np.concatenate([taken, due]), prior)
        batch = choose(self.inner, -(-n // form.n_calls), rng, taken=away)
        u = self.calls(batch.u, rng)[:n]
        explores = np.repeat(np.broadcast_to(batch.explores, len(batch.u)), form.n_calls)[:n]
        return Batch(np.concatenate([due, u]), explores=np.concatenate([np.zeros(len(due), dtype=bool), explores]))

    def _checks(self, taken: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Second calls at points that need them, and tests of the form, (m, d)."""
        own, prior, base = self.reduction, self.knowledge.prior, self.knowledge.probes.base
        first = lacking(own, taken, int(own.seen.batch[base]), prior)
        log_a = self._log_a(folded(own.form, first, prior))
        second = partners(own.form, log_a, first, prior, rng, self.settings.recognition)
        return np.concatenate([second, test_calls(own, base, taken, prior, rng, self.settings.recognition)])
