"""Noise scales: parameters along which the log-likelihood has a closed form, recognised from a few calls.

Along s, the logarithm of a noise scale, a Gaussian log-likelihood is −(A/2) e^(−κs) − n s + c: κ = 2 for a standard
deviation, 1 for a variance, −1 for a precision, and n = κN/2 for N data. Four values along s leave one contrast in
which A, n and c cancel: it vanishes to rounding for a noise scale, and for nothing else.
"""

from dataclasses import dataclass

import numpy as np

from basq.auto.settings import Recognition
from basq.observations import Observations
from basq.prior import Prior
from basq.prior.marginals import log_phi
from basq.types import BoolArray, FloatArray, IntArray

KAPPAS = (2.0, 1.0, -1.0, -2.0)
"""Of a standard deviation, a variance, a precision and its root."""
LOG_10 = float(np.log(10.0))


@dataclass(frozen=True)
class Axis:
    """A parameter that may be a noise scale, or its logarithm.

    Attributes
    ----------
    dim : int
        Its place.
    logarithmic : bool
        Whether it is the logarithm itself.
    """

    dim: int
    logarithmic: bool

    @property
    def kappas(self) -> tuple[float, ...]:
        """What κ may be; a logarithm may have the base 10."""
        return KAPPAS + tuple(LOG_10 * k for k in KAPPAS) if self.logarithmic else KAPPAS

    def s(self, x: FloatArray) -> FloatArray:
        """The logarithm at values x (m,) of the parameter."""
        out: FloatArray = x if self.logarithmic else np.log(x)
        return out

    def standard(self, s: FloatArray, prior: Prior) -> FloatArray:
        """The parameter's standard coordinate where its logarithm is s (m,)."""
        lo, hi = prior.bounds[self.dim]
        return prior.coordinate_to_standard(self.dim, np.clip(s if self.logarithmic else np.exp(s), lo, hi))

    def reach(self, prior: Prior, farthest: float) -> tuple[float, float]:
        """Least and largest logarithm within so many standard deviations of the prior."""
        ends = self.s(prior.coordinate_from_standard(self.dim, np.array([-farthest, farthest])))
        return float(ends.min()), float(ends.max())


@dataclass(frozen=True)
class NoiseScale:
    """A parameter that is known to be a noise scale.

    Attributes
    ----------
    axis : Axis
    kappa, n : float
        Of the form −(A/2) e^(−κs) − n s + c.
    n_error : float
        Standard error of n, where the values are noisy.
    score : float
        What was left of the contrast in which A, n and c cancel, relative to its largest part.
    """

    axis: Axis
    kappa: float
    n: float
    n_error: float
    score: float

    @property
    def n_data(self) -> float:
        """Data that it is the noise of; a whole number for a plain Gaussian likelihood."""
        return 2.0 * self.n / self.kappa

    def log_prior(self, s: FloatArray, prior: Prior) -> FloatArray:
        """Log-density of the logarithm at s (m,) under the prior."""
        x = s if self.axis.logarithmic else np.exp(np.minimum(s, 700.0))
        lo, hi = prior.bounds[self.axis.dim]
        inside = (x >= lo) & (x <= hi)
        v = prior.coordinate_to_standard(self.axis.dim, np.clip(x, lo, hi))
        log_slope = prior.coordinate_log_jacobian(self.axis.dim, v) - (0.0 if self.axis.logarithmic else s)
        return np.where(inside, log_phi(v) - log_slope, -np.inf)

    def width(self, prior: Prior) -> float:
        """Standard deviation of κs under the prior."""
        ends = self.axis.s(prior.coordinate_from_standard(self.axis.dim, np.array([-1.0, 1.0])))
        return float(0.5 * abs(self.kappa * (ends[1] - ends[0])))


def scale_along(
    axis: Axis, x: FloatArray, values: FloatArray, noise: FloatArray, settings: Recognition
) -> NoiseScale | None:
    """Recognise a noise scale from finite values at four or more values x (m,) of a parameter, all else equal.

    Parameters
    ----------
    noise : (m,) array
        Standard deviations of the values; NaN where they are not known.
    """
    s = axis.s(x)
    found = [f for k in axis.kappas if (f := _with_kappa(axis, k, s, values, noise, settings)) is not None]
    found.sort(key=lambda f: f.score)
    if len(found) > 1 and found[0].score > 1e-3 * found[1].score:
        return None  # so little is seen of A that any κ would do
    return found[0] if found else None


def _with_kappa(
    axis: Axis, kappa: float, s: FloatArray, values: FloatArray, noise: FloatArray, settings: Recognition
) -> NoiseScale | None:
    if np.ptp(kappa * s) < settings.narrow:
        return None
    known = np.where(np.isnan(noise), 0.0, noise)
    left_out = np.linalg.svd(_columns(kappa, s))[0][:, 3:]  # (m, m - 3), orthogonal to A, n and c
    parts = left_out.T * (values - values[0])
    size = float(np.abs(parts).max())
    left = float(np.linalg.norm(parts.sum(axis=1)))
    # what rounding and noise leave of it, and what a parameter of another kind would leave at least
    floor = max(1e-12 * float(np.abs(left_out.T * values).max()), 4.0 * float(np.linalg.norm(left_out.T * known)))
    agreement = settings.tolerance * (1.0 if not np.isnan(noise).any() else 1e-3) * size
    if not (size > 0.0 and floor <= settings.resolution * size and left <= max(agreement, floor)):
        return None
    n, error = _slope(kappa, s, values, known)
    n_data, spread = 2.0 * n / kappa, abs(2.0 * error / kappa)
    if not n_data > 0.0 or spread > settings.vague * n_data:
        return None
    whole = float(np.round(n_data))
    if whole >= 1.0 and abs(n_data - whole) < max(4.0 * spread, 1e-5 * whole) and spread < settings.whole:
        n, error = 0.5 * kappa * whole, 0.0
    return NoiseScale(axis, kappa, n, error if known.any() else 0.0, max(left, 1e-16 * size) / size)


def _columns(kappa: float, s: FloatArray) -> FloatArray:
    """What multiplies c, n and A, each scaled to one: (m, 3)."""
    exponent = -kappa * s
    columns = np.stack([np.ones(len(s)), s - s.mean(), np.exp(exponent - exponent.max())], axis=1)
    return columns / np.linalg.norm(columns, axis=0)


def _slope(kappa: float, s: FloatArray, values: FloatArray, noise: FloatArray) -> tuple[float, float]:
    """n with its error; NaN where A is negative."""
    exponent = -kappa * s
    columns = np.stack([np.ones(len(s)), s.mean() - s, -np.exp(exponent - exponent.max())], axis=1)
    weights = 1.0 / (noise + 1e-12 * np.abs(values) + 1e-300)
    root = weights[:, None] * columns
    scale = np.linalg.norm(root, axis=0)
    (_, n, a), *_ = np.linalg.lstsq(root / scale, weights * values, rcond=None)
    error = np.linalg.norm(np.linalg.pinv(root / scale)[1])
    return (float(n / scale[1]) if a > 0.0 else float("nan")), float(error / scale[1])


def candidates(observations: Observations, prior: Prior, settings: Recognition) -> list[Axis]:
    """Parameters that may be noise scales: positive ones, and those that values suggest to be their logarithms."""
    if not prior.is_separable or prior.n_dim == 1:
        return []
    positive = prior.bounds[:, 0] >= 0.0
    likely = (positive | _suspects(observations, settings)) & ~prior.periodic
    return [Axis(int(i), not positive[i]) for i in np.flatnonzero(likely)]


def _suspects(observations: Observations, settings: Recognition) -> BoolArray:
    """Parameters with which the misfit rises or falls like an exponential (d,), as with a logarithm of noise.

    Every parameter that takes both signs could be a logarithm; this costs no call. The logarithm of the misfit is
    explained by a quadratic without mixed terms, in which such a parameter has a slope of about κ, or somewhat less
    because the logarithm ends where the misfit is small.
    """
    finite = np.isfinite(observations.log_likelihood)
    values, u, x = observations.log_likelihood[finite], observations.u[finite], observations.x[finite]
    n, d = u.shape
    features = np.column_stack([np.ones(n), u, u * u])
    if n <= features.shape[1]:
        return np.zeros(d, dtype=bool)
    misfit = np.log(values.max() - values + 1.0)
    inverse = np.linalg.pinv(features)
    found = inverse @ misfit
    variance = np.sum((misfit - features @ found) ** 2) / (n - features.shape[1])
    errors = np.sqrt(variance * np.sum(inverse[1 : d + 1] ** 2, axis=1))
    slopes = np.abs(found[1 : d + 1])
    with np.errstate(over="ignore"):  # of a prior up to the largest numbers
        spread = x.std(axis=0)
    out: BoolArray = (slopes > settings.suspect[0] * errors) & (slopes > settings.suspect[1] * spread)
    return out


@dataclass(frozen=True)
class Probes:
    """Calls along every candidate at one point, by which noise scales are recognised.

    Attributes
    ----------
    base : int
        Observation that all lines go through.
    axes : tuple of Axis
    u : (k, 3, d) array
        Three further points on the line of each.
    """

    base: int
    axes: tuple[Axis, ...]
    u: FloatArray

    @classmethod
    def plan(cls, observations: Observations, prior: Prior, settings: Recognition) -> "Probes":
        """About the best point so far, which has a finite value."""
        base = int(np.argmax(observations.log_values))
        axes = tuple(candidates(observations, prior, settings))
        u = np.tile(observations.u[base], (len(axes), 3, 1))
        for line, axis in zip(u, axes, strict=True):
            low, high = axis.reach(prior, settings.farthest)
            here = float(np.clip(axis.s(observations.x[base, axis.dim]), low, high))
            # noise asks for a longer way, along which n is seen better
            step = min(settings.step * (2.0 if np.nan_to_num(observations.noise).any() else 1.0), (high - low) / 4.0)
            places = here + step * np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
            line[:, axis.dim] = axis.standard(places[(places >= low) & (places <= high)][:3], prior)
        return cls(base, axes, u)

    def missing(self, observations: Observations) -> FloatArray:
        """Those without a value, (m, d)."""
        points = self.u.reshape(-1, observations.u.shape[1])
        seen = rows_by_point(observations.u)
        return points[[p.tobytes() not in seen for p in points]]

    def lines(self, observations: Observations) -> dict[Axis, IntArray]:
        """Observations along each candidate whose values have all come, the base first."""
        seen = rows_by_point(observations.u)
        found = {a: [seen.get(p.tobytes(), [-1])[0] for p in line] for a, line in zip(self.axes, self.u, strict=True)}
        return {a: np.array([self.base, *rows]) for a, rows in found.items() if min(rows) >= 0}


def rows_by_point(u: FloatArray) -> dict[bytes, list[int]]:
    """Rows that have the same point, by point: of (m, d)."""
    out: dict[bytes, list[int]] = {}
    for i, point in enumerate(np.ascontiguousarray(u)):
        out.setdefault(point.tobytes(), []).append(i)
    return out


def classify(
    observations: Observations, probes: Probes, settings: Recognition
) -> tuple[dict[NoiseScale, IntArray], list[int]]:
    """Noise scales, with the observations along each, and parameters without effect, as the probes show them."""
    scales: dict[NoiseScale, IntArray] = {}
    idle: list[int] = []
    for axis, rows in probes.lines(observations).items():
        values, noise = observations.log_likelihood[rows], observations.noise[rows]
        if not np.isfinite(values).all():
            continue
        if not noise.any() and np.ptp(values) <= 1e-13 * np.abs(values).max():
            idle.append(axis.dim)
            continue
        x = observations.x[rows, axis.dim]
        kinds = [axis] if axis.logarithmic else [axis, Axis(axis.dim, True)]  # a positive parameter may be a logarithm
        found = [k for a in kinds if (k := scale_along(a, x, values, noise, settings)) is not None]
        if found:
            scales[min(found, key=lambda k: k.score)] = rows
    return scales, idle
