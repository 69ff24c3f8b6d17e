"""Time series: values that depend on those before them."""

from functools import partial

import numpy as np
from scipy import stats

from basq.problems.zoo.base import ZooProblem, columns, half_cauchy, half_normal, inverse_gamma, log_normal
from basq.types import FloatArray

GROUP = "time series"


def _ar1(x: FloatArray, y: FloatArray) -> FloatArray:
    mu, phi, sigma = columns(x)
    first = log_normal(y[:1] - mu, sigma / np.sqrt(1.0 - phi**2))
    rest = log_normal(y[1:] - mu - phi * (y[:-1] - mu), sigma)
    return first[:, 0] + rest.sum(axis=1)


def ar1(seed: int = 0) -> ZooProblem:
    """Stationary AR(1) about a mean; near the unit root the mean is all but unknown."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.normal(0, 5), rng.uniform(0.4, 0.95), rng.uniform(0.3, 2.0)])
    y = np.empty(80)
    y[0] = truth[0] + truth[2] / np.sqrt(1.0 - truth[1] ** 2) * rng.standard_normal()
    for t in range(1, 80):
        y[t] = truth[0] + truth[1] * (y[t - 1] - truth[0]) + truth[2] * rng.standard_normal()
    prior = {"mu": stats.norm(0, 10), "phi": (-1.0, 1.0), "sigma": half_cauchy(2.5)}
    return ZooProblem("ar1", GROUP, seed, prior, truth, partial(_ar1, y=y))


def _ar2(x: FloatArray, y: FloatArray) -> FloatArray:
    c, phi1, phi2, variance = columns(x)
    return log_normal(y[2:] - c - phi1 * y[1:-1] - phi2 * y[:-2], np.sqrt(variance)).sum(axis=1)


def ar2(seed: int = 0) -> ZooProblem:
    """AR(2) with a pseudo-period, given the first two values; inverse-gamma prior on the variance."""
    rng = np.random.default_rng(seed)
    radius, angle = rng.uniform(0.6, 0.95), rng.uniform(0.4, 1.5)
    truth = np.array([rng.normal(0, 1), 2.0 * radius * np.cos(angle), -(radius**2), rng.uniform(0.3, 2.0)])
    y = np.zeros(120)
    for t in range(2, 120):
        y[t] = truth[0] + truth[1:3] @ y[[t - 1, t - 2]] + np.sqrt(truth[3]) * rng.standard_normal()
    prior = {
        "c": stats.norm(0, 10),
        "phi1": stats.norm(0, 2),
        "phi2": stats.norm(0, 2),
        "variance": inverse_gamma(2, 1),
    }
    return ZooProblem("ar2", GROUP, seed, prior, truth, partial(_ar2, y=y[20:]))


def _arma11(x: FloatArray, y: FloatArray) -> FloatArray:
    mu, phi, theta, sigma = x.T
    error = y[0] - mu - phi * mu
    squares = error**2
    for t in range(1, len(y)):
        error = y[t] - mu - phi * y[t - 1] - theta * error
        squares = squares + error**2
    return -0.5 * squares / sigma**2 + len(y) * log_normal(np.zeros(len(x)), sigma)


def arma11(seed: int = 0) -> ZooProblem:
    """ARMA(1, 1) with the priors of posteriordb: where |θ| > 1 the log-likelihood falls to −10¹⁰⁰."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.normal(0, 0.5), rng.uniform(0.3, 0.9), rng.uniform(-0.5, 0.6), rng.uniform(0.1, 1.0)])
    noise = truth[3] * rng.standard_normal(150)
    y = np.empty(150)
    y[0] = truth[0] + truth[1] * truth[0] + noise[0]
    for t in range(1, 150):
        y[t] = truth[0] + truth[1] * y[t - 1] + truth[2] * noise[t - 1] + noise[t]
    prior = {
        "mu": stats.norm(0, 10),
        "phi": stats.norm(0, 2),
        "theta": stats.norm(0, 2),
        "sigma": half_cauchy(2.5),
    }
    return ZooProblem("arma11", GROUP, seed, prior, truth, partial(_arma11, y=y))


def _garch11(x: FloatArray, y: FloatArray) -> FloatArray:
    mu, alpha0, alpha1, beta1 = x.T
    variance = alpha0 / (1.0 - alpha1 - beta1)
    total = np.where(alpha1 + beta1 < 1.0, 0.0, -np.inf)
    for value in y:
        total = total + log_normal(value - mu, np.sqrt(variance))
        variance = alpha0 + alpha1 * (value - mu) ** 2 + beta1 * variance
    return total


def garch11(seed: int = 0) -> ZooProblem:
    """GARCH(1, 1); α₁ + β₁ ≥ 1 has likelihood zero."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.normal(0, 1), rng.uniform(0.1, 1.0), rng.uniform(0.1, 0.4), rng.uniform(0.2, 0.5)])
    y, variance = np.empty(150), truth[1] / (1.0 - truth[2] - truth[3])
    for t in range(150):
        y[t] = truth[0] + np.sqrt(variance) * rng.standard_normal()
        variance = truth[1] + truth[2] * (y[t] - truth[0]) ** 2 + truth[3] * variance
    prior = {"mu": stats.norm(0, 10), "alpha0": half_normal(5), "alpha1": (0.0, 1.0), "beta1": (0.0, 1.0)}
    return ZooProblem("garch11", GROUP, seed, prior, truth, partial(_garch11, y=y))


def _egarch(x: FloatArray, y: FloatArray) -> FloatArray:
    mu, omega, alpha, leverage, beta = x.T
    log_variance, total = omega, np.zeros(len(x))
    for value in y:
        z = (value - mu) * np.exp(-0.5 * log_variance)
        total = total - 0.5 * (z * z + log_variance + np.log(2.0 * np.pi))
        log_variance = omega + beta * (log_variance - omega) + alpha * (np.abs(z) - np.sqrt(2.0 / np.pi)) + leverage * z
    return total


def egarch(seed: int = 0) -> ZooProblem:
    """A volatility that remembers signs (Nelson 1991): its logarithm is an autoregression on what was seen."""
    rng = np.random.default_rng(seed)
    truth = np.array([0.0, rng.normal(0, 1), rng.uniform(0.1, 0.5), rng.normal(-0.1, 0.1), rng.uniform(0.6, 0.95)])
    y, log_variance = np.empty(150), truth[1]
    for t in range(150):
        z = rng.standard_normal()
        y[t] = truth[0] + np.exp(0.5 * log_variance) * z
        shock = truth[2] * (abs(z) - np.sqrt(2.0 / np.pi)) + truth[3] * z
        log_variance = truth[1] + truth[4] * (log_variance - truth[1]) + shock
    prior = {
        "mu": stats.norm(0, 1),
        "omega": stats.norm(0, 3),
        "alpha": stats.norm(0, 0.5),
        "leverage": stats.norm(0, 0.5),
        "beta": (-1.0, 1.0),
    }
    return ZooProblem("egarch", GROUP, seed, prior, truth, partial(_egarch, y=y))


def _local_level(x: FloatArray, y: FloatArray) -> FloatArray:
    level, drift, noise = x.T
    mean, variance, total = level, drift**2, np.zeros(len(x))
    for value in y:
        spread = variance + noise**2
        total = total + log_normal(value - mean, np.sqrt(spread))
        gain = variance / spread
        mean, variance = mean + gain * (value - mean), variance * (1.0 - gain) + drift**2
    return total


def local_level(seed: int = 0) -> ZooProblem:
    """A random walk seen through noise, by the Kalman filter; both scales over decades."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.normal(10, 10), 10.0 ** rng.uniform(-1, 0.5), 10.0 ** rng.uniform(-0.5, 0.5)])
    y = truth[0] + np.cumsum(truth[1] * rng.standard_normal(60)) + truth[2] * rng.standard_normal(60)
    prior = {"level": (-200.0, 200.0), "drift": stats.loguniform(1e-3, 1e2), "noise": stats.loguniform(1e-3, 1e2)}
    return ZooProblem("local_level", GROUP, seed, prior, truth, partial(_local_level, y=y))


MODELS = (ar1, ar2, arma11, garch11, egarch, local_level)
