"""Vanilla Bayesian quadrature: the likelihood itself is a Gaussian process."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from basq.gp.gp import Moments, Prediction
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import solve_lower
from basq.paper.blocks import Blocks, constant
from basq.paper.models.base import Surrogate
from basq.paper.training import Data, Training
from basq.posterior.mixture import Group
from basq.types import FloatArray


@dataclass(frozen=True)
class Vanilla(Surrogate):
    """ℓ itself is a Gaussian process (eq. 2 of the paper)."""

    @classmethod
    def fit(
        cls, data: Data, train: Training, previous: Self | None, measure: GaussianMixture, rng: np.random.Generator
    ) -> Self:
        """Train on the values as they are."""
        return cls(train(data.u, data.values, previous.gp if previous else None, data.noise))

    def mean(self, p: Moments) -> FloatArray:
        return p.mean

    def var(self, p: Moments) -> FloatArray:
        return p.var

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        return self.gp.cov(p, q)

    @property
    def has_closed_form(self) -> bool:
        return self.gp.kernel.gaussian

    def evidence(self, measure: GaussianMixture) -> tuple[float, float]:
        """E = c + zᵀω (eq. 97 of the paper, for which c = 0), Var = z₀ − zᵀΩz (its eq. 3b, of which it has no form)."""
        gp, b = self.gp, Blocks(self.gp, measure)
        half = solve_lower(gp.factor, b.z)
        return gp.mean + float(b.z @ gp.weights), b.double(b.kernel) - float(half @ half)

    def expansion(self, measure: GaussianMixture) -> Iterator[list[Group]]:
        """c + kᵀω."""
        gp, blocks = self.gp, Blocks(self.gp, measure)
        for k, (mu, sigma) in enumerate(zip(measure.means, measure.covs, strict=True)):
            yield [constant(gp.mean, mu, sigma), blocks.singles[k].times(gp.weights)]
