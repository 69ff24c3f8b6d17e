"""Observation models: the log-density of data, given a simulation and the parameters of its noise.

Every function takes the data, the simulation and the noise's parameters, numbers or (m,) arrays, and returns a number
or an (m,) array: one simulation serves any number of them. In general, simulations of shape (…, t) and parameters that
broadcast with (…) give (…). A simulation that has overflowed has likelihood zero.
"""

from typing import Any

import numpy as np
from scipy.special import gammaln

from basq.numerics.gaussians import LOG_2PI
from basq.types import FloatArray

TINY = 1e-9
"""Least expected count: a sum that has lost all its digits is not a proof that nothing can happen."""


def gaussian(data: FloatArray, output: Any, sigma: Any, offset: Any = 0.0) -> Any:
    """Log-density of Gaussian noise of standard deviation `sigma` about output + offset."""
    with np.errstate(all="ignore"):
        residuals = data - output
        n, mean = residuals.shape[-1], residuals.mean(axis=-1)
        squares = ((residuals - mean[..., None]) ** 2).sum(axis=-1) + n * (mean - offset) ** 2
        return _density(-0.5 * squares / np.square(sigma) - n * (np.log(sigma) + 0.5 * LOG_2PI))


def gaussian_variance(data: FloatArray, output: Any, variance: Any) -> Any:
    """Log-density of Gaussian noise of this variance about the output."""
    return gaussian(data, output, np.sqrt(variance))


def student(data: FloatArray, output: Any, sigma: Any, nu: Any, offset: Any = 0.0) -> Any:
    """Log-density of Student's t with `nu` degrees of freedom and scale `sigma` about output + offset."""
    sigma, nu, offset = _columns(sigma, nu, offset)
    with np.errstate(all="ignore"):
        z = (data - output - offset) / sigma
        log_scale = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu) - np.log(sigma)
        return _density((log_scale - 0.5 * (nu + 1.0) * np.log1p(z * z / nu)).sum(axis=-1))


def laplace(data: FloatArray, output: Any, sigma: Any, offset: Any = 0.0) -> Any:
    """Log-density of Laplace's double exponential of standard deviation `sigma` about output + offset."""
    sigma, offset = _columns(sigma, offset)
    with np.errstate(all="ignore"):
        z = np.sqrt(2.0) * np.abs(data - output - offset) / sigma
        return _density((-z - np.log(np.sqrt(2.0) * sigma)).sum(axis=-1))


def additive_and_proportional(data: FloatArray, output: Any, additive: Any, proportional: Any) -> Any:
    """Log-density of Gaussian noise with variance additive² + (proportional · output)²."""
    additive, proportional = _columns(additive, proportional)
    with np.errstate(all="ignore"):
        variance = additive**2 + (proportional * output) ** 2
        return _density((-0.5 * ((data - output) ** 2 / variance + np.log(variance) + LOG_2PI)).sum(axis=-1))


def negative_binomial(data: FloatArray, output: Any, reported: Any, dispersion: Any) -> Any:
    """Log-probability of counts with mean m = reported · output and variance m + dispersion · m²."""
    reported, size = _columns(reported, 1.0 / np.asarray(dispersion))
    with np.errstate(all="ignore"):
        mean = np.maximum(reported * output, TINY)
        ways = gammaln(data + size) - gammaln(size) - gammaln(data + 1.0)
        return _density((ways - size * np.log1p(mean / size) - data * np.log1p(size / mean)).sum(axis=-1))


def _columns(*parameters: Any) -> tuple[FloatArray, ...]:
    """Each (…) as (…, 1), to stand beside data."""
    return tuple(np.asarray(p, dtype=float)[..., None] for p in parameters)


def _density(log_density: Any) -> Any:
    """−inf in place of NaN and +inf."""
    return np.where(np.isfinite(log_density), log_density, -np.inf)[()]
