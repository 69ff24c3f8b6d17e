"""The easy problem: a Gaussian likelihood in a box about zero."""

from typing import Any

import numpy as np

from basq.observations import Observations
from basq.prior import Prior
from basq.types import FloatArray

HALF_WIDTH, CENTRE, SD = 3.0, 0.3, 0.5


def log_evidence(n_dim: int) -> float:
    """The true answer."""
    return n_dim * float(np.log(np.sqrt(2.0 * np.pi) * SD / (2.0 * HALF_WIDTH)))


def easy_log_likelihood(x: FloatArray) -> Any:
    """At a point (d,), or at points (n, d): (n,)."""
    return -0.5 * (((x - CENTRE) / SD) ** 2).sum(axis=-1)


def easy(n_dim: int, n: int) -> tuple[Prior, Observations]:
    """The easy problem, and its values at n points of the prior."""
    prior = Prior({f"x{i}": (-HALF_WIDTH, HALF_WIDTH) for i in range(n_dim)})
    u = prior.measure.sample_quasi(n, np.random.default_rng(5))
    x = prior.from_standard(u)
    return prior, Observations.empty(n_dim).append(x, u, easy_log_likelihood(x), prior.log_weight(u), explores=True)
