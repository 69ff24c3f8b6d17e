"""Battery health from field data: the hyperparameters of a recursive Gaussian process.

The internal resistance of a lead-acid battery depends on the temperature T, the current I and the acid concentration
c, and it grows with age. Charging segments measure it where operation happens to take the battery. A Gaussian process
separates the two effects, and a Kalman filter over the segments gives its marginal likelihood at a cost linear in
their number.

**The model.** The excess of the resistance over its nominal value at the operating point z = (T, I, c) and the time t
since installation is

    R(z, t) = g(z) + a(t),    y = R(z, t) + noise,

with independent g ~ GP(0, σ₀² exp[−½ Σⱼ (zⱼ − zⱼ′)² / lⱼ²]) and the Wiener-velocity process a″ = σ₁ × white noise,
a(0) = a′(0) = 0, whose covariance is σ₁² (s³/3 + s² |t − t′| / 2), s = min(t, t′). The kernel of R is the sum of the
two. The noise is a known voltage noise over the current.

**The state.** On m inducing locations with the kernel matrix K = U Λ Uᵀ of unit variance, the whitened values
v = Λ^(−½) Uᵀ g / σ₀ ~ N(0, I) do not change with time. They are joined by (a, a′), which a step h takes to
F (a, a′) + N(0, Q), F = [[1, h], [0, 1]], Q = σ₁² [[h³/3, h²/2], [h²/2, h]]. At the operating points of segment t,
g = σ₀ Φ_t v + r_t, where Φ_t = k(z_t, inducing) U Λ^(−½) and r_t ~ N(0, σ₀² (k(z_t, z_t) − Φ_t Φ_tᵀ)) is what the
inducing locations leave open. It is independent between segments: the only approximation, which vanishes where the
inducing locations hold all operating points ("partially independent training conditional").

References
----------
Adachi et al. 2022, supplement, "Hyperparameter marginalisation of hierarchical GP": the energy Φ(x), whose data part
is the log-likelihood here, and the hyperprior. Aitio and Howey, "Predicting battery end of life from solar off-grid
system field data using machine learning", Joule 2021: the model and its field data, which are not public. Huber,
"Recursive Gaussian process: on-line regression and learning", Pattern Recognition Letters 2014: inducing locations
in a filter.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.linalg import lapack

from basq.errors import InputError
from basq.numerics.gaussians import LOG_2PI
from basq.numerics.linalg import cho_solve, solve_lower
from basq.prior import Prior
from basq.problems.cases.base import Case
from basq.types import FloatArray

NAMES = ("l_T", "l_I", "l_c", "sigma_0", "sigma_1")
"""Lengthscales in K, A and % by mass; standard deviations of g in mΩ and of the ageing in mΩ / year^1.5."""
PRIOR_LOG_MEANS = (3.96, 1.94, 2.79, 2.26, 0.34)
"""Means of the logarithms under the hyperprior; their standard deviations are 1."""
TRUTH = (25.0, 4.0, 9.0, 12.0, 2.0)
YEARS = 3.0
VOLTAGE_NOISE = 2.0
"""Standard deviation in mV."""
RANK_TOLERANCE = 1e-14
"""Directions of the inducing values with less than this share of the largest variance are left to r_t.

Some 50 times the rounding of the eigenvalues; the log-likelihood steps by less than 1e-5 where one leaves.
"""


@dataclass(frozen=True, eq=False)
class Segments:
    """Charging segments in order of time.

    Attributes
    ----------
    times : (t,) array
        Years since installation, not decreasing.
    conditions : (t, n, 3) array
        Temperature in °C, current in A, acid concentration in % by mass, of every reading.
    resistance : (t, n) array
        Measured excess over the nominal resistance, mΩ.
    noise_sd : (t, n) array
        Standard deviation of its measurement error, mΩ.
    """

    times: FloatArray
    conditions: FloatArray
    resistance: FloatArray
    noise_sd: FloatArray

    def __post_init__(self) -> None:
        shape = self.resistance.shape
        if len(shape) != 2 or not (
            self.times.shape == shape[:1] and self.noise_sd.shape == shape and self.conditions.shape == (*shape, 3)
        ):
            raise InputError(
                f"times {self.times.shape}, conditions {self.conditions.shape}, resistance {shape} and noise_sd "
                f"{self.noise_sd.shape} do not match; expected (t,), (t, n, 3), (t, n) and (t, n)."
            )
        if not all(np.isfinite(a).all() for a in (self.times, self.conditions, self.resistance, self.noise_sd)):
            raise InputError("The segments contain NaN or inf; all readings must be finite.")
        if (np.diff(self.times, prepend=0.0) < 0.0).any():
            raise InputError("The times decrease or start before 0; give the segments in order of time.")
        if (self.noise_sd <= 0.0).any():
            raise InputError(f"noise_sd has the entry {self.noise_sd.min():g}; it must be positive.")


class State(NamedTuple):
    """Gaussian belief about (v, a, a′): mean (r + 2,) and covariance (r + 2, r + 2)."""

    mean: FloatArray
    cov: FloatArray


def squared_exponential(a: FloatArray, b: FloatArray, lengthscales: FloatArray) -> FloatArray:
    """exp[−½ Σⱼ (aⱼ − bⱼ)² / lⱼ²] between points: (…, n, 3) and (…, m, 3) -> (…, n, m)."""
    squares = np.zeros(())
    for j, lengthscale in enumerate(lengthscales):
        # differences first: a product of matrices would lose the digits of near points to those of the coordinates
        squares = squares + ((a[..., :, None, j] - b[..., None, :, j]) / lengthscale) ** 2
    out: FloatArray = np.exp(-0.5 * squares)
    return out


def wiener_velocity(step: float, sd: float) -> tuple[FloatArray, FloatArray]:
    """Transition of (a, a′) over a step of time, a″ = sd × white noise.

    Returns
    -------
    transition, root : (2, 2) arrays
        F and B: the state x becomes F x + B N(0, I), and B Bᵀ = Q = sd² [[h³/3, h²/2], [h²/2, h]].
    """
    transition = np.array([[1.0, step], [0.0, 1.0]])
    root = sd * np.sqrt(step) * np.array([[step / np.sqrt(3.0), 0.0], [np.sqrt(3.0) / 2.0, 0.5]])
    return transition, root


def inducing_features(conditions: FloatArray, inducing: FloatArray, lengthscales: FloatArray) -> FloatArray:
    """Loadings Φ of unit-variance g at the conditions on its whitened inducing values: (…, 3) -> (…, r).

    Notes
    -----
    Long lengthscales make the kernel matrix singular to rounding. Jitter on its diagonal would enter the
    likelihood; the directions without variance are dropped instead, r ≤ m are kept, and `RecursiveGP` returns to
    every reading the variance that is missing in them.
    """
    values, vectors = np.linalg.eigh(squared_exponential(inducing, inducing, lengthscales))
    kept = values > RANK_TOLERANCE * values[-1]
    out: FloatArray = squared_exponential(conditions, inducing, lengthscales) @ (
        vectors[:, kept] / np.sqrt(values[kept])
    )
    return out


def predict(state: State, step: float, sd_ageing: float) -> State:
    """Carry the state over a step of time; only (a, a′) moves."""
    transition, root = wiener_velocity(step, sd_ageing)
    mean, cov = state.mean.copy(), state.cov.copy()
    mean[-2:] = transition @ mean[-2:]
    cov[-2:] = transition @ cov[-2:]
    cov[:, -2:] = cov[:, -2:] @ transition.T
    cov[-2:, -2:] += root @ root.T
    return State(mean, cov)


def update(state: State, loadings: FloatArray, y: FloatArray, noise: FloatArray) -> tuple[State, float]:
    """Condition the state on y = loadings @ state + N(0, noise).

    Parameters
    ----------
    state : State
    loadings : (n, r + 2) array
    y : (n,) array
    noise : (n, n) array

    Returns
    -------
    state : State
    log_density : float
        −½ (log |S| + eᵀ S⁻¹ e + n log 2π) of the innovation e and its covariance S.

    Raises
    ------
    ArithmeticError
        If S is not positive definite in floating point.
    """
    error = y - loadings @ state.mean
    cross = state.cov @ loadings.T
    factor, info = lapack.dpotrf(loadings @ cross + noise, lower=1, clean=1)
    if info != 0:
        raise ArithmeticError("The innovation covariance of a segment is not positive definite in floating point.")
    whitened = solve_lower(factor, error)
    log_density = -0.5 * float(whitened @ whitened + len(y) * LOG_2PI) - float(np.log(np.diag(factor)).sum())
    gain = cho_solve(factor, cross.T).T
    # Joseph's form, (1 − G H) P (1 − G H)ᵀ + G N Gᵀ, of rank n: an error of the gain enters only squared
    cov = state.cov - gain @ cross.T
    cov -= (cov @ loadings.T - gain @ noise) @ gain.T
    return State(state.mean + gain @ error, 0.5 * (cov + cov.T)), log_density


@dataclass(frozen=True, eq=False)
class RecursiveGP:
    """Log marginal likelihood of charging segments under the recursive Gaussian process.

    Attributes
    ----------
    segments : Segments
    inducing : (m, 3) array
        Distinct operating points that carry g.
    """

    segments: Segments
    inducing: FloatArray

    def __post_init__(self) -> None:
        if self.inducing.ndim != 2 or self.inducing.shape[1] != 3 or not len(self.inducing):
            raise InputError(f"inducing has shape {self.inducing.shape}; expected (m, 3), m ≥ 1.")

    def __call__(self, x: ArrayLike) -> float:
        """Log-likelihood of the five hyperparameters x, all positive, in the order of `NAMES`.

        Raises
        ------
        ArithmeticError
            If the filter loses positive definiteness, or overflows.
        """
        x = _hyperparameters(x)
        steps = np.diff(self.segments.times, prepend=0.0)
        with np.errstate(all="ignore"):  # what overflows is not finite in the end
            loadings, noise = self.observation_model(x)
            state = initial_state(loadings.shape[-1])
            total = 0.0
            for t, step in enumerate(steps):
                state = predict(state, float(step), x[4])
                state, log_density = update(state, loadings[t], self.segments.resistance[t], noise[t])
                total += log_density
        if not np.isfinite(total):
            raise ArithmeticError(f"The filter overflows at {dict(zip(NAMES, x.tolist(), strict=True))}.")
        return total

    def observation_model(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Loadings (t, n, r + 2) of the readings on the state, and their noise covariances (t, n, n).

        The noise holds the measurement error and r_t, the part of g that the inducing locations leave open.
        """
        conditions, noise_sd = self.segments.conditions, self.segments.noise_sd
        features = inducing_features(conditions, self.inducing, x[:3])
        left_open = squared_exponential(conditions, conditions, x[:3]) - features @ features.swapaxes(1, 2)
        noise = x[3] ** 2 * left_open + noise_sd[:, :, None] ** 2 * np.eye(noise_sd.shape[1])
        ageing = np.broadcast_to([1.0, 0.0], (*noise_sd.shape, 2))
        return np.concatenate([x[3] * features, ageing], axis=2), noise


def initial_state(size: int) -> State:
    """Belief at installation: v ~ N(0, I), and (a, a′) = 0."""
    variances = np.ones(size)
    variances[-2:] = 0.0
    return State(np.zeros(size), np.diag(variances))


def farthest_points(points: FloatArray, n: int) -> FloatArray:
    """Choose up to n distinct points, each farthest from those before it in units of the range: (k, d) -> (≤ n, d)."""
    extent = np.ptp(points, axis=0)
    scaled = (points - points.mean(axis=0)) / np.where(extent > 0.0, extent, 1.0)
    distances = (scaled**2).sum(axis=1)
    chosen = [int(np.argmin(distances))]
    distances = np.full(len(points), np.inf)
    while len(chosen) < n:
        distances = np.minimum(distances, ((scaled - scaled[chosen[-1]]) ** 2).sum(axis=1))
        farthest = int(np.argmax(distances))
        if distances[farthest] == 0.0:
            break
        chosen.append(farthest)
    return points[chosen]


def operating_conditions(n_segments: int, n_readings: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw when a solar off-grid battery was charged, and under which conditions.

    Returns
    -------
    times : (t,) array
        Years since installation, irregular, over `YEARS`.
    conditions : (t, n, 3) array
        See `Segments`.

    Notes
    -----
    The temperature has a season of ±7 K around 26 °C and a weather of ±2 K, and charging warms the battery by up to
    4 K. The current starts at 2.5–8 A, more in the sunny season, and tapers as the battery fills. The acid is at
    18–28 % after the night's discharge and rises with the charge, to 38 % at most. Each reading of a segment is at a
    random moment of its hours.
    """
    gaps = rng.gamma(2.0, size=n_segments)
    times = YEARS * np.cumsum(gaps) / gaps.sum()
    progress = np.sort(rng.random((n_segments, n_readings)), axis=1)
    season = np.cos(2.0 * np.pi * (times - 0.1))
    start_temperature = 26.0 + 7.0 * season + 2.0 * rng.standard_normal(n_segments)
    temperature = start_temperature[:, None] + rng.uniform(1.0, 4.0, (n_segments, 1)) * progress
    start_current = rng.uniform(2.5, 7.0, n_segments) + season
    taper = rng.uniform(0.3, 1.5, (n_segments, 1))
    clouds = rng.uniform(0.7, 1.0, (n_segments, n_readings))
    current = np.maximum(start_current, 2.5)[:, None] * np.exp(-taper * progress) * clouds
    start_acid = rng.uniform(18.0, 28.0, (n_segments, 1))
    acid = start_acid + (38.0 - start_acid) * rng.uniform(0.4, 1.0, (n_segments, 1)) * progress
    return times, np.stack([temperature, current, acid], axis=2)


def simulate(model: RecursiveGP, x: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Draw resistances (t, n) from the model with the hyperparameters x, at the conditions of its segments.

    The draw is exact, inducing locations included, but for one choice: of the two signs of the ageing, equally
    likely, it takes the one whose resistance has grown in the end.
    """
    x = _hyperparameters(x)
    loadings, noise = model.observation_model(x)
    g = loadings[..., :-2] @ rng.standard_normal(loadings.shape[-1] - 2)
    ageing = np.zeros((len(g), 2))
    previous = np.zeros(2)
    for t, step in enumerate(np.diff(model.segments.times, prepend=0.0)):
        transition, root = wiener_velocity(float(step), x[4])
        previous = transition @ previous + root @ rng.standard_normal(2)
        ageing[t] = previous
    errors = np.linalg.cholesky(noise) @ rng.standard_normal((*g.shape, 1))
    out: FloatArray = g + np.where(ageing[-1, 0] < 0.0, -1.0, 1.0) * ageing[:, :1] + errors[..., 0]
    return out


def battery_health(n_segments: int = 1000, n_readings: int = 20, n_inducing: int = 256, seed: int = 0) -> Case:
    """Make the recursive Gaussian process of battery health, with simulated field data.

    Parameters
    ----------
    n_segments : int
        Charging segments over three years. A likelihood call costs in proportion to them.
    n_readings : int
        Readings in each segment.
    n_inducing : int
        Inducing locations, spread over the operating points. With as many as there are readings, the model is the
        Gaussian process itself.
    seed : int
        Draws the conditions and the resistances.

    Returns
    -------
    Case
        Five positive parameters with independent lognormal priors: the lengthscales of temperature, current and acid
        concentration, and the standard deviations of the dependence on them and of the ageing. See the module for
        the model and `NAMES` for the units.

    Notes
    -----
    The resistances are drawn from the model itself, with the hyperparameters `TRUTH`: see `operating_conditions` and
    `simulate`. A call takes about half a second by default, and milliseconds with 60 segments of 8 readings and 32
    inducing locations.

    The energy of the paper, Φ(x) = −log p(y | x) − log p(x), holds the prior; the log-likelihood here does not. It is
    −½ Σ_t (log |S_t| + e_tᵀ S_t⁻¹ e_t + n_t log 2π) with the innovation e_t of segment t and its covariance S_t.

    Examples
    --------
    >>> from basq import problems
    >>> case = problems.battery_health(n_segments=20, n_readings=4, n_inducing=16)
    >>> case.prior.names
    ('l_T', 'l_I', 'l_c', 'sigma_0', 'sigma_1')
    >>> case.log_likelihood(case.truth) > case.log_likelihood(3 * case.truth)
    True
    """
    for name, value in (("n_segments", n_segments), ("n_readings", n_readings), ("n_inducing", n_inducing)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} is {value!r}; it must be a positive integer.")
    rng = np.random.default_rng(seed)
    times, conditions = operating_conditions(n_segments, n_readings, rng)
    noise_sd = VOLTAGE_NOISE / conditions[..., 1]
    inducing = farthest_points(conditions.reshape(-1, 3), n_inducing)
    blank = RecursiveGP(Segments(times, conditions, np.zeros(noise_sd.shape), noise_sd), inducing)
    segments = Segments(times, conditions, simulate(blank, TRUTH, rng), noise_sd)
    return Case(
        name=f"battery-health-{n_segments}",
        log_likelihood=RecursiveGP(segments, inducing),
        prior=Prior(
            {name: stats.lognorm(1.0, scale=np.exp(mu)) for name, mu in zip(NAMES, PRIOR_LOG_MEANS, strict=True)}
        ),
        truth=np.array(TRUTH),
    )


def _hyperparameters(x: ArrayLike) -> FloatArray:
    """Read the hyperparameters as five positive numbers."""
    values = np.asarray(x, dtype=float)
    if values.shape != (len(NAMES),):
        raise InputError(f"x has shape {values.shape}; expected ({len(NAMES)},): {', '.join(NAMES)}.")
    if not (np.isfinite(values) & (values > 0.0)).all():
        raise InputError(f"x is {values.tolist()}; the hyperparameters {', '.join(NAMES)} must be positive and finite.")
    return values
