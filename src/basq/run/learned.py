"""What a run has learned, step by step."""

import time
from typing import Any

from basq.evaluation.calls import Calls
from basq.evaluation.store import Store
from basq.observations import Observations
from basq.results.result import Result
from basq.run.kept import Keeper
from basq.run.observed import observed
from basq.run.steps import Recipe, State
from basq.run.stopping import trouble
from basq.settings import OnError


class Learned:
    """The state after the steps of a store, those of an earlier process too.

    Attributes
    ----------
    state : State or None
        None while no call has succeeded.
    seen : Calls
        The calls that it has learned from, failed ones included.
    n_steps : int
    drawn : dict or None
        What was drawn and computed of its posterior, where it was kept.
    """

    def __init__(self, store: Store, recipe: Recipe, on_error: OnError) -> None:
        self._store, self._recipe, self._on_error = store, recipe, on_error
        self._keeper = Keeper(store, recipe, on_error)
        self.state: State | None = None
        self.seen = Calls.none(recipe.prior.n_dim)
        self.n_steps = 0
        self.drawn: dict[str, Any] | None = None

    def catch_up(self) -> None:
        """Know what the store's steps have learned, those of an earlier process, or of another one meanwhile."""
        if not self.n_steps and (found := self._keeper.recall()) is not None:
            self.state, self.seen, self.n_steps, self.drawn = found
            self.state = self._recipe.judged(found.state, self._trouble(self.seen))
        steps = self._store.steps(self.n_steps)
        for calls, record in steps:
            self._advance(self.after(calls, record.get("seconds", {}), record.get("info", {})), calls)
        if steps:
            self._keeper.caught_up(self.state, self.n_steps)

    def learn(self, news: Calls, seconds: dict[str, float], info: dict[str, Any]) -> bool:
        """Learn from further calls, as a step of the store; whether one of all calls has succeeded."""
        start = time.perf_counter()
        state = self.after(news, seconds, info)
        self._store.learned(self.n_steps, news, state.as_record() if state else {})
        self._advance(state, news)
        if state is not None:
            self._keeper.learned(state, self.n_steps, time.perf_counter() - start)
        return state is not None

    def keep(self, result: Result | None) -> None:
        """Keep the state in the store, with what a reader wants to see of its result, if there is nothing newer."""
        self._keeper.keep(self.state, self.n_steps, None if len(self._store.news()) else result)

    def after(self, calls: Calls, seconds: dict[str, float], info: dict[str, Any]) -> State | None:
        """The state after further calls; None while none has succeeded."""
        observations = self.with_calls(calls)
        if not len(observations):
            return None
        everything = self.seen.join(calls)
        why = self._trouble(everything)
        return self._recipe.learn(self.state, observations, len(everything), why, seconds=dict(seconds), info=info)

    def with_calls(self, calls: Calls) -> Observations:
        """All observations, and further ones."""
        seen = self.state.observations if self.state else Observations.empty(self._recipe.prior.n_dim)
        return observed(seen, calls, self._recipe.prior, self._on_error)

    def _advance(self, state: State | None, calls: Calls) -> None:
        self.state, self.seen, self.n_steps = state, self.seen.join(calls), self.n_steps + 1
        self.drawn = None

    def _trouble(self, calls: Calls) -> str | None:
        """Why to give up, if there is a reason."""
        return trouble(calls.log_likelihood, self._recipe.batch_size, self._store)
