"""Curves that saturate: doses and growth."""

from functools import partial

import numpy as np
from scipy import special, stats

from basq.problems.zoo.base import ZooProblem, columns, half_cauchy, half_normal, log_normal, lognormal
from basq.types import FloatArray

GROUP = "curves"


def _four_parameters(x: FloatArray, log_dose: FloatArray) -> FloatArray:
    bottom, top, log_half, hill = columns(x[:, :4])
    return bottom + (top - bottom) * special.expit(hill * np.log(10.0) * (log_dose - log_half))


def _dose_response(x: FloatArray, log_dose: FloatArray, y: FloatArray) -> FloatArray:
    return log_normal(y - _four_parameters(x, log_dose), x[:, 4:5]).sum(axis=1)


def dose_response(seed: int = 0) -> ZooProblem:
    """The four-parameter logistic curve: bottom and top can swap if the curve turns round."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.normal(5, 3), rng.normal(95, 5), rng.normal(0, 0.7), rng.uniform(0.7, 2.0), 5.0])
    log_dose = np.repeat(np.linspace(-3.0, 3.0, 8), 2)
    y = _four_parameters(truth[None], log_dose)[0] + truth[4] * rng.standard_normal(16)
    prior = {
        "bottom": (-200.0, 200.0),
        "top": (-200.0, 200.0),
        "log_half": stats.norm(0, 2),
        "hill": stats.norm(0, 2),
        "sigma": half_cauchy(10),
    }
    return ZooProblem("dose_response", GROUP, seed, prior, truth, partial(_dose_response, log_dose=log_dose, y=y))


def _logistic_curve(x: FloatArray, t: FloatArray) -> FloatArray:
    largest, rate, first = columns(x[:, :3])
    return largest / (1.0 + (largest / first - 1.0) * np.exp(-rate * t))


def _logistic_growth(x: FloatArray, t: FloatArray, y: FloatArray) -> FloatArray:
    return (log_normal(np.log(y / _logistic_curve(x, t)), x[:, 3:4]) - np.log(y)).sum(axis=1)


def logistic_growth(seed: int = 0) -> ZooProblem:
    """A population that fills its space, lognormal errors, log-uniform priors over decades."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(50, 200), rng.uniform(0.3, 0.8), rng.uniform(1, 5), rng.uniform(0.05, 0.2)])
    t = np.linspace(0.0, 15.0, 16)
    y = _logistic_curve(truth[None], t)[0] * np.exp(truth[3] * rng.standard_normal(16))
    prior = {
        "largest": stats.loguniform(1, 1e4),
        "rate": stats.loguniform(1e-2, 10),
        "first": stats.loguniform(1e-2, 100),
        "sigma": half_normal(1),
    }
    return ZooProblem("logistic_growth", GROUP, seed, prior, truth, partial(_logistic_growth, t=t, y=y))


def _gompertz_curve(x: FloatArray, t: FloatArray) -> FloatArray:
    largest, delay, rate = columns(x[:, :3])
    return largest * np.exp(-delay * np.exp(-rate * t))


def _gompertz_growth(x: FloatArray, t: FloatArray, y: FloatArray) -> FloatArray:
    return log_normal(y - _gompertz_curve(x, t), x[:, 3:4]).sum(axis=1)


def gompertz_growth(seed: int = 0) -> ZooProblem:
    """A tumour that has not stopped growing when the data end: its largest size is known from below."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(8, 15), rng.uniform(3, 6), rng.uniform(0.08, 0.2), rng.uniform(0.1, 0.4)])
    t = np.linspace(0.0, 15.0, 20)
    y = _gompertz_curve(truth[None], t)[0] + truth[3] * rng.standard_normal(20)
    prior = {
        "largest": lognormal(10, 1.5),
        "delay": lognormal(3, 1),
        "rate": stats.loguniform(1e-3, 10),
        "sigma": half_cauchy(1),
    }
    return ZooProblem("gompertz_growth", GROUP, seed, prior, truth, partial(_gompertz_growth, t=t, y=y))


MODELS = (dose_response, logistic_growth, gompertz_growth)
