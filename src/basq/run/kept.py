"""What a run has learned, kept in its store: whoever opens it goes on from there, and nothing is learned again."""

import time
from contextlib import suppress
from typing import Any, NamedTuple

from basq.errors import StoreError
from basq.evaluation.calls import Calls
from basq.evaluation.store import Store
from basq.plain import NotPlainError, pack, unpack
from basq.results.keepable import drawn
from basq.results.result import Result
from basq.run.steps import Recipe, State
from basq.settings import OnError
from basq.version import __version__

PATIENCE = 20.0
"""Least time of learning before it is kept again, in units of the time that keeping takes."""


class Recalled(NamedTuple):
    """What was kept: the state after some steps, the calls that they had, and what was drawn of its posterior."""

    state: State
    seen: Calls
    n_steps: int
    drawn: dict[str, Any] | None


class Keeper:
    """Keeps what a run has learned; where that cannot be written, as of a method of another package, nothing."""

    def __init__(self, store: Store, recipe: Recipe, on_error: OnError) -> None:
        self._store, self._recipe, self._on_error = store, recipe, on_error
        self._able = store.path is not None
        self._cost = self._unkept = 0.0  # seconds
        self._kept = 0  # steps

    def learned(self, state: State, n_steps: int, seconds: float) -> None:
        """Keep the state after a step that took so long, if it is worth it."""
        self._unkept += seconds
        if self._unkept >= PATIENCE * self._cost:
            self.keep(state, n_steps)

    def keep(self, state: State | None, n_steps: int, result: Result | None = None) -> None:
        """Keep the state after so many steps, with what was drawn of its result where there is one."""
        if state is None or (n_steps == self._kept and result is None) or not self._able:
            return
        start = time.perf_counter()
        try:
            blob = pack((self._circumstances, state, None if result is None else drawn(result)), self._given)
        except NotPlainError:
            self._able = False
            return
        self._store.keep(n_steps, blob)
        self._cost, self._unkept, self._kept = time.perf_counter() - start, 0.0, n_steps

    def recall(self) -> Recalled | None:
        """What was kept last; None if there is nothing, or nothing that fits the run as it is now."""
        found = self._store.kept()
        if found is None:
            return None
        n_steps, blob = found
        steps = self._store.steps()
        try:
            circumstances, state, known = unpack(blob, self._given)
        except (NotPlainError, ValueError, TypeError):  # of another version; it can be learned again
            return None
        if circumstances != self._circumstances or not isinstance(state, State) or not 0 < n_steps <= len(steps):
            return None
        seen = Calls.none(self._recipe.prior.n_dim)
        for calls, _ in steps[:n_steps]:
            seen = seen.join(calls)
        self._kept = n_steps
        return Recalled(state, seen, n_steps, known)

    def caught_up(self, state: State | None, n_steps: int) -> None:
        """Keep what had to be learned again, unless somebody else drives the run, or it can only be read."""
        with suppress(StoreError), self._store.driving():
            self.keep(state, n_steps)

    @property
    def _circumstances(self) -> dict[str, Any]:
        """What has to be as it was, or else learning again would give something else."""
        return {"basq": __version__, "on_error": self._on_error}

    @property
    def _given(self) -> list[Any]:
        prior = self._recipe.prior
        return [prior, *prior.parts]
