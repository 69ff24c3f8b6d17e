"""Mixtures, whose components have no names: every posterior has copies of itself."""

from functools import partial

import numpy as np
from scipy import stats

from basq.problems.zoo.base import ZooProblem, columns, gamma, half_normal, inverse_gamma, log_normal, log_poisson
from basq.types import FloatArray

GROUP = "mixtures"


def _two_normals(x: FloatArray, y: FloatArray) -> FloatArray:
    mean1, mean2, sd1, sd2, share = columns(x)
    first, second = log_normal(y - mean1, sd1), log_normal(y - mean2, sd2)
    return np.logaddexp(np.log(share) + first, np.log1p(-share) + second).sum(axis=1)


def two_normals(seed: int = 0) -> ZooProblem:
    """Two normal components with the same priors: two copies of each mode."""
    rng = np.random.default_rng(seed)
    centre, distance = rng.normal(0, 2), rng.uniform(3.0, 6.0)
    truth = np.array([centre - distance / 2, centre + distance / 2, *rng.uniform(0.6, 1.5, 2), rng.uniform(0.3, 0.7)])
    first = rng.random(80) < truth[4]
    y = np.where(first, *(truth[i] + truth[2 + i] * rng.standard_normal(80) for i in (0, 1)))
    prior = {
        "mean1": stats.norm(0, 10),
        "mean2": stats.norm(0, 10),
        "sd1": half_normal(2),
        "sd2": half_normal(2),
        "share": stats.beta(5, 5),
    }
    return ZooProblem("two_normals", GROUP, seed, prior, truth, partial(_two_normals, y=y))


def _three_normals(x: FloatArray, y: FloatArray) -> FloatArray:
    means, sd, (stick1, stick2) = x.T[:3, :, None], x[:, 3:4], x.T[4:, :, None]
    shares = (stick1, (1.0 - stick1) * stick2, (1.0 - stick1) * (1.0 - stick2))
    first, second, third = (np.log(s) + log_normal(y - m, sd) for s, m in zip(shares, means, strict=True))
    return np.logaddexp(np.logaddexp(first, second), third).sum(axis=1)


def three_normals(seed: int = 0) -> ZooProblem:
    """Three normal components of one scale, shares uniform on the simplex by breaking a stick: six copies."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 2) + np.array([-1.0, 0.0, 1.0]) * rng.uniform(3.5, 6.0)
    truth = np.array([*means, rng.uniform(0.6, 1.2), rng.uniform(0.2, 0.45), rng.uniform(0.35, 0.65)])
    shares = [truth[4], (1.0 - truth[4]) * truth[5], (1.0 - truth[4]) * (1.0 - truth[5])]
    y = means[rng.choice(3, 90, p=shares)] + truth[3] * rng.standard_normal(90)
    prior = {f"mean{i + 1}": (-20.0, 20.0) for i in range(3)}
    prior |= {"sd": inverse_gamma(2, 1), "stick1": stats.beta(1, 2), "stick2": stats.beta(1, 1)}
    return ZooProblem("three_normals", GROUP, seed, prior, truth, partial(_three_normals, y=y))


def _two_poissons(x: FloatArray, y: FloatArray) -> FloatArray:
    rate1, rate2, share = columns(x)
    first, second = log_poisson(y, rate1), log_poisson(y, rate2)
    return np.logaddexp(np.log(share) + first, np.log1p(-share) + second).sum(axis=1)


def two_poissons(seed: int = 0) -> ZooProblem:
    """Counts from two Poisson laws that overlap."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(1, 4), rng.uniform(6, 14), rng.uniform(0.3, 0.7)])
    y = rng.poisson(np.where(rng.random(60) < truth[2], truth[0], truth[1])).astype(float)
    prior = {"rate1": gamma(1, 0.1), "rate2": gamma(1, 0.1), "share": stats.beta(1, 1)}
    return ZooProblem("two_poissons", GROUP, seed, prior, truth, partial(_two_poissons, y=y))


MODELS = (two_normals, three_normals, two_poissons)
