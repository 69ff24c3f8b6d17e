"""Mean and variance of the evidence, in closed form or over an empirical measure."""

from dataclasses import dataclass

import numpy as np

from basq.gp.gp import Prediction
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import solve_lower
from basq.paper.blocks import Blocks, is_rbf, pair
from basq.paper.models import Bbq, Surrogate, Vanilla, Wsabi
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


def has_closed_form(surrogate: Surrogate) -> bool:
    """Whether evidence and posterior of this surrogate are Gaussian integrals."""
    return is_rbf(surrogate.gp.kernel)


def closed_form_evidence(surrogate: Surrogate, measure: GaussianMixture, log_scale: float = 0.0) -> Evidence:
    """Integrate an RBF surrogate over a Gaussian mixture.

    Costs O(n² d) beyond the factorisation that the process has (WSABI-M's variance: O(n³)).
    """
    if isinstance(surrogate, Vanilla):
        mean, var = _vanilla(surrogate, measure)
    elif isinstance(surrogate, Wsabi):
        mean, var = _wsabi(surrogate, measure)
    elif isinstance(surrogate, Bbq):
        mean, var = _bbq(surrogate, measure)
    else:
        raise TypeError(f"no closed form for {type(surrogate).__name__}")
    return Evidence(mean, max(var, 0.0), log_scale)


def _vanilla(surrogate: Vanilla, measure: GaussianMixture) -> tuple[float, float]:
    """E = c + zᵀω, Var = z₀ − zᵀΩz."""
    gp, b = surrogate.gp, Blocks(surrogate.gp, measure)
    half = solve_lower(gp.factor, b.z)
    return gp.mean + float(b.z @ gp.weights), b.double(b.kernel) - float(half @ half)


def _wsabi(surrogate: Wsabi, measure: GaussianMixture) -> tuple[float, float]:
    """E_L = α + ½(c² + 2c zᵀω + ωᵀQω), Var_L = ωᵀRω + 2c ωᵀr + c²z₀ − bᵀΩb with b = Qω + cz.

    WSABI-M adds ½(v − tr ΩQ) and ½(κ₂ − 2 tr ΩR + tr (ΩQ)²).
    """
    gp, blocks = surrogate.gp, Blocks(surrogate.gp, measure)
    c, omega, z, q = gp.mean, gp.weights, blocks.z, blocks.q
    mean = surrogate.offset + 0.5 * (c * c + 2.0 * c * float(z @ omega) + float(omega @ q @ omega))
    r = blocks.chain(blocks.kernel)
    var = float(omega @ r @ omega)
    if c != 0.0:
        var += 2.0 * c * float(omega @ blocks.half_chain(blocks.kernel)) + c * c * blocks.double(blocks.kernel)
    half = solve_lower(gp.factor, q @ omega + c * z)
    var -= float(half @ half)
    if surrogate.matched:
        a = solve_lower(gp.factor, solve_lower(gp.factor, q).T)  # L⁻¹ Q L⁻ᵀ
        mean += 0.5 * (blocks.kernel.variance - float(np.trace(a)))
        trace_r = float(np.vdot(gp.precision, r))
        extra = blocks.double(blocks.squared_kernel) - 2.0 * trace_r + float(np.vdot(a, a))
        var += 0.5 * max(extra, 0.0)
    return mean, max(var, 0.0)


def _bbq(surrogate: Bbq, measure: GaussianMixture) -> tuple[float, float]:
    """E = ∫ m₀ + (m₀ + γ) m_Δ, and ∬ (m₀ + γ) C_log (m₀ + γ) as its linearised variance."""
    first, delta, log_gp = surrogate.linear, surrogate.delta, surrogate.gp
    b_first, b_delta, b_log = Blocks(first, measure), Blocks(delta, measure), Blocks(log_gp, measure)
    level = first.mean + surrogate.shift
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


def empirical_evidence(
    surrogate: Surrogate, p: Prediction, weights: FloatArray, log_scale: float = 0.0, *, max_pairs: int = 2048
) -> Evidence:
    """Integrate any surrogate over a weighted point set.

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
        to the point set, not to Z), plus the point set's own sampling variance.
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
