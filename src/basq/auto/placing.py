"""Which scales calls are made at: such that A is known well, and the form is tested now and then."""

import numpy as np

from basq.auto.form import Form
from basq.auto.reduction import Reduction, keys
from basq.auto.settings import Recognition
from basq.numerics.linalg import square_distances
from basq.prior import Prior
from basq.types import FloatArray, IntArray


def offsets(form: Form) -> FloatArray:
    """Where the calls at a point are made, in κ(s − best s): (calls,)."""
    return np.zeros(1) if form.n_calls == 1 else np.array([-1.0, 1.0])


def reach(form: Form, w: FloatArray, prior: Prior, settings: Recognition) -> tuple[FloatArray, FloatArray]:
    """Least and largest s of the common scale (m,) with all scales within the prior, at ratios w (m, k − 1)."""
    low, high = (np.full(len(w), end) for end in form.scales[0].axis.reach(prior, settings.farthest))
    for i, (scale, (centre, width)) in enumerate(zip(form.scales[1:], form.ratios, strict=True)):
        ends = np.array(scale.axis.reach(prior, settings.farthest))
        own = (scale.kappa * ends[:, None] - centre - width * w[:, i]) / form.kappa
        low, high = np.maximum(low, own.min(axis=0)), np.minimum(high, own.max(axis=0))
    return np.minimum(low, high), np.maximum(low, high)


def best_s(form: Form, log_a: FloatArray, w: FloatArray, prior: Prior, settings: Recognition) -> FloatArray:
    """Logarithm of the common scale with the largest likelihood for log A (m,), inside the prior by the offsets."""
    low, high = reach(form, w, prior, settings)
    room = np.minimum(np.abs(offsets(form)).max() / abs(form.kappa), 0.5 * (high - low))
    return np.clip((log_a - np.log(form.n_data)) / form.kappa, low + room, high - room)


def placed(
    form: Form, s: FloatArray, at: FloatArray, prior: Prior, rng: np.random.Generator, settings: Recognition
) -> FloatArray:
    """Points of all parameters (m, d) at points of the others (m, e), with a common scale of logarithm s (m,)."""
    out = np.empty((len(at), form.n_dim))
    out[:, form.dims] = at
    out[:, list(form.idle)] = rng.standard_normal((len(at), len(form.idle)))
    if form.scales:
        w = at[:, form.ratio_places]
        low, high = reach(form, w, prior, settings)
        for scale, column in zip(form.scales, form.others(np.clip(s, low, high), w).T, strict=True):
            out[:, scale.axis.dim] = scale.axis.standard(column, prior)
    return out


def apart(form: Form, s: FloatArray, known: FloatArray) -> FloatArray:
    """Of the calls at points with best scales s (m,), those farthest from one at known scales (m,)."""
    options = s[:, None] + offsets(form) / form.kappa
    out: FloatArray = options[np.arange(len(s)), np.argmax(np.abs(options - known[:, None]), axis=1)]
    return out


def completing(reduction: Reduction, prior: Prior, settings: Recognition) -> FloatArray:
    """One more call at every point that lacks one, or whose A drowned, the best first: (m, d)."""
    form, seen, done = reduction.form, reduction.seen, {p.row for p in reduction.points}
    lacking = [own[0] for own in reduction.groups.values() if not done.intersection(own) and len(own) <= form.n_calls]
    rows = np.array(sorted(lacking, key=lambda i: -seen.log_likelihood[i]), dtype=np.intp)
    if not len(rows):
        return np.empty((0, form.n_dim))
    s, at = form.s(seen.x[rows]), folded(form, seen.u[rows], prior)
    # as if c were the same everywhere
    misfit = np.maximum(form.level - seen.log_likelihood[rows] - form.slope(s), 1e-3 * form.n_data)
    best = best_s(form, np.log(2.0 * misfit) + form.kappa * s[:, 0], at[:, form.ratio_places], prior, settings)
    return placed(form, apart(form, best, s[:, 0]), at, prior, np.random.default_rng(len(seen)), settings)


def partners(
    form: Form, log_a: FloatArray, first: FloatArray, prior: Prior, rng: np.random.Generator, settings: Recognition
) -> FloatArray:
    """Second calls (m, d) at points whose first ones are known or under way (m, d), with about this log A (m,)."""
    if not len(first):
        return first
    at = folded(form, first, prior)
    best = best_s(form, log_a, at[:, form.ratio_places], prior, settings)
    return placed(form, apart(form, best, form.s(prior.from_standard(first))[:, 0]), at, prior, rng, settings)


def lacking(reduction: Reduction, taken: FloatArray, since: int, prior: Prior) -> FloatArray:
    """Calls, known or under way (m, d), at points that need two and have one: (p, d).

    Of those known, only the ones of batches after ``since``: earlier ones were chosen for another purpose.
    """
    form, seen = reduction.form, reduction.seen
    if form.n_calls == 1:
        return taken[:0]
    calls = n_calls(reduction, taken, prior)
    later = [own[0] for own in reduction.groups.values() if seen.batch[own[0]] > since]
    later = [i for i in later if np.isfinite(seen.log_likelihood[i])]
    first = np.concatenate([seen.u[later], taken])
    return first[[calls[key] < form.n_calls for key in point_keys(form, first, prior)]]


def folded(form: Form, u: FloatArray, prior: Prior) -> FloatArray:
    """Points of the others (m, e) at points u of all parameters (m, d)."""
    return form.fold(prior.from_standard(u), u)[:, form.dims] if len(u) else u[:, form.dims]


def nearest(reduction: Reduction, u: FloatArray) -> IntArray:
    """Which points with a positive likelihood are nearest to points u (m, e) of the others: (m,)."""
    known = reduction.observations.u[reduction.finite]
    return reduction.finite[np.argmin(square_distances(u, known), axis=1)]


def expected_log_a(reduction: Reduction, u: FloatArray, log_likelihood: FloatArray) -> FloatArray:
    """Log A at points u (m, e) of the others where the integrated log-likelihood is so large (m,).

    From the nearest known points: log A falls as the log-likelihood rises, or the other scales where it is the same.
    """
    form, places = reduction.form, nearest(reduction, u)
    points = [reduction.points[i] for i in places]
    log_a, value, term = (np.array([getattr(p, name) for p in points]) for name in ("log_a", "log_likelihood", "term"))
    if not form.same:
        return log_a  # the difference may be one of c
    ratios = (u - reduction.observations.u[places])[:, form.ratio_places]
    scales = ratios @ [0.5 * k.n_data * width for k, (_, width) in zip(form.scales[1:], form.ratios, strict=True)]
    rise = np.nan_to_num((value - log_likelihood - scales) / term, posinf=0.0, neginf=0.0)
    out: FloatArray = log_a + np.clip(rise, -10.0, 10.0)
    return out


def point_keys(form: Form, u: FloatArray, prior: Prior) -> list[bytes]:
    """Points of the others at points u of all parameters (m, d), as in ``Reduction.groups``."""
    return [point.tobytes() for point in np.ascontiguousarray(keys(form, folded(form, u, prior)))]


def n_calls(reduction: Reduction, taken: FloatArray, prior: Prior) -> dict[bytes, int]:
    """Calls made or under way (m, d), by the point of the others."""
    out = {key: len(rows) for key, rows in reduction.groups.items()}
    for key in point_keys(reduction.form, taken, prior):
        out[key] = out.get(key, 0) + 1
    return out


def n_tested(reduction: Reduction, base: int, taken: FloatArray, prior: Prior) -> int:
    """Points with more calls, made or under way, than they need; that of the base observation does not count."""
    key = point_keys(reduction.form, reduction.seen.u[[base]], prior)[0]
    calls = n_calls(reduction, taken, prior)
    return sum(n > reduction.form.n_calls for point, n in calls.items() if point != key)


def test_calls(
    reduction: Reduction, base: int, taken: FloatArray, prior: Prior, rng: np.random.Generator, settings: Recognition
) -> FloatArray:
    """Calls whose values are known beforehand if the form is right, as many as are due: (m, d)."""
    form, own = reduction.form, reduction.observations
    first, every = settings.tests
    due = first + len(own) // every - n_tested(reduction, base, taken, prior)
    calls, key = n_calls(reduction, taken, prior), point_keys(form, reduction.seen.u[[base]], prior)[0]
    own_keys = [point.tobytes() for point in np.ascontiguousarray(keys(form, own.u))]
    order = reduction.finite[np.argsort(-own.log_values[reduction.finite], kind="stable")]
    left = [i for i in order if calls[own_keys[i]] == form.n_calls and own_keys[i] != key]
    # the best point, and one in the middle: where a form fails need not be where the likelihood is large
    chosen = [left.pop(0 if k % 2 == 0 else len(left) // 2) for k in range(min(due, len(left)))]
    if not chosen:
        return np.empty((0, form.n_dim))
    points, s = [reduction.points[i] for i in chosen], np.empty(len(chosen))
    if form.scales:
        w = own.u[chosen][:, form.ratio_places]
        s = best_s(form, np.array([p.log_a for p in points]), w, prior, settings)
        known = form.s(reduction.seen.x[[p.row for p in points]])[:, 0]
        low, high = reach(form, w, prior, settings)
        away = np.where(s + 1.0 / form.kappa == np.clip(s + 1.0 / form.kappa, low, high), 1.0, -1.0) / form.kappa
        s = np.where(np.abs(form.kappa * (s - known)) < 0.5, s + away, s)
    return placed(form, s, own.u[chosen], prior, rng, settings)
