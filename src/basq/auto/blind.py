"""The engine before it has seen a likelihood above zero."""

from dataclasses import dataclass

from basq.auto.recognised import Knowledge
from basq.errors import InputError
from basq.method import Fit, Posterior
from basq.types import FloatArray


@dataclass(frozen=True)
class Blind(Fit):
    """The state while every value seen is zero (−inf): nothing to model, only to search.

    Attributes
    ----------
    u : (n, d) array
        Where.
    knowledge : Knowledge or None
        Of parameters whose effect has a closed form.
    """

    u: FloatArray
    knowledge: Knowledge | None = None

    log_evidence = float("-inf")
    log_evidence_std = float("inf")

    @property
    def posterior(self) -> Posterior:
        raise InputError("Every likelihood value so far is zero (−inf): there is no posterior yet.")

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Nothing is known."""
        return False, f"all {len(self.u)} likelihood values so far are zero (−inf)"
