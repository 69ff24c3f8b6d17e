"""A Gaussian likelihood under a normal prior, of which everything is known, and surrogates of it, right and wrong."""

from contextlib import contextmanager

import numpy as np
import pytest
from scipy import stats

import basq
from basq.certificate import design
from basq.certificate.certificate import Certificate
from basq.certificate.design import Design
from basq.numerics.gaussians import GaussianMixture

PRIOR = basq.Prior({"a": stats.norm(0, 1), "b": stats.norm(0, 1)})  # standard space is the user's
CENTRE, WIDTH = np.array([0.5, -0.3]), np.array([0.3, 0.45])
VARIANCE = 1.0 / (1.0 + WIDTH**-2)
MEAN, SD = VARIANCE * CENTRE / WIDTH**2, np.sqrt(VARIANCE)
"""Of the posterior, coordinate by coordinate."""
LOG_Z = float(np.sum(np.log(SD) - 0.5 * CENTRE**2 / (1.0 + WIDTH**2)))


def log_likelihood(u):
    """Of rows (n, 2), 0 at the most."""
    return -0.5 * (((u - CENTRE) / WIDTH) ** 2).sum(axis=1)


def believed(shift=0.0, width=1.0):
    """The posterior, moved by so many standard deviations in each direction, and so many times as wide."""
    return GaussianMixture(np.ones(1), (MEAN + shift * SD)[None], np.diag((width * SD) ** 2)[None])


@contextmanager
def cheap_designs():
    """Draw designs from small pools, whose errors are larger and no less honest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "N_POOL", 1000, raising=False)
        patch.setattr(design, "N_POPULATION", 500, raising=False)
        yield


def drawn(n, rng, posterior=None, off=0.0):
    """Points of a certificate for a surrogate whose log Z is off by so much."""
    return Design.draw(posterior or believed(), LOG_Z + off, PRIOR, 0.0, n, rng)


def judged(plan, values=None, *, noise=0.0, off=0.0, sd=0.01, target=0.1, n_pending=0, **more):
    """What the calls of a design say about a surrogate that is off by so much, and sure of itself up to sd."""
    values = log_likelihood(plan.u) if values is None else values
    noise = np.broadcast_to(noise, values.shape)
    return Certificate(plan, plan.u, values, noise, n_pending, (LOG_Z + off, sd), target, **more)
