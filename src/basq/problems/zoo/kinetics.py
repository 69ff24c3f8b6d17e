"""Chemical kinetics and drugs in compartments."""

from functools import partial

import numpy as np
from scipy import special, stats

from basq.problems.zoo.base import ZooProblem, columns, half_cauchy, half_normal, log_normal, lognormal
from basq.problems.zoo.solver import trajectory
from basq.types import FloatArray

GROUP = "kinetics"


def _bateman(k1: FloatArray, k2: FloatArray, t: FloatArray) -> FloatArray:
    """k₁ (exp(−k₂ t) − exp(−k₁ t)) / (k₁ − k₂), also where both rates are equal, by (1 − exp(−z))/z."""
    low, high = np.minimum(k1, k2), np.maximum(k1, k2)
    return k1 * t * np.exp(-low * t) * special.exprel(-(high - low) * t)


def _consecutive(x: FloatArray, t: FloatArray, y: FloatArray) -> FloatArray:
    k1, k2, amount, sigma = columns(x)
    return log_normal(y - amount * _bateman(k1, k2, t), sigma).sum(axis=1)


def consecutive_reaction(seed: int = 0) -> ZooProblem:
    """A → B → C, of which only B is seen, and its amount is unknown: the two rates can swap."""
    rng = np.random.default_rng(seed)
    truth = np.array([10.0 ** rng.uniform(-0.5, 0.3), 10.0 ** rng.uniform(-1.3, -0.7), rng.uniform(3, 10), 0.0])
    truth[3] = truth[2] * rng.uniform(0.01, 0.05)
    t = np.linspace(0.5, 15.0, 20)
    y = truth[2] * _bateman(truth[0], truth[1], t) + truth[3] * rng.standard_normal(20)
    prior = {
        "k1": stats.loguniform(1e-3, 10),
        "k2": stats.loguniform(1e-3, 10),
        "amount": lognormal(5, 1.5),
        "sigma": half_cauchy(1),
    }
    return ZooProblem("consecutive_reaction", GROUP, seed, prior, truth, partial(_consecutive, t=t, y=y))


def _one_compartment_path(x: FloatArray, t: FloatArray, dose: float) -> FloatArray:
    absorption, clearance, volume = columns(x)[:3]
    return dose / volume * _bateman(absorption, clearance / volume, t)


def _one_compartment(x: FloatArray, t: FloatArray, y: FloatArray, dose: float) -> FloatArray:
    path = _one_compartment_path(x, t, dose)
    additive, proportional = x[:, 3:4], x[:, 4:5]
    return log_normal(y - path, np.hypot(additive, proportional * path)).sum(axis=1)


def one_compartment(seed: int = 0) -> ZooProblem:
    """A drug that is swallowed: first-order absorption and elimination, additive and proportional error."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.8, 2.5), rng.uniform(2.0, 5.0), rng.uniform(20, 50), 0.2, rng.uniform(0.05, 0.15)])
    t = np.array([0.25, 0.5, 1.0, 2.0, 3.5, 5.0, 7.0, 9.0, 12.0, 18.0, 24.0])
    path = _one_compartment_path(truth[None], t, 320.0)[0]
    y = path + np.hypot(truth[3], truth[4] * path) * rng.standard_normal(len(t))
    prior = {
        "absorption": lognormal(1, 1),
        "clearance": lognormal(3, 1),
        "volume": lognormal(30, 1),
        "additive": half_normal(1),
        "proportional": half_normal(0.5),
    }
    return ZooProblem("one_compartment", GROUP, seed, prior, truth, partial(_one_compartment, t=t, y=y, dose=320.0))


def _two_compartment_path(x: FloatArray, t: FloatArray, dose: float) -> FloatArray:
    """Concentration after an injection: A exp(−α t) + B exp(−β t)."""
    clearance, volume1, flow, volume2 = columns(x)[:4]
    k10, k12, k21 = clearance / volume1, flow / volume1, flow / volume2
    total = k10 + k12 + k21
    root = np.sqrt((k10 - k21) ** 2 + 2.0 * k12 * (k10 + k21) + k12**2)
    alpha = 0.5 * (total + root)
    beta = k10 * k21 / alpha
    fast, slow = (alpha - k21) / (alpha - beta), (k21 - beta) / (alpha - beta)
    return dose / volume1 * (fast * np.exp(-alpha * t) + slow * np.exp(-beta * t))


def _two_compartment(x: FloatArray, t: FloatArray, log_y: FloatArray, dose: float) -> FloatArray:
    path = np.log(_two_compartment_path(x, t, dose))
    return log_normal(log_y - path, x[:, 4:5]).sum(axis=1) - log_y.sum()


def two_compartment(seed: int = 0) -> ZooProblem:
    """An injected drug that goes to tissue and back, lognormal errors."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(3, 8), rng.uniform(8, 15), rng.uniform(5, 15), rng.uniform(20, 50), 0.0])
    truth[4] = rng.uniform(0.05, 0.2)
    t = np.array([0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 18.0, 24.0])
    log_y = np.log(_two_compartment_path(truth[None], t, 100.0)[0]) + truth[4] * rng.standard_normal(len(t))
    prior = {
        "clearance": lognormal(5, 1),
        "volume1": lognormal(10, 1),
        "flow": lognormal(10, 1),
        "volume2": lognormal(30, 1),
        "sigma": half_cauchy(0.5),
    }
    return ZooProblem(
        "two_compartment", GROUP, seed, prior, truth, partial(_two_compartment, t=t, log_y=log_y, dose=100.0)
    )


def _saturating_path(x: FloatArray, n_times: int, dose: float) -> FloatArray:
    """Logarithm of the concentration at equal distances of two hours, from the second on: (n, n_times)."""
    fastest, half, volume = x.T[:3]

    def slope(log_state: FloatArray) -> FloatArray:
        # by the logarithm, which cannot fall below zero concentration
        return -fastest / (half + np.exp(log_state))

    return trajectory(slope, np.log(dose / volume)[None], n_times, 8, 0.25)[1:, 0].T


def _saturating(x: FloatArray, log_y: FloatArray, dose: float) -> FloatArray:
    path = _saturating_path(x, len(log_y), dose)
    return log_normal(log_y - path, x[:, 3:4]).sum(axis=1) - log_y.sum()


def saturating_elimination(seed: int = 0) -> ZooProblem:
    """Michaelis–Menten elimination after an injection: a straight fall that bends into an exponential one."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.6, 1.2), rng.uniform(0.5, 3.0), rng.uniform(25, 40), rng.uniform(0.05, 0.2)])
    log_y = _saturating_path(truth[None], 12, 300.0)[0] + truth[3] * rng.standard_normal(12)
    prior = {
        "fastest": lognormal(1, 1),
        "half": lognormal(2, 1.5),
        "volume": lognormal(30, 1),
        "sigma": half_cauchy(0.5),
    }
    return ZooProblem(
        "saturating_elimination", GROUP, seed, prior, truth, partial(_saturating, log_y=log_y, dose=300.0)
    )


MODELS = (consecutive_reaction, one_compartment, two_compartment, saturating_elimination)
