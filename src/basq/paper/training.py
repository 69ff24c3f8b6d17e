"""Algorithm 1, lines 12 and 13: train a Gaussian process on the data of a warp."""

from dataclasses import dataclass, replace

import numpy as np

from basq.gp.fit import fit, profiled_mean, still_right
from basq.gp.gp import GP
from basq.gp.kernels import KernelFactory
from basq.gp.kernels.base import Kernel
from basq.types import FloatArray

INITIAL_NOISE = 1e-4
"""Relative noise variance where it would be learned, but hyperparameters are not updated."""


@dataclass(frozen=True)
class Data:
    """Scaled likelihood values (n,) at points u (n, d), with the standard deviation of their noise (n,)."""

    u: FloatArray
    values: FloatArray
    noise: FloatArray


@dataclass(frozen=True)
class Training:
    """How a process learns: what a model is given of the options of ``Paper``.

    Attributes
    ----------
    kernel : callable
        Called with a variance and lengthscales (d,), makes the kernel to begin with.
    constant_mean : bool
        Learn a constant mean instead of zero.
    noise : float or None
        Noise variance relative to the kernel variance; None learns it.
    update_kernel : bool
        Learn the hyperparameters.
    """

    kernel: KernelFactory
    constant_mean: bool
    noise: float | None
    update_kernel: bool

    def first_kernel(self, y: FloatArray, n_dim: int) -> Kernel:
        """The kernel to begin with: the size of the values, and lengthscales that grow with the dimension."""
        return self.kernel(float(np.mean(y**2)) or 1.0, np.full(n_dim, np.sqrt(n_dim)))

    def __call__(self, u: FloatArray, y: FloatArray, previous: GP | None, noise_sd: FloatArray) -> GP:
        """Learn the hyperparameters, starting from the last ones; keep those that predicted the new data well.

        Parameters
        ----------
        u : (n, d) array
            Points in standard space.
        y : (n,) array
            Warped values.
        previous : GP or None
            The process that was trained on the first of these points, if any.
        noise_sd : (n,) array
            Standard deviation of the noise of y.
        """
        kernel = previous.kernel if previous is not None else self.first_kernel(y, u.shape[1])
        noise = kernel.variance * (INITIAL_NOISE if self.noise is None else self.noise) + noise_sd**2
        gp = previous.grown(u, y, noise) if previous is not None else None
        if self.update_kernel and not (gp is not None and still_right(gp)):
            return fit(
                u,
                y,
                kernel,
                constant_mean=self.constant_mean,
                noise=self.noise,
                known_noise=noise_sd**2,
                recalled=None if previous is None else previous.optimum,
            )
        gp = gp or GP.condition(u, y, kernel, noise=noise)
        return replace(gp, mean=profiled_mean(gp.factor, y, kernel.variance)[0]) if self.constant_mean else gp
