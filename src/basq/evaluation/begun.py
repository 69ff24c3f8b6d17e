"""Calls that may be under way, written before they are made: one that ends the whole run is not made for ever."""

from collections.abc import Iterable

from basq.evaluation.call import UNKNOWN, Outcome
from basq.evaluation.store import Store

DEATHS = 3
"""Times that a run may die while a call is under way; then the call is taken for the cause."""


class Begun:
    """What a store knows of the calls that were under way whenever its run died.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        known: dict[str, int] = store.get("begun") or {}
        self._deaths = {int(i): n for i, n in known.items()}
        self._written = dict(self._deaths)

    def suspects(self) -> set[int]:
        """Calls that were under way when the run died."""
        return set(self._deaths)

    def give_up(self) -> None:
        """Write that those calls have failed that the run has died of too often."""
        causes = [i for i, n in self._deaths.items() if n >= DEATHS]
        if causes:
            error = (
                f"The run died {DEATHS} times while this call was under way, so it is not made again. "
                "To make it once more: retry_failed=True, or basq resume --retry-failed."
            )
            with self._store.transaction():
                self._store.finish([(i, Outcome.failed(error, lost=True, noise=UNKNOWN)) for i in causes])
                self.note((), ended=causes)

    def note(self, under_way: Iterable[int], ended: Iterable[int] = ()) -> None:
        """Write which calls are under way from now on: should the run die, it will have been during these."""
        for i in ended:
            self._deaths.pop(i, None)
        now = self._deaths | {i: self._deaths.get(i, 0) + 1 for i in under_way}
        if now != self._written:
            self._store.set(begun=now)
            self._written = now
