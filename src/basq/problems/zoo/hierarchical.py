"""Hierarchical models: groups that resemble each other by an unknown amount."""

from functools import partial

import numpy as np
from scipy import special, stats

from basq.problems.zoo.base import ZooProblem, gamma, half_cauchy, half_normal, log_normal
from basq.types import FloatArray

GROUP = "hierarchical"


def _schools(rng: np.random.Generator, n_schools: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Effects with their known errors; mean, spread and true effects."""
    error = rng.uniform(8.0, 18.0, n_schools)
    mean, spread = rng.normal(5, 3), rng.uniform(2.0, 12.0)
    effects = mean + spread * rng.standard_normal(n_schools)
    return effects + error * rng.standard_normal(n_schools), error, np.array([mean, spread, *effects])


def _centred(x: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    mu, tau, theta = x[:, :1], x[:, 1:2], x[:, 2:]
    return (log_normal(theta - mu, tau) + log_normal(y - theta, error)).sum(axis=1)


def centred_schools(seed: int = 0) -> ZooProblem:
    """Effects of a treatment in five schools; effects have boxes, and their law given mean and spread is a factor."""
    y, error, truth = _schools(np.random.default_rng(seed), 5)
    prior = {"mu": stats.norm(0, 5), "tau": half_cauchy(5)} | {f"theta{i + 1}": (-100.0, 100.0) for i in range(5)}
    return ZooProblem("centred_schools", GROUP, seed, prior, truth, partial(_centred, y=y, error=error))


def _noncentred(x: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    return log_normal(y - x[:, :1] - x[:, 1:2] * x[:, 2:], error).sum(axis=1)


def noncentred_schools(seed: int = 0) -> ZooProblem:
    """Effects of a treatment in eight schools (Rubin 1981), each as a standard normal deviation from the mean."""
    y, error, truth = _schools(np.random.default_rng(seed), 8)
    truth[2:] = (truth[2:] - truth[0]) / truth[1]
    prior = {"mu": stats.norm(0, 5), "tau": half_cauchy(5)} | {f"z{i + 1}": stats.norm(0, 1) for i in range(8)}
    return ZooProblem("noncentred_schools", GROUP, seed, prior, truth, partial(_noncentred, y=y, error=error))


def _varying(x: FloatArray, group: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
    mu, tau, slope, sigma = (x[:, i, None] for i in range(4))
    return log_normal(y - mu - tau * x[:, 4:][:, group.astype(int)] - slope * u, sigma).sum(axis=1)


def varying_intercepts(seed: int = 0) -> ZooProblem:
    """Radon in the houses of eight counties by floor: an intercept for each county."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(8.0), rng.integers(3, 12, 8))
    u = (rng.random(len(group)) < 0.3).astype(float)
    scales = [rng.normal(1.3, 0.3), rng.uniform(0.2, 0.6), rng.normal(-0.7, 0.2), rng.uniform(0.4, 0.9)]
    truth = np.array([*scales, *rng.standard_normal(8)])
    path = truth[0] + truth[1] * truth[4:][group.astype(int)] + truth[2] * u
    y = path + truth[3] * rng.standard_normal(len(group))
    prior = {"mu": stats.norm(0, 10), "tau": half_cauchy(1), "floor": stats.norm(0, 10), "sigma": half_normal(5)}
    prior |= {f"z{i + 1}": stats.norm(0, 1) for i in range(8)}
    return ZooProblem("varying_intercepts", GROUP, seed, prior, truth, partial(_varying, group=group, u=u, y=y))


def _pumps(x: FloatArray, hours: FloatArray, y: FloatArray) -> FloatArray:
    a, b = x[:, :1], x[:, 1:2]
    gammas = special.gammaln(a + y) - special.gammaln(a) - special.gammaln(y + 1.0)
    return (gammas + a * np.log(b / (b + hours)) + special.xlogy(y, hours / (b + hours))).sum(axis=1)


def pumps(seed: int = 0) -> ZooProblem:
    """Failures of ten pumps (Gaver and O'Muircheartaigh 1987), their rates integrated out."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.5, 2.0), rng.uniform(0.3, 2.0)])
    hours = 10.0 ** rng.uniform(0.0, 2.0, 10)
    y = rng.poisson(rng.gamma(truth[0], 1.0 / truth[1], 10) * hours).astype(float)
    prior = {"shape": stats.expon(), "rate": gamma(0.1, 1.0)}
    return ZooProblem("pumps", GROUP, seed, prior, truth, partial(_pumps, hours=hours, y=y))


MODELS = (centred_schools, noncentred_schools, varying_intercepts, pumps)
