"""A small model with a simulator: a straight line with noise of unknown size."""

import numpy as np
from scipy import stats

import basq

T = np.linspace(0.0, 1.0, 20)
DATA = 1.0 + 0.5 * T + 0.2 * np.random.default_rng(0).standard_normal(20)
PRIOR = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
CHEAP = {"sigma": stats.halfcauchy(scale=1.0)}
OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 40, "progress": False}


def line(x):
    return x[0] + x[1] * T


def gauss(output, sigma):
    """Normal noise; takes single numbers only."""
    return float(-0.5 * np.sum((DATA - output) ** 2) / sigma**2 - len(DATA) * np.log(sigma))


def gauss_many(output, sigma):
    """The same for one sigma or many."""
    return -0.5 * np.sum((DATA - output) ** 2) / sigma**2 - len(DATA) * np.log(sigma)


def model(simulate=line, log_likelihood=gauss_many, cheap=CHEAP, **options):
    return basq.Model(simulate, log_likelihood, PRIOR, cheap, **options)


def infer(model, **options):
    return basq.infer(model, **{**OPTIONS, **options})
