"""One-dimensional priors, each with its monotone map x = F⁻¹(Φ(u)) from a standard normal u."""

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol

import numpy as np
from scipy import special, stats

from basq.errors import InputError
from basq.numerics.gaussians import LOG_2PI
from basq.plain import Absent
from basq.types import FloatArray

U_LIMIT = 37.5
"""Φ(-37.5) is the last normal float64; the edge of a uniform support maps here and not to infinity."""

TINY, LARGEST = float(np.finfo(float).tiny), 1e300
"""Least distance from zero and largest number that a parameter can have; scipy and likelihoods need room above."""

PROBES = (4.0, 6.0, 8.0, 10.0, 15.0, 20.0)
"""|u| at which scipy's tails are tried; beyond 8 some quantiles are inf, NaN, or of the wrong sign."""


class Coordinate(Protocol):
    """A monotone map of one coordinate; every method takes and returns (n,) arrays."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Support in user space; may be infinite."""

    def from_standard(self, u: FloatArray) -> FloatArray:
        """Map standard to user space."""

    def to_standard(self, x: FloatArray) -> FloatArray:
        """Map points of the support to standard space."""

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        """Return log |dx/du|."""


class Marginal(Coordinate, Protocol):
    """A coordinate whose density is known in closed form."""

    @property
    def label(self) -> str:
        """Short name for a repr."""

    def log_pdf(self, x: FloatArray) -> FloatArray:
        """Log-density in user space, inside the support."""


def log_phi(u: FloatArray) -> FloatArray:
    """Log-density of N(0, 1), elementwise."""
    out: FloatArray = -0.5 * (u * u + LOG_2PI)
    return out


@dataclass(frozen=True)
class Normal:
    """N(loc, scale²): the map is affine, exact at any distance."""

    loc: float
    scale: float

    @property
    def label(self) -> str:
        return f"norm({self.loc:g}, {self.scale:g})"

    @property
    def bounds(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def from_standard(self, u: FloatArray) -> FloatArray:
        return self.loc + self.scale * u

    def to_standard(self, x: FloatArray) -> FloatArray:
        return (x - self.loc) / self.scale

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        return np.full(len(u), np.log(self.scale))

    def log_pdf(self, x: FloatArray) -> FloatArray:
        return log_phi(self.to_standard(x)) - float(np.log(self.scale))


@dataclass(frozen=True)
class Uniform:
    """Uniform on [lo, hi]."""

    lo: float
    hi: float

    @property
    def label(self) -> str:
        return f"uniform({self.lo:g}, {self.hi:g})"

    @property
    def bounds(self) -> tuple[float, float]:
        return self.lo, self.hi

    @property
    def width(self) -> float:
        return self.hi - self.lo

    def from_standard(self, u: FloatArray) -> FloatArray:
        # each half is measured from its own edge: 1 - Φ(u) would lose the upper tail
        tail = self.width * special.ndtr(-np.abs(u))
        x: FloatArray = np.where(u < 0, self.lo + tail, self.hi - tail)
        return np.clip(x, self.lo, self.hi)

    def to_standard(self, x: FloatArray) -> FloatArray:
        below, above = (x - self.lo) / self.width, (self.hi - x) / self.width
        u: FloatArray = np.copysign(special.ndtri(np.minimum(below, above)), below - above)
        return np.clip(u, -U_LIMIT, U_LIMIT)

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        return log_phi(u) + float(np.log(self.width))

    def log_pdf(self, x: FloatArray) -> FloatArray:
        return np.full(len(x), -np.log(self.width))


@dataclass(frozen=True)
class NewStyle:
    """A distribution of scipy's newer kind, as ``stats.Normal(mu=0, sigma=1)``, with the words of the older one."""

    new: Any

    def support(self) -> tuple[float, float]:
        lo, hi = self.new.support()
        return float(lo), float(hi)

    def ppf(self, q: Any) -> Any:
        return self.new.icdf(q)

    def isf(self, q: Any) -> Any:
        return self.new.iccdf(q)

    def logsf(self, x: Any) -> Any:
        return self.new.logccdf(x)

    def std(self) -> float:
        return float(self.new.standard_deviation())

    def __getattr__(self, name: str) -> Any:
        if name not in {"pdf", "logpdf", "cdf", "logcdf"}:  # the rest would look like the older kind, and is not
            raise AttributeError(name)
        return getattr(self.new, name)


@dataclass(frozen=True)
class ScipyMarginal:
    """Any other continuous `scipy.stats` distribution.

    Notes
    -----
    Each half of the line goes through the function that is accurate there: quantile and log-CDF below the
    median, survival function and its inverse above. Both maps stop at `reach`, the last u that survives a
    round trip through scipy. Quantiles beyond the range of floating-point numbers, as half of those of
    ``gamma(0.001)`` are, become the least or the greatest number of that range.
    """

    dist: Any
    median: float
    bounds: tuple[float, float]
    reach: tuple[float, float] = (-PROBES[-1], PROBES[-1])

    @classmethod
    def probe(cls, dist: Any, bounds: tuple[float, float]) -> "ScipyMarginal":
        """Build the marginal and find its reach."""
        with np.errstate(all="ignore"):
            draft = cls(dist, float(np.clip(dist.ppf(0.5), *_interior(*bounds))), bounds)
        return replace(draft, reach=(draft._last_trusted(-1.0), draft._last_trusted(1.0)))

    def _last_trusted(self, sign: float) -> float:
        trusted = 2.0 * sign
        for u in sign * np.array(PROBES):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    x = self.from_standard(np.array([u]))
                    back = self.to_standard(x)[0]
            except Exception:  # whatever scipy says about its tail, the tail is not to be used
                break
            # a point that has run into the edge of the support cannot come back, and need not; one that has run into
            # the largest number need not if there is as much mass beyond: some quantiles are infinite by mistake
            at_edge = x[0] in _interior(*self.bounds) and (abs(x[0]) < LARGEST or abs(back) < abs(u) + 0.1)
            if not (at_edge or abs(back - u) < 0.1):
                break
            trusted = float(u)
        return trusted

    @property
    def label(self) -> str:
        if isinstance(self.dist, NewStyle):
            return str(self.dist.new)
        if isinstance(self.dist, Absent):
            return self.dist.name
        parameters = [f"{a:g}" for a in self.dist.args] + [f"{k}={v:g}" for k, v in self.dist.kwds.items()]
        return f"{self.dist.dist.name}({', '.join(parameters)})"

    def from_standard(self, u: FloatArray) -> FloatArray:
        u = np.clip(u, *self.reach)
        x, lower = np.empty_like(u), u <= 0
        with np.errstate(all="ignore"):
            x[lower] = self.dist.ppf(special.ndtr(u[lower]))
            x[~lower] = self.dist.isf(special.ndtr(-u[~lower]))
        # strictly inside, where the density is finite
        return np.clip(x, *_interior(*self.bounds))

    def to_standard(self, x: FloatArray) -> FloatArray:
        u, lower = np.empty_like(x), x <= self.median
        with np.errstate(all="ignore"):
            u[lower] = special.ndtri_exp(self.dist.logcdf(x[lower]))
            u[~lower] = -special.ndtri_exp(self.dist.logsf(x[~lower]))
        return np.clip(u, *self.reach)

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        return log_phi(u) - self.log_pdf(self.from_standard(u))

    def log_pdf(self, x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(self.dist.logpdf(x), dtype=float)


def _interior(lo: float, hi: float) -> tuple[float, float]:
    """Return the least and greatest normal floats inside a support."""
    inner_lo = TINY if lo == 0 else float(np.nextafter(lo, hi))
    inner_hi = -TINY if hi == 0 else float(np.nextafter(hi, lo))
    return (inner_lo if np.isfinite(lo) else -LARGEST), (inner_hi if np.isfinite(hi) else LARGEST)


def is_flat(coordinate: Coordinate) -> bool:
    """Whether a parameter, or its logarithm, is uniform: a straight line in its probability."""
    p = np.linspace(0.01, 0.99, 15)
    x = 0.5 * coordinate.from_standard(special.ndtri(p))  # half, or the width could overflow
    for line in [x, np.log(x)] if (x > 0.0).all() else [x]:
        chord = line[0] + (line[-1] - line[0]) * (p - p[0]) / (p[-1] - p[0])
        if np.abs(line - chord).max() < 1e-6 * np.ptp(line):
            return True
    return False


def is_pair(spec: Any) -> bool:
    """Whether a spec is two bare numbers, (lo, hi)."""
    return isinstance(spec, list | tuple | np.ndarray) and len(spec) == 2 and all(isinstance(s, Real) for s in spec)


def as_marginal(name: str, spec: Any) -> Marginal:
    """Read one parameter's prior.

    Parameters
    ----------
    name : str
        For the error messages.
    spec : continuous scipy.stats distribution with its parameters, (lo, hi), or basq.periodic(lo, hi)

    Raises
    ------
    InputError
        If the spec is of another type or is not a proper continuous distribution.
    """
    if isinstance(spec, Uniform):
        return spec
    if is_pair(spec):
        return _uniform(name, float(spec[0]), float(spec[1]))
    if isinstance(spec, stats.rv_continuous | stats.rv_discrete | type):
        family_name = spec.__name__ if isinstance(spec, type) else spec.name
        raise InputError(
            f"The prior of {name!r} is the distribution family {family_name!r} without its parameters; "
            f"call it first, as in stats.norm(0, 1)."
        )
    family = getattr(spec, "dist", None)
    if isinstance(family, stats.rv_discrete):
        raise InputError(
            f"The prior of {name!r} is discrete ({family.name}); only continuous distributions are allowed. "
            f"Run one model for each value and compare them."
        )
    if family is None and all(hasattr(spec, method) for method in ("icdf", "iccdf", "logccdf", "support")):
        return _frozen(name, NewStyle(spec))
    if not isinstance(family, stats.rv_continuous):
        raise InputError(
            f"The prior of {name!r} is {spec!r} of type {type(spec).__name__}; allowed are a frozen "
            f"continuous scipy.stats distribution, as stats.norm(0, 1), a pair (lo, hi), or basq.periodic(lo, hi). A "
            f"joint law of several parameters has to be the whole prior: give a frozen stats.multivariate_normal, or "
            f"use Prior.from_transform or Prior.from_density."
        )
    return _frozen(name, spec)


def _uniform(name: str, lo: float, hi: float) -> Uniform:
    if not np.isfinite(hi - lo):
        raise InputError(
            f"The prior of {name!r} is uniform on ({lo:g}, {hi:g}), which is improper: the evidence would be "
            f"zero or undefined. Give finite bounds or a proper distribution, as stats.norm(0, 10)."
        )
    if lo >= hi:
        raise InputError(
            f"The prior of {name!r} is uniform on ({lo:g}, {hi:g}); lo must be less than hi. "
            f"A parameter that is fixed belongs into the likelihood, not into the prior."
        )
    return Uniform(lo, hi)


def _frozen(name: str, dist: Any) -> Marginal:
    try:
        with np.errstate(all="ignore"):
            problem = _defect(dist)
            lo, hi = (float(b) for b in dist.support()) if problem is None else (0.0, 0.0)
    except Exception as error:
        problem = f"scipy could not evaluate it ({type(error).__name__}: {error})"
    if problem is not None:
        new = isinstance(dist, NewStyle)
        words = str(dist.new) if new else f"{dist.dist.name} with args={dist.args} and {dist.kwds}"
        raise InputError(
            f"The prior of {name!r}, {words}, is not a proper distribution: {problem}. Check its parameters; scale "
            f"must be positive."
        )
    kind = type(dist.new) if isinstance(dist, NewStyle) else type(dist.dist)
    if issubclass(kind, type(stats.uniform) | stats.Uniform):
        return Uniform(lo, hi)
    if issubclass(kind, type(stats.norm) | stats.Normal):
        median = float(dist.ppf(0.5))
        with np.errstate(all="ignore"):
            scale = float(dist.std())
        # scipy squares it, which may leave the range of numbers
        return Normal(median, scale if 0.0 < scale < np.inf else float(dist.isf(special.ndtr(-1.0))) - median)
    return ScipyMarginal.probe(dist, (lo, hi))


def _defect(dist: Any) -> str | None:
    """Say why a frozen distribution cannot be used, or None.

    Its CDF, quantiles and pdf are compared with each other, since scipy takes a user's pdf on trust.
    """
    if np.ndim(dist.ppf(0.5)) != 0:
        return "its parameters are arrays; give one distribution for each parameter"
    q = np.array([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    quantiles, ends = np.asarray(dist.ppf(q), dtype=float), np.array(_interior(*map(float, dist.support())))
    x = np.clip(quantiles, *ends)
    # where numbers end before the mass does, quantiles are as they have to be; but a point mass's CDF stands still
    low, high, further_in = _at_ends(dist, ends)
    grows = np.abs(np.array([low, high]) - further_in) > 1e-9
    beyond = ((x == ends[0]) & (low >= q) & grows[0]) | ((x == ends[1]) & (high <= q) & grows[1])
    if not (np.isfinite(quantiles) | beyond).all():
        return f"its quantiles at {q.tolist()} are {quantiles.tolist()}"
    if not ((np.diff(x) > 0) | (beyond[1:] & beyond[:-1] & (np.diff(x) == 0))).all():
        return f"its quantiles at {q.tolist()} do not increase, as those of a point mass"
    further = x[-1] + (x[-1] - x[0]) * 10.0 ** np.arange(4)
    if not np.allclose(dist.cdf(x)[~beyond], q[~beyond], atol=1e-6) or (dist.cdf(further) > 1 + 1e-6).any():
        return "its CDF and its quantiles do not agree, or its pdf does not integrate to one"
    return None if _is_slope(dist, q[~beyond], x[~beyond]) else "its pdf is not the derivative of its CDF"


def _at_ends(dist: Any, ends: FloatArray) -> tuple[float, float, FloatArray]:
    """CDF at the two ends of the numbers inside a support, and (2,) somewhat further in.

    At zero and at the largest number with room for scipy's own arithmetic.
    """
    size, inwards = np.abs(ends), np.array([1.0, -1.0])
    at = np.where(size == TINY, 1e30 * ends, ends)
    further_in = np.where(
        size == TINY, 1e60 * ends, np.where(size == LARGEST, 1e-30 * ends, ends + inwards * 1e7 * np.spacing(size))
    )
    low, high = dist.cdf(at)
    return float(low), float(high), np.asarray(dist.cdf(further_in), dtype=float)


def _is_slope(dist: Any, q: FloatArray, x: FloatArray) -> bool:
    """Whether the pdf at the quantiles x (m,) of levels q (m,) is the slope of the CDF there, at least at half of them.

    The slope is measured by quantiles, since densities may span any number of orders; and, where these do so between
    neighbouring levels, by their logarithms. The median forgives the jumps of a histogram.
    """
    if not len(q):
        return True
    levels = q + np.array([[-1e-4], [1e-4]])
    low, high = dist.ppf(levels)
    stretch = (high - low) / 2e-4
    if abs(np.median(dist.pdf(x) * stretch) - 1.0) <= 0.1:
        return True
    lo, hi = dist.support()
    edge = lo if np.isfinite(lo) else hi if np.isfinite(hi) else dist.ppf(0.5)
    growth = (np.log(np.abs(high - edge)) - np.log(np.abs(low - edge))) / 2e-4
    errors = np.abs(np.exp(dist.logpdf(x) + np.log(np.abs(x - edge))) * np.abs(growth) - 1.0)
    errors = errors[np.isfinite(errors)]
    return not len(errors) or bool(np.median(errors) <= 0.1)
