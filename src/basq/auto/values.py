"""How log-likelihoods become the data of a process.

Real log-likelihoods span 10² to 10⁶ nats, of which only the top few tens carry posterior mass. So values are scaled
until enough points lie in that window, may be compressed below, and are believed less and less far down.
"""

from dataclasses import dataclass

import numpy as np

from basq.auto.chart import Chart
from basq.auto.settings import Values, quadratic
from basq.gp.fit import UnknownNoise
from basq.observations import Observations
from basq.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Scale:
    """How log-likelihoods become GP data: y = −f s log(1 + gap / s) with gap = top − log ℓ, f gap where s is infinite.

    Near the top both are f gap. Far below, where a likelihood falls like a power of a distance, or like an
    exponential of it, the logarithm of the gap is the smoother function.

    Attributes
    ----------
    factor : float
        f, at most 1; shrinks early values so that the region in play spans about the window.
    top : float
        Log-likelihood at the best point.
    bend : float
        s, the gap from which values are compressed; infinite if they are not.
    """

    factor: float
    top: float
    bend: float = np.inf

    def scaled(self, log_likelihood: FloatArray) -> FloatArray:
        """GP data of values (n,) in nats."""
        gap = self.top - log_likelihood
        if np.isinf(self.bend):
            return -self.factor * gap
        compressed = self.bend * np.log1p(np.maximum(gap, 0.0) / self.bend)
        return -self.factor * np.where(gap > 0.0, compressed, gap)

    def nats(self, y: FloatArray) -> FloatArray:
        """Log-likelihoods minus ``top`` of GP data (n,)."""
        if np.isinf(self.bend):
            return y / self.factor
        out: FloatArray = np.maximum(y, 0.0) / self.factor - self.bend * np.expm1(self._depth(y))
        return out

    def slope(self, y: FloatArray) -> FloatArray:
        """Nats per unit of GP data at y (n,)."""
        if np.isinf(self.bend):
            return np.full(np.shape(y), 1.0 / self.factor)
        out: FloatArray = np.exp(self._depth(y)) / self.factor
        return out

    def _depth(self, y: FloatArray) -> FloatArray:
        return np.clip(-y / (self.factor * self.bend), 0.0, 60.0)


@dataclass(frozen=True)
class Reach:
    """What is in play of the values.

    Attributes
    ----------
    reach : float
        Gap to the best log-posterior within which enough points for a quadratic, and d more, lie; at least the window.
    window : float
    top : float
        Log-likelihood at the best point.
    """

    reach: float
    window: float
    top: float

    @classmethod
    def of(cls, values: FloatArray, gap: FloatArray, n_dim: int, window: float) -> "Reach":
        """From values (n,) and their gaps to the best log-posterior (n,)."""
        need = quadratic(n_dim) + n_dim
        reach = max(window, float(np.sort(gap)[min(need, len(gap) - 1)]))
        return cls(reach, window, float(values[int(np.argmin(gap))]))

    @property
    def filled(self) -> bool:
        """Whether enough points lie within the window."""
        return self.reach <= self.window

    def scale(self, bend: float) -> Scale:
        """The scale that compresses values from a gap on, with what is in play inside the window."""
        spanned = self.reach if np.isinf(bend) else bend * float(np.log1p(self.reach / bend))
        return Scale(min(self.window / spanned, 1.0), self.top, bend)

    def bends(self, settings: Values, least: float) -> tuple[float, ...]:
        """Gaps to compress from that compete; ``least`` is the least that the noise of the values allows.

        Compression shrinks noise with the gap, so that a value which noise has lowered would be believed more than one
        that it has raised: by σ² (2 − 1/2) / (s + gap) nats the process would be too low.
        """
        ratio, windows = settings.bends
        out, bend = [np.inf], self.reach
        while bend >= max(windows * self.window, least):
            out.append(bend)
            bend /= ratio
        return tuple(out)


@dataclass(frozen=True)
class Data:
    """What a process learns from.

    Attributes
    ----------
    z : (n, d) array
        Whitened points with a finite value.
    y : (n,) array
        Scaled values.
    finite : (m,) bool array
        Which of the observations they are.
    known : (n,) array
        Noise of the values in nats; NaN where it is not known.
    shaped : (n,) array
        Noise for the depth of the values.
    in_play : (n,) bool array
    scale : Scale
    reach : Reach
    """

    z: FloatArray
    y: FloatArray
    finite: BoolArray
    known: FloatArray
    shaped: FloatArray
    in_play: BoolArray
    scale: Scale
    reach: Reach

    @classmethod
    def of(
        cls, observations: Observations, log_measure: FloatArray, chart: Chart, bend: float, settings: Values
    ) -> "Data":
        """Scale and whiten observations."""
        finite, n_dim = np.isfinite(observations.log_values), observations.u.shape[1]
        values = observations.log_values[finite]
        log_posterior = values + log_measure[finite]
        gap, window = log_posterior.max() - log_posterior, settings.window(n_dim)
        reach = Reach.of(values, gap, n_dim, window)
        scale = reach.scale(bend)
        below = -scale.scaled(scale.top - gap) - window
        return cls(
            chart.whiten(observations.u[finite]),
            np.maximum(scale.scaled(values), -settings.deepest),
            finite,
            observations.noise[finite],
            settings.noise_floor + settings.noise_slope * np.maximum(below, 0.0),
            gap <= reach.reach,
            scale,
            reach,
        )

    def noise(self, sd: float) -> FloatArray:
        """Variances (n,), as if every unknown noise had this standard deviation, in nats."""
        observed = np.where(np.isnan(self.known), sd, self.known) / self.scale.slope(self.y)
        return self.shaped**2 + observed**2

    def unknown(self, settings: Values) -> UnknownNoise:
        """The noise that is not known, to be learned; its standard deviation is in nats."""
        weights = np.isnan(self.known) / self.scale.slope(self.y) ** 2
        return UnknownNoise(weights, settings.unknown_noise, settings.unknown_spread)
