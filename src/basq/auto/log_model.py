"""The default surrogate: a Gaussian process on the log-likelihood, with what sharp likelihoods need.

It describes scaled values (see ``Data``) in whitened coordinates, and says what may be believed between them.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.special import log_ndtr

from basq.auto.chart import Chart
from basq.auto.settings import Hyperparameters, Settings, Values
from basq.auto.values import Data, Reach, Scale
from basq.gp.classifier import Feasibility
from basq.gp.fit import fit
from basq.gp.gp import GP, Prediction
from basq.gp.kernels.sheared import ShearedKernel, sheared
from basq.gp.kernels.trend import TrendKernel
from basq.numerics.search import Optimum
from basq.observations import Observations
from basq.types import BoolArray, FloatArray


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
        Of the scaled values, in coordinates whitened by ``chart``.
    chart : Chart
    scale : Scale
    reach : Reach
        What is in play of the values.
    feasible : Feasibility or None
        Where the likelihood is not zero; None if no zero was seen.
    in_play : (n,) bool array
        Values within the window.
    settings : Values
    noise : float or None
        Standard deviation of the values whose noise is not known, in nats; None if there are no such values.
    """

    gp: GP
    chart: Chart
    scale: Scale
    reach: Reach
    feasible: Feasibility | None
    in_play: BoolArray
    settings: Values
    noise: float | None = None

    @classmethod
    def fit(
        cls,
        observations: Observations,
        log_measure: FloatArray,
        chart: Chart,
        previous: "LogModel | None",
        settings: Settings,
        *,
        bend: float = np.inf,
        rescue: bool = False,
        shear: bool = False,
    ) -> "LogModel":
        """Learn from everything seen.

        Parameters
        ----------
        observations : Observations
            At least one finite value.
        log_measure : (n,) array
            Log-density of the measure at the points.
        chart : Chart
        previous : LogModel or None
            Warm start.
        settings : Settings
        bend : float
            Gap from which values are compressed.
        rescue : bool
            Also start from hyperparameters scaled to the data, which frees a collapsed fit.
        shear : bool
            Straighten curved ridges.
        """
        data = Data.of(observations, log_measure, chart, bend, settings.values)
        z, y, finite, known = data.z, data.y, data.finite, data.known
        own, kernel = settings.values, settings.kernel
        start, prior = sheared(kernel.trend, chart.axes, chart.frame, kernel.shear, learned=shear)
        afresh = previous is None or rescue or np.isinf(bend) != np.isinf(previous.scale.bend)

        unknown = data.unknown(own) if np.isnan(known).any() else None
        search = partial(
            fit, z, y, start, noise=1e-8, known_noise=data.noise(0.0), unknown_noise=unknown, hyperprior=prior
        )

        def learn() -> GP:
            alike = previous is not None and (previous.noise is None) == (unknown is None)
            last = _recalled(previous, chart, start) if previous is not None and alike else None
            if last is not None and not afresh:
                found = search(recalled=last, max_steps=kernel.first_steps if shear else kernel.next_steps)
                if found.misfit < kernel.astray:
                    return found
                last = found.optimum
            scaled = _scaled_start(start, z, y, kernel)
            return search(recalled=last, other_starts=[scaled], max_steps=kernel.first_steps)

        zeros = None
        if not finite.all():
            zeros = Feasibility.learn(
                chart.whiten(observations.u), finite, previous.feasible if previous else None, kernel.classifier
            )
        gp = learn()
        noise = None if unknown is None or gp.optimum is None else float(np.exp(gp.optimum.theta[-1]))
        return cls(gp, chart, data.scale, data.reach, zeros, data.in_play, own, noise)

    def again(self, observations: Observations, log_measure: FloatArray, settings: Settings) -> "LogModel":
        """The same surrogate for more observations: its coordinates, hyperparameters and gap to compress from."""
        data = Data.of(observations, log_measure, self.chart, self.scale.bend, settings.values)
        kernel, feasible = self.gp.kernel, self.feasible
        noise = data.noise(self.noise or 0.0) + 1e-8 * kernel.variance
        gp = replace(GP.condition(data.z, data.y, kernel, noise=noise), optimum=self.gp.optimum)
        if not data.finite.all():
            z = self.chart.whiten(observations.u)
            feasible = Feasibility.learn(z, data.finite, self.feasible, settings.kernel.classifier)
        return replace(self, gp=gp, scale=data.scale, reach=data.reach, feasible=feasible, in_play=data.in_play)

    @property
    def n_dim(self) -> int:
        return len(self.chart.mean)

    @property
    def sheared(self) -> bool:
        return isinstance(self.gp.kernel, ShearedKernel) and self.gp.kernel.learned

    @property
    def n_bends(self) -> float:
        """Bends of the shear that were learned: each counts by what the data have taken off its variance."""
        kernel, optimum = self.gp.kernel, self.gp.optimum
        if optimum is None or not (isinstance(kernel, ShearedKernel) and kernel.learned):
            return 0.0
        return float(np.clip(1.0 - np.diag(optimum.spread)[kernel.bends_index], 0.0, 1.0).sum())

    @property
    def held_out(self) -> float:
        """Log-density of the values in play, each predicted from all others: what surrogates are compared by.

        The marginal likelihood would judge by all values, most of which lie far below the posterior.
        """
        residuals, variances = self.gp.left_out
        densities = -0.5 * (np.log(variances) + residuals**2 / variances) - np.log(self.scale.slope(self.gp.y))
        return float(densities[self.in_play].sum())

    @cached_property
    def ceiling(self) -> float:
        """Scaled value that nothing is believed to exceed."""
        return float(self.gp.y.max()) + self.settings.room(self.n_dim)

    def predict(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of log ℓ in nats, at points u (m, d)."""
        return self.in_nats(self.gp.predict(self.chart.whiten(u)))

    def in_nats(self, p: Prediction) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of log ℓ in nats, from those of the process."""
        return self.scale.nats(p.mean) + self.scale.top, np.sqrt(p.var) * self.scale.slope(p.mean)

    def optimistic(self, p: Prediction, sds: float) -> FloatArray:
        """Log ℓ in nats, were the process so many standard deviations above its mean."""
        return self.scale.nats(p.mean + sds * np.sqrt(p.var)) + self.scale.top

    def predict_mean(self, u: FloatArray) -> FloatArray:
        """Mean of log ℓ in nats at points u (m, d), without the variance that costs n times as much."""
        return self.scale.nats(self.gp.predict_mean(self.chart.whiten(u))) + self.scale.top

    def expecting(self, u: FloatArray) -> "LogModel":
        """Return this model as if it had been right at points u (m, d)."""
        return replace(self, gp=self.gp.expecting(self.chart.whiten(u), noise=self.settings.noise_floor**2))

    @property
    def straight(self) -> "LogModel":
        """The same as a function of the coordinates that are whitened, which need not be those of standard space."""
        return replace(self, chart=replace(self.chart, flat=None))

    def straighten(self, u: FloatArray) -> FloatArray:
        """Map points (n, d) to coordinates in which the chart is N(0, I) and curved ridges are straight."""
        z, kernel = self.chart.whiten(u), self.gp.kernel
        return kernel.shear(z) if isinstance(kernel, ShearedKernel) else z

    def unstraighten(self, t: FloatArray) -> FloatArray:
        """Inverse of `straighten`; the parameters whose probability is the coordinate are not bent."""
        kernel = self.gp.kernel
        z = kernel.shear.back(t) if isinstance(kernel, ShearedKernel) else t
        return z @ self.chart.root.T + self.chart.mean

    def mean(self, u: FloatArray) -> FloatArray:
        """Mean log ℓ minus ``scale.top``, tamed above the ceiling, with the log-probability of being non-zero."""
        z = self.chart.whiten(u)
        return self._tamed(self.gp.predict_mean(z)) + self._log_feasible(z)

    def correction(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What uncertainty adds to the mean (C/2, less a penalty where little is known); and the sd of log ℓ, nats."""
        p = self.gp.predict(self.chart.whiten(u))
        sd = np.sqrt(p.var)
        return self._bonus(p.mean, sd) - self._penalty(sd), sd * self.scale.slope(p.mean)

    def feasibility(self, u: FloatArray) -> FloatArray:
        """Probability that the likelihood is not zero, at points u (m, d): (m,)."""
        return np.broadcast_to(np.exp(self._log_feasible(self.chart.whiten(u))), len(u))

    def integrand(self, u: FloatArray) -> Integrand:
        """Everything about the integrand at points u (m, d)."""
        z = self.chart.whiten(u)
        p = self.gp.predict(z)
        sd = np.sqrt(p.var)
        believed = self._tamed(p.mean)
        mean = believed + self._log_feasible(z)
        plug_in = mean - self._penalty(sd)
        # the samples lead to the next points, and do without: on a curved ridge they would be led beyond its end
        widened = np.sqrt(self.settings.overfit(len(self.gp.y), self.n_dim, self.n_bends)) * sd
        tamed = self.scale.nats(p.mean) - believed
        return Integrand(mean, plug_in, plug_in + self._bonus(p.mean, widened), tamed, p)

    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        """Covariance of log ℓ between predictions, in nats²."""
        slopes = self.scale.slope(p.mean)[:, None] * self.scale.slope(q.mean)
        return self.gp.cov(p, q) * slopes

    def _tamed(self, mean: FloatArray) -> FloatArray:
        """A mean above the ceiling is extrapolation: let it grow only like a logarithm."""
        excess = np.maximum(mean - self.ceiling, 0.0)
        return self.scale.nats(mean - excess + np.log1p(excess))

    def _bonus(self, mean: FloatArray, sd: FloatArray) -> FloatArray:
        """log E[ℓ] minus the mean, both below the ceiling: C/2 well below it, less near it, with a bounded C."""
        s = np.clip(sd * self.scale.slope(mean), 1e-3, self.settings.bonus_cap)
        room = self.ceiling / self.scale.factor - self.scale.nats(mean)
        truncated = 0.5 * s * s + log_ndtr(room / s - s) - log_ndtr(room / s)
        return truncated - np.minimum(room, 0.0)

    def _penalty(self, sd: FloatArray) -> FloatArray:
        return self.settings.penalty_slope * np.maximum(sd - self.settings.penalty_from, 0.0) / self.scale.factor

    def _log_feasible(self, z: FloatArray) -> FloatArray | float:
        return 0.0 if self.feasible is None else self.feasible.log_probability(z)


def _recalled(previous: LogModel, chart: Chart, start: ShearedKernel) -> Optimum | None:
    """Where the last search ended, with its shear as this chart has it, or none."""
    optimum, last = previous.gp.optimum, previous.gp.kernel
    if optimum is None or not isinstance(last, ShearedKernel):
        return optimum
    theta, spread, place = optimum.theta.copy(), optimum.spread.copy(), start.bends_index
    theta[place] = 0.0
    if last.learned and _same_coordinates(previous.chart, chart):
        shear = last.shear.seen_from(chart.frame, previous.chart.seen_from(chart))
        theta[place] = shear.bends / start.unit
    elif start.learned:  # nothing is known yet
        spread[place], spread[:, place] = 0.0, 0.0
        spread[place, place] = np.eye(len(start.shear.bends))
    return replace(optimum, theta=theta, spread=spread)


def _same_coordinates(a: Chart, b: Chart) -> bool:
    flat = [np.zeros(len(c.mean), dtype=bool) if c.flat is None else c.flat for c in (a, b)]
    return bool((flat[0] == flat[1]).all())


def _scaled_start(kernel: ShearedKernel, z: FloatArray, y: FloatArray, settings: Hyperparameters) -> ShearedKernel:
    """Hyperparameters read off the best points: rescues a fit that has collapsed."""
    per_dim, least = settings.rescue_points
    top = np.argsort(-y, kind="stable")[: max(per_dim * z.shape[1], least)]
    radius = max(float(np.median((z[top] ** 2).sum(axis=1))), settings.rescue_least[0])
    spread = max(float(np.var(y[top])), settings.rescue_least[1])
    scales = np.full(z.shape[1], np.sqrt(radius))
    variance, *trend, additive = settings.rescue_first
    trends = spread * np.exp(trend) / np.array([1.0, radius, radius**2])
    base = TrendKernel(scales, spread * np.exp(variance), trends, spread * np.exp(additive), kernel.base.axes)
    return replace(kernel, base=base)
