"""A new answer from the calls of a run: judged by another likelihood, placed under another prior, learned from anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from typing import Any

import numpy as np

from basq.cheap.call import judged
from basq.cheap.model import Model
from basq.cheap.widen import widened
from basq.errors import AbsentError, EvaluationError, InputError, counted
from basq.evaluation.call import Outcome
from basq.evaluation.calls import Calls
from basq.method import Posterior
from basq.observations import Failure
from basq.outputs.outputs import Outputs, unpack
from basq.plain import UNKEPT, Absent
from basq.prior import Prior, as_prior
from basq.results.result import Result
from basq.run import identity
from basq.run.agreement import agreed
from basq.run.carried import Carried
from basq.run.coverage import STRANGE, Coverage, placed, unexplored, within
from basq.run.drive import drive
from basq.run.order import certified
from basq.run.past import Past, joined
from basq.run.sampler import Sampler
from basq.run.steps import Recipe
from basq.settings import OnError
from basq.status import Status
from basq.types import BoolArray

EARLIER = "earlier run"
"""The worker of calls that were made before."""


def unknown_simulator(x: Any) -> Any:
    """Stand for a simulator that is not known here."""
    raise EvaluationError("The simulator is not known here.")


def unknown_likelihood(output: Any, **cheap: Any) -> float:
    """Stand for a likelihood that is not known here."""
    raise EvaluationError("The likelihood is not known here.")


@dataclass(frozen=True)
class Problem:
    """What is asked: a prior of the expensive parameters, and for runs of simulators their model.

    Attributes
    ----------
    prior : Prior
    model : Model or None
    moved : bool
        Whether the prior is another one.
    judges : bool
        Whether outputs have to be judged anew.
    """

    prior: Prior
    model: Model | None
    moved: bool
    judges: bool

    def place(self, calls: Calls, *, explores: bool) -> tuple[Calls, BoolArray]:
        """The calls at their places under this prior, and which of them have one, (n,)."""
        if not self.moved:
            return calls, np.ones(len(calls), dtype=bool)
        table = calls.table.copy()
        inside, u = placed(self.prior, calls.x)
        table[inside, -self.prior.n_dim :] = u
        if not explores:  # they explored another prior
            table[:, 2] = 0.0
        return Calls(table), inside

    def outcome(self, call: Calls, blob: bytes | None, failure: Failure | None) -> Outcome:
        """What became of one call."""
        if self.judges and self.model is not None and blob is not None:
            return replace(judged(self.model, unpack(blob)[0], call.x[0]), worker=EARLIER)
        if failure is not None:
            return Outcome.failed(failure.error, failure.traceback, output=blob, worker=EARLIER)
        return Outcome(float(call.log_likelihood[0]), float(call.noise[0]), output=blob, worker=EARLIER)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a result comes from.

    Attributes
    ----------
    recipe : Recipe
        How the run was made.
    steps : tuple of Calls
        The calls that each step has learned from, failed ones included.
    outputs : Outputs or None
        Of all of them; None for runs of a log-likelihood.
    failures : tuple of Failure
    posterior : Posterior or None
        Of the expensive parameters, in standard space.
    log_evidence : float
    function : dict or None
        Which code has been called.
    on_error : str
    model : Carried or None
        Its model; None for runs of a log-likelihood, and where it is not known, as in a file.
    """

    recipe: Recipe
    steps: tuple[Calls, ...]
    outputs: Outputs | None
    failures: tuple[Failure, ...]
    posterior: Posterior | None
    log_evidence: float
    function: dict[str, str] | None
    on_error: OnError
    model: Carried[Model] | None = field(default=None, metadata=UNKEPT)

    @property
    def calls(self) -> Calls:
        """All calls."""
        return Calls(np.concatenate([calls.table for calls in self.steps]))

    def again(
        self,
        *,
        log_likelihood: Any,
        cheap: Any,
        prior: Any,
        model: Any,
        max_evals: int | None,
        store: Any,
        **going: Any,
    ) -> Result:
        """The answer under these changes."""
        recipe = self.recipe
        if isinstance(recipe.method, Absent):
            raise AbsentError(
                f"This result was made with {recipe.method.name}, which is no part of basq, and files hold no code: "
                "open the store of its run with Sampler.open(path, method=…), or run infer with its evaluations."
            )
        if self.outputs is None:
            problem = self._plain(recipe, log_likelihood, cheap, prior, model, max_evals)
        else:
            problem = self._modelled(recipe, log_likelihood, cheap, prior, model)
        goes_on = max_evals is not None or store is not None
        if goes_on and problem.model and problem.model.simulate is unknown_simulator:
            raise InputError("To go on the simulator is needed: give model=, the model of the run.")
        past, share, n_without = self.past(recipe, problem)
        if max_evals is not None:
            return drive(
                problem.model or log_likelihood, problem.prior, method=recipe.method, batch_size=recipe.batch_size,
                max_evals=max_evals, dlogz=recipe.stopping.dlogz, on_error=self.on_error, evaluations=past,
                seed=recipe.seed, store=store, **going,
            )  # fmt: skip
        sampler = Sampler(
            problem.model or problem.prior, method=recipe.method, batch_size=recipe.batch_size,
            max_evals=max(len(past) + 1, recipe.stopping.max_evals), dlogz=recipe.stopping.dlogz, evaluations=past,
            on_error=self.on_error, store=store, seed=recipe.seed,
        )  # fmt: skip
        found = sampler.result(ended=Status.NOT_CONVERGED)
        return self._considered(found, recipe, sampler.recipe, share, n_without)

    def certify(self, result: Result, log_likelihood: Any, **options: Any) -> Result:
        """The result with its certificate."""
        from basq.run.certify import certify

        return certify(result, self, log_likelihood, **options)

    def _plain(
        self, recipe: Recipe, log_likelihood: Any, cheap: Any, prior: Any, model: Any, max_evals: int | None
    ) -> Problem:
        """What is asked of the run of a log-likelihood: another prior only."""
        if cheap is not None or model is not None or (log_likelihood is not None and max_evals is None):
            raise InputError(
                "This run has values of a log-likelihood, not outputs of a simulator: again() can change its prior "
                "only. A run of a basq.Model can be asked under any likelihood."
            )
        if max_evals is not None:
            if not callable(log_likelihood):
                raise InputError("again(max_evals=…) needs log_likelihood=, the function that has been run.")
            mine, known = identity.describe(log_likelihood), self.function
            other = identity.difference(mine, known) if known else None
            if other is not None:
                raise InputError(
                    f"again(log_likelihood={mine['name']}): it is not the function of this run ({other}); values of "
                    "the two cannot be mixed."
                )
        space, _ = _priors(recipe.prior, None, prior)
        return Problem(space, None, _moved(recipe.prior, space), judges=False)

    def _modelled(self, recipe: Recipe, log_likelihood: Any, cheap: Any, prior: Any, model: Any) -> Problem:
        """What is asked of the run of a model."""
        if not isinstance(model, Model | None):
            raise InputError(f"again(model={model!r:.60}): give a basq.Model.")
        if model is not None and model.prior.names != recipe.prior.names:
            raise InputError(
                f"again(model=…) has the expensive parameters {', '.join(model.prior.names)}; the run has "
                f"{', '.join(recipe.prior.names)}."
            )
        base = model or (self.model.get() if self.model else None)
        base = base or Model(unknown_simulator, unknown_likelihood, recipe.prior, recipe.cheap)
        old = model or recipe
        space, own = _priors(old.prior, old.cheap, prior)
        if cheap is not None:
            own = as_prior(cheap) if cheap else None
        new = replace(base, log_likelihood=log_likelihood or base.log_likelihood, prior=space, cheap=own)
        judges = model is not None or log_likelihood is not None or own is not recipe.cheap
        if judges and new.log_likelihood is unknown_likelihood:
            raise InputError(
                "The likelihood of the run is not known to this result: give log_likelihood=, or model=, the model of "
                "the run."
            )
        return Problem(space, new, _moved(recipe.prior, space), judges)

    def past(self, recipe: Recipe, problem: Problem) -> tuple[Past, float, int]:
        """The calls in the terms of what is asked, the share of its prior not explored, and values that are lost."""
        everything = self.calls
        share = unexplored(recipe.prior, problem.prior, everything) if problem.moved else 0.0
        blobs = iter(self.outputs.packed() if self.outputs is not None else [None] * len(everything))
        failures = {failure.id: failure for failure in self.failures}
        steps, n_without = [], 0
        for calls in self.steps:
            own, failed = list(islice(blobs, len(calls))), [failures.get(int(i)) for i in calls.ids]
            keep = np.ones(len(calls), dtype=bool)
            if problem.judges:
                keep = np.array([b is not None or f is not None for b, f in zip(own, failed, strict=True)])
                n_without += int((~keep).sum())
            moved, inside = problem.place(calls, explores=share <= STRANGE)
            kept = Calls(moved.table[keep & inside])
            parts = zip(kept.table, compress(own, keep & inside), compress(failed, keep & inside), strict=True)
            steps.append((kept, [problem.outcome(Calls(row[None]), blob, failure) for row, blob, failure in parts]))
        past = Past(joined(steps, recipe.method.initial_size(problem.prior.n_dim)))
        if not len(past):
            raise InputError(f"None of the {len(everything)} calls of the run lies within the new prior.")
        return past, share, n_without

    def _considered(self, found: Result, old: Recipe, new: Recipe, share: float, n_without: int) -> Result:
        """The verdict with what the calls are worth for what was asked."""
        origin, everything = found.source, self.calls
        assert isinstance(origin, Origin)
        n_before = within(self.posterior, old.prior, everything, self.log_evidence)
        coverage = Coverage(
            n_dim=new.prior.n_dim,
            n_calls=len(origin.calls),
            n_within=within(origin.posterior, new.prior, origin.calls, origin.log_evidence),
            n_before=n_before,
            share_before=n_before / len(everything),
            unexplored=share,
            n_explored=int(everything.explores.sum()),
            batch_size=new.batch_size,
        )
        if n_without:
            left_out = counted(n_without, "value without an output was", "values without an output were")
            found = replace(found, why=f"{found.why}; {left_out} left out")
        good = not (coverage.strange or coverage.empty)
        if found.converged and good:
            return found
        status = Status.NOT_CONVERGED if found.converged else found.status
        reasons = [] if found.converged else [found.why]
        why = "; ".join([*reasons, *coverage.doubts(), coverage.advice()])
        return replace(found, status=status, why=why, sound=found.sound and good)


def _moved(old: Prior, new: Prior) -> bool:
    """Whether a prior is another one."""
    return new is not old and identity.fingerprint(new) != identity.fingerprint(old)


def _priors(prior: Prior, cheap: Prior | None, given: Any) -> tuple[Prior, Prior | None]:
    """The priors of the expensive and of the cheap parameters after a change that may name some of them only."""
    if given is None:
        return prior, cheap
    if not isinstance(given, Mapping):
        new = as_prior(given)
        if new.names != prior.names:
            raise InputError(f"again(prior=…) has {', '.join(new.names)}; the run has {', '.join(prior.names)}.")
        return new, cheap
    known = (*prior.names, *(cheap.names if cheap else ()))
    strange = [str(name) for name in given if name not in known]
    if strange:
        raise InputError(f"again(prior=…): no parameter {strange[0]!r}; the run has {', '.join(known)}.")
    mine = {name: given[name] for name in prior.names if name in given}
    others = {name: given[name] for name in given if name not in prior.names}
    if len(mine) == prior.n_dim:
        prior = as_prior(mine)
    elif mine:
        prior = prior.changed(mine)
    return prior, cheap.changed(others) if cheap and others else cheap


def completed(found: Result, sampler: Sampler, steps: Sequence[Calls], on_error: OnError) -> Result:
    """A result over the expensive parameters with all that belongs to it: outputs, cheap parameters, its origin."""
    recipe, store = sampler.recipe, sampler.store
    modelled = sampler.model is not None or recipe.cheap is not None or len(store.with_outputs()) > 0
    everything = Outputs.of(store, np.concatenate([c.ids for c in steps])) if modelled else None
    origin = Origin(
        recipe, tuple(steps), everything, found.failures, found.standard_posterior, found.log_evidence,
        store.get("function"), on_error, Carried(sampler.model) if sampler.model else None,
    )  # fmt: skip
    replicas = store.get("replicas")
    if replicas:
        found = agreed(found, replicas, recipe.stopping.dlogz)
    found = certified(replace(found, source=origin), store, len(steps), on_error)
    if everything is None:
        return found
    usable = ~np.concatenate([c.silent(on_error) for c in steps])
    outputs = replace(everything, ids=everything.ids[usable], blobs=tuple(compress(everything.blobs, usable)))
    found = replace(found, outputs=outputs)
    return found if recipe.cheap is None else widened(found, recipe.cheap, outputs, recipe.seed % 2**32)
