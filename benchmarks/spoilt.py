"""Surrogates that are wrong on purpose: what a certificate has to notice."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from basq.gp.fit import fit
from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.method import Posterior
from basq.numerics.gaussians import GaussianMixture, mean_and_root
from basq.numerics.linalg import solve_lower
from basq.numerics.student import MixtureSettings, StudentMixture
from basq.posterior.sampled import N_POPULATION, SampledPosterior
from basq.results.result import Result

CUT, DEEP = 0.2, 20.0
"""Share of the mass that a cut takes off, and by how many nats."""
SHIFT = 0.5
"""Standard deviations by which the posterior is shifted along every axis, together those of one dimension."""
LEVEL = 0.3
"""Nats by which the mean is shifted."""
SHORT = 0.25
"""Factor on the lengthscale."""
IN_PLAY = 50.0
"""Nats below the best value at which values are held."""
N_DRAWS = 20_000

Surrogate = tuple[Posterior, float]
"""A posterior in standard space, and log Z."""


@dataclass(frozen=True)
class Cut:
    """A log-density without most of what lies beyond a plane."""

    log_density: Callable[[np.ndarray], np.ndarray]
    normal: np.ndarray
    edge: float
    log_norm: float = 0.0

    def __call__(self, u: np.ndarray) -> np.ndarray:
        return self.log_density(u) - DEEP * (u @ self.normal > self.edge) - self.log_norm


@dataclass(frozen=True)
class Process:
    """The log-density of a process in whitened coordinates, times the prior."""

    gp: GP
    mean: np.ndarray
    root: np.ndarray
    measure: GaussianMixture
    log_norm: float = 0.0

    def __call__(self, u: np.ndarray) -> np.ndarray:
        z = solve_lower(self.root, (u - self.mean).T).T
        return self.gp.predict(z).mean + self.measure.log_pdf(u) - self.log_norm


def tail(result: Result, rng: np.random.Generator) -> Surrogate:
    """A fifth of the posterior, beyond a plane, is cut off."""
    posterior = _posterior(result)
    u = posterior.sample(N_POPULATION, rng)
    mean, root = mean_and_root(u)
    normal = np.linalg.solve(root.T, rng.normal(size=len(mean)))
    edge = float(np.quantile(u @ normal, 1.0 - CUT))
    return _sampled(Cut(posterior.log_pdf, normal, edge), u, rng, result.log_evidence)


def lengthscale(result: Result, rng: np.random.Generator) -> Surrogate:
    """The process of a lengthscale four times too short."""
    seen, u = result.observations, _posterior(result).sample(N_POPULATION, rng)
    mean, root = mean_and_root(u)
    best = float(seen.log_values.max())
    values = np.maximum(seen.log_values - best, -IN_PLAY)
    z = solve_lower(root, (seen.u - mean).T).T
    good = fit(z, values, make_kernel("matern52", len(mean), variance=float(values.var())), constant_mean=True)
    bad = replace(good.kernel, lengthscale=SHORT * good.kernel.lengthscale)  # type: ignore[type-var]
    process = Process(GP.condition(z, values, bad, mean=good.mean, noise=good.noise), mean, root, result.prior.measure)
    return _sampled(process, u, rng, best)


def mean(result: Result, rng: np.random.Generator) -> Surrogate:
    """The posterior lies elsewhere."""
    posterior = _posterior(result)
    _, root = mean_and_root(posterior.sample(N_POPULATION, rng))
    d = len(root)
    direction = rng.normal(size=d)
    off = SHIFT * np.sqrt(d) * root @ (direction / np.linalg.norm(direction))
    return posterior.affine(np.eye(d), off), result.log_evidence


def level(result: Result, rng: np.random.Generator) -> Surrogate:
    """All values are too high: the posterior is right, its mass is not."""
    return _posterior(result), result.log_evidence + LEVEL


SPOILT: dict[str, Callable[[Result, np.random.Generator], Surrogate]] = {
    "tail cut off": tail, "wrong lengthscale": lengthscale, "shifted posterior": mean, "shifted level": level
}  # fmt: skip


def _posterior(result: Result) -> Posterior:
    assert result.standard_posterior is not None
    return result.standard_posterior


def _sampled(log_density: Cut | Process, u: np.ndarray, rng: np.random.Generator, level: float) -> Surrogate:
    """A log-density, relative to exp(level), normalised by draws from about the points u (n, d)."""
    about = StudentMixture.of(u, rng, MixtureSettings())
    wide = StudentMixture(about.weights, about.means, 2.0 * about.roots, about.freedom)
    draws = np.concatenate([about.sample(N_DRAWS // 2, rng), wide.sample(N_DRAWS // 2, rng)])
    log_q = np.logaddexp(about.log_pdf(draws), wide.log_pdf(draws)) - np.log(2.0)
    log_weights = log_density(draws) - log_q
    total = float(logsumexp(log_weights) - np.log(len(draws)))
    normalised = replace(log_density, log_norm=total)
    return SampledPosterior.build(normalised, draws, log_weights, rng), level + total
