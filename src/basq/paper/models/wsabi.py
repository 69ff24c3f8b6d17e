"""WSABI, the paper's model: the likelihood is the square of a Gaussian process (Gunter et al. 2014)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from basq.gp.gp import Moments, Prediction
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import solve_lower
from basq.paper.blocks import Blocks, constant
from basq.paper.models.base import Surrogate
from basq.paper.training import Data, Training
from basq.paper.warps import SquareRoot
from basq.posterior.mixture import Group
from basq.types import FloatArray


@dataclass(frozen=True)
class Wsabi(Surrogate):
    """ℓ = α + ½ ℓ̃², ℓ̃ a Gaussian process; linearised (WSABI-L) or with its exact moments (WSABI-M).

    Attributes
    ----------
    gp : GP
        Of ℓ̃.
    offset : float
        α.
    matched : bool
        True for WSABI-M.
    """

    offset: float
    matched: bool

    is_square: ClassVar[bool] = True

    def mean(self, p: Moments) -> FloatArray:
        """α + ½ m̃² (eq. 4b of the paper); for WSABI-M α + ½(m̃² + C̃) (its eq. 40, which lacks the tildes)."""
        square = p.mean**2 + p.var if self.matched else p.mean**2
        return self.offset + 0.5 * square

    def var(self, p: Moments) -> FloatArray:
        """The diagonal of the covariance."""
        linear = p.mean**2 * p.var
        return linear + 0.5 * p.var**2 if self.matched else linear

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        """m̃ C̃ m̃′ (eq. 4c of the paper; eq. 59 pairs the data wrongly for x ≠ x′); for WSABI-M also + ½ C̃²."""
        c = self.gp.cov(p, q)
        linear: FloatArray = p.mean[:, None] * c * q.mean
        return linear + 0.5 * c * c if self.matched else linear

    @property
    def has_closed_form(self) -> bool:
        return self.gp.kernel.gaussian

    def evidence(self, measure: GaussianMixture) -> tuple[float, float]:
        """E_L = α + ½(c² + 2c zᵀω + ωᵀQω), Var_L = ωᵀRω + 2c ωᵀr + c²z₀ − bᵀΩb with b = Qω + cz.

        For c = 0, E_L is eq. 68 of the paper and Var_L its eq. 69, corrected: there R (eqs. 70 and 71) is wrong, and
        bᵀΩb (eq. 72) pairs (i, j) and (k, l) where it should pair (i, k) and (l, j). WSABI-M (eq. 41, said to be
        intractable) adds ½(v − tr ΩQ) and ½(κ₂ − 2 tr ΩR + tr (ΩQ)²).
        """
        gp, blocks = self.gp, Blocks(self.gp, measure)
        c, omega, z, q = gp.mean, gp.weights, blocks.z, blocks.q
        mean = self.offset + 0.5 * (c * c + 2.0 * c * float(z @ omega) + float(omega @ q @ omega))
        r = blocks.chain(blocks.kernel)
        var = float(omega @ r @ omega)
        if c != 0.0:
            var += 2.0 * c * float(omega @ blocks.half_chain(blocks.kernel)) + c * c * blocks.double(blocks.kernel)
        half = solve_lower(gp.factor, q @ omega + c * z)
        var -= float(half @ half)
        if self.matched:
            a = solve_lower(gp.factor, solve_lower(gp.factor, q).T)  # L⁻¹ Q L⁻ᵀ
            mean += 0.5 * (blocks.kernel.variance - float(np.trace(a)))
            trace_r = float(np.vdot(gp.precision, r))
            extra = blocks.double(blocks.squared_kernel) - 2.0 * trace_r + float(np.vdot(a, a))
            var += 0.5 * max(extra, 0.0)
        return mean, max(var, 0.0)

    def neglected(self, measure: GaussianMixture) -> float:
        """½(v − tr ΩQ), which WSABI-M adds to the mean of Z."""
        gp = self.gp
        return 0.5 * (float(gp.kernel.variance) - float(np.vdot(gp.precision, Blocks(gp, measure).q)))

    def expansion(self, measure: GaussianMixture) -> Iterator[list[Group]]:
        """α + ½(c + kᵀω)², for WSABI-M plus ½(v − kᵀΩk).

        Times the measure, this is eq. 74 of the paper, corrected: α, too, has to be multiplied by π.
        """
        gp, blocks = self.gp, Blocks(self.gp, measure)
        level = self.offset + 0.5 * gp.mean**2
        coefficients = 0.5 * np.outer(gp.weights, gp.weights)
        if self.matched:
            level += 0.5 * gp.kernel.variance
            coefficients -= 0.5 * gp.precision
        for k, (mu, sigma) in enumerate(zip(measure.means, measure.covs, strict=True)):
            linear = blocks.singles[k].times(gp.mean * gp.weights)
            yield [constant(level, mu, sigma), linear, blocks.pairs[k].times(coefficients)]


@dataclass(frozen=True)
class WsabiModel:
    """How WSABI is fitted; ``matched`` for WSABI-M."""

    matched: bool

    needs_gaussian: ClassVar[bool] = False

    def fit(
        self, data: Data, train: Training, previous: Wsabi | None, measure: GaussianMixture, rng: np.random.Generator
    ) -> Wsabi:
        """Train on the square root of the values; their noise passes through it by its slope (the delta method)."""
        warp = SquareRoot.below(data.values)
        y = warp.forward(data.values)
        noise = np.divide(data.noise, y, out=np.zeros_like(y), where=y > 0.0)
        gp = train(data.u, y, previous.gp if previous else None, noise)
        return Wsabi(gp, warp.offset, self.matched)
