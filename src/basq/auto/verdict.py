"""When the engine says "converged", and what it says is missing otherwise."""

from dataclasses import dataclass

import numpy as np

from basq.auto.audit import calibration
from basq.auto.error import out_of_reach, unseen
from basq.auto.settings import Settings
from basq.errors import counted
from basq.method import Audit

MOST = 2
"""Reasons that are said, the most important first: beside what ended the run, they make a sentence."""
LogZ = tuple[float, float]
"""log Z and its standard deviation, modes not found yet aside."""


@dataclass(frozen=True)
class Facts:
    """What a verdict looks at.

    Attributes
    ----------
    n_dim : int
    now : (float, float)
        log Z and its standard deviation, modes not found yet aside,
    before : (float, float) or None
        and the same before the last batch.
    monte_carlo : float
        Error of the sampling that is part of it,
    least : float
        and all that more calls do not lower.
    effective : float
        Effective draws of the evidence integral.
    resolved : bool
        Whether every surrogate that matters can be sampled at full temperature.
    audits : tuple of Audit
    n_modes : int
        Found so far.
    unseen : float
        Standard deviation of log Z for modes not found yet, as `missing` has it.
    explored : int
        Exploration points since the last surprise.
    climbing : int
        Searches of the last batch that are still on their way up.
    n_outlying : int
        Observations that suggest another mode.
    """

    n_dim: int
    now: LogZ
    before: LogZ | None
    monte_carlo: float
    least: float
    effective: float
    resolved: bool
    audits: tuple[Audit, ...]
    n_modes: int
    unseen: float
    explored: int
    climbing: int
    n_outlying: int

    @property
    def log_evidence(self) -> float:
        return self.now[0]

    @property
    def log_evidence_std(self) -> float:
        return float(np.hypot(self.now[1], self.unseen))


def doubts(facts: Facts, dlogz: float, settings: Settings) -> list[str]:
    """Reasons not to believe the answer yet, exploration aside."""
    out, own = [], settings.verdict
    if not facts.resolved:
        out.append("the surrogate does not resolve the posterior yet")
    if not facts.now[1] <= dlogz:
        out.append(f"sd of log Z {facts.log_evidence_std:.3g} is above dlogz = {dlogz:g}")
    if facts.effective < own.effective:
        out.append("the evidence integral is uncertain")
    if not facts.audits or facts.before is None:
        return [*out, "no batch has tested the surrogate yet"]
    last, factor = facts.audits[-1], calibration(facts.audits, settings.audit)
    if not factor <= settings.audit.agrees or (last.n_inside and not last.z2 <= own.last_z2):
        out.append(f"the last batches were {np.sqrt(factor):.1f} sd off their prediction")
    if last.n_inside and not last.rms <= own.last_rms:
        out.append(f"the last batch was {last.rms:.1f} nats off its prediction")
    (before, sd_before), (now, sd) = facts.before, facts.now
    if not abs(now - before) <= min(own.moved, own.moved_sd * np.hypot(sd, sd_before)):
        out.append(f"log Z moved by {now - before:+.3g} with the last batch")
    return out


def unexplored(facts: Facts, dlogz: float, settings: Settings) -> list[str]:
    """Reasons to look further for other modes."""
    out, enough = [], settings.exploration.enough(facts.n_dim)
    if facts.n_modes > 1 and not facts.log_evidence_std <= dlogz:
        out.append(f"{facts.n_modes} modes were found, and a further one would add sd {facts.unseen:.2g}")
    if facts.explored < enough:
        n = f"only {counted(facts.explored, 'exploration point')}" if facts.explored else "no exploration point"
        out.append(f"{n} since the last surprise")
    # a ridge can look like many modes for ever; where there are several, it hardly is one
    patient = facts.n_modes > 1 or facts.explored < settings.exploration.patience * enough
    if facts.n_outlying and patient:
        out.append(f"{counted(facts.n_outlying, 'observation suggests', 'observations suggest')} another mode")
    if facts.climbing and patient:
        out.append(f"{counted(facts.climbing, 'search for a mode is', 'searches for modes are')} still climbing")
    return out


def missing(facts: Facts, n_explored: int, settings: Settings) -> float:
    """Standard deviation of log Z for modes not found yet, from as many points as have looked for them.

    Where one was found none is assumed missing, once enough have looked for others in vain, or before the first batch,
    when nobody has been asked to look: the values may come from other runs. In between one may be; and where something
    suggests it, those that have looked in vain do not count.
    """
    if facts.n_modes > 1:
        return unseen(facts.n_modes, n_explored, facts.n_dim, settings.error)
    if facts.before is None or not unexplored(facts, np.inf, settings):
        return 0.0
    looked = 0 if facts.n_outlying or facts.climbing else facts.explored
    return unseen(1, looked, facts.n_dim, settings.error)


def converged(facts: Facts, dlogz: float, settings: Settings) -> tuple[bool, str]:
    """Whether all audits agree that the error is below dlogz, and why in a clause."""
    missing = doubts(facts, dlogz, settings) + unexplored(facts, dlogz, settings)
    if len(missing) == 1 and not facts.now[1] <= dlogz:
        return False, missing[0] + out_of_reach(facts.least, dlogz)
    if missing:
        return False, "; ".join(missing[:MOST])
    return True, (
        f"sd of log Z {facts.log_evidence_std:.3g} (Monte Carlo {facts.monte_carlo:.1g}) is below "
        f"dlogz = {dlogz:g}, the last batches agree with their prediction, and {facts.explored} exploration points "
        "found nothing new"
    )
