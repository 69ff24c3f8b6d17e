"""What a result says about the evidence."""

import numpy as np

from basq.certificate.certificate import Certificate
from basq.status import Status

LEVEL = 1.96
"""Standard deviations within which 95 % lie."""


class Evidence:
    """log Z in the forms that people ask for, and whether to believe it."""

    log_evidence: float
    log_evidence_std: float
    status: Status
    sound: bool
    certificate: Certificate | None

    @property
    def certified(self) -> bool:
        """Whether independent calls certify the answer; see `certify`."""
        return self.certificate is not None and self.certificate.certified

    @property
    def converged(self) -> bool:
        """Whether the target accuracy was reached and the tests were passed."""
        return self.status is Status.CONVERGED

    @property
    def log_evidence_interval(self) -> tuple[float, float]:
        """Where log Z lies with 95 %.

        It has no upper end (inf) where more than the error's size speaks against the answer: modes may be missing, and
        however high they are, they only add to what was found.
        """
        half = LEVEL * self.log_evidence_std
        high = self.log_evidence + half if self.converged or self.sound else np.inf
        return self.log_evidence - half, high

    @property
    def logz(self) -> float:
        return self.log_evidence

    @property
    def logzerr(self) -> float:
        return self.log_evidence_std

    @property
    def evidence(self) -> float:
        """E[Z] itself; 0 or inf where it leaves the range of floating-point numbers (``log_evidence`` never does)."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(self.log_evidence))

    @property
    def evidence_std(self) -> float:
        """Standard deviation of Z itself, of the log-normal law with this log-evidence and its error."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(self.log_evidence) * np.sqrt(np.expm1(self.log_evidence_std**2)))
