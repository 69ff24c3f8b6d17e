"""Tempered sequential Monte Carlo: from the prior to the surrogate's posterior."""

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from basq.auto.chart import Chart
from basq.auto.settings import Samples
from basq.numerics.gaussians import Measure
from basq.types import FloatArray


class LogLikelihoodModel(Protocol):
    """What the sampler asks of a surrogate."""

    def mean(self, u: FloatArray) -> FloatArray:
        """Cheap part of the log-likelihood at u (m, d): (m,)."""
        ...

    def correction(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Costly part, and the standard deviation of the log-likelihood in nats: (m,), (m,)."""
        ...


@dataclass
class Particles:
    """Points with what is known of them; moved in place, within this file only.

    Attributes
    ----------
    u : (n, d) array
    log_measure, mean, correction, sd : (n,) arrays
    """

    u: FloatArray
    log_measure: FloatArray
    mean: FloatArray
    correction: FloatArray
    sd: FloatArray

    @classmethod
    def at(cls, u: FloatArray, model: LogLikelihoodModel, measure: Measure) -> "Particles":
        return cls(u.copy(), measure.log_pdf(u), model.mean(u), *model.correction(u))

    def take(self, index: np.ndarray) -> "Particles":
        return Particles(*(getattr(self, name)[index] for name in PARTS))

    def put(self, index: np.ndarray, others: "Particles") -> None:
        """Replace those at an index (m,) by m others."""
        for name in PARTS:
            getattr(self, name)[index] = getattr(others, name)


PARTS = tuple(field.name for field in fields(Particles))


@dataclass(frozen=True)
class Population:
    """Samples of the surrogate's posterior, or of the tempered one that the surrogate can resolve.

    Attributes
    ----------
    u : (n, d) array
    beta : float
        Inverse temperature reached; 1 is the posterior.
    warmer : (m, d) array
        Samples of the stages before, from the measure on: its tails.
    """

    u: FloatArray
    beta: float
    warmer: FloatArray


def temper(
    model: LogLikelihoodModel, measure: Measure, n: int, rng: np.random.Generator, settings: Samples
) -> Population:
    """Sample the measure, then raise the likelihood to growing powers, resampling and moving at each."""
    particles = Particles.at(measure.sample(n, rng), model, measure)
    beta, warmer = 0.0, []
    for stage in range(settings.max_stages):
        warmer.append(particles.u.copy())
        log_l = particles.mean + particles.correction
        following = next_temperature(log_l, beta, settings)
        weights = np.exp((following - beta) * (log_l - log_l.max()))
        sd = float(np.median(particles.sd[systematic(weights, settings.looked_at, rng)]))
        unresolved = stage >= 1 and following * sd > settings.unresolved
        last = unresolved or following >= 1.0 or stage == settings.max_stages - 1
        if unresolved:
            weights = np.ones(len(log_l))
        else:
            beta = following
        particles = particles.take(systematic(weights, n if last else n // settings.fewer, rng))
        n_moves = settings.last_moves if last else settings.moves
        move(particles, model, measure, beta, n_moves, rng, settings=settings)
        if last:
            break
    return Population(particles.u, beta, _thinned(warmer[-settings.warmer_stages :], settings.warmer))


def _thinned(stages: list[FloatArray], n: int) -> FloatArray:
    """About n samples of all stages together, as many of each."""
    each = -(-n // len(stages))
    return np.concatenate([u[:: max(len(u) // each, 1)][:each] for u in stages])


def next_temperature(log_l: FloatArray, beta: float, settings: Samples) -> float:
    """Largest step that keeps enough of the effective sample size; some growth at least, so that it ends."""
    below = log_l - log_l.max()

    def share(b: float) -> float:
        w = np.exp((b - beta) * below)
        return float(w.sum() ** 2 / (w @ w) / len(w))

    if share(1.0) > settings.kept:
        return 1.0
    low, high = max(beta, 1e-12), 1.0
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if share(middle) > settings.kept else (low, middle)
    return min(max(low, settings.least_growth * beta), 1.0)


def systematic(weights: FloatArray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Resample n indices in proportion to weights (m,), evenly: (n,)."""
    positions = (np.arange(n) + rng.random()) / n
    return np.minimum(np.searchsorted(np.cumsum(weights / weights.sum()), positions), len(weights) - 1)


def move(
    particles: Particles,
    model: LogLikelihoodModel,
    measure: Measure,
    beta: float,
    n_moves: int,
    rng: np.random.Generator,
    *,
    settings: Samples,
) -> None:
    """Metropolis moves at an inverse temperature, turns about the samples' mean and differential evolution in turn.

    Delayed acceptance: the costly correction is computed only where the mean alone accepts.
    """
    n, d = particles.u.shape
    about = Chart.of(particles.u)
    for k in range(n_moves):
        if k % 2:
            size = rng.choice(settings.steps, size=(n, 1)) * 2.38 / np.sqrt(2 * d)
            u = particles.u + size * (particles.u[rng.permutation(n)] - particles.u[rng.permutation(n)])
            gained = np.zeros(n)
        else:
            u, gained = turned(particles.u, about, rng, settings.turns)
        mean, log_measure = model.mean(u), measure.log_pdf(u)
        ratio = beta * (mean - particles.mean) + log_measure - particles.log_measure - gained
        accepted = np.flatnonzero(np.log(rng.random(n)) < ratio)
        new = Particles(u[accepted], log_measure[accepted], mean[accepted], *model.correction(u[accepted]))
        again = np.log(rng.random(len(accepted))) < beta * (new.correction - particles.correction[accepted])
        particles.put(accepted[again], new.take(again))


def turned(
    u: FloatArray, about: Chart, rng: np.random.Generator, sines: tuple[float, ...]
) -> tuple[FloatArray, FloatArray]:
    """Turn samples u (n, d) towards draws of a Gaussian about them, (n, d); what its log-density gains by it, (n,).

    A turn (a preconditioned Crank-Nicolson move) keeps the Gaussian, which would accept every one, by whatever angle
    and in any number of dimensions. A random walk takes d moves to get as far.
    """
    z, sine = about.whiten(u), rng.choice(sines, size=(len(u), 1))
    new = np.sqrt(1.0 - sine**2) * z + sine * rng.standard_normal(z.shape)
    return about.mean + new @ about.root.T, 0.5 * (z * z - new * new).sum(axis=1)
