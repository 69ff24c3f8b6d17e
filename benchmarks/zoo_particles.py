"""Posteriors in two systems of coordinates, and particles that are carried to them, for the references of the zoo."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.mixture import GaussianMixture

from basq.prior import Prior
from basq.problems import zoo

CHUNK = 5000
KEPT_SHARE = 0.7
MOVES = 4.0
"""Tempering: what each step leaves of the particles' information, and accepted moves of a particle at each power."""

Values = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Target:
    """A posterior in some coordinates: (n, d) -> (n,), and a map of its points to the parameters, (n, d) -> (n, d)."""

    log_prior: Values
    log_likelihood: Values
    parameters: Values

    def log_posterior(self, v: np.ndarray) -> np.ndarray:
        pieces = np.split(v, range(CHUNK, len(v), CHUNK))
        return np.concatenate([self.log_prior(piece) + self.log_likelihood(piece) for piece in pieces])


def in_standard_space(problem: zoo.ZooProblem) -> Target:
    """u, in which the prior is N(0, I)."""
    prior = Prior(dict(problem.prior))

    def log_prior(u: np.ndarray) -> np.ndarray:
        return stats.norm.logpdf(u).sum(axis=1)

    return Target(log_prior, lambda u: problem.log_likelihood(prior.from_standard(u)), prior.from_standard)


@dataclass(frozen=True)
class Own:
    """One parameter on the whole line: by a logit between two bounds (of the logarithm over decades), or a logarithm.

    Attributes
    ----------
    law : frozen scipy.stats distribution
    """

    law: Any

    @classmethod
    def of(cls, marginal: Any) -> "Own":
        return cls(stats.uniform(marginal[0], marginal[1] - marginal[0]) if isinstance(marginal, tuple) else marginal)

    @property
    def kind(self) -> str:
        lo, hi = self.law.support()
        if np.isfinite(hi):
            return "decades" if 0.0 < 9.0 * lo < hi else "logit"
        return "log" if np.isfinite(lo) else "line"

    def to_parameter(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parameter (n,), and the log of its derivative (n,)."""
        (lo, hi), log_slope = self.law.support(), special.log_expit(v) + special.log_expit(-v)
        match self.kind:
            case "decades":
                x = lo * (hi / lo) ** special.expit(v)
                return x, log_slope + np.log(x) + np.log(np.log(hi / lo))
            case "logit":
                return lo + (hi - lo) * special.expit(v), log_slope + np.log(hi - lo)
            case "log":
                return lo + np.exp(v), v
        return v, np.zeros(len(v))

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of the prior on the line, (n,)."""
        (lo, hi), x = self.law.support(), self.law.rvs(n, random_state=rng)
        match self.kind:
            case "decades":
                return special.logit(np.clip(np.log(x / lo) / np.log(hi / lo), 1e-300, 1.0 - 1e-16))
            case "logit":
                return special.logit(np.clip((x - lo) / (hi - lo), 1e-300, 1.0 - 1e-16))
            case "log":
                return np.log(np.maximum(x - lo, 1e-300))
        return x


def in_own_space(problem: zoo.ZooProblem) -> Target:
    """Parameters that have bounds by their logits or logarithms, the others as they are."""
    own = [Own.of(marginal) for marginal in problem.prior.values()]

    def parameters(v: np.ndarray) -> np.ndarray:
        return np.column_stack([o.to_parameter(column)[0] for o, column in zip(own, v.T, strict=True)])

    def log_prior(v: np.ndarray) -> np.ndarray:
        out = np.zeros(len(v))
        for o, column in zip(own, v.T, strict=True):
            x, log_slope = o.to_parameter(column)
            out += o.law.logpdf(x) + log_slope
        return np.where(np.isnan(out), -np.inf, out)

    def log_likelihood(v: np.ndarray) -> np.ndarray:
        x = parameters(v)
        out, usable = np.full(len(v), -np.inf), np.isfinite(x).all(axis=1)
        out[usable] = problem.log_likelihood(x[usable])
        return out

    return Target(log_prior, log_likelihood, parameters)


def tempered(target: Target, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Carry draws of the prior (n, d) to the posterior, by powers of the likelihood that grow from 0 to 1."""
    x, power = start, 0.0
    log_l, log_p = target.log_likelihood(x), target.log_prior(x)
    while power < 1.0:
        step = _next_step(log_l, 1.0 - power)
        power = min(power + step, 1.0)
        with np.errstate(invalid="ignore"):
            weights = special.softmax(step * log_l)
        places = (np.arange(len(x)) + rng.random()) / len(x)
        keep = np.minimum(np.searchsorted(np.cumsum(weights), places), len(x) - 1)
        x, log_l, log_p = x[keep], log_l[keep], log_p[keep]
        moved = 0.0
        for _ in range(60):
            x, log_l, log_p, rate = sweep(target, power, (x, log_l, log_p), rng)
            moved += rate
            if moved > MOVES:
                break
    return x


def _next_step(log_l: np.ndarray, most: float) -> float:
    """The step whose weights leave most of the particles' information, or all that is left."""

    def share(step: float) -> float:
        w = np.exp(step * (log_l - log_l.max()))
        return float(w.sum() ** 2 / (w**2).sum() / len(w))

    finite = float(np.mean(log_l > -np.inf))
    lo, hi = -40.0, np.log10(most)
    if share(most) >= KEPT_SHARE * finite:
        return most
    for _ in range(50):
        middle = 0.5 * (lo + hi)
        lo, hi = (middle, hi) if share(10.0**middle) > KEPT_SHARE * finite else (lo, middle)
    return 10.0**lo


def sweep(target: Target, power: float, state: tuple[np.ndarray, ...], rng: np.random.Generator) -> tuple[Any, ...]:
    """Move one half of the particles along differences of the other half, then the other way round."""
    x, log_l, log_p = (a.copy() for a in state)
    n, d = x.shape
    halves = np.array_split(rng.permutation(n), 2)
    accepted = 0
    for mine, others in (halves, halves[::-1]):
        pairs = others[rng.integers(len(others), size=(len(mine), 2))]
        scale = 2.38 / np.sqrt(2.0 * d) * 10.0 ** rng.uniform(-1.2, 0.1, (len(mine), 1))
        scale[rng.random(len(mine)) < 0.15] = 1.0  # from mode to mode
        scale[rng.random(len(mine)) < 0.2] *= 0.03  # within one of many
        some = rng.random((len(mine), d)) < rng.choice([0.4, 1.0], (len(mine), 1))  # of the coordinates
        new = x[mine] + some * scale * (x[pairs[:, 0]] - x[pairs[:, 1]])
        new += 1e-6 * rng.standard_normal(new.shape)
        new_p = target.log_prior(new)
        new_l = np.full(len(mine), -np.inf)
        new_l[new_p > -np.inf] = target.log_likelihood(new[new_p > -np.inf])
        with np.errstate(invalid="ignore"):
            ratio = new_p - log_p[mine] + power * (new_l - log_l[mine])
        yes = np.log(rng.random(len(mine))) < ratio
        x[mine[yes]], log_l[mine[yes]], log_p[mine[yes]] = new[yes], new_l[yes], new_p[yes]
        accepted += int(yes.sum())
    return x, log_l, log_p, accepted / n


def near(problem: zoo.ZooProblem, target: Target, rng: np.random.Generator) -> np.ndarray:
    """Chains from the parameters that made the data, for the mode that tempering might have missed."""
    centre = Prior(dict(problem.prior)).to_standard(problem.truth)
    x = centre + 1e-3 * rng.standard_normal((500, problem.n_dim))
    state = (x, target.log_likelihood(x), target.log_prior(x))
    for _ in range(200):
        state = sweep(target, 1.0, state, rng)[:3]
    return state[0]


def jump(target: Target, fit: GaussianMixture, state: Any, mine: np.ndarray, rng: np.random.Generator) -> Any:
    """Propose these particles anew from a fit to the others, so that modes have the shares that they should have."""
    x, log_l, log_p = (a.copy() for a in state)
    new = fit.sample(len(mine))[0][rng.permutation(len(mine))]
    new_p, new_l = target.log_prior(new), target.log_likelihood(new)
    ratio = new_p + new_l - fit.score_samples(new) - (log_p + log_l)[mine] + fit.score_samples(x[mine])
    yes = np.log(rng.random(len(mine))) < ratio
    x[mine[yes]], log_l[mine[yes]], log_p[mine[yes]] = new[yes], new_l[yes], new_p[yes]
    return x, log_l, log_p
