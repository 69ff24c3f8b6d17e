"""What every way of evaluating calls has in common: tasks go in, answers come out."""

from dataclasses import dataclass
from typing import Protocol

from basq.evaluation.call import Outcome, place
from basq.types import FloatArray


@dataclass(frozen=True, eq=False)
class Task:
    """Points to evaluate together: one, or several of a vectorised function.

    Attributes
    ----------
    ids : tuple of int
        The calls they belong to.
    x : (n, d) array
    names : tuple of str
        Of the parameters, where known.
    """

    ids: tuple[int, ...]
    x: FloatArray
    names: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return place(self.names, self.x[0]) if len(self.x) == 1 else f"a batch of {len(self.x)} points"


Answer = tuple[Task, list[Outcome]]


class Pool(Protocol):
    """The workers of a run, whatever they are: where its calls are made.

    Attributes
    ----------
    n_workers : int
        How many tasks can run at once.
    at_stake : int
        How many of the oldest tasks may be under way, where a call that ends its process ends the run.
    """

    @property
    def n_workers(self) -> int: ...

    @property
    def at_stake(self) -> int: ...

    def submit(self, task: Task) -> None:
        """Queue a task."""
        ...

    def collect(self, timeout: float | None) -> list[Answer]:
        """Wait for at least one answer, at most so many seconds; also those that came in with it."""
        ...

    def cancel(self) -> list[Task]:
        """Take back the tasks that no worker has begun, as far as that can be known."""
        ...

    def close(self) -> None:
        """Let go of what was started for this run, running calls included."""
        ...
