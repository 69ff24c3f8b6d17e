"""The posterior of expensive and cheap parameters together."""

from dataclasses import dataclass

import numpy as np

from basq.cheap.conditionals import Conditionals
from basq.method import Posterior
from basq.posterior.folded import FoldedPosterior, lifted
from basq.posterior.sampled import N_POPULATION, SampledPosterior
from basq.posterior.turned import TurnedPosterior
from basq.prior.periodic import Turn
from basq.types import FloatArray, IntArray


@dataclass(frozen=True)
class JointDensity:
    """Log posterior density of all parameters in standard space, (m, d + k) -> (m,); a class: it can be pickled.

    Attributes
    ----------
    expensive : Posterior
        Of the expensive parameters.
    conditionals : Conditionals
        Of the cheap ones, given these.
    dims : (d,) int array
        Coordinates of the expensive parameters; the others are those of the cheap ones, in order.
    """

    expensive: Posterior
    conditionals: Conditionals
    dims: IntArray

    def __call__(self, u: FloatArray) -> FloatArray:
        others = np.setdiff1d(np.arange(u.shape[1]), self.dims)
        return self.expensive.log_pdf(u[:, self.dims]) + self.conditionals.log_pdf(u[:, others], u[:, self.dims])


def joint_posterior(
    expensive: Posterior, u: FloatArray, draws: FloatArray, seed: int, dims: IntArray | None = None
) -> SampledPosterior:
    """The posterior of all parameters.

    Parameters
    ----------
    expensive : Posterior
        Of the expensive parameters, in standard space.
    u : (n, d) array
        Evaluated points.
    draws : (n, m, k) array
        Of the cheap parameters at each of them, in their own standard space.
    seed : int
        Of the samples.
    dims : (d,) int array, optional
        Coordinates of the expensive parameters among all; the first ones by default.
    """
    if isinstance(expensive, TurnedPosterior):  # conditionals are learned where neighbours are neighbours
        turn, shift = expensive.turn, np.full(u.shape[1] + draws.shape[2], np.nan)
        shift[np.arange(u.shape[1]) if dims is None else dims] = turn.shift
        return TurnedPosterior.of(joint_posterior(expensive.inner, turn.of(u), draws, seed, dims), Turn(shift))
    if isinstance(expensive, FoldedPosterior):  # the cheap ones stay as they are where labels are exchanged
        place, n_dim = np.arange(u.shape[1]) if dims is None else dims, u.shape[1] + draws.shape[2]
        fold, inner = expensive.fold, expensive.inner
        return FoldedPosterior.of(joint_posterior(inner, fold.of(u), draws, seed, dims), lifted(fold, n_dim, place))
    rng = np.random.default_rng(seed)
    samples = expensive.sample(N_POPULATION, rng)
    conditionals = Conditionals.learn(u, draws, samples)
    n_dim = u.shape[1] + draws.shape[2]
    place = np.arange(u.shape[1]) if dims is None else dims
    points = np.empty((len(samples), n_dim))
    points[:, place] = samples
    points[:, np.setdiff1d(np.arange(n_dim), place)] = conditionals.sample(samples, rng)
    log_density = JointDensity(expensive, conditionals, place)
    return SampledPosterior.build(log_density, points, np.zeros(len(points)), rng, n_moves=0)
