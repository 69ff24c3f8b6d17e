"""Posteriors that are sampled on turned circles, where they are in one piece."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from basq.numerics.metropolis import LogDensity
from basq.posterior.sampled import GridDensity, KernelDensity, SampledPosterior
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

    def marginal(self, dims: list[int]) -> "GridDensity | KernelDensity | SampledPosterior":
        """Density of some coordinates; of several, smoothed where their circles are cut at an empty place."""
        if 1 < len(dims) < self.n_dim:
            return TurnedKernel(self.inner.population[:, dims], Turn(self.turn.shift[dims]))
        return super().marginal(dims)


@dataclass(frozen=True)
class TurnedKernel(KernelDensity):
    """Several coordinates' density, smoothed from samples on turned circles.

    Attributes
    ----------
    points : (n, d) array
        Turned.
    turn : Turn
    """

    turn: Turn

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at the rows of x."""
        return TurnedDensity(super().log_pdf, self.turn)(np.asarray(x, dtype=float).reshape(-1, self.n_dim))

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at the rows of x (k, d): (k,)."""
        return np.exp(self.log_pdf(x))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d)."""
        return KernelDensity(self.turn.back(self.points)).moments()

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n of the samples: (n, d)."""
        return self.turn.back(super().sample(n, rng))
