"""How c of a noise scale's form depends on the other parameters, recognised like the scale itself: to rounding.

Where c is no constant, a point takes two calls, of which one tells only c. But c is seldom anything complicated. For
counts and rates on a logarithmic scale, and for noise whose logarithm is a regression, it is linear in the
coefficients; for effects that are drawn from a population, a sum of squares. A few points with two calls then tell it
for all points, and all others take one.
"""

from dataclasses import replace

import numpy as np

from basq.auto.form import Form, solve
from basq.auto.reduction import Reduction
from basq.auto.settings import Recognition
from basq.prior import Prior


def following(reduction: Reduction, prior: Prior, settings: Recognition) -> Form | None:
    """The form with c as a quadratic without mixed terms; None while too few points tell, or if it is none."""
    form, seen = reduction.form, reduction.seen
    if form.may_vanish or seen.noise.any():  # a pole takes all points that there are; NaN is noise that is not known
        return None
    pairs = sorted((rows[:2] for rows in reduction.groups.values() if len(rows) > 1), key=lambda rows: rows[1])
    pairs = [rows for rows in pairs if np.isfinite(seen.log_likelihood[rows]).all()]
    found = [solve(form, seen.at(rows)) for rows in pairs]
    good = [i for i, f in enumerate(found) if f.constant_error < settings.known]
    n_unknown = 1 + 2 * len(form.free)
    if len(good) < n_unknown + settings.leap_more:
        return None
    x = seen.x[[pairs[i][0] for i in good]][:, form.free]
    value, error = (np.array([getattr(found[i], name) for i in good]) for name in ("constant", "constant_error"))
    middle, width = _units(prior, form)
    z = (x - middle) / width
    features = np.column_stack([np.ones(len(z)), z, z * z])
    inverse = np.linalg.pinv(features / error[:, None])
    coefficients = inverse @ (value / error)
    residual = np.abs(value - features @ coefficients)
    # what the other points would have of the errors of these
    everywhere = (seen.x[:, form.free] - middle) / width
    spread = np.linalg.norm(np.column_stack([np.ones(len(everywhere)), everywhere, everywhere**2]) @ inverse, axis=1)
    if (residual > settings.contradiction * error).any() or not np.median(spread) < settings.known * settings.known:
        return None
    slopes, bends = np.split(coefficients[1:], 2)
    rise = tuple(zip(middle.tolist(), (slopes / width).tolist(), (bends / width**2).tolist(), strict=True))
    return replace(form, constant=float(coefficients[0]), level=float(coefficients[0]), rise=rise)


def _units(prior: Prior, form: Form) -> tuple[np.ndarray, np.ndarray]:
    """Medians and half-widths of the parameters under the prior, (e,) each."""
    low, middle, high = (prior.from_standard(np.full((1, prior.n_dim), v))[0, form.free] for v in (-1.0, 0.0, 1.0))
    return middle, 0.5 * (high - low)
