"""What the engine has seen, in the form that all its parts use."""

from dataclasses import dataclass, replace

import numpy as np

from basq.numerics.gaussians import Measure
from basq.observations import Observations
from basq.types import FloatArray


@dataclass(frozen=True)
class Seen:
    """Observations with their log-posterior.

    Attributes
    ----------
    observations : Observations
    measure : Measure
        The prior.
    log_posterior : (n,) array
        Up to the evidence; −inf where the likelihood is zero.
    """

    observations: Observations
    measure: Measure
    log_posterior: FloatArray

    @classmethod
    def of(cls, observations: Observations, measure: Measure, abyss: float) -> "Seen":
        """Log-likelihoods so many nats below the best only stand for zero: no process could follow them."""
        values = observations.log_values
        deep = values < values.max() - abyss
        if deep.any():
            observations = replace(observations, log_likelihood=np.where(deep, -np.inf, observations.log_likelihood))
        return cls(observations, measure, observations.log_values + measure.log_pdf(observations.u))

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def u(self) -> FloatArray:
        return self.observations.u

    @property
    def n_dim(self) -> int:
        return self.u.shape[1]
