"""Leaps to where the misfit should be least.

With its noise scale known, the misfit A is seen without its logarithm: it is a sum of squares, which a quadratic in the
parameters describes exactly for a linear model, and far better than its logarithm for most others. So the way to the
posterior, which the surrogate climbs step by step, is often one leap; and the quadratic says how wide it is there.
"""

from dataclasses import dataclass

import numpy as np

from basq.auto.reduction import Reduction
from basq.auto.settings import Recognition, Settings, quadratic
from basq.prior import Prior
from basq.types import FloatArray


@dataclass(frozen=True)
class Bowl:
    """A quadratic through the misfits of the best points.

    Attributes
    ----------
    bottom : (d,) array
        The parameters at its least value, not far from the points.
    rise : float
        Nats by which the log-likelihood rises to there from the best point.
    root : (d, d) array
        A factor of the covariance of the posterior that it stands for.
    exact : bool
        Whether it is one that describes its points well.
    """

    bottom: FloatArray
    rise: float
    root: FloatArray
    exact: bool

    @classmethod
    def through(cls, x: FloatArray, log_misfit: FloatArray, n_data: float, settings: Recognition) -> "Bowl":
        """Fit points x (m, d), the best first, with log-misfits (m,)."""
        m, d = x.shape
        scale = np.maximum(x.std(axis=0), 1e-300)
        z = (x - x[0]) / scale
        rows, columns = np.triu_indices(d)
        basis = np.column_stack([np.ones(m), z, z[:, rows] * z[:, columns]])
        # relative errors count: the misfits span many orders
        relative = basis * np.exp(np.maximum(log_misfit[:1] - log_misfit, -300.0))[:, None]
        norms = np.linalg.norm(relative, axis=0)
        found = np.linalg.lstsq(relative / norms, np.ones(m), rcond=1e-12)[0] / norms
        residual = np.sqrt(np.sum((relative @ found - 1.0) ** 2) / max(m - len(found), 1))
        slope, bend = found[1 : d + 1], np.zeros((d, d))
        bend[rows, columns] = found[d + 1 :]
        bend += bend.T
        curvature, axes = np.linalg.eigh(bend)
        steep = np.maximum(np.abs(curvature), 1e-12 * np.abs(curvature).max() + 1e-300)
        step = -axes @ (axes.T @ slope / steep)
        step *= min(1.0, settings.leap_farthest * np.linalg.norm(z, axis=1).max() / max(np.linalg.norm(step), 1e-300))
        least = float(found[0] + slope @ step + 0.5 * step @ bend @ step)
        while least < settings.leap_deepest and np.abs(step).max() > 1e-3:  # no misfit falls below nothing
            step = 0.5 * step
            least = float(found[0] + slope @ step + 0.5 * step @ bend @ step)
        root = scale[:, None] * axes * np.sqrt(2.0 * max(least, 0.0) / (n_data * steep))
        exact = bool(residual < settings.leap_exact and curvature.min() > 0.0 and least > 0.0)
        rise = -0.5 * n_data * float(np.log(np.clip(least, 1e-300, 1.0)))
        return cls(x[0] + scale * step, rise, root, exact)


def leaps(reduction: Reduction, rest: Prior, n: int, rng: np.random.Generator, settings: Settings) -> FloatArray:
    """Points of the other parameters in standard space, (m, e), for a batch of n.

    The bottoms of two bowls while they promise a rise, and draws about that of a good one while few points are near it.

    Parameters
    ----------
    rest : Prior
        Of the other parameters.
    """
    form, own, seen = reduction.form, settings.recognition, reduction.observations.at(reduction.finite)
    d = seen.u.shape[1]
    need = quadratic(d)
    if not form.scales or not form.same or len(seen) < need + own.leap_more:
        return seen.u[:0]
    log_misfit = -2.0 * seen.log_likelihood / form.n_data
    if not form.ratios:
        log_misfit = np.array([reduction.points[i].log_a for i in reduction.finite])
    best = np.argsort(log_misfit, kind="stable")
    x, log_misfit = rest.from_standard(seen.u[best]), log_misfit[best]
    sizes = [m for m in (need + own.leap_more, 2 * need) if m <= len(x)]
    bowls = [Bowl.through(x[:m], log_misfit[:m], form.n_data, own) for m in sizes]
    points = [b.bottom for b in bowls if b.rise > own.leap_rise]
    for bowl in [b for b in bowls if b.exact][-1:]:
        near = seen.log_likelihood > seen.log_likelihood.max() + bowl.rise - settings.values.window(d)
        if near.sum() < need + d:
            points += list(bowl.bottom + rng.standard_normal((int(own.leap_share * n), d)) @ bowl.root.T)
    lo, hi = rest.bounds.T
    inside = np.clip(np.array(points[:n]).reshape(-1, d), lo, hi)
    return np.clip(rest.to_standard(inside), -own.farthest, own.farthest) if len(inside) else seen.u[:0]
