"""How a run stands, and what a certificate finds, as values; what is said about them begins with their words."""

from enum import StrEnum


class Status(StrEnum):
    """How a run stands, or how it has ended.

    Every member is also its text, so that ``result.status == "converged"`` works, and JSON holds it as it is.
    """

    RUNNING = "running"
    """The stopping rule has not spoken: more calls are to come."""
    CONVERGED = "converged"
    """The target accuracy is reached, and the tests are passed."""
    NOT_CONVERGED = "not converged"
    """The calls or the time are spent before that."""
    FAILED = "failed"
    """Given up, because nearly all of the last calls have failed; said to people as not converged."""
    INTERRUPTED = "interrupted"
    """Ended by Ctrl-C; the same command goes on."""
    NOT_FINISHED = "not finished"
    """Not ended by the stopping rule, and nobody drives it now."""
    ENDED = "ended with the comparison"
    """One of several models: the comparison needed no more calls of it."""
    OUT = "out of the race"
    """One of several models: too improbable to be worth more calls."""

    @property
    def is_open(self) -> bool:
        """Whether the run has been left, or seen, before its end."""
        return self in (Status.RUNNING, Status.INTERRUPTED, Status.NOT_FINISHED)

    @property
    def word(self) -> str:
        """What it is called at the beginning of a sentence."""
        return (Status.NOT_CONVERGED if self is Status.FAILED else self).value.capitalize()

    def because(self, why: str) -> str:
        """The sentence for people: the status, and why in a clause."""
        return f"{self.word}: {why}."


class Finding(StrEnum):
    """What a certificate says."""

    CERTIFIED = "certified"
    """The estimate is as sure as was asked for, and the surrogate agrees with it."""
    CONTRADICTED = "contradicted"
    """The surrogate is wrong: its evidence by more than both errors, or its posterior."""
    UNDECIDED = "not decided"
    """These calls say too little."""
