"""What a batch is to integrate well: a measure of interest f and the covariance left under it."""

from dataclasses import dataclass

import numpy as np

from basq.gp.gp import Moments, Prediction
from basq.numerics.linalg import row_blocks
from basq.paper.models.base import Surrogate
from basq.types import FloatArray


@dataclass(frozen=True)
class Target:
    """Measure of interest, uncertainty and kernel of a surrogate, all relative to the prior measure π.

    With the paper's factorisation trick (its eq. 11), Z = α + ½∫|ℓ̃|·|ℓ̃|π is read as the integral of |ℓ̃| over
    f = |m̃|π: the kernel is then the cheap C̃ of the warped process, with the signs of m̃ that the paper leaves out, and f
    follows the posterior. Without it f = π and the kernel is the covariance of ℓ itself. Models in which ℓ is no square
    select with their process over π.

    Attributes
    ----------
    surrogate : Surrogate
    factorised : bool
    """

    surrogate: Surrogate
    factorised: bool

    @property
    def uses_process(self) -> bool:
        """Whether selection looks at the process itself rather than at ℓ."""
        return self.factorised or not self.surrogate.is_square

    @property
    def follows_mean(self) -> bool:
        """Whether f differs from the prior measure."""
        return self.factorised and self.surrogate.is_square

    def interest(self, mean: FloatArray) -> FloatArray:
        """f/π, up to a constant, where the process has this mean: (m,)."""
        return np.abs(mean) if self.follows_mean else np.ones_like(mean)

    def var(self, p: Moments) -> FloatArray:
        """The kernel's diagonal: (m,)."""
        return p.var if self.uses_process else self.surrogate.var(p)

    def project(self, p: Prediction, centres: Prediction, vectors: FloatArray) -> FloatArray:
        """The kernel between points and centres, times vectors (m_centres, k): (m, k)."""
        if not self.uses_process:
            blocks = [self.cov(p[rows], centres) @ vectors for rows in row_blocks(len(p.x), 64)]
            return np.concatenate(blocks)
        gp = self.surrogate.gp
        if not self.follows_mean:
            return gp.project(p, centres, vectors)
        out = gp.project(p, centres, np.sign(centres.mean)[:, None] * vectors)
        out *= np.sign(p.mean)[:, None]
        return out

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        """The kernel between two sets of points: (m_p, m_q)."""
        if not self.uses_process:
            return self.surrogate.cov(p, q)
        c = self.surrogate.gp.cov(p, q)
        if self.follows_mean:  # |ℓ̃| linearised about m̃ carries the signs of m̃
            c *= np.sign(p.mean)[:, None] * np.sign(q.mean)
        return c
