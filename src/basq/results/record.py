"""The history of a run."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """One line of a run's history.

    Attributes
    ----------
    n_evals : int
        Calls so far, failed ones included.
    log_evidence, log_evidence_std : float
    seconds : dict
        Time of the step by stage: select, evaluate, fit, integrate, and what else the method books (search).
    info : dict
        What the selection had to say.
    """

    n_evals: int
    log_evidence: float
    log_evidence_std: float
    seconds: dict[str, float]
    info: dict[str, Any] = field(default_factory=dict)
