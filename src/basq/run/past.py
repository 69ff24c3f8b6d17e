"""Calls of an earlier run, laid into the store of a new one as if it had made them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basq.evaluation.call import Outcome
from basq.evaluation.calls import Calls
from basq.evaluation.store import Store


@dataclass(frozen=True)
class Past:
    """What an earlier run has evaluated, step by step, in the terms of a new one.

    A run that is given it learns from one step after the other, as one that is taken up does: every step tests the
    surrogate of those before it, so that the verdict is worth what that of a run of its own is.

    Attributes
    ----------
    steps : sequence of (Calls, sequence of Outcome)
        The calls that each step learns from, with their places in the new standard space, and what became of them.
    """

    steps: Sequence[tuple[Calls, Sequence[Outcome]]]

    def __len__(self) -> int:
        return sum(len(calls) for calls, _ in self.steps)

    def lay(self, store: Store) -> None:
        """Write everything into a new store."""
        with store.transaction():
            for i, (calls, outcomes) in enumerate(self.steps):
                ids = store.add(calls.x, calls.u, calls.explores, i)
                store.finish(list(zip(map(int, ids), outcomes, strict=True)))
                store.learned(i, store.of(ids.tolist()), {})


def as_past(evaluations: Any) -> tuple[Past | None, Any]:
    """The past among the evaluations that a sampler is given, and those that are none."""
    if isinstance(evaluations, Past):
        return evaluations, None
    return None, evaluations


def joined(steps: Sequence[tuple[Calls, Sequence[Outcome]]], least: int) -> list[tuple[Calls, Sequence[Outcome]]]:
    """Steps without the empty ones, and the first ones together until a first model has as many calls as it needs."""
    out: list[tuple[Calls, Sequence[Outcome]]] = []
    for calls, outcomes in steps:
        if len(out) == 1 and len(out[0][0]) < least:
            out[0] = out[0][0].join(calls), [*out[0][1], *outcomes]
        elif len(calls):
            out.append((calls, outcomes))
    return out
