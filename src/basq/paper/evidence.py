"""Mean and variance of the evidence, in closed form or over an empirical measure."""

from dataclasses import dataclass

import numpy as np

from basq.gp.gp import Prediction
from basq.numerics.gaussians import GaussianMixture
from basq.paper.models.base import Surrogate
from basq.types import FloatArray


@dataclass(frozen=True)
class Evidence:
    """First two moments of Z, kept relative to a scale so that nothing over- or underflows.

    Attributes
    ----------
    scaled_mean, scaled_var : float
        Moments of Z · exp(−log_scale).
    log_scale : float
    """

    scaled_mean: float
    scaled_var: float
    log_scale: float = 0.0

    @property
    def log_mean(self) -> float:
        """log E[Z]; NaN where a surrogate's mean evidence is not positive."""
        if self.scaled_mean <= 0.0:
            return float("nan")
        return float(np.log(self.scaled_mean)) + self.log_scale

    @property
    def log_std(self) -> float:
        """Standard deviation of log Z, of the log-normal with these two moments."""
        if self.scaled_mean <= 0.0:
            return float("inf")
        return float(np.sqrt(np.log1p(max(self.scaled_var, 0.0) / self.scaled_mean**2)))


def closed_form_evidence(surrogate: Surrogate, measure: GaussianMixture, log_scale: float = 0.0) -> Evidence:
    """Integrate a surrogate with an RBF kernel over a Gaussian mixture, by its own formulas.

    Costs O(n² d) beyond the factorisation that the process has (WSABI-M's variance: O(n³)).
    """
    mean, var = surrogate.evidence(measure)
    return Evidence(mean, max(var, 0.0), log_scale)


def empirical_evidence(
    surrogate: Surrogate, p: Prediction, weights: FloatArray, log_scale: float = 0.0, *, max_pairs: int = 2048
) -> Evidence:
    """Integrate any surrogate over a weighted point set (eqs. 94 and 95 of the paper, corrected).

    Parameters
    ----------
    p : Prediction
        The surrogate's process at the points.
    weights : (N,) array
        Weights of the measure, normalised by their own sum.
    max_pairs : int
        Points used for the variance, which costs O(N²); the first ones, so give points in random or Sobol order.

    Returns
    -------
    Evidence
        The variance is Var[Z | data] without the diagonal of the double sum (a U-statistic: the diagonal belongs
        to the point set, not to Z), plus the point set's own sampling variance. What eq. 95 of the paper calls the
        variance is the error of recombination, zero if that is perfect.
    """
    w = weights / weights.sum()
    values = surrogate.mean(p)
    mean = float(w @ values)
    sampling = float((w * w) @ (values - mean) ** 2)
    part, v = p[np.arange(min(len(w), max_pairs))], w[:max_pairs] / w[:max_pairs].sum()
    total, diagonal = 0.0, float(v * v @ surrogate.var(part))
    for rows in np.array_split(np.arange(len(v)), max(1, len(v) // 512)):
        total += float(v[rows] @ surrogate.cov(part[rows], part) @ v)
    spread = (total - diagonal) / max(1.0 - float(v @ v), 1e-12)
    return Evidence(mean, max(spread, 0.0) + sampling, log_scale)
