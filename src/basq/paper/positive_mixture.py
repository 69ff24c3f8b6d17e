"""The paper's sampler of uncertainty: rejection from the positive components of a Gaussian mixture."""

from dataclasses import dataclass

import numpy as np

from basq.gp.gp import GP
from basq.numerics.gaussians import GaussianMixture
from basq.paper.blocks import Blocks
from basq.posterior.mixture import Group
from basq.types import FloatArray


@dataclass(frozen=True)
class PositiveMixture:
    """The components of C̃π with positive weight: π itself and the pairs with Ωᵢⱼ < 0.

    C̃(x, x) π(x) = v π(x) − Σ Ωᵢⱼ Qᵢⱼ N(x; …), eq. 88 of the paper, corrected (which has v² in place of Qᵢⱼ, as
    have eqs. 89 and 90). So the positive part dominates it and rejection from the one to the other is exact. The share
    that survives is known in closed form, and collapses when K is ill-conditioned.

    Attributes
    ----------
    prior_mass : float
        v, the weight of π.
    pairs : Group
        Positive pairs, thinned to those that n draws would show.
    positive, total : float
        Integrals of the positive part and of C̃π.
    """

    prior_mass: float
    pairs: Group
    positive: float
    total: float

    @classmethod
    def of(cls, gp: GP, measure: GaussianMixture, n: int) -> "PositiveMixture | None":
        """Build from a process; None for a mixture measure (its components would multiply)."""
        if len(measure.weights) > 1:
            return None
        block = Blocks(gp, measure).pairs[0]
        mass = gp.precision * np.exp(block.log_mass)
        prior = float(gp.kernel.variance)
        # n draws would hardly show a component of less than 1/n; dropping it is safe, for vπ alone dominates C̃π
        shown = -mass > (prior - float(np.minimum(mass, 0.0).sum())) / n
        pairs = Group(np.where(shown, -gp.precision, 0.0), block.log_mass, block.left, block.right, block.cov)
        return cls(prior, pairs, prior + float(pairs.weights.sum()), prior - float(mass.sum()))

    @property
    def acceptance(self) -> float:
        """Share of draws that survive; 0 where rounding has eaten the total."""
        return max(self.total, 0.0) / self.positive

    def sample(self, gp: GP, measure: GaussianMixture, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points of C̃π by rejection."""
        kept: list[FloatArray] = []
        found = 0
        while found < n:
            pool = int(1.1 * (n - found) / self.acceptance) + 16
            n_prior = int(rng.binomial(pool, self.prior_mass / self.positive))
            x = np.concatenate([measure.sample(n_prior, rng), self._sample_pairs(pool - n_prior, rng)])
            pi = np.exp(measure.log_pdf(x))
            bound = self.prior_mass * pi + self.pairs.pdf(x)
            kept.append(rng.permutation(x[rng.random(pool) * bound < gp.predict(x).var * pi]))
            found += len(kept[-1])
        return np.concatenate(kept)[:n]

    def _sample_pairs(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the positive pairs, of which there may be none."""
        return self.pairs.sample_absolute(n, rng) if n else np.empty((0, self.pairs.left.shape[1]))
