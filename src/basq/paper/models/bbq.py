"""Doubly-Bayesian quadrature: the likelihood linearised in its logarithm (Osborne et al. 2012)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from basq.gp.gp import GP, Moments, Prediction
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import solve_lower
from basq.paper.blocks import Blocks, constant, pair
from basq.paper.models.base import Surrogate
from basq.paper.training import Data, Training
from basq.paper.warps import ShiftedLog
from basq.posterior.mixture import Group
from basq.types import FloatArray

SHIFT = 0.01
"""γ, relative to the largest likelihood seen (Osborne et al. 2012 use a hundredth)."""
N_BETWEEN = 200
"""Most points between the data that the third process learns from."""


@dataclass(frozen=True)
class Bbq(Surrogate):
    """ℓ linearised in log ℓ about a first process.

    m = m₀ + (m₀ + γ) m_Δ, with m₀ a process on ℓ, and Δ = m_log − log(m₀/γ + 1) the difference between a process
    on the shifted log and the log of the first, interpolated by a third. (Eqs. 125–128 of the paper, with log(ℓ/γ + 1)
    for log ℓ, which does not exist where m₀ ≤ 0.)

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

    linear: GP
    delta: GP
    shift: float

    needs_gaussian: ClassVar[bool] = True

    @classmethod
    def fit(
        cls, data: Data, train: Training, previous: Self | None, measure: GaussianMixture, rng: np.random.Generator
    ) -> Self:
        """Train the three processes; noise passes through the log by its slope (the delta method)."""
        log = ShiftedLog(SHIFT)
        linear = train(data.u, data.values, previous.linear if previous else None, data.noise)
        log_noise = data.noise / (data.values + log.shift)
        log_gp = train(data.u, log.forward(data.values), previous.gp if previous else None, log_noise)
        # Δ vanishes at the data, so points between them are what it is learned from
        between = np.concatenate([data.u, measure.sample_quasi(min(2 * len(data.u), N_BETWEEN), rng)])
        difference = log_difference(log_gp, linear, log.shift, between)
        without_mean = replace(train, constant_mean=False)
        delta = without_mean(between, difference, previous.delta if previous else None, np.zeros(len(between)))
        return cls(log_gp, linear, delta, log.shift)

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

    @property
    def has_closed_form(self) -> bool:
        return self.gp.kernel.gaussian

    def evidence(self, measure: GaussianMixture) -> tuple[float, float]:
        """E = ∫ m₀ + (m₀ + γ) m_Δ, and ∬ (m₀ + γ) C_log (m₀ + γ) as its linearised variance.

        For γ = 0 and no constant means, E is eq. 129 of the paper, with eq. 132 for the first term and eq. 139 for the
        second. The paper has no variance.
        """
        first, delta, log_gp = self.linear, self.delta, self.gp
        b_first, b_delta, b_log = Blocks(first, measure), Blocks(delta, measure), Blocks(log_gp, measure)
        level = first.mean + self.shift
        omega = first.weights
        mean = first.mean + float(b_first.z @ omega) + level * float(b_delta.z @ delta.weights)
        log_cross = np.zeros((len(log_gp.x), len(first.x)))
        for w, mu, sigma in zip(measure.weights, measure.means, measure.covs, strict=True):
            cross = pair(b_first.kernel, first.x, b_delta.kernel, delta.x, mu, sigma)
            mean += w * float(omega @ np.exp(cross.log_mass) @ delta.weights)
            log_cross += w * np.exp(pair(b_log.kernel, log_gp.x, b_first.kernel, first.x, mu, sigma).log_mass)
        var = float(omega @ b_first.chain(b_log.kernel) @ omega)
        var += 2.0 * level * float(omega @ b_first.half_chain(b_log.kernel)) + level**2 * b_log.double(b_log.kernel)
        half = solve_lower(log_gp.factor, log_cross @ omega + level * b_log.z)
        return mean, var - float(half @ half)

    def expansion(self, measure: GaussianMixture) -> Iterator[list[Group]]:
        """m₀ + (m₀ + γ) m_Δ."""
        first, delta = Blocks(self.linear, measure), Blocks(self.delta, measure)
        omega, omega_delta = self.linear.weights, self.delta.weights
        for k, (mu, sigma) in enumerate(zip(measure.means, measure.covs, strict=True)):
            cross = pair(first.kernel, self.linear.x, delta.kernel, self.delta.x, mu, sigma)
            yield [
                constant(self.linear.mean, mu, sigma),
                first.singles[k].times(omega),
                delta.singles[k].times((self.linear.mean + self.shift) * omega_delta),
                cross.times(np.outer(omega, omega_delta)),
            ]


def log_difference(log_gp: GP, linear: GP, shift: float, x: FloatArray) -> FloatArray:
    """Δ at points x (m, d): what the log process says beyond the log of the first one, (m,)."""
    first = np.maximum(linear.predict_mean(x), -0.5 * shift)
    out: FloatArray = log_gp.predict_mean(x) - np.log1p(first / shift)
    return out
