"""Periodic signals: waves, damped oscillations, stars that wobble."""

from functools import partial

import numpy as np
from scipy import stats

from basq.problems.zoo.base import ZooProblem, columns, half_cauchy, half_normal, log_normal
from basq.types import FloatArray

GROUP = "signals"

TURN = 2.0 * np.pi


def _sinusoid(x: FloatArray, t: FloatArray, y: FloatArray) -> FloatArray:
    offset, amplitude, period, phase, sigma = columns(x)
    return log_normal(y - offset - amplitude * np.sin(TURN * t / period + phase), sigma).sum(axis=1)


def sinusoid(seed: int = 0) -> ZooProblem:
    """A wave whose period is between 5 and 60 days, seen on 40 nights out of 120."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.normal(0, 2), rng.uniform(1, 4), rng.uniform(8, 40), rng.uniform(0, TURN), 1.0])
    t = np.sort(rng.uniform(0.0, 120.0, 40))
    y = truth[0] + truth[1] * np.sin(TURN * t / truth[2] + truth[3]) + truth[4] * rng.standard_normal(40)
    prior = {
        "offset": stats.norm(0, 10),
        "amplitude": half_normal(5),
        "period": (5.0, 60.0),
        "phase": (0.0, TURN),
        "sigma": half_cauchy(2),
    }
    return ZooProblem("sinusoid", GROUP, seed, prior, truth, partial(_sinusoid, t=t, y=y))


def _damped(x: FloatArray, t: FloatArray, y: FloatArray) -> FloatArray:
    amplitude, decay, frequency, phase, sigma = columns(x)
    return log_normal(y - amplitude * np.exp(-decay * t) * np.cos(TURN * frequency * t + phase), sigma).sum(axis=1)


def damped_oscillation(seed: int = 0) -> ZooProblem:
    """An oscillation that dies away, with a phase near zero: half of the posterior is at the other end of its box."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(2, 6), rng.uniform(0.1, 0.4), rng.uniform(0.2, 0.8), rng.normal(0, 0.1) % TURN, 0.5])
    t = np.linspace(0.0, 10.0, 50)
    y = truth[0] * np.exp(-truth[1] * t) * np.cos(TURN * truth[2] * t + truth[3]) + truth[4] * rng.standard_normal(50)
    prior = {
        "amplitude": stats.loguniform(0.1, 100),
        "decay": stats.loguniform(0.01, 10),
        "frequency": (0.05, 2.0),
        "phase": (0.0, TURN),
        "sigma": half_cauchy(1),
    }
    return ZooProblem("damped_oscillation", GROUP, seed, prior, truth, partial(_damped, t=t, y=y))


def _circular(x: FloatArray, t: FloatArray) -> FloatArray:
    """Velocities by semi-amplitude, period and phase, (n, m)."""
    speed, period, phase = columns(x)
    return speed * np.cos(TURN * t / period + phase)


def _one_planet(x: FloatArray, t: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    path = x[:, 3:4] + _circular(x[:, :3], t)
    return log_normal(y - path, np.hypot(error, x[:, 4:5])).sum(axis=1)


def circular_orbit(seed: int = 0) -> ZooProblem:
    """Radial velocities of a star with one planet: log-uniform period and amplitude, an offset and jitter."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(10, 40), 10.0 ** rng.uniform(0.7, 1.5), rng.uniform(0, TURN), rng.normal(0, 20), 3.0])
    t, error = np.sort(rng.uniform(0.0, 90.0, 30)), rng.uniform(2.0, 5.0, 30)
    y = truth[3] + _circular(truth[None, :3], t)[0] + np.hypot(error, truth[4]) * rng.standard_normal(30)
    prior = {
        "speed": stats.loguniform(0.1, 1000),
        "period": stats.loguniform(1.5, 100),
        "phase": (0.0, TURN),
        "offset": (-200.0, 200.0),
        "jitter": half_normal(10),
    }
    return ZooProblem("circular_orbit", GROUP, seed, prior, truth, partial(_one_planet, t=t, y=y, error=error))


def _anomaly(mean: FloatArray, e: FloatArray) -> FloatArray:
    """Eccentric anomaly E of Kepler's equation E − e sin E = mean, by Halley's method from a start that works."""
    mean = np.mod(mean + np.pi, TURN) - np.pi
    out = mean + 0.85 * e * np.sign(mean)
    for _ in range(6):
        sine, slope = e * np.sin(out), 1.0 - e * np.cos(out)
        miss = out - sine - mean
        out = out - miss / (slope - 0.5 * miss * sine / slope)
    return out


def _eccentric(x: FloatArray, t: FloatArray) -> FloatArray:
    """Velocities by semi-amplitude, period, mean anomaly at time zero, eccentricity and argument of periastron."""
    speed, period, phase, e, omega = columns(x)
    anomaly = _anomaly(TURN * t / period + phase, e)
    true = 2.0 * np.arctan2(np.sqrt(1.0 + e) * np.sin(0.5 * anomaly), np.sqrt(1.0 - e) * np.cos(0.5 * anomaly))
    return speed * (np.cos(true + omega) + e * np.cos(omega))


def _eccentric_planet(x: FloatArray, t: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    path = x[:, 5:6] + _eccentric(x[:, :5], t)
    return log_normal(y - path, np.hypot(error, x[:, 6:7])).sum(axis=1)


def eccentric_orbit(seed: int = 0) -> ZooProblem:
    """One planet on an ellipse, with the beta prior of Kipping (2013) on its eccentricity."""
    rng = np.random.default_rng(seed)
    orbit = [
        rng.uniform(20, 60),
        rng.uniform(15, 40),
        rng.uniform(0, TURN),
        rng.uniform(0.2, 0.6),
        rng.uniform(0, TURN),
    ]
    truth = np.array([*orbit, rng.normal(0, 20), 3.0])
    t, error = np.sort(rng.uniform(0.0, 120.0, 35)), rng.uniform(2.0, 5.0, 35)
    y = truth[5] + _eccentric(truth[None, :5], t)[0] + np.hypot(error, truth[6]) * rng.standard_normal(35)
    prior = {
        "speed": stats.loguniform(1, 1000),
        "period": stats.loguniform(5, 100),
        "anomaly": (0.0, TURN),
        "eccentricity": stats.beta(0.867, 3.03),
        "periastron": (0.0, TURN),
        "offset": (-200.0, 200.0),
        "jitter": half_normal(10),
    }
    return ZooProblem("eccentric_orbit", GROUP, seed, prior, truth, partial(_eccentric_planet, t=t, y=y, error=error))


def _two_planets(x: FloatArray, t: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    path = x[:, 6:7] + _circular(x[:, :3], t) + _circular(x[:, 3:6], t)
    return log_normal(y - path, np.hypot(error, x[:, 7:8])).sum(axis=1)


def two_planets(seed: int = 0) -> ZooProblem:
    """Two planets with the same prior, so that their names can swap."""
    rng = np.random.default_rng(seed)
    inner = [rng.uniform(15, 40), rng.uniform(5, 10), rng.uniform(0, TURN)]
    outer = [rng.uniform(15, 40), rng.uniform(18, 40), rng.uniform(0, TURN)]
    truth = np.array([*inner, *outer, rng.normal(0, 20), 3.0])
    t, error = np.sort(rng.uniform(0.0, 90.0, 40)), rng.uniform(2.0, 5.0, 40)
    path = truth[6] + _circular(truth[None, :3], t)[0] + _circular(truth[None, 3:6], t)[0]
    y = path + np.hypot(error, truth[7]) * rng.standard_normal(40)
    orbit = {"speed": stats.loguniform(1, 1000), "period": stats.loguniform(3, 100), "phase": (0.0, TURN)}
    orbits = {f"{name}{i}": law for i in (1, 2) for name, law in orbit.items()}
    prior = orbits | {"offset": (-200.0, 200.0), "jitter": half_normal(10)}
    return ZooProblem("two_planets", GROUP, seed, prior, truth, partial(_two_planets, t=t, y=y, error=error))


MODELS = (sinusoid, damped_oscillation, circular_orbit, eccentric_orbit, two_planets)
