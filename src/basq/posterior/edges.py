"""One parameter's density up to the hard edges of its prior.

In standard space such an edge is infinitely far away: a density that is smoothed there and divided by the slope of the
map rises or falls near the edge by what the smoothing makes of its last few samples. Relative to the prior, the
density at an edge is like any other.
"""

import numpy as np
from scipy import special
from scipy.interpolate import CubicSpline

from basq.posterior.sampled import GRID, GridDensity, SampledPosterior
from basq.posterior.smooth import MARGIN, log_density_1d
from basq.prior import Prior
from basq.prior.marginals import log_phi
from basq.types import FloatArray

FAR = 7.5
"""|u| that is as good as the edge, and at which every prior can still be evaluated."""
LOG_HARD = float(np.log(0.01))
"""Least density of a prior at a hard edge, relative to that at its median."""
TAIL = 0.005
"""Mass next to an edge within which a surrogate is not trusted: its points do not reach the edge."""
UNEVEN = 1.25
"""Most mass that such a stretch would have at the density of its inner end, relative to what it has."""


def up_to_edges(prior: Prior, i: int, posterior: SampledPosterior) -> GridDensity | None:
    """Density of a parameter whose mass reaches a hard edge of its prior; None if it does not."""
    if posterior.n_dim == 1:
        return hold_at_edges(prior, i, posterior.line)
    return smooth_to_edges(prior, i, posterior.population[:, i])


def smooth_to_edges(prior: Prior, i: int, u: FloatArray) -> GridDensity | None:
    """Density of a parameter, smoothed from samples of its standard coordinate (n,); None if they reach no hard edge.

    What is smoothed is the share of the prior up to each sample, counted from the side that is nearer to them.
    """
    sign = -1 if u.mean() > 0.0 else 1
    share = special.ndtr(sign * u)
    near = MARGIN * float(share.std())
    reached = (share.min() < near, 1.0 - share.max() < near)
    if not any(np.logical_and(_hard_edges(prior, i)[::sign], reached)):
        return None
    bins, log_ratio = log_density_1d(share, (0.0, 1.0))
    half = 0.5 * (bins[1] - bins[0])
    even = np.linspace(bins[0] - half, bins[-1] + half, GRID).clip(0.0, 1.0)
    nodes = special.ndtri(even).clip(-FAR, FAR)
    nodes = np.union1d(nodes, _everywhere(nodes[0], nodes[-1]))
    return _in_parameter(prior, i, sign * nodes, CubicSpline(bins, log_ratio)(special.ndtr(nodes)))


def hold_at_edges(prior: Prior, i: int, density: GridDensity) -> GridDensity | None:
    """Density of a parameter whose standard coordinate has a known one; None if it has no mass at a hard edge.

    Its ratio to the prior is held constant where next to nothing is left up to the edge, unless that ratio falls there.
    """
    u = np.union1d(density.grid, _everywhere(-FAR, FAR))
    log_ratio = density.log_pdf(u) - log_phi(u)
    held = False
    for sign, hard, end in zip((1.0, -1.0), _hard_edges(prior, i), density.ppf([TAIL, 1.0 - TAIL]), strict=True):
        level = float((density.log_pdf([end]) - log_phi(np.array([end])))[0])
        if hard and level + special.log_ndtr(sign * end) < np.log(UNEVEN * TAIL):
            log_ratio[sign * (u - end) < 0.0] = level
            held = True
    return _in_parameter(prior, i, u, log_ratio) if held else None


def _hard_edges(prior: Prior, i: int) -> tuple[bool, bool]:
    """Whether a parameter's prior ends abruptly where its standard coordinate is small, and where it is large."""
    low, middle, high = _log_prior(prior, i, np.array([-FAR, 0.0, FAR]))
    return bool(low > middle + LOG_HARD), bool(high > middle + LOG_HARD)


def _everywhere(low: float, high: float) -> FloatArray:
    """Even steps in standard space: they resolve the far tail of any prior."""
    return np.linspace(low, high, GRID)


def _log_prior(prior: Prior, i: int, u: FloatArray) -> FloatArray:
    """Log-density of a parameter under its prior, at its standard coordinate (n,)."""
    return log_phi(u) - prior.coordinate_log_jacobian(i, u)


def _in_parameter(prior: Prior, i: int, u: FloatArray, log_ratio: FloatArray) -> GridDensity:
    """The density of a parameter from its ratio to the prior at nodes of standard space, (n,) each."""
    x = prior.coordinate_from_standard(i, u)
    low, high = prior.bounds[i]
    for end, value in ((-FAR, x[u.argmin()]), (FAR, x[u.argmax()])):
        if end in u and np.isfinite(edge := low if value == x.min() else high):
            x[u == end] = edge
    x, first = np.unique(x, return_index=True)
    return GridDensity.from_log(x, (log_ratio + _log_prior(prior, i, u))[first])
