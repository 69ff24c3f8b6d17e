"""Observations out of thin air."""

import numpy as np

from basq.observations import Observations


def observe(u, values, noise=0.0):
    """Values at the rows of u, where standard space and the user's are one."""
    return Observations.empty(u.shape[1]).append(u, u, values, np.zeros(len(u)), noise=noise)
