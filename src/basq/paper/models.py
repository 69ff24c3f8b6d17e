"""Likelihood surrogates: a Gaussian process and a warp, seen as a model of ℓ itself.

Each has ``gp`` (the process that selection works with), and gives mean and covariance of ℓ at any point. The
covariances are of the linearised (vanilla, WSABI-L, BBQ) or exact (WSABI-M) law of ℓ.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from basq.gp.gp import GP, Moments, Prediction
from basq.types import FloatArray


class Surrogate(Protocol):
    """A model of the (scaled) likelihood."""

    @property
    def gp(self) -> GP: ...

    def mean(self, p: Moments) -> FloatArray:
        """Expected likelihood at predicted points: (m,)."""
        ...

    def var(self, p: Moments) -> FloatArray:
        """Variance of the likelihood at predicted points: (m,)."""
        ...

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        """Covariance of the likelihood between two sets of predicted points: (m_p, m_q)."""
        ...


@dataclass(frozen=True)
class Vanilla:
    """ℓ itself is a Gaussian process."""

    gp: GP

    def mean(self, p: Moments) -> FloatArray:
        return p.mean

    def var(self, p: Moments) -> FloatArray:
        return p.var

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        return self.gp.cov(p, q)


@dataclass(frozen=True)
class Wsabi:
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

    gp: GP
    offset: float
    matched: bool

    def mean(self, p: Moments) -> FloatArray:
        square = p.mean**2 + p.var if self.matched else p.mean**2
        return self.offset + 0.5 * square

    def var(self, p: Moments) -> FloatArray:
        linear = p.mean**2 * p.var
        return linear + 0.5 * p.var**2 if self.matched else linear

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        c = self.gp.cov(p, q)
        linear: FloatArray = p.mean[:, None] * c * q.mean
        return linear + 0.5 * c * c if self.matched else linear


@dataclass(frozen=True)
class Bbq:
    """Doubly-Bayesian quadrature: ℓ linearised in log ℓ about a first process (Osborne et al. 2012).

    m = m₀ + (m₀ + γ) m_Δ, with m₀ a process on ℓ, and Δ = m_log − log(m₀/γ + 1) the difference between a process
    on the shifted log and the log of the first, interpolated by a third.

    Attributes
    ----------
    gp : GP
        Of log(ℓ/γ + 1); selection and variance work with this one.
    linear : GP
        Of ℓ.
    delta : GP
        Of Δ, zero mean.
    shift : float
        γ.
    """

    gp: GP
    linear: GP
    delta: GP
    shift: float

    def mean(self, p: Moments) -> FloatArray:
        first = self.linear.predict_mean(p.x)
        return first + (first + self.shift) * self.delta.predict_mean(p.x)

    def var(self, p: Moments) -> FloatArray:
        return (self.linear.predict_mean(p.x) + self.shift) ** 2 * p.var

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        left = self.linear.predict_mean(p.x) + self.shift
        right = self.linear.predict_mean(q.x) + self.shift
        out: FloatArray = left[:, None] * self.gp.cov(p, q) * right
        return out


def log_difference(log_gp: GP, linear: GP, shift: float, x: FloatArray) -> FloatArray:
    """Δ at points x (m, d): what the log process says beyond the log of the first one, (m,)."""
    first = np.maximum(linear.predict_mean(x), -0.5 * shift)
    out: FloatArray = log_gp.predict_mean(x) - np.log1p(first / shift)
    return out
