"""Small posteriors in two dimensions, and cells that have learned them."""

import numpy as np

from basq.auto.cells import Cell
from basq.auto.partition import first_plan
from basq.auto.seen import Seen
from basq.auto.settings import Settings
from basq.numerics.gaussians import GaussianMixture
from helpers.observations import observe

SETTINGS = Settings()
MEASURE = GaussianMixture.standard(2)


def learn(observations, rng, *, measure=None, plans=None, k=0, kinds=(None,)):
    """A cell that has learned from observations; the only one, if no others are planned."""
    n_dim = observations.u.shape[1]
    seen = Seen.of(observations, measure or GaussianMixture.standard(n_dim), np.inf)
    return Cell.learn(plans or first_plan(n_dim), k, seen=seen, rng=rng, settings=SETTINGS, kinds=kinds)


def parabola(u):
    return -2.0 * (u * u).sum(axis=1)


def two_modes(u):
    near = -0.5 * ((u - 1.5) ** 2).sum(axis=1) / 0.2**2
    far = -0.5 * ((u + 1.5) ** 2).sum(axis=1) / 0.4**2
    return np.logaddexp(near, far)


def learned_parabola():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(30, 2))
    return learn(observe(u, parabola(u)), rng)
