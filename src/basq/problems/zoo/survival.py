"""Survival with censoring: some have not died when the study ends."""

from functools import partial

import numpy as np
from scipy import stats

from basq.problems.zoo.base import ZooProblem, gamma, lognormal
from basq.types import FloatArray

GROUP = "survival"


def _censor(time: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times that were seen, and one where it was a death, zero where the study ended first."""
    return np.minimum(time, end), (time <= end).astype(float)


def _exponential(x: FloatArray, design: FloatArray, time: FloatArray, death: FloatArray) -> FloatArray:
    log_rate = x @ design.T
    return (death * log_rate - np.exp(log_rate) * time).sum(axis=1)


def exponential_survival(seed: int = 0) -> ZooProblem:
    """A constant hazard by three covariates, N(0, 10²) on its logarithm's coefficients."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(70), rng.standard_normal((70, 2)), rng.random(70) < 0.5])
    truth = rng.normal([-1.0, 0.0, 0.0, -0.5], [0.3, 0.5, 0.5, 0.3])
    time, death = _censor(rng.exponential(np.exp(-design @ truth)), rng.uniform(1.0, 8.0, 70))
    prior = {name: stats.norm(0, 10) for name in ("intercept", "slope1", "slope2", "treated")}
    rows = partial(_exponential, design=design, time=time, death=death)
    return ZooProblem("exponential_survival", GROUP, seed, prior, truth, rows)


def _weibull(x: FloatArray, design: FloatArray, time: FloatArray, death: FloatArray) -> FloatArray:
    shape, log_scale = x[:, :1], x[:, 1:] @ design.T
    log_z = np.log(time) - log_scale
    return (death * (np.log(shape) - np.log(time) + shape * log_z) - np.exp(shape * log_z)).sum(axis=1)


def weibull_survival(seed: int = 0) -> ZooProblem:
    """Accelerated failure: a Weibull law whose scale depends on treatment and age."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(60), rng.random(60) < 0.5, rng.uniform(-2.0, 2.0, 60)])
    truth = np.array([rng.uniform(0.8, 2.5), rng.normal(1, 0.3), rng.normal(0.5, 0.3), rng.normal(-0.2, 0.2)])
    time, death = _censor(np.exp(design @ truth[1:]) * rng.weibull(truth[0], 60), rng.uniform(1.0, 10.0, 60))
    prior = {"shape": gamma(1, 0.1), "intercept": stats.norm(0, 10), "treated": stats.norm(0, 10)}
    prior |= {"age": stats.norm(0, 10)}
    rows = partial(_weibull, design=design, time=time, death=death)
    return ZooProblem("weibull_survival", GROUP, seed, prior, truth, rows)


def _cure(x: FloatArray, time: FloatArray, death: FloatArray) -> FloatArray:
    shape, scale, cured = (x[:, i, None] for i in range(3))
    z = (time / scale) ** shape
    dead = np.log1p(-cured) + np.log(shape / time) + np.log(z) - z
    alive = np.log(cured + (1.0 - cured) * np.exp(-z))
    return np.where(death == 1.0, dead, alive).sum(axis=1)


def cure_model(seed: int = 0) -> ZooProblem:
    """A share of the patients is cured and never dies of it; the others follow a Weibull law."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.9, 2.0), rng.uniform(2.0, 5.0), rng.uniform(0.2, 0.5)])
    time = np.where(rng.random(80) < truth[2], np.inf, truth[1] * rng.weibull(truth[0], 80))
    time, death = _censor(time, rng.uniform(3.0, 12.0, 80))
    prior = {"shape": lognormal(1, 1), "scale": stats.loguniform(0.01, 1000), "cured": stats.beta(1, 1)}
    return ZooProblem("cure_model", GROUP, seed, prior, truth, partial(_cure, time=time, death=death))


MODELS = (exponential_survival, weibull_survival, cure_model)
