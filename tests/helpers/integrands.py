"""Measures and a likelihood that the tests of closed forms integrate."""

import numpy as np

from basq.numerics.gaussians import GaussianMixture

MEASURES = {
    "line": GaussianMixture(np.ones(1), np.array([[0.4]]), np.array([[[1.3]]])),
    "line-mixture": GaussianMixture(
        np.array([0.5, 0.2, 0.3]), np.array([[-1.0], [0.3], [1.5]]), np.array([[[0.6]], [[1.2]], [[0.4]]])
    ),
    "plane": GaussianMixture(np.ones(1), np.array([[0.3, -0.5]]), np.array([[[1.2, 0.6], [0.6, 0.8]]])),
    "plane-mixture": GaussianMixture(
        np.array([0.5, 0.2, 0.3]),
        np.array([[-0.8, 0.2], [0.3, -0.7], [1.0, 0.6]]),
        np.array([[[0.6, 0.2], [0.2, 0.5]], [[1.0, -0.4], [-0.4, 0.7]], [[0.4, 0.0], [0.0, 0.9]]]),
    ),
}


def likelihood(x):
    return 0.1 + np.exp(-0.5 * ((x - 0.3) ** 2).sum(axis=1)) * (1.3 + np.sin(2.0 * x[:, 0]))


def design(d, n=8, seed=1):
    return 1.3 * np.random.default_rng(seed).standard_normal((n, d))
