"""A result over the expensive parameters as one over all of them."""

from dataclasses import dataclass, replace

import numpy as np

from basq.cheap.joint import joint_posterior
from basq.cheap.notes import notes
from basq.method import LogSurrogate
from basq.outputs.outputs import Outputs
from basq.prior import Prior
from basq.results.result import Result
from basq.types import FloatArray


@dataclass(frozen=True)
class Narrowed:
    """What is believed about the log-likelihood, integrated over the cheap parameters."""

    surrogate: LogSurrogate
    n_dim: int

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d + k): (3, m)."""
        return self.surrogate.band(u[:, : self.n_dim])


def widened(result: Result, cheap: Prior, outputs: Outputs, seed: int) -> Result:
    """Put the cheap parameters back: prior, posterior, and for every call what it says about them.

    Parameters
    ----------
    result : Result
        Of a run over the expensive parameters.
    cheap : Prior
    outputs : Outputs
        Of its observations, in their order.
    seed : int
        Of the posterior's samples.
    """
    seen, draws = result.observations, outputs.draws()
    those = [own for own in draws if own is not None]
    known = np.array([own is not None for own in draws], dtype=bool)
    centre = np.array([np.zeros(cheap.n_dim) if own is None else own.mean(axis=0) for own in draws])
    centre = centre.reshape(-1, cheap.n_dim)
    posterior = result.standard_posterior
    if posterior is not None:
        posterior = joint_posterior(posterior, seen.u[known], np.stack(those), seed) if those else None
    surrogate = result.surrogate
    return replace(
        result,
        prior=result.prior.joined(cheap),
        observations=replace(
            seen,
            x=np.concatenate([seen.x, cheap.from_standard(centre)], axis=1),
            u=np.concatenate([seen.u, centre], axis=1),
        ),
        standard_posterior=posterior,
        surrogate=None if surrogate is None else Narrowed(surrogate, seen.u.shape[1]),
        cheap=cheap.names,
        notes=(*result.notes, *notes([shape for shape in outputs.shapes() if shape is not None], those, cheap)),
    )
