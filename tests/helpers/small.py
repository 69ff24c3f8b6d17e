"""Small problems that many tests run: a Gaussian in a box, a rotated normal prior."""

import os
import time
from pathlib import Path

import numpy as np
from scipy.special import ndtri

import basq

PRIOR = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 48, "dlogz": 0.0, "progress": False}


def gauss(x):
    return float(-0.5 * np.sum((np.asarray(x) - 0.3) ** 2) / 0.1)


def infer(function, **options):
    """A short run over the box."""
    return basq.infer(function, PRIOR, **{**OPTIONS, **options})


class Heavy:
    """The Gaussian, leaving a mark wherever it is unpickled."""

    def __init__(self, directory):
        self.directory = str(directory)

    def __setstate__(self, state):
        self.__dict__ = state
        Path(self.directory, f"{os.getpid()}-{time.monotonic_ns()}").touch()

    def __call__(self, x):
        return gauss(x)


def rotate(cube):
    """A prior transform that couples its parameters: a rotated standard normal."""
    z = ndtri(cube)
    return np.array([0.8 * z[0] - 0.6 * z[1], 0.6 * z[0] + 0.8 * z[1]])
