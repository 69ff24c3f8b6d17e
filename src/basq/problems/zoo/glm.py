"""Generalised linear models: yes or no, grades, counts."""

from functools import partial

import numpy as np
from scipy import special, stats

from basq.problems.zoo.base import (
    ZooProblem,
    columns,
    draw_negative_binomial,
    gamma,
    log_negative_binomial,
    log_poisson,
)
from basq.types import FloatArray

GROUP = "glm"


def _logistic(x: FloatArray, design: FloatArray, sign: FloatArray) -> FloatArray:
    return special.log_expit(sign * (x @ design.T)).sum(axis=1)


def logistic_regression(seed: int = 0) -> ZooProblem:
    """Three covariates, Student priors with three degrees of freedom and scale 2.5."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(80), rng.standard_normal((80, 3))])
    truth = rng.normal(0.0, [1.0, 1.5, 1.5, 1.5])
    sign = np.where(rng.random(80) < special.expit(design @ truth), 1.0, -1.0)
    prior = {name: stats.t(3, 0, 2.5) for name in ("intercept", "slope1", "slope2", "slope3")}
    return ZooProblem("logistic_regression", GROUP, seed, prior, truth, partial(_logistic, design=design, sign=sign))


def _poisson(x: FloatArray, design: FloatArray, y: FloatArray, exposure: FloatArray) -> FloatArray:
    return log_poisson(y, exposure * np.exp(x @ design.T)).sum(axis=1)


def poisson_regression(seed: int = 0) -> ZooProblem:
    """Counts by exposure and two covariates; N(0, 5²) on a logarithm makes rates of 10⁶ ordinary."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(60), rng.standard_normal(60), rng.random(60) < 0.4])
    exposure = rng.uniform(0.5, 4.0, 60)
    truth = rng.normal([1.0, 0.0, 0.0], [0.5, 0.7, 0.7])
    y = rng.poisson(exposure * np.exp(design @ truth)).astype(float)
    prior = {name: stats.norm(0, 5) for name in ("intercept", "slope", "treated")}
    rows = partial(_poisson, design=design, y=y, exposure=exposure)
    return ZooProblem("poisson_regression", GROUP, seed, prior, truth, rows)


def _negative_binomial(x: FloatArray, design: FloatArray, y: FloatArray) -> FloatArray:
    return log_negative_binomial(y, np.exp(x[:, :-1] @ design.T), x[:, -1:]).sum(axis=1)


def negative_binomial_regression(seed: int = 0) -> ZooProblem:
    """Overdispersed counts by two covariates; a diffuse gamma prior on the size."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(60), rng.standard_normal((60, 2))])
    truth = np.append(rng.normal([2.0, 0.0, 0.0], [0.5, 0.5, 0.5]), rng.uniform(0.7, 4.0))
    y = draw_negative_binomial(rng, np.exp(design @ truth[:-1]), truth[-1])
    prior = {name: stats.norm(0, 10) for name in ("intercept", "slope1", "slope2")} | {"size": gamma(0.5, 0.05)}
    rows = partial(_negative_binomial, design=design, y=y)
    return ZooProblem("negative_binomial_regression", GROUP, seed, prior, truth, rows)


def _probit(x: FloatArray, design: FloatArray, sign: FloatArray) -> FloatArray:
    return special.log_ndtr(sign * (x @ design.T)).sum(axis=1)


def probit_regression(seed: int = 0) -> ZooProblem:
    """Two covariates on different scales, N(0, 10²)."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(60), rng.standard_normal(60), rng.uniform(20.0, 70.0, 60) / 10.0])
    truth = np.array([rng.normal(0, 0.5), rng.normal(0, 1.0), rng.normal(0, 0.15)])
    sign = np.where(rng.random(60) < special.ndtr(design @ truth), 1.0, -1.0)
    prior = {name: stats.norm(0, 10) for name in ("intercept", "dose", "age")}
    return ZooProblem("probit_regression", GROUP, seed, prior, truth, partial(_probit, design=design, sign=sign))


def _ordinal(x: FloatArray, design: FloatArray, grade: FloatArray) -> FloatArray:
    """log(σ(b) − σ(a)) = log σ(b) + log σ(−a) + log(1 − exp(a − b)), exact also far from both cuts."""
    edge = np.full((len(x), 1), np.inf)
    cuts = np.concatenate([-edge, np.cumsum(x[:, :3], axis=1), edge], axis=1)
    score, k = x[:, 3:] @ design.T, grade.astype(int)
    above, below = cuts[:, k + 1] - score, cuts[:, k] - score
    gap = np.log(-np.expm1(below - above))
    return (special.log_expit(above) + special.log_expit(-below) + gap).sum(axis=1)


def ordinal_regression(seed: int = 0) -> ZooProblem:
    """Four grades by two covariates: a first cut, gamma distances between cuts, proportional odds."""
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((80, 2))
    truth = np.array([rng.normal(-1.5, 0.5), *rng.uniform(0.8, 2.0, 2), *rng.normal(0, 1, 2)])
    score = design @ truth[3:] + rng.logistic(size=80)
    grade = (score[:, None] > np.cumsum(truth[:3])).sum(axis=1).astype(float)
    prior = {
        "cut": stats.norm(0, 5),
        "gap1": gamma(2, 1),
        "gap2": gamma(2, 1),
        "slope1": stats.t(7, 0, 2.5),
        "slope2": stats.t(7, 0, 2.5),
    }
    return ZooProblem("ordinal_regression", GROUP, seed, prior, truth, partial(_ordinal, design=design, grade=grade))


def _zero_inflated(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
    a, b, share = columns(x)
    count = np.log1p(-share) + log_poisson(y, np.exp(a + b * u))
    return np.where(y == 0, np.logaddexp(np.log(share), count), count).sum(axis=1)


def zero_inflated_poisson(seed: int = 0) -> ZooProblem:
    """Counts with more zeros than a Poisson law has; a flat beta prior on their share."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(70)
    truth = np.array([rng.normal(1, 0.4), rng.normal(0, 0.6), rng.uniform(0.1, 0.6)])
    y = np.where(rng.random(70) < truth[2], 0, rng.poisson(np.exp(truth[0] + truth[1] * u))).astype(float)
    prior = {"intercept": stats.norm(0, 5), "slope": stats.norm(0, 5), "share": stats.beta(1, 1)}
    return ZooProblem("zero_inflated_poisson", GROUP, seed, prior, truth, partial(_zero_inflated, u=u, y=y))


MODELS = (
    logistic_regression,
    poisson_regression,
    negative_binomial_regression,
    probit_regression,
    ordinal_regression,
    zero_inflated_poisson,
)
