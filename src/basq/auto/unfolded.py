"""Posterior and surrogate of all parameters, from those without the common scale and with ratios of the others."""

from dataclasses import dataclass, replace

import numpy as np

from basq.auto.form import Form
from basq.auto.placing import expected_log_a, folded, nearest
from basq.auto.reduction import Reduction
from basq.method import LogSurrogate
from basq.numerics.metropolis import LogDensity
from basq.posterior.folded import FoldedPosterior
from basq.posterior.sampled import SampledPosterior
from basq.posterior.turned import TurnedPosterior
from basq.prior import Prior
from basq.prior.marginals import log_phi
from basq.types import FloatArray


@dataclass(frozen=True)
class Unfolded:
    """Log-density in standard space, from that with ratios in the place of scales; a class: it can be pickled."""

    joint: LogDensity
    form: Form
    prior: Prior

    def __call__(self, u: FloatArray) -> FloatArray:
        out = self.joint(self.form.fold(self.prior.from_standard(u), u))
        for scale, (_, width) in zip(self.form.scales[1:], self.form.ratios, strict=True):
            v = u[:, scale.axis.dim]
            s = scale.axis.s(self.prior.coordinate_from_standard(scale.axis.dim, v))
            # |dw/dv| = |κ| |ds/dv| / width, and ds/dv is the ratio of the densities of v and s
            out = out + np.log(abs(scale.kappa) / width) + log_phi(v) - scale.log_prior(s, self.prior)
        return out


def unfolded(joint: SampledPosterior, form: Form, prior: Prior) -> SampledPosterior:
    """The posterior of all parameters from that with ratios in the place of scales."""
    if isinstance(joint, TurnedPosterior):  # scales are not on circles
        return TurnedPosterior.of(unfolded(joint.inner, form, prior), joint.turn)
    if isinstance(joint, FoldedPosterior):  # nor are their labels exchanged
        return FoldedPosterior.of(unfolded(joint.inner, form, prior), joint.fold)
    first, points = form.scales[0].axis, joint.points.copy()
    s = first.s(prior.coordinate_from_standard(first.dim, points[:, first.dim]))
    every = form.others(s, points[:, form.dims][:, form.ratio_places])
    for scale, column in zip(form.scales[1:], every[:, 1:].T, strict=True):
        points[:, scale.axis.dim] = scale.axis.standard(column, prior)
    return replace(joint, log_density=Unfolded(joint.log_density, form, prior), points=points)


@dataclass(frozen=True)
class FullBand:
    """What is believed about the log-likelihood of all parameters.

    Attributes
    ----------
    inner : LogSurrogate
        Of the log-likelihood integrated over the common scale.
    reduction : Reduction
    prior : Prior
    """

    inner: LogSurrogate
    reduction: Reduction
    prior: Prior

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m)."""
        own, form = self.reduction, self.reduction.form
        at = folded(form, u, self.prior)
        integrated = self.inner.band(at)
        if not form.scales:
            return integrated
        s = form.s(self.prior.from_standard(u))
        log_a = np.stack([expected_log_a(own, at, values) for values in integrated])
        shape = -0.5 * np.exp(np.minimum(log_a - form.kappa * s[:, 0], 600.0)) - form.slope(s)
        level: FloatArray | float = form.constant or 0.0
        if not form.same:  # as at the nearest point, but for c
            points = [own.points[i] for i in nearest(own, at)]
            level = integrated - np.array([p.log_likelihood - p.constant for p in points])
        return np.where(np.isneginf(integrated), -np.inf, shape + level)
