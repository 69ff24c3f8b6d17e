"""The posterior that a surrogate implies, as a signed Gaussian mixture (RBF kernel, Gaussian-mixture measure)."""

from dataclasses import dataclass, replace

import numpy as np

from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import row_blocks
from basq.paper.models.base import Surrogate
from basq.posterior.mixture import Group, SignedMixture, log_total, normalised
from basq.types import FloatArray


def closed_form_posterior(surrogate: Surrogate, measure: GaussianMixture) -> SignedMixture:
    """Normalised product of the surrogate's mean and the measure (eqs. 73 and 74 of the paper).

    Parameters
    ----------
    surrogate : Surrogate
        With a closed form.
    measure : GaussianMixture
        The prior in standard space, or the reference of a prior known by its density.
    """
    groups: list[Group] = []
    for rho, part in zip(measure.weights, surrogate.expansion(measure), strict=True):
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
