"""What a batch says about the state that chose it, before it is learned from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from basq.auto.audit import audit
from basq.auto.modes import proves_valley, still_climbing
from basq.auto.seen import Seen
from basq.method import Audit
from basq.types import FloatArray

if TYPE_CHECKING:
    from basq.auto.engine import AutoFit


@dataclass(frozen=True)
class News:
    """What the last batch says before it is learned from.

    Attributes
    ----------
    audits : tuple of Audit
    explored : int
        Exploration points since the last surprise.
    climbing : int
        Searches of the last batch that are still on their way up.
    tested : frozenset of int
        Observations whose valley has been looked for.
    foothold : (d,) array or None
        A point behind a valley that the batch has proven.
    """

    audits: tuple[Audit, ...]
    explored: int
    climbing: int
    tested: frozenset[int]
    foothold: FloatArray | None

    @classmethod
    def first(cls) -> "News":
        return cls((), 0, 0, frozenset(), None)

    @classmethod
    def of(cls, last: "AutoFit", seen: Seen) -> "News":
        """Compare the new observations with the state that chose them."""
        settings, depth = last.settings, last.settings.exploration.valley
        new, log_posterior = seen.observations.since(last.n_seen), seen.log_posterior
        levels = log_posterior[last.n_seen :]
        found = audit(last.cells, last.total.shares, last.measure, last.n_seen, new, settings.audit)
        kept = settings.exploration.kept if found.surprise else 1.0
        explored = int(kept * (last.facts.explored + new.explores.sum()))
        climbing = still_climbing(last.cells, last.explorer, new.u[new.explores], levels[new.explores], settings)
        tested, foothold, suspect, scout = last.tested, None, last.leads.suspect, last.leads.scout
        if suspect is not None:
            proven = proves_valley(suspect.midpoint, log_posterior[suspect.index], new.u, levels, depth)
            if proven is not None:
                tested = tested | {suspect.index}
                foothold = seen.u[suspect.index] if proven else None
        for index, probe in zip(scout.index, scout.probes, strict=True):
            if proves_valley(probe, log_posterior[index], new.u, levels, depth) is False:
                tested = tested | {int(index)}
        return cls((*last.audits, found), explored, climbing, tested, foothold)
