"""Kernels: one small class each, and the table of those that have a name."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Literal

import numpy as np

from basq.errors import InputError
from basq.gp.kernels.base import Kernel
from basq.gp.kernels.polynomial import Polynomial
from basq.gp.kernels.stationary import RBF, Matern12, Matern32, Matern52, RationalQuadratic
from basq.types import FloatArray

KernelName = Literal["rbf", "rbf-iso", "matern12", "matern32", "matern52", "rq", "polynomial"]
KernelFactory = Callable[[float, FloatArray], Kernel]
"""Called with a variance and lengthscales (d,), makes a kernel: a class, for one."""

KERNELS: Mapping[str, KernelFactory] = MappingProxyType(
    {
        "rbf": RBF,
        "rbf-iso": partial(RBF, isotropic=True),
        "matern12": Matern12,
        "matern32": Matern32,
        "matern52": Matern52,
        "rq": RationalQuadratic,
        "polynomial": Polynomial,
    }
)


def make_kernel(name: KernelName, n_dim: int, *, lengthscale: float = 1.0, variance: float = 1.0) -> Kernel:
    """Build a kernel by its name, with one lengthscale for all coordinates to start from."""
    if name not in KERNELS:
        raise InputError(f"Unknown kernel {name!r}; allowed are {', '.join(KERNELS)}.")
    return KERNELS[name](variance, np.full(n_dim, lengthscale))
