"""Posteriors that are sampled in one of several parts which are alike."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from basq.numerics.fold import Fold
from basq.numerics.metropolis import LogDensity
from basq.posterior.sampled import SampledPosterior
from basq.types import FloatArray, IntArray


@dataclass(frozen=True)
class FoldedDensity:
    """Log-density in standard space, from that of the part that is kept; a class, so that it can be pickled."""

    log_density: LogDensity
    fold: Fold

    def __call__(self, u: FloatArray) -> FloatArray:
        return self.log_density(self.fold.of(u)) - np.log(len(self.fold))


@dataclass(frozen=True)
class FoldedPosterior(SampledPosterior):
    """A posterior that is sampled in the part of standard space that a fold keeps.

    Attributes
    ----------
    inner : SampledPosterior
        Of that part.
    fold : Fold
    """

    inner: SampledPosterior
    fold: Fold

    @classmethod
    def of(cls, inner: SampledPosterior, fold: Fold) -> "FoldedPosterior":
        """Unfold a posterior."""
        points = fold.unfolded(inner.points, np.random.default_rng(inner.seed))
        density = FoldedDensity(inner.log_density, fold)
        return cls(density, points, inner.log_weights, inner.seed, inner.n_moves, inner, fold)

    @cached_property
    def population(self) -> FloatArray:
        return self.fold.unfolded(self.inner.population, np.random.default_rng(self.seed))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, d)."""
        return self.fold.unfolded(self.inner.sample(n, rng), rng)


def lifted(fold: Fold, n_dim: int, dims: IntArray) -> Fold:
    """The same of some coordinates (d,) among n_dim, the others left as they are."""
    maps = []
    for m in fold.maps:
        place, sign = np.arange(n_dim), np.ones(n_dim)
        place[dims], sign[dims] = dims[m.place], m.sign
        maps.append(replace(m, place=place, sign=sign))
    centre = np.zeros(n_dim)
    centre[dims] = fold.centre
    return Fold(tuple(maps), centre)
