"""A run in parts: ask, tell, learn, result; in the user's hands, or in those of the loop."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal

import numpy as np

from basq.cheap.call import judge_waiting
from basq.cheap.model import Model
from basq.errors import EvaluationError, InputError, StoreInUseError
from basq.evaluation.calls import Calls
from basq.evaluation.store import PATIENCE, Store
from basq.method import Batch, Method
from basq.observations import Observations
from basq.prior import as_prior
from basq.results.keepable import with_drawn
from basq.results.result import Result
from basq.run import identity
from basq.run.arguments import (
    as_batch_size,
    as_budget,
    as_evaluations,
    as_judged,
    as_method,
    as_on_error,
    as_outcomes,
    as_pending,
    as_seed,
    as_space,
    check_values,
    fresh_seed,
)
from basq.run.habits import answering
from basq.run.learned import Learned
from basq.run.order import contradicted, take_in
from basq.run.past import as_past
from basq.run.points import Points
from basq.run.steps import Recipe, State
from basq.run.stopping import Stopping, Verdict
from basq.settings import BATCH_SIZE, CERTIFY, DLOGZ, ON_ERROR, OnError
from basq.status import Status
from basq.types import FloatArray, IntArray, LogLikelihood, is_number


class Sampler:
    """A run in the user's hands: ask for points, tell their values, look at the result.

    Parameters
    ----------
    prior, n_dim, prior_transform, names, method, batch_size, max_evals, max_time, dlogz, evaluations, seed
        As in `infer`.
    on_error : "record" or "zero"
        What a failed call means: nothing is known there, or the likelihood is zero there.
    store : path, optional
        SQLite file that holds the run; one that exists is taken up, and refused if it is of another problem.
    log_likelihood : callable, optional
        Never called; only to refuse a store whose values come from other code.

    Examples
    --------
    >>> import basq
    >>> sampler = basq.Sampler({"a": (-3, 3), "b": (-3, 3)}, seed=1)
    >>> batch = sampler.ask(32)
    >>> sampler.tell(batch, [-0.5 * x @ x for x in batch.x])
    >>> sampler.result().n_evals
    32
    """

    @answering
    def __init__(
        self,
        prior: Any = None,
        n_dim: int | None = None,
        *,
        prior_transform: Callable[[FloatArray], Any] | None = None,
        names: Sequence[str] | None = None,
        method: Method[Any] | str = "auto",
        batch_size: int = BATCH_SIZE,
        max_evals: int | None = None,
        max_time: float | None = None,
        dlogz: float = DLOGZ,
        evaluations: Any = None,
        on_error: OnError = ON_ERROR,
        store: str | os.PathLike[str] | None = None,
        log_likelihood: LogLikelihood | Model | None = None,
        seed: Any = None,
    ) -> None:
        model = prior if isinstance(prior, Model) else log_likelihood if isinstance(log_likelihood, Model) else None
        if model is not None:
            prior, log_likelihood = model.prior, model
        cheap = None if model is None else model.cheap
        space, chosen = as_space(prior, prior_transform, n_dim, names), as_method(method)
        stopping = Stopping(dlogz, as_budget(max_evals, space), max_time)
        size, number, on_error = as_batch_size(batch_size, chosen), as_seed(seed), as_on_error(on_error)
        past, evaluations = as_past(evaluations)
        given = as_evaluations(evaluations, space)
        n_given = len(given[0]) if past is None else len(past)
        if n_given >= stopping.max_evals:
            raise InputError(f"max_evals={stopping.max_evals} leaves no call after the {n_given} given evaluations.")
        u = space.to_standard(given[0]) if len(given[0]) else given[0]
        settings = {
            "batch_size": size,
            "max_evals": int(stopping.max_evals),
            "dlogz": float(dlogz),
            "on_error": on_error,
        }
        self.store = Store(store, space.n_dim)
        with self.store.transaction():  # whole, or not at all: another process may be about to do the same
            new = identity.is_new(self.store)
            if new:
                number = fresh_seed() if number is None else number
                identity.save(self.store, space, chosen, number, cheap=cheap)
                self.store.give(given[0], u, *given[1:])
                if past is not None:
                    past.lay(self.store)
                self.store.set(n_given=n_given, **settings)
            else:
                identity.check(self.store, space, chosen, number, cheap=cheap)
                identity.migrate(self.store, space, chosen, cheap)
                number = int(self.store.get("seed"))
            if log_likelihood is not None:
                identity.check_function(self.store, log_likelihood)
        if not new:
            with suppress(StoreInUseError), self.store.driving():  # otherwise they are those of the one who drives
                self.store.set(**settings)
        self._begin(Recipe(space, chosen, stopping, size, number, cheap), on_error)
        self.model: Model | None = model
        if model is not None:
            judge_waiting(self.store, model)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        model: Model | None = None,
        *,
        prior: Any = None,
        method: Method[Any] | str | None = None,
        allow_pickle: bool = False,
    ) -> "Sampler":
        """Take up the run of a store as it was left.

        Parameters
        ----------
        path : path
            Of the store.
        model : Model, optional
            Of the run; needed to be told its outputs.
        prior, method : optional
            As in `infer`, where they hold code of yours, as a transform: stores hold data only. Without them such a run
            can be read, as far as it needs no code.
        allow_pickle : bool
            Read a store that an older basq has written, with pickled objects in it, which can run any code: only if you
            trust whoever made it. It is migrated to plain data.
        """
        store = Store(path)
        own, known, cheap = identity.load(store, allow_pickle=allow_pickle)
        known = identity.chosen(store, known, None if method is None else as_method(method))
        if model is not None:
            prior, cheap = model.prior, model.cheap
        if prior is not None:
            own = as_prior(prior)
            identity.check(store, own, known, None, cheap=cheap)
        if model is not None:
            identity.check_function(store, model)
            judge_waiting(store, model)
        stopping = Stopping(store.get("dlogz"), store.get("max_evals"))
        sampler = cls.__new__(cls)
        sampler.store = store
        sampler._begin(
            Recipe(own, known, stopping, store.get("batch_size"), int(store.get("seed")), cheap),
            store.get("on_error"),
        )
        sampler.model = model
        return sampler

    def _begin(self, recipe: Recipe, on_error: OnError) -> None:
        self.recipe = recipe
        self._on_error = on_error
        self._learned = Learned(self.store, recipe, on_error)
        self.n_given = self.store.get("n_given") or 0
        self._info: dict[str, Any] = {}
        self._seconds: dict[str, float] = {}
        self._asked = time.perf_counter()

    # --- ask and tell -------------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Points:
        """The next points to evaluate, chosen with everything told so far and with those under way in mind.

        Parameters
        ----------
        n : int, optional
            How many; by default the initial design, then a batch, within ``max_evals``.
        """
        if n is not None and not (is_number(n, Integral) and n >= 1):
            raise InputError(f"ask({n!r}): give a positive whole number of points, or nothing.")
        if n is not None and n > (most := self.recipe.stopping.max_evals):
            raise InputError(f"ask({n}): all calls of this run are max_evals={most}; ask for no more, or allow more.")
        with self.store.driving(PATIENCE):
            take_in(self.store)
            if not self.n_first:
                self.learn()
            return self.choose(None if n is None else int(n))

    def choose(self, n: int | None = None) -> Points:
        """The next points to evaluate, chosen with what was learned so far."""
        with self.store.driving():
            start = time.perf_counter()
            batch, number = self._next(n)
            x = self.recipe.prior.from_standard(batch.u)
            ids = self.store.add(x, batch.u, batch.explores, number)
            self._info, self._asked = batch.noted(number), time.perf_counter()
            self._seconds["select"] = self._asked - start
            return Points(ids, x, self.recipe.prior.names)

    def _next(self, n: int | None) -> tuple[Batch, int]:
        """Algorithm 1, lines 4-10: the next points in standard space, and the number of their batch."""
        n_asked, number = self.store.extent()
        if n is None:
            n = self.n_first or min(self.recipe.batch_size, self.n_left)
        if self.n_first or self._learned.state is None:
            seen = np.concatenate([self._learned.seen.u, self._taken()])
            return self.recipe.design(n_asked - self.n_given, n, seen), number
        return self.recipe.choose(self._learned.state, n, n_asked, self._taken()), number

    def _taken(self) -> FloatArray:
        """Points without a value: under way, just in, or failed; (m, d) in standard space."""
        seen = self._learned.seen
        failed = seen.u[seen.silent(self._on_error)]
        return np.concatenate([failed, self.store.pending().u, self.store.news().u])

    def certify(self, n: int = CERTIFY) -> Points:
        """Points of n calls that prove the answer or contradict it: to be told like others, and not learned from.

        They are drawn independently of all that was evaluated; the first repeats a call of the run. Once all are told,
        `result` has its certificate. Points of an earlier certificate that were not told are handed out again.
        """
        from basq.run.certify import ordered

        with self.store.driving(PATIENCE):
            waiting = ordered(self, n)
            return Points(waiting.ids, waiting.x, self.recipe.prior.names)

    def pending(self) -> Points:
        """The points that were asked for and not told yet."""
        calls = self.store.waiting()
        return Points(calls.ids, calls.x, self.recipe.prior.names)

    def tell(
        self,
        ids: Points | Sequence[int] | IntArray | int,
        log_likelihood: Any = None,
        noise: Any = 0.0,
        *,
        outputs: Sequence[Any] | None = None,
        state: Literal["done", "failed"] = "done",
        error: str | Sequence[str | None] | None = None,
    ) -> None:
        """Give the values of points that were asked for: in any order, in part.

        Parameters
        ----------
        ids : Points or ints
            What `ask` gave, or some of its ids.
        log_likelihood : float or array
            One for each; −inf is a value, NaN counts as a failed call.
        noise : float, array or None
            Standard deviation of noisy values; None (in an array, NaN) if it is not known and has to be estimated.
        outputs : sequence, optional
            Instead of values, for a sampler of a `Model`: what its simulator gave, one for each call.
        state : "done" or "failed"
            "failed" if there are no values.
        error : str or list of str, optional
            Why, for the record; one text, or one for each call.
        """
        wanted = np.atleast_1d(np.asarray(ids.ids if isinstance(ids, Points) else ids))
        if not wanted.size:
            return
        calls = as_pending(wanted, self.store)
        if outputs is not None:
            outcomes = as_judged(self.model, calls.x, outputs)
        else:
            if state == "done":
                check_values(self.recipe.cheap)
            outcomes = as_outcomes(calls.x, log_likelihood, noise, state, error)
        self.store.finish(list(zip(map(int, wanted), outcomes, strict=True)))

    def add(
        self, x: Any, log_likelihood: Any = None, noise: Any = 0.0, *, outputs: Sequence[Any] | None = None
    ) -> None:
        """Give values, or outputs, at points (n, d) that were computed elsewhere and never asked for."""
        if outputs is not None:
            points, *_ = as_evaluations((x, np.zeros(len(outputs))), self.recipe.prior)
            self.store.take(points, self.recipe.prior.to_standard(points), as_judged(self.model, points, outputs))
            return
        check_values(self.recipe.cheap)
        points, *given = as_evaluations((x, log_likelihood, noise), self.recipe.prior)
        self.store.give(points, self.recipe.prior.to_standard(points), *given)

    # --- learn --------------------------------------------------------------------------------------------------------

    @property
    def known(self) -> State:
        """The state after the last step."""
        assert self._learned.state is not None
        return self._learned.state

    @property
    def has_learned(self) -> bool:
        """Whether there has been a step with a value to learn from."""
        return self._learned.state is not None

    @property
    def enough(self) -> int:
        """Calls that make a step worth its audit: a batch, or at first what a model needs."""
        least = self.recipe.method.initial_size(self.recipe.prior.n_dim) if self._learned.state is None else 1
        return max(self.recipe.batch_size, least)

    @property
    def n_first(self) -> int:
        """Points of the initial design that have not been asked for yet."""
        return max(self.recipe.design_size(self.n_given) - (self.store.extent()[0] - self.n_given), 0)

    @property
    def n_left(self) -> int:
        """Calls left of the budget."""
        return max(self.recipe.stopping.max_evals - self.store.n_calls, 0)

    @property
    def verdict(self) -> Verdict:
        """Whether to stop, and why."""
        if self._learned.state is not None:
            return self._learned.state.verdict
        if self.n_left == 0:
            return Verdict(Status.NOT_CONVERGED, "no call is left, and nothing has been modelled yet")
        return Verdict(Status.RUNNING, "nothing has been modelled yet")

    def learn(self, *, at_least: int = 1) -> bool:
        """Algorithm 1, lines 12-16: learn from what was told since the last time, if it is so much; whether it was."""
        self._learned.catch_up()
        if not self.verdict.stop or contradicted(self.store):
            take_in(self.store)
        news = self.store.news()
        if len(news) < at_least:
            return False
        self._seconds["evaluate"] = time.perf_counter() - self._asked
        return self._learned.learn(news, self._seconds, self._info)

    def keep(self, result: Result | None = None) -> None:
        """Keep what was learned in the store, and what a reader wants to see of a result."""
        self._learned.keep(result)

    def observations(self) -> Observations:
        """Everything evaluated so far, also what no step has learned from yet."""
        return self._learned.with_calls(self.store.news())

    # --- result -------------------------------------------------------------------------------------------------------

    def result(self, *, ended: Status | None = None, fresh: bool = True) -> Result:
        """What is known now; changes nothing.

        Parameters
        ----------
        ended : Status, optional
            How the run ended, where the stopping rule did not speak.
        fresh : bool
            Include what was told since the last step.
        """
        from basq.run.again import completed  # which makes samplers itself

        known = self._learned
        known.catch_up()
        news = self.store.news() if fresh else Calls.none(self.recipe.prior.n_dim)
        state = known.after(news, {}, {}) if len(news) else known.state
        failures = self.store.failures()
        if state is None:
            last = f" The last one: {failures[-1].error}" if failures else ""
            raise EvaluationError(f"No call has succeeded yet, so there is no result; {len(failures)} failed.{last}")
        least = self.recipe.method.initial_size(self.recipe.prior.n_dim)
        settings = identity.settings(self.store) | {"initial_size": least}
        found = replace(state.result(self.recipe.prior, failures, ended), settings=settings)
        steps = [*(calls for calls, _ in self.store.steps()[: known.n_steps]), *([news] if len(news) else [])]
        found = completed(found, self, steps, self._on_error)
        return found if len(news) else with_drawn(found, known.drawn)
