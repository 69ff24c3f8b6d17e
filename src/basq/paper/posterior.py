"""The posterior that a surrogate implies, as a signed Gaussian mixture (RBF kernel, Gaussian-mixture measure)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import row_blocks
from basq.paper.blocks import Blocks, Pair, Single, pair
from basq.paper.models import Bbq, Surrogate, Vanilla, Wsabi
from basq.posterior.mixture import Group, SignedMixture, log_total, normalised
from basq.types import FloatArray

Expansion = Callable[[int, FloatArray, FloatArray], list[Group]]


def closed_form_posterior(surrogate: Surrogate, measure: GaussianMixture) -> SignedMixture:
    """Normalised product of the surrogate's mean and the measure.

    Parameters
    ----------
    surrogate : Surrogate
        With an RBF kernel.
    measure : GaussianMixture
        The prior in standard space, or the reference of a prior known by its density.
    """
    groups: list[Group] = []
    expand = _expansion(surrogate, measure)
    for k, (rho, mu, sigma) in enumerate(zip(measure.weights, measure.means, measure.covs, strict=True)):
        part = expand(k, mu, sigma)
        groups += [Group(g.sign, g.log_weight + np.log(rho), g.left, g.right, g.cov) for g in part if np.any(g.sign)]
    reason = "the surrogate's evidence is not positive"
    direct = ProductDensity(surrogate, measure, log_total(tuple(groups), reason))
    return replace(normalised(tuple(groups), reason), density=direct)


@dataclass(frozen=True)
class ProductDensity:
    """Surrogate's mean times measure over their integral: O(n) a point, where the sum over pairs of data is O(n²)."""

    surrogate: Surrogate
    measure: GaussianMixture
    log_z: float

    def __call__(self, x: FloatArray) -> FloatArray:
        """Density at points x (m, d): (m,)."""
        gp = self.surrogate.gp
        means = [self.surrogate.mean(gp.predict(x[rows])) for rows in row_blocks(len(x), len(gp.x) // 16)]
        return np.concatenate([np.empty(0), *means]) * np.exp(self.measure.log_pdf(x) - self.log_z)


def _expansion(surrogate: Surrogate, measure: GaussianMixture) -> Expansion:
    """Return the function that writes mean × k-th component of the measure as Gaussians."""
    if isinstance(surrogate, Vanilla):
        return partial(_vanilla_groups, surrogate, Blocks(surrogate.gp, measure))
    if isinstance(surrogate, Wsabi):
        return partial(_wsabi_groups, surrogate, Blocks(surrogate.gp, measure))
    if isinstance(surrogate, Bbq):
        return partial(_bbq_groups, surrogate, Blocks(surrogate.linear, measure), Blocks(surrogate.delta, measure))
    raise TypeError(f"no closed form for {type(surrogate).__name__}")


def _constant(level: float, mu: FloatArray, sigma: FloatArray) -> Group:
    """Level times the measure's component."""
    return Group(np.full((1, 1), level), np.zeros((1, 1)), mu[None], np.zeros((1, len(mu))), sigma)


def _linear(coefficients: FloatArray, block: Single) -> Group:
    """Σᵢ cᵢ K(Xᵢ, ·) times the measure's component."""
    d = block.means.shape[1]
    return Group(coefficients[:, None], block.log_mass[:, None], block.means, np.zeros((1, d)), block.cov)


def _quadratic(coefficients: FloatArray, block: Pair) -> Group:
    """Σᵢⱼ cᵢⱼ K(Xᵢ, ·) K(Yⱼ, ·) times the measure's component."""
    return Group(coefficients, block.log_mass, block.left, block.right, block.cov)


def _vanilla_groups(s: Vanilla, blocks: Blocks, k: int, mu: FloatArray, sigma: FloatArray) -> list[Group]:
    """c + kᵀω."""
    return [_constant(s.gp.mean, mu, sigma), _linear(s.gp.weights, blocks.singles[k])]


def _wsabi_groups(s: Wsabi, blocks: Blocks, k: int, mu: FloatArray, sigma: FloatArray) -> list[Group]:
    """α + ½(c + kᵀω)², for WSABI-M plus ½(v − kᵀΩk)."""
    gp = s.gp
    level = s.offset + 0.5 * gp.mean**2
    coefficients = 0.5 * np.outer(gp.weights, gp.weights)
    if s.matched:
        level += 0.5 * gp.kernel.variance
        coefficients -= 0.5 * gp.precision
    return [
        _constant(level, mu, sigma),
        _linear(gp.mean * gp.weights, blocks.singles[k]),
        _quadratic(coefficients, blocks.pairs[k]),
    ]


def _bbq_groups(s: Bbq, first: Blocks, delta: Blocks, k: int, mu: FloatArray, sigma: FloatArray) -> list[Group]:
    """m₀ + (m₀ + γ) m_Δ."""
    cross = pair(first.kernel, s.linear.x, delta.kernel, s.delta.x, mu, sigma)
    return [
        _constant(s.linear.mean, mu, sigma),
        _linear(s.linear.weights, first.singles[k]),
        _linear((s.linear.mean + s.shift) * s.delta.weights, delta.singles[k]),
        _quadratic(np.outer(s.linear.weights, s.delta.weights), cross),
    ]
