"""The form of a log-likelihood along its noise scales, and what calls say of its unknowns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.auto.scales import NoiseScale
from basq.observations import Observations
from basq.prior import Prior
from basq.types import FloatArray, IntArray


@dataclass(frozen=True)
class Form:
    """log L = c − (A/2) e^(−κs) − Σ n_k s_k along the common scale, with s that of the first.

    A depends on the other parameters and on the ratios of the scales, κ_k s_k − κs.

    Attributes
    ----------
    n_dim : int
        Of all parameters.
    scales : tuple of NoiseScale
    idle : tuple of int
        Parameters without effect.
    constant : float or None
        c; None where it depends on the other parameters, so that a point needs two calls.
    rise : tuple of (float, float, float)
        How c depends on each of ``free``, where that is known: it rises by b (x − a) + g (x − a)², given as (a, b, g).
    errors : (float, float)
        Standard errors of c and of n, per unit of the first scale's s, where the values are noisy;
    middle : float
        as they are known at this s.
    level : float
        c where the scales were recognised.
    rounding : float
        Relative error of values that are called exact.
    ratios : tuple of (float, float)
        Centre and width of each ratio under the prior: in these units the others see it, in the scale's place.
    """

    n_dim: int
    scales: tuple[NoiseScale, ...]
    idle: tuple[int, ...]
    constant: float | None
    errors: tuple[float, float] = (0.0, 0.0)
    middle: float = 0.0
    level: float = 0.0
    rounding: float = 1e-9
    ratios: tuple[tuple[float, float], ...] = ()
    rise: tuple[tuple[float, float, float], ...] = ()

    @property
    def n_calls(self) -> int:
        """Calls that a point needs."""
        return 1 if self.constant is not None else 2

    @property
    def same(self) -> bool:
        """Whether c is the same everywhere."""
        return self.constant is not None and not self.rise

    @cached_property
    def gone(self) -> IntArray:
        """Places of the parameters that are integrated out."""
        return np.sort(np.array([*(k.axis.dim for k in self.scales[:1]), *self.idle], dtype=np.intp))

    @cached_property
    def dims(self) -> IntArray:
        """Places of the others, (e,)."""
        return np.setdiff1d(np.arange(self.n_dim), self.gone)

    @cached_property
    def free(self) -> IntArray:
        """Places of those that are neither integrated out nor scales."""
        return np.setdiff1d(self.dims, [k.axis.dim for k in self.scales])

    @property
    def kappa(self) -> float:
        """Of the common scale."""
        return self.scales[0].kappa

    @property
    def n_data(self) -> float:
        """Data of all scales."""
        return sum(k.n_data for k in self.scales)

    @property
    def may_vanish(self) -> bool:
        """Whether there are so few data that A may vanish: the integrated likelihood has a pole there."""
        return bool(self.scales) and self.n_data <= len(self.free)

    def s(self, x: FloatArray) -> FloatArray:
        """Logarithms of the scales at points x (m, d): (m, k)."""
        return np.stack([k.axis.s(x[:, k.axis.dim]) for k in self.scales], axis=1)

    def slope(self, s: FloatArray) -> FloatArray:
        """Σ n_k s_k at s (m, k): (m,)."""
        out: FloatArray = s @ [k.n for k in self.scales]
        return out

    def constants(self, x: FloatArray) -> FloatArray:
        """c at points x (m, d), where it is known: (m,)."""
        assert self.constant is not None
        out = np.full(len(x), self.constant)
        for place, (centre, slope, bend) in zip(self.free, self.rise, strict=False):
            away = x[:, place] - centre
            out += (slope + bend * away) * away
        return out

    def fold(self, x: FloatArray, u: FloatArray) -> FloatArray:
        """Points x of all parameters, u in standard space (m, d), with ratios in the place of all scales but one."""
        if not self.ratios:
            return u
        out, s = u.copy(), self.s(x)
        for i, (centre, width) in enumerate(self.ratios, 1):
            scale = self.scales[i]
            out[:, scale.axis.dim] = (scale.kappa * s[:, i] - self.kappa * s[:, 0] - centre) / width
        return out

    def others(self, s: FloatArray, w: FloatArray) -> FloatArray:
        """Logarithms of all scales (m, k) where the first is s (m,) and the ratios are w (m, k − 1) or (k − 1,)."""
        shared = self.kappa * s
        parts = [
            (shared + centre + width * w[..., i]) / scale.kappa
            for i, (scale, (centre, width)) in enumerate(zip(self.scales[1:], self.ratios, strict=True))
        ]
        return np.stack([s, *parts], axis=1)

    @cached_property
    def ratio_places(self) -> IntArray:
        """Where the ratios are among the other parameters."""
        return np.array([np.flatnonzero(self.dims == k.axis.dim)[0] for k in self.scales[1:]], dtype=np.intp)

    def describe(self, names: Sequence[str]) -> tuple[str, ...]:
        """What was done to which parameter, for people."""
        out = []
        if len(self.scales) > 1:
            every = " and ".join(f"{names[k.axis.dim]} ({_data(k)})" for k in self.scales)
            out = [f"the common scale of {every} was integrated exactly"]
        elif self.scales:
            out = [f"{names[self.scales[0].axis.dim]} was integrated exactly: noise scale of {_data(self.scales[0])}"]
        return (*out, *(f"{names[i]} was integrated exactly: it has no effect" for i in self.idle))


def _data(scale: NoiseScale) -> str:
    whole = round(scale.n_data)
    return f"{whole} data" if abs(scale.n_data - whole) < 1e-9 else f"about {scale.n_data:.4g} data"


@dataclass(frozen=True)
class Solution:
    """What the calls at one point say of its unknowns.

    Attributes
    ----------
    log_a : float
        NaN where A is not positive.
    error : float
        Relative error of A.
    constant : float
        c, and
    constant_error : float
        its standard error.
    misfit : float
        Largest residual, in its error, where there are more calls than unknowns; of an A that is negative, too.
    residual : float
        The same, relative to all that is added up in a value.
    """

    log_a: float
    error: float
    constant: float
    constant_error: float
    misfit: float
    residual: float


def solve(form: Form, seen: Observations) -> Solution:
    """A and c from the finite values of calls at one point of the other parameters."""
    s = form.s(seen.x)
    slope = form.slope(s)
    level = 0.0 if form.constant is None else float(form.constants(seen.x[:1])[0])
    size = np.abs(seen.log_likelihood) + np.abs(slope) + abs(level)
    sd = form.rounding * size + np.nan_to_num(seen.noise) + 1e-300
    matrix = np.exp(np.clip(-form.kappa * (s[:, :1] - s[0, 0]), -600.0, 600.0))
    right = level - slope - seen.log_likelihood
    if form.constant is None:
        matrix = np.column_stack([matrix, -np.ones(len(s))])
    weights = sd.min() / sd
    scale = np.linalg.norm(weights[:, None] * matrix, axis=0)
    root = weights[:, None] * matrix / scale
    found = np.linalg.lstsq(root, weights * right, rcond=None)[0] / scale
    errors = sd.min() * np.linalg.norm(np.linalg.pinv(root), axis=1) / scale
    residual = np.abs(right - matrix @ found) if len(s) > len(found) else np.zeros(len(s))
    # c and n are the same for all points, and their errors are not those of a call
    shared = form.errors[0] + form.errors[1] * np.abs(s[:, 0] - form.middle)
    misfit = max(float((residual / (sd + shared)).max()), float(-found[0] / (errors[0] + shared[0])))
    log_a = float(np.log(2.0 * found[0])) + form.kappa * float(s[0, 0]) if found[0] > 0.0 else float("nan")
    constant, error = (level, form.errors[0]) if form.constant is not None else (found[1], errors[1])
    relative = float(errors[0] / abs(found[0])) if found[0] != 0.0 else float("inf")
    return Solution(log_a, relative, float(constant), float(error), misfit, float((residual / size).max()))


def form_at(
    seen: Observations, base: int, scales: Sequence[NoiseScale], lines: Sequence[IntArray], prior: Prior
) -> Form:
    """The form with c as it is at the base observation, from the calls along each scale."""
    own = tuple(scales)
    widths = [k.width(prior) for k in own]
    centres = [k.kappa * float(k.axis.s(prior.coordinate_from_standard(k.axis.dim, np.zeros(1)))[0]) for k in own]
    ratios = tuple(
        (m - centres[0], float(np.hypot(w, widths[0]))) for m, w in zip(centres[1:], widths[1:], strict=True)
    )
    # along each scale, all others are part of c: L = c_k − (A_k/2) e^(−κ_k s_k) − n_k s_k, and the A_k add up
    found = [solve(Form(prior.n_dim, (k,), (), None), seen.at(rows)) for k, rows in zip(own, lines, strict=True)]
    value, s = float(seen.log_likelihood[base]), Form(prior.n_dim, own, (), None).s(seen.x[[base]])[0]
    below = [f.constant - k.n * here - value for f, k, here in zip(found, own, s, strict=True)]  # (A_k/2) e^(−κ_k s_k)
    constant = value + sum(below) + sum(k.n * here for k, here in zip(own, s, strict=True))
    noisy = bool(np.nan_to_num(seen.noise[np.concatenate(lines)]).any())
    rounding = 1e-9 if noisy else max(1e-9, 10.0 * max(f.residual for f in found))
    slope = float(np.linalg.norm([k.n_error / k.kappa for k in own])) * abs(own[0].kappa)
    errors = (float(np.linalg.norm([f.constant_error for f in found])) if noisy else 0.0, slope)
    middle = float(own[0].axis.s(seen.x[lines[0], own[0].axis.dim]).mean())
    return Form(prior.n_dim, own, (), float(constant), errors, middle, float(constant), rounding, ratios)
