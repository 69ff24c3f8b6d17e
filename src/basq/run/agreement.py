"""Whether replicas of a run agree, and what of their disagreement enters the answer's error."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from basq.report.tables import with_error
from basq.results.result import Result
from basq.run.stopping import ROUGH
from basq.status import Status

Answer = tuple[float, float]
"""log Z and its standard deviation."""


def disagreement(answers: Sequence[Answer], log_evidence: float) -> float:
    """What the answers of replicas differ by beyond what they claim.

    The standard error of their mean about the answer of all calls together, of what their own errors do not explain.
    """
    values, errors = np.array(answers).T
    beyond = np.maximum((values - log_evidence) ** 2 - errors**2, 0.0)
    return float(np.sqrt(beyond.mean() / (len(values) - 1)))


def agreed(found: Result, answers: Sequence[Answer], dlogz: float) -> Result:
    """The answer of all calls, with the disagreement of the replicas in its error."""
    extra = disagreement(answers, found.log_evidence)
    sd = float(np.hypot(found.log_evidence_std, extra))
    each = ", ".join(with_error(*answer) for answer in answers)
    note = f"{len(answers)} replicas gave log Z = {each}"
    found = replace(found, log_evidence_std=sd, notes=(*found.notes, note))
    if not found.converged or sd <= dlogz:
        return found
    why = f"the replicas disagree by more than they claim, which leaves an sd of log Z of {extra:.3g}"
    return replace(found, status=Status.NOT_CONVERGED, why=why, sound=sd <= ROUGH)
