"""Type-II maximum likelihood: hyperparameters by quasi-Newton steps with analytic gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import blas

from basq.errors import FitError
from basq.gp.gp import GP
from basq.gp.kernels.base import Kernel
from basq.numerics.gaussians import LOG_2PI
from basq.numerics.linalg import cho_inverse_upper, cho_solve, cholesky, diagonal, solve_lower
from basq.numerics.search import Optimum, descend
from basq.types import FloatArray

MEAN_SPREAD = 10.0
"""Prior sd of the constant mean in units of the kernel's: far too wide to matter, except that it keeps the
estimate finite when a long lengthscale makes the constant and the kernel interchangeable."""

NOISE_BOUNDS = (1e-10, 1.0)
"""Allowed noise variance, relative to the kernel variance."""

UNKNOWN_BOUNDS = (1e-3, 1e3)
"""Allowed standard deviation of unknown noise, in the units that it is learned in."""

FEW = 1.25
"""Growth of the number of data up to which hyperparameters may be kept."""


@dataclass(frozen=True)
class Hyperprior:
    """Independent normal priors on the logarithms of the hyperparameters.

    Without them the fit to the first few points can drive a lengthscale to zero, after which the process predicts
    its mean everywhere and claims to be sure of nothing.

    Attributes
    ----------
    mean, sd : (p,) arrays
        One value per entry of the kernel's ``theta``; an infinite sd is flat.
    lower, upper : (p,) arrays
        Bounds of the search.
    """

    mean: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def weak(cls, kernel: Kernel, n_dim: int, scale: float) -> "Hyperprior":
        """Lengthscales of the order of the data's spread, variance of the order of ``scale``.

        In standard space the prior has unit spread in each of d coordinates and two of its draws are √(2d)
        apart; log-lengthscales are centred on ½ log d with unit sd.
        """
        n_scales = kernel.variance_index
        shape = len(kernel.theta) - n_scales - 1
        mean = np.concatenate([np.full(n_scales, 0.5 * np.log(n_dim)), [np.log(scale)], np.zeros(shape)])
        sd = np.concatenate([np.ones(n_scales), [2.0], np.ones(shape)])
        return cls(mean, sd, mean - 5.0 * sd, mean + 5.0 * sd)

    def penalty(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Minus log-density up to a constant, and its gradient."""
        z = (theta - self.mean) / self.sd
        return 0.5 * float(z @ z), z / self.sd


@dataclass(frozen=True)
class UnknownNoise:
    """One standard deviation of noise that some data share, and that is learned with the hyperparameters.

    Attributes
    ----------
    weights : (n,) array
        Variance of each datum per unit of the noise's variance; zero where the noise is known.
    guesses : tuple of float
        Standard deviations that the search may begin with.
    spread : float
        Of the logarithm, about that of one, in the prior.
    """

    weights: FloatArray
    guesses: tuple[float, ...]
    spread: float

    def variances(self, log_sd: float) -> FloatArray:
        """Of the data, (n,)."""
        out: FloatArray = np.exp(2.0 * log_sd) * self.weights
        return out


def profiled_mean(factor: FloatArray, y: FloatArray, variance: float) -> tuple[float, float]:
    """Best constant mean under its wide prior, and the prior's penalty there."""
    ones = np.ones(len(y))
    projected = cho_solve(factor, ones)
    centre = float(y.mean())
    precision = 1.0 / (MEAN_SPREAD**2 * variance)
    mean = float((projected @ y + centre * precision) / (projected @ ones + precision))
    return mean, 0.5 * (mean - centre) ** 2 * precision


def negative_log_posterior(
    theta: FloatArray,
    x: FloatArray,
    y: FloatArray,
    kernel: Kernel,
    hyperprior: Hyperprior,
    *,
    constant_mean: bool,
    noise: float | None,
    known_noise: FloatArray | float = 0.0,
    unknown_noise: UnknownNoise | None = None,
) -> tuple[float, FloatArray]:
    """Minus log marginal likelihood minus log hyperprior, and its gradient.

    Parameters
    ----------
    theta : (p,) or (p + 1,) array
        Kernel hyperparameters; then the log of the relative noise variance if ``noise`` is None, or of the standard
        deviation of unknown noise.
    noise : float or None
        Noise variance relative to the kernel variance, or None to learn it.
    known_noise : float or (n,) array
        Noise variance known for each datum, on top of it.
    unknown_noise : UnknownNoise or None
        Further noise, to be learned.
    """
    n_kernel = len(kernel.theta)
    current = kernel.with_theta(theta[:n_kernel])
    relative = float(np.exp(theta[-1])) if noise is None else noise
    added = relative * current.variance
    if unknown_noise is not None:
        unknown = unknown_noise.variances(theta[-1])
        known_noise = known_noise + unknown
    k, contract = current.with_gradient(x)
    factor, _ = cholesky(k, plus=added + known_noise)
    mean, mean_penalty = profiled_mean(factor, y, current.variance) if constant_mean else (0.0, 0.0)
    omega = cho_solve(factor, y - mean)
    value = 0.5 * float((y - mean) @ omega) + float(np.log(diagonal(factor)).sum()) + 0.5 * len(y) * LOG_2PI
    # one triangle of Ω − ωωᵀ, its diagonal halved: half of the symmetric matrix
    g = blas.dsyr(-1.0, omega, a=cho_inverse_upper(factor).T, lower=1, overwrite_a=1).T
    diagonal(g.T)[:] *= 0.5
    gradient = contract(g)
    # the noise is relative, so it moves with the kernel variance too
    by_noise = added * float(np.trace(g))
    gradient[kernel.variance_index] += by_noise - mean_penalty
    penalty, by_penalty = hyperprior.penalty(theta[:n_kernel])
    gradient += by_penalty
    if noise is None:
        z = (theta[-1] - np.log(1e-4)) / 3.0
        penalty += 0.5 * z * z
        gradient = np.append(gradient, by_noise + z / 3.0)
    if unknown_noise is not None:
        z = theta[-1] / unknown_noise.spread
        penalty += 0.5 * z * z
        gradient = np.append(gradient, 2.0 * float(diagonal(g.T) @ unknown) + z / unknown_noise.spread)
    return value + mean_penalty + penalty, gradient


def fit(
    x: FloatArray,
    y: FloatArray,
    start: Kernel,
    *,
    constant_mean: bool = False,
    noise: float | None = 1e-6,
    known_noise: FloatArray | float = 0.0,
    unknown_noise: UnknownNoise | None = None,
    hyperprior: Hyperprior | None = None,
    recalled: Optimum | None = None,
    other_starts: Sequence[Kernel] = (),
    max_steps: int = 60,
) -> GP:
    """Learn the hyperparameters and condition on the data.

    Parameters
    ----------
    x : (n, d) array
    y : (n,) array
    start : Kernel
        Family, and first guess.
    constant_mean : bool
        Learn a constant mean (profiled out in closed form) instead of zero.
    noise : float or None
        Noise variance relative to the kernel variance; None learns it.
    known_noise : float or (n,) array
        Noise variance known for each datum, on top of it.
    unknown_noise : UnknownNoise, optional
        Further noise, to be learned; the logarithm of its standard deviation is the last of the optimum's ``theta``.
    hyperprior : Hyperprior, optional
        Weak priors by default.
    recalled : Optimum, optional
        That of the last fit, to begin with instead of ``start``.
    other_starts : sequence of Kernel
        Further first guesses. The search begins at the best guess. A recalled optimum is searched from by itself, and
        the best of these too; the better optimum wins.
    max_steps : int
        Most steps of a search.

    Returns
    -------
    GP
    """
    scale = float(np.mean((y - y.mean()) ** 2 if constant_mean else y**2))
    prior = hyperprior or Hyperprior.weak(start, x.shape[1], max(scale, 1e-12))
    lower, upper = prior.lower, prior.upper
    if noise is None:
        lower, upper = np.append(lower, np.log(NOISE_BOUNDS[0])), np.append(upper, np.log(NOISE_BOUNDS[1]))
    if unknown_noise is not None:
        low, high = np.log(UNKNOWN_BOUNDS)
        lower, upper = np.append(lower, low), np.append(upper, high)
    family = start.prepared(x)

    def objective(t: FloatArray) -> tuple[float, FloatArray]:
        try:
            return negative_log_posterior(
                t, x, y, family, prior, constant_mean=constant_mean, noise=noise, known_noise=known_noise,
                unknown_noise=unknown_noise,
            )  # fmt: skip
        except FitError:  # a step far outside: send the search back
            return 1e25, np.zeros_like(t)

    guesses = [k.theta if noise is not None else np.append(k.theta, np.log(1e-4)) for k in (start, *other_starts)]
    if unknown_noise is not None:
        guesses = [np.append(t, np.log(sd)) for t in guesses for sd in unknown_noise.guesses]
    optima = []
    if recalled is not None:
        optima.append(descend(objective, recalled.theta, lower, upper, max_steps, recalled.spread))
        del guesses[: len(guesses) // (1 + len(other_starts))]  # those of the first kernel
    if guesses:
        best_guess = min(guesses, key=lambda t: objective(np.clip(t, lower, upper))[0]) if guesses[1:] else guesses[0]
        optima.append(descend(objective, best_guess, lower, upper, max_steps))
    best = min(optima, key=lambda optimum: optimum.value)
    kernel = start.with_theta(best.theta[: len(start.theta)])
    relative = float(np.exp(best.theta[-1])) if noise is None else noise
    if unknown_noise is not None:
        known_noise = known_noise + unknown_noise.variances(best.theta[-1])
    gp = GP.condition(x, y, kernel, noise=relative * kernel.variance + np.broadcast_to(known_noise, len(x)))
    mean = profiled_mean(gp.factor, y, kernel.variance)[0] if constant_mean else 0.0
    return replace(gp, mean=mean, n_learned=len(x), optimum=best)


def still_right(gp: GP) -> bool:
    """Whether a process need not learn its hyperparameters again for the data that were added since it did.

    They are few, and as far off their prediction as it expected: the sum of m squared standardised residuals, each
    given the data before, is within two standard deviations √(2m) of m. The values that it learned from have kept
    their scale.
    """
    squares = solve_lower(gp.factor, gp.y - gp.mean) ** 2
    old, new = squares[: gp.n_learned], squares[gp.n_learned :]
    few = len(gp.y) <= FEW * gp.n_learned
    return few and abs(old.mean() - 1.0) < 0.1 and abs(new.sum() - len(new)) <= 2.0 * np.sqrt(2.0 * len(new))
