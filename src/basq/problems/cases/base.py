"""What a realistic case is: a simulator's log-likelihood, a prior, and the parameters that made the data."""

from dataclasses import dataclass

from basq.prior import Prior
from basq.types import FloatArray, LogLikelihood


@dataclass(frozen=True, eq=False)
class Case:
    """A likelihood that runs a simulator, where the evidence has no closed form.

    Everything is in the parameters of `prior`, not in standard space.

    Attributes
    ----------
    name : str
    log_likelihood : callable
        Takes one point, a (d,) array, and returns a float.
    prior : Prior
    truth : (d,) array
        The parameters that made the data.
    """

    name: str
    log_likelihood: LogLikelihood
    prior: Prior
    truth: FloatArray

    @property
    def n_dim(self) -> int:
        return self.prior.n_dim
