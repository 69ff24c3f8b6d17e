"""The default surrogate: a Gaussian process on the log-likelihood, with what sharp likelihoods need.

Real log-likelihoods span 10² to 10⁶ nats, of which only the top few tens carry posterior mass. So values are scaled
until enough points lie in that window, and points below it are kept but believed less and less.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.special import log_ndtr

from basq.auto.chart import Reference
from basq.gp.classifier import Feasibility
from basq.gp.fit import fit
from basq.gp.gp import GP, Prediction
from basq.gp.kernels.trend import TrendKernel
from basq.observations import Observations
from basq.types import BoolArray, FloatArray

NOISE_FLOOR = 1e-3
"""Least noise sd of a value, in scaled nats."""
NOISE_SLOPE = 0.1
"""Noise sd per nat below the window."""
PENALTY_SLOPE, PENALTY_FROM = 1.5, 2.0
"""Pessimism: nats taken off per nat of sd beyond this sd (both in scaled nats)."""
BONUS_CAP = 2.0
"""Largest sd (in nats) whose C/2 is believed: a larger one says only that nothing is known."""
FIRST_STEPS, NEXT_STEPS = 30, 8
"""Most steps of the search for hyperparameters: at first, and from those of the last batch."""
ASTRAY = 3.0
"""Mean square standardised datum from which a short search has lost its way: at an optimum it is about one."""
UNKNOWN_NOISE = (0.1, 0.3, 1.0, 3.0)
"""First guesses of a noise that is not known, in nats; after every batch it may halve or double."""
LEAST_UNKNOWN = 0.01
"""Where halving ends, in nats: it would not end by itself, and a noise of nothing takes as long to grow again."""


def window(n_dim: int) -> float:
    """Nats below the best point that are in play: a d-dimensional posterior's bulk spans a few times d."""
    return 10.0 + 4.0 * n_dim


def headroom(n_dim: int) -> float:
    """Nats above the best value seen that are believed possible: the best of some dozen draws is d/4 below a peak.

    Without it, the mean may rise without end along a ridge, beyond the last observation.
    """
    return 1.0 + 0.25 * n_dim


def overfit(n: int, n_dim: int) -> float:
    """Factor by which the variance of a process fitted to n values is too small; at most two.

    As in a regression, whose squared residuals are too small by (n − q)/n for q coefficients; a quadratic has
    (d + 1)(d + 2)/2. Exponentiated, a variance that is too small becomes a bias of log Z.
    """
    q = (n_dim + 1) * (n_dim + 2) // 2
    return n / max(n - q, n / 2)


@dataclass(frozen=True)
class Scale:
    """How log-likelihoods become GP data: y = factor (log ℓ − top).

    Attributes
    ----------
    factor : float
        At most 1; shrinks early values so that the region in play spans about the window.
    top : float
        Log-likelihood at the best point.
    """

    factor: float
    top: float

    @classmethod
    def of(cls, values: FloatArray, gap: FloatArray, n_dim: int) -> "Scale":
        """Choose the scale from values (n,) and their gaps to the best log-posterior (n,).

        Enough points for a quadratic, and d more, are to lie inside the window.
        """
        need = (n_dim + 1) * (n_dim + 2) // 2 + n_dim
        reach = max(window(n_dim), float(np.sort(gap)[min(need, len(gap) - 1)]))
        return cls(window(n_dim) / reach, float(values[int(np.argmin(gap))]))


@dataclass(frozen=True)
class Integrand:
    """What is integrated, at m points: logarithms minus ``Scale.top``.

    Attributes
    ----------
    mean : (m,) array
        Of the process, as in ``LogModel.mean``.
    plug_in : (m,) array
        The same with a penalty where little is known.
    expected : (m,) array
        Of the expected likelihood.
    tamed : (m,) array
        Nats that were taken off means above the ceiling.
    prediction : Prediction
        The process itself.
    """

    mean: FloatArray
    plug_in: FloatArray
    expected: FloatArray
    tamed: FloatArray
    prediction: Prediction


@dataclass(frozen=True)
class LogModel:
    """Surrogate of the log-likelihood (relative to the measure) in whitened coordinates.

    Attributes
    ----------
    gp : GP
        Of the scaled values, in coordinates whitened by ``reference``.
    reference : Reference
    scale : Scale
    feasible : Feasibility or None
        Where the likelihood is not zero; None if no zero was seen.
    in_play : (n,) bool array
        Values within the window.
    noise : float or None
        Standard deviation of the values whose noise is not known, in nats; None if there are no such values.
    """

    gp: GP
    reference: Reference
    scale: Scale
    feasible: Feasibility | None
    in_play: BoolArray
    noise: float | None = None

    @classmethod
    def fit(
        cls,
        observations: Observations,
        log_measure: FloatArray,
        reference: Reference,
        previous: "LogModel | None",
        *,
        rescue: bool = False,
    ) -> "LogModel":
        """Learn from everything seen.

        Parameters
        ----------
        observations : Observations
            At least one finite value.
        log_measure : (n,) array
            Log-density of the measure at the points.
        reference : Reference
        previous : LogModel or None
            Warm start.
        rescue : bool
            Also start from hyperparameters scaled to the data, which frees a collapsed fit.
        """
        values, z = observations.log_values, reference.whiten(observations.u)
        finite = np.isfinite(values)
        log_posterior = (values + log_measure)[finite]
        gap = log_posterior.max() - log_posterior
        scale = Scale.of(values[finite], gap, z.shape[1])
        y = np.maximum(scale.factor * (values[finite] - scale.top), -1e6)
        below = scale.factor * gap - window(z.shape[1])
        shaped, in_play = NOISE_FLOOR + NOISE_SLOPE * np.maximum(below, 0.0), below <= 0.0
        known = observations.noise[finite]
        start = TrendKernel.start(reference.axes)
        afresh = previous is None or rescue
        prior = start.hyperprior()

        def learn(sd: float) -> GP:
            """Fit as if every unknown noise had this standard deviation, in nats."""
            noise = shaped**2 + (scale.factor * np.where(np.isnan(known), sd, known)) ** 2
            search = partial(fit, z[finite], y, start, noise=1e-8, known_noise=noise, hyperprior=prior)
            last = previous.gp.optimum if previous else None
            if not afresh:
                found = search(recalled=last, max_steps=NEXT_STEPS)
                if found.misfit < ASTRAY:
                    return found
                last = found.optimum
            return search(recalled=last, other_starts=[_scaled_start(start, z[finite], y)], max_steps=FIRST_STEPS)

        labels = None if finite.all() else Feasibility.learn(z, finite, previous.feasible if previous else None)
        if not np.isnan(known).any():
            return cls(learn(0.0), reference, scale, labels, in_play)
        before = previous.noise if previous else None
        near = (max(0.5 * before, LEAST_UNKNOWN), before, 2.0 * before) if before else ()
        tried = {sd: learn(sd) for sd in (*near, *(UNKNOWN_NOISE if rescue or not near else ()))}
        noise = max(tried, key=lambda sd: tried[sd].log_marginal_likelihood - prior.penalty(tried[sd].kernel.theta)[0])
        return cls(tried[noise], reference, scale, labels, in_play, noise)

    @property
    def n_dim(self) -> int:
        return len(self.reference.mean)

    @property
    def held_out(self) -> float:
        """Log-density of the values in play, each predicted from all others: what surrogates are compared by.

        The marginal likelihood would judge by all values, most of which lie far below the posterior.
        """
        residuals, variances = self.gp.left_out
        return -0.5 * float((np.log(variances) + residuals**2 / variances)[self.in_play].sum())

    @cached_property
    def ceiling(self) -> float:
        """Scaled value that nothing is believed to exceed."""
        return float(self.gp.y.max()) + headroom(self.n_dim)

    def predict(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of log ℓ in nats, at points u (m, d)."""
        return self.in_nats(self.gp.predict(self.reference.whiten(u)))

    def in_nats(self, p: Prediction) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of log ℓ in nats, from those of the process."""
        return p.mean / self.scale.factor + self.scale.top, np.sqrt(p.var) / self.scale.factor

    def predict_mean(self, u: FloatArray) -> FloatArray:
        """Mean of log ℓ in nats at points u (m, d), without the variance that costs n times as much."""
        return self.gp.predict_mean(self.reference.whiten(u)) / self.scale.factor + self.scale.top

    def expecting(self, u: FloatArray) -> "LogModel":
        """Return this model as if it had been right at points u (m, d)."""
        return replace(self, gp=self.gp.expecting(self.reference.whiten(u), noise=NOISE_FLOOR**2))

    @property
    def straight(self) -> "LogModel":
        """The same as a function of the coordinates that are whitened, which need not be those of standard space."""
        return replace(self, reference=replace(self.reference, flat=None))

    def mean(self, u: FloatArray) -> FloatArray:
        """Mean log ℓ minus ``scale.top``, tamed above the ceiling, with the log-probability of being non-zero."""
        z = self.reference.whiten(u)
        return self._tamed(self.gp.predict_mean(z)) + self._log_feasible(z)

    def correction(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What uncertainty adds to the mean (C/2, less a penalty where little is known); and the sd of log ℓ, nats."""
        p = self.gp.predict(self.reference.whiten(u))
        sd = np.sqrt(p.var)
        return self._bonus(p.mean, sd) - self._penalty(sd), sd / self.scale.factor

    def feasibility(self, u: FloatArray) -> FloatArray:
        """Probability that the likelihood is not zero, at points u (m, d): (m,)."""
        return np.broadcast_to(np.exp(self._log_feasible(self.reference.whiten(u))), len(u))

    def integrand(self, u: FloatArray) -> Integrand:
        """Everything about the integrand at points u (m, d)."""
        z = self.reference.whiten(u)
        p = self.gp.predict(z)
        sd = np.sqrt(p.var)
        believed = self._tamed(p.mean)
        mean = believed + self._log_feasible(z)
        plug_in = mean - self._penalty(sd)
        # the samples lead to the next points, and do without: on a curved ridge they would be led beyond its end
        widened = np.sqrt(overfit(len(self.gp.y), self.n_dim)) * sd
        tamed = p.mean / self.scale.factor - believed
        return Integrand(mean, plug_in, plug_in + self._bonus(p.mean, widened), tamed, p)

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        """Covariance of log ℓ between predictions, in nats²."""
        return self.gp.cov(p, q) / self.scale.factor**2

    def _tamed(self, mean: FloatArray) -> FloatArray:
        """A mean above the ceiling is extrapolation: let it grow only like a logarithm."""
        excess = np.maximum(mean - self.ceiling, 0.0)
        return (mean - excess + np.log1p(excess)) / self.scale.factor

    def _bonus(self, mean: FloatArray, sd: FloatArray) -> FloatArray:
        """log E[ℓ] minus the mean, both below the ceiling: C/2 well below it, less near it, with a bounded C."""
        s = np.clip(sd / self.scale.factor, 1e-3, BONUS_CAP)
        room = (self.ceiling - mean) / self.scale.factor
        truncated = 0.5 * s * s + log_ndtr(room / s - s) - log_ndtr(room / s)
        return truncated - np.minimum(room, 0.0)

    def _penalty(self, sd: FloatArray) -> FloatArray:
        return PENALTY_SLOPE * np.maximum(sd - PENALTY_FROM, 0.0) / self.scale.factor

    def _log_feasible(self, z: FloatArray) -> FloatArray | float:
        return 0.0 if self.feasible is None else self.feasible.log_probability(z)


def _scaled_start(kernel: TrendKernel, z: FloatArray, y: FloatArray) -> TrendKernel:
    """Hyperparameters read off the best points: rescues a fit that has collapsed."""
    top = np.argsort(-y, kind="stable")[: max(3 * z.shape[1], 10)]
    radius = max(float(np.median((z[top] ** 2).sum(axis=1))), 1e-2)
    spread = max(float(np.var(y[top])), 1.0)
    scales = np.full(z.shape[1], np.sqrt(radius))
    trend = spread * np.exp([2.0, 1.0, 1.0]) / np.array([1.0, radius, radius**2])
    return TrendKernel(scales, spread * np.exp(-1.0), trend, spread * np.exp(-2.0), kernel.axes)
