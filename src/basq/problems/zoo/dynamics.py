"""Differential equations of populations and excitable cells: epidemics, predators and prey, nerves."""

from functools import partial

import numpy as np
from scipy import stats

from basq.problems.zoo.base import (
    ZooProblem,
    draw_negative_binomial,
    half_cauchy,
    half_normal,
    log_negative_binomial,
    log_normal,
    lognormal,
    positive_normal,
)
from basq.problems.zoo.solver import trajectory
from basq.types import FloatArray

GROUP = "dynamics"

SMALL = 1e-9
"""Least expected count: a compartment that is empty but for rounding has no logarithm."""


def _sir_cases(x: FloatArray, days: int, people: float) -> FloatArray:
    """New infections of every day, (n, days)."""
    beta, gamma, first = x.T[:3]

    def slope(state: FloatArray) -> FloatArray:
        new = beta * state[0] * state[1]
        return np.stack([-new, new - gamma * state[1]])

    share = first / people
    path = trajectory(slope, np.stack([1.0 - share, share]), days, 4, 0.25)
    return np.maximum(-people * np.diff(path[:, 0], axis=0), SMALL).T


def _sir(x: FloatArray, y: FloatArray, people: float) -> FloatArray:
    return log_negative_binomial(y, _sir_cases(x, len(y), people), x[:, 3:4]).sum(axis=1)


def sir(seed: int = 0) -> ZooProblem:
    """Daily cases of an epidemic in a town of 2,000, log-uniform rates; counts with an unknown overdispersion."""
    rng = np.random.default_rng(seed)
    gamma = rng.uniform(0.15, 0.4)
    truth = np.array([gamma * rng.uniform(1.6, 3.5), gamma, rng.uniform(2.0, 8.0), rng.uniform(5.0, 20.0)])
    y = draw_negative_binomial(rng, _sir_cases(truth[None], 40, 2000.0)[0], truth[3])
    prior = {
        "beta": stats.loguniform(0.01, 10),
        "gamma": stats.loguniform(0.01, 10),
        "first": stats.loguniform(0.1, 100),
        "size": half_cauchy(10),
    }
    return ZooProblem("sir", GROUP, seed, prior, truth, partial(_sir, y=y, people=2000.0))


def _seir_cases(x: FloatArray, weeks: int, people: float) -> FloatArray:
    """Reported cases of every week, (n, weeks)."""
    beta, sigma, gamma, reported, first = x.T[:5]

    def slope(state: FloatArray) -> FloatArray:
        s, e, i = state[:3]
        new = beta * s * i
        return np.stack([-new, new - sigma * e, sigma * e - gamma * i, sigma * e])

    share, none = first / people, np.zeros(len(x))
    path = trajectory(slope, np.stack([1.0 - share, none, share, none]), weeks, 14, 0.5)
    return np.maximum(reported * people * np.diff(path[:, 3], axis=0), SMALL).T


def _seir(x: FloatArray, y: FloatArray, people: float) -> FloatArray:
    return log_negative_binomial(y, _seir_cases(x, len(y), people), x[:, 5:6]).sum(axis=1)


def seir(seed: int = 0) -> ZooProblem:
    """Weekly reported cases of an epidemic with a latent stage, of which an unknown fraction is reported."""
    rng = np.random.default_rng(seed)
    gamma = rng.uniform(0.15, 0.3)
    rates = [gamma * rng.uniform(1.8, 3.0), rng.uniform(0.15, 0.4), gamma]
    truth = np.array([*rates, rng.uniform(0.1, 0.5), rng.uniform(5.0, 30.0), rng.uniform(8.0, 30.0)])
    y = draw_negative_binomial(rng, _seir_cases(truth[None], 20, 10000.0)[0], truth[5])
    prior = {
        "beta": lognormal(0.4, 1),
        "sigma": lognormal(0.25, 0.5),
        "gamma": lognormal(0.2, 0.5),
        "reported": stats.beta(1, 2),
        "first": lognormal(10, 1),
        "size": half_normal(20),
    }
    return ZooProblem("seir", GROUP, seed, prior, truth, partial(_seir, y=y, people=10000.0))


def _predator_prey_path(x: FloatArray, years: int) -> FloatArray:
    """Logarithms of prey and predators, (2, n, years + 1)."""
    alpha, beta, gamma, delta = x.T[:4]

    def slope(state: FloatArray) -> FloatArray:
        # in logarithms, where both stay positive
        return np.stack([alpha - beta * np.exp(state[1]), delta * np.exp(state[0]) - gamma])

    return trajectory(slope, np.log(x.T[4:6]), years, 10, 0.1).transpose(1, 2, 0)


def _predator_prey(x: FloatArray, log_y: FloatArray) -> FloatArray:
    path = _predator_prey_path(x, log_y.shape[1] - 1)
    prey, predators = (log_normal(log_y[i] - path[i], x[:, 6 + i, None]).sum(axis=1) for i in (0, 1))
    return prey + predators - log_y.sum()


def predator_prey(seed: int = 0) -> ZooProblem:
    """Lotka–Volterra with lognormal errors; the priors of Carpenter (2018) for hares and lynxes."""
    rng = np.random.default_rng(seed)
    rates = [rng.uniform(0.4, 0.7), rng.uniform(0.02, 0.035), rng.uniform(0.6, 1.0), rng.uniform(0.02, 0.03)]
    truth = np.array([*rates, rng.uniform(25, 40), rng.uniform(4, 10), *rng.uniform(0.15, 0.3, 2)])
    path = _predator_prey_path(truth[None], 20)[:, 0]
    log_y = path + truth[6:, None] * rng.standard_normal(path.shape)
    prior = {
        "alpha": positive_normal(1, 0.5),
        "beta": positive_normal(0.05, 0.05),
        "gamma": positive_normal(1, 0.5),
        "delta": positive_normal(0.05, 0.05),
        "prey": lognormal(10, 1),
        "predators": lognormal(10, 1),
        "sd_prey": lognormal(np.exp(-1), 1),
        "sd_predators": lognormal(np.exp(-1), 1),
    }
    return ZooProblem("predator_prey", GROUP, seed, prior, truth, partial(_predator_prey, log_y=log_y))


def _fitzhugh_nagumo_path(x: FloatArray, n_times: int) -> FloatArray:
    """Voltage and recovery, (2, n, n_times + 1)."""
    a, b, c = x.T[:3]

    def slope(state: FloatArray) -> FloatArray:
        v, r = state
        return np.stack([c * (v - v * v * v / 3.0 + r), -(v - a + b * r) / c])

    start = np.stack([np.full(len(x), -1.0), np.full(len(x), 1.0)])
    return trajectory(slope, start, n_times, 8, 0.0625).transpose(1, 2, 0)


def _fitzhugh_nagumo(x: FloatArray, y: FloatArray) -> FloatArray:
    path = _fitzhugh_nagumo_path(x, y.shape[1] - 1)
    return sum(log_normal(y[i] - path[i], x[:, 3 + i, None]).sum(axis=1) for i in (0, 1))


def fitzhugh_nagumo(seed: int = 0) -> ZooProblem:
    """A spiking nerve (Ramsay et al. 2007): where the period is wrong, spikes meet gaps and the likelihood ripples."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.1, 0.3), rng.uniform(0.1, 0.3), rng.uniform(2.0, 4.0), *rng.uniform(0.2, 0.5, 2)])
    path = _fitzhugh_nagumo_path(truth[None], 40)[:, 0]
    y = path + truth[3:, None] * rng.standard_normal(path.shape)
    prior = {
        "a": stats.norm(0, 0.4),
        "b": stats.norm(0, 0.4),
        "c": positive_normal(2, 2),
        "sd_v": half_cauchy(1),
        "sd_r": half_cauchy(1),
    }
    return ZooProblem("fitzhugh_nagumo", GROUP, seed, prior, truth, partial(_fitzhugh_nagumo, y=y))


MODELS = (sir, seir, predator_prey, fitzhugh_nagumo)
