"""The engine on circles: it works where they are cut at an empty place, and answers where the prior cuts them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.method import LogSurrogate
from basq.numerics.metropolis import LogDensity
from basq.posterior.sampled import SampledPosterior
from basq.prior.marginals import log_phi
from basq.prior.periodic import Turn
from basq.types import FloatArray


@dataclass(frozen=True)
class TurnedDensity:
    """Log-density in standard space, from that over turned points; a class, so that it can be pickled."""

    log_density: LogDensity
    turn: Turn

    def __call__(self, u: FloatArray) -> FloatArray:
        v = self.turn.of(u)
        # the prior's density over u is that over v: their ratio is what the turn stretches
        return self.log_density(v) + np.sum(log_phi(u) - log_phi(v), axis=1)


@dataclass(frozen=True)
class TurnedPosterior(SampledPosterior):
    """A posterior that is sampled on turned circles, where it is in one piece.

    Attributes
    ----------
    inner : SampledPosterior
        Over turned points.
    turn : Turn
    """

    inner: SampledPosterior
    turn: Turn

    @classmethod
    def of(cls, inner: SampledPosterior, turn: Turn) -> "TurnedPosterior":
        """Turn a posterior back."""
        points, density = turn.back(inner.points), TurnedDensity(inner.log_density, turn)
        return cls(density, points, inner.log_weights, inner.seed, inner.n_moves, inner, turn)

    @cached_property
    def population(self) -> FloatArray:
        return self.turn.back(self.inner.population)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, d)."""
        return self.turn.back(self.inner.sample(n, rng))


@dataclass(frozen=True)
class TurnedBand:
    """What is believed about the log-likelihood, from what is believed at turned points."""

    inner: LogSurrogate
    turn: Turn

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m)."""
        return self.inner.band(self.turn.of(u))
