"""Observations of all parameters, turned into observations of those that are left when a noise scale is integrated out.

With κ and n of a noise scale known, every call gives A at its point, whatever its scale was, and A gives the
likelihood at every scale: the integral over the scale, under its own prior, costs no call. Several scales are one
common scale, which is integrated out, and their ratios to it, which are parameters like any other.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from basq.auto.form import Form, Solution, solve
from basq.auto.scales import rows_by_point
from basq.auto.settings import Recognition
from basq.cheap.integrate import N_KEPT, Marginal, integrate
from basq.observations import Observations
from basq.prior import Prior
from basq.prior.marginals import log_phi
from basq.types import FloatArray, IntArray


@dataclass(frozen=True)
class Point:
    """A point of the other parameters, with the likelihood integrated over the common scale.

    Attributes
    ----------
    row : int
        Observation that completed it.
    log_likelihood : float
    noise : float
        Its standard error; NaN where that of the values is not known.
    log_a : float
        NaN where the likelihood is zero.
    constant : float
        c.
    draws : (m, g) array
        Of the parameters that are integrated out, in standard space; none where the likelihood is zero.
    term : float
        Mean of (A/2) e^(−κs) under their posterior: by so much the log-likelihood falls with log A.
    levers : (float, float)
        Derivatives of the log-likelihood by c and n: small where the call was made near the best scale.
    """

    row: int
    log_likelihood: float
    noise: float
    log_a: float
    constant: float
    draws: FloatArray
    term: float
    levers: tuple[float, float]


@dataclass(frozen=True)
class Reduction:
    """Observations over the other parameters.

    Attributes
    ----------
    form : Form
    points : tuple of Point
        In the order in which they were completed.
    observations : Observations
        The same for the engine; its x are those of standard space.
    groups : dict
        Observations of all parameters, by the point of the others.
    seen : Observations
        Of all parameters.
    """

    form: Form
    points: tuple[Point, ...]
    observations: Observations
    groups: dict[bytes, list[int]]
    seen: Observations

    @classmethod
    def of(
        cls, form: Form, seen: Observations, prior: Prior, last: "Reduction | None", settings: Recognition
    ) -> "Reduction | None":
        """Reduce everything seen; None if it contradicts the form."""
        done = {p.row: p for p in last.points} if last is not None and last.form == form else {}
        u = form.fold(seen.x, seen.u)[:, form.dims]
        groups = rows_by_point(keys(form, u))
        reducer = Reducer(form, seen, u, prior, settings, done)
        points = []
        for rows in groups.values():
            if reducer.contradicts(rows):
                return None
            found = reducer.point(rows)
            points += [found] if found is not None else []
        points.sort(key=lambda p: p.row)
        index = np.array([p.row for p in points], dtype=np.intp)
        reduced = Observations(
            u[index],
            u[index],
            np.array([p.log_likelihood for p in points]),
            np.zeros(len(points)),
            np.array([p.noise for p in points]),
            seen.explores[index],
            seen.batch[index],
        )
        return cls(form, tuple(points), reduced, groups, seen)

    @cached_property
    def finite(self) -> IntArray:
        """Points where the likelihood is not zero."""
        return np.flatnonzero(np.isfinite(self.observations.log_likelihood))

    @property
    def shared_error(self) -> float:
        """Error of log Z by those of c and n, which all points have in common."""
        if not len(self.finite) or self.form.constant is None:
            return 0.0
        own = self.observations.log_likelihood[self.finite]
        noise = np.nan_to_num(self.observations.noise[self.finite])
        sure = float(np.max(own - 2.0 * noise))  # a value above it is chance, more likely than not
        weights = np.exp(np.minimum(own - sure, 0.0)) / (noise**2 + 1e-6)
        levers = weights @ [self.points[i].levers for i in self.finite] / weights.sum()
        return float(np.linalg.norm(levers * self.form.errors))


def keys(form: Form, u: FloatArray) -> FloatArray:
    """Points of the others (m, e) such that equal ones are equal in every digit: ratios have lost some."""
    out = u.copy()
    out[:, form.ratio_places] = np.round(out[:, form.ratio_places], 6) + 0.0
    return out


@dataclass(frozen=True)
class Reducer:
    """How calls at a point of the others become the likelihood there, integrated over the common scale.

    Attributes
    ----------
    form : Form
    seen : Observations
        Of all parameters, n of them.
    u : (n, e) array
        The same points of the others.
    prior : Prior
    settings : Recognition
    done : dict
        Points of earlier times, by the observation that completed them.
    """

    form: Form
    seen: Observations
    u: FloatArray
    prior: Prior
    settings: Recognition
    done: dict[int, Point] = field(default_factory=dict)

    def contradicts(self, rows: list[int]) -> bool:
        """Whether calls at one point cannot be of this form."""
        values = self.seen.log_likelihood[rows]
        if np.isneginf(values).any() or (len(rows) == 1 and rows[0] in self.done):
            return False
        if not self.form.scales:
            return float(np.ptp(values)) > 1e-12 * float(np.abs(values).max())
        if len(rows) < self.form.n_calls or len(rows) == self.form.n_calls > 1:
            return False
        return solve(self.form, self.seen.at(rows)).misfit > self.settings.contradiction

    def point(self, rows: list[int]) -> Point | None:
        """The integrated likelihood at a point with these calls; None while they do not tell."""
        zero = [i for i in rows if np.isneginf(self.seen.log_likelihood[i])]
        if zero:
            return self._zero(zero[0])
        for m in range(self.form.n_calls, len(rows) + 1):
            if rows[m - 1] in self.done:
                return self.done[rows[m - 1]]
            found = self._reduced(rows[:m])
            if found is not None:
                return found
        return None

    def _zero(self, row: int) -> Point:
        none = np.empty((0, len(self.form.gone)))
        return Point(row, -np.inf, 0.0, float("nan"), 0.0, none, 0.0, (0.0, 0.0))

    def _reduced(self, rows: list[int]) -> Point | None:
        form, row, own = self.form, rows[-1], self.seen.at(rows)
        rng = np.random.default_rng(row)
        draws = rng.standard_normal((N_KEPT, len(form.gone)))
        if not form.scales:
            value, noise = float(own.log_likelihood[0]), float(own.noise[0])
            return Point(row, value, noise, float("nan"), 0.0, draws, 0.0, (0.0, 0.0))
        found = solve(form, own)
        own_error = 0.0 if form.constant is not None else found.constant_error
        if not (max(found.error, own_error) < self.settings.known and np.isfinite(found.log_a)):
            return None
        marginal = integrated(form, found.log_a, self.u[row, form.ratio_places], self.prior)
        if not np.isfinite(marginal.log_likelihood):
            return self._zero(row)
        draws[:, np.flatnonzero(form.gone == form.scales[0].axis.dim)[0]] = rng.permutation(marginal.draws[:, 0])
        term, levers = self._sensitivity(found, marginal, float(form.s(own.x)[-1, 0]))
        noise = float(np.linalg.norm([term * found.error, own_error, *np.multiply(levers, form.errors)]))
        if np.isnan(own.noise).any():
            noise = float("nan")
        elif not own.noise.any() and noise < 1e-3:
            noise = 0.0
        value = found.constant + marginal.log_likelihood
        return Point(row, value, noise, found.log_a, found.constant, draws, term, levers)

    def _sensitivity(self, found: Solution, marginal: Marginal, at: float) -> tuple[float, tuple[float, float]]:
        """What a relative error of A takes off the log-likelihood, and its derivatives by c and n, for a call at s.

        The first is the mean of (A/2) e^(−κs) under the posterior of s.
        """
        form, axis = self.form, self.form.scales[0].axis
        s = axis.s(self.prior.coordinate_from_standard(axis.dim, marginal.draws[:, 0]))
        term = float(np.mean(0.5 * np.exp(np.minimum(found.log_a - form.kappa * s, 600.0))))
        share = term / (0.5 * float(np.exp(np.clip(found.log_a - form.kappa * at, -600.0, 600.0))))
        return term, (1.0 - share, form.middle - float(s.mean()) - share * (form.middle - at))


def integrated(form: Form, log_a: float, w: FloatArray, prior: Prior) -> Marginal:
    """exp(−(A/2) e^(−κs) − Σ n_k s_k), integrated over the prior of the common scale, at ratios w (k − 1,).

    Relative to the measure N(0, 1) that the ratios have for the engine, which need not be their prior.
    """
    first = form.scales[0].axis

    def log_likelihood(v: FloatArray) -> FloatArray:
        s = form.others(first.s(prior.coordinate_from_standard(first.dim, v[:, 0])), w)
        out = -0.5 * np.exp(np.minimum(log_a - form.kappa * s[:, 0], 600.0)) - form.slope(s)
        for scale, column in zip(form.scales[1:], s[:, 1:].T, strict=True):
            out = out + scale.log_prior(column, prior)
        return out

    if not log_likelihood(np.linspace(-8.0, 8.0, 100)[:, None]).max() > -1e12:
        return Marginal(-np.inf, 0.0, np.empty((0, 1)))  # beyond the digits of its own logarithm
    found = integrate(log_likelihood, 1, np.random.default_rng(0))
    widths = np.array([width / abs(k.kappa) for k, (_, width) in zip(form.scales[1:], form.ratios, strict=True)])
    return Marginal(found.log_likelihood + float(np.sum(np.log(widths) - log_phi(w))), found.error, found.draws)
