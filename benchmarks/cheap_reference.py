"""Brute-force evidences of the models with cheap parameters, by two ways, for `benchmarks.cheap`.

    python -m benchmarks.cheap_reference            # all models, a quarter of an hour
    python -m benchmarks.cheap_reference epidemic   # some

joint
    Tempering from the prior over all parameters, then importance sampling with 2¹⁷ calls from what it found.
nested
    Importance sampling over the expensive parameters alone, 2¹² simulations (2⁹ with one parameter); at each of them
    the likelihood is summed over a grid of the cheap parameters.

Both must agree within 0.02, with the closed form where there is one. PyBaMM takes milliseconds a call, so the first way
interpolates its voltages (polynomials in two parameters) and only the second calls it. Writes
benchmarks/results/cheap_reference.json.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import logsumexp
from scipy.stats import qmc

from basq.cheap.cloud import spread_draws
from basq.numerics.gaussians import LOG_2PI
from basq.numerics.student import MixtureSettings, StudentMixture
from basq.prior import Prior
from basq.problems import Split
from benchmarks.cheap_models import MODELS

PATH = Path("benchmarks/results/cheap_reference.json")
N_PARTICLES, MOVES, KEPT = 4000, 10, 0.5
N_JOINT, N_NESTED = 2**17, 2**12
N_NESTED_LINE = 2**9
"""Where there is one expensive parameter."""
GRID = {1: 401, 2: 61, 3: 41}
"""Points a side of the grid, by the number of cheap parameters."""
CHUNK = 4000

Rows = Callable[[np.ndarray], np.ndarray]


def in_standard_space(function: Callable[[np.ndarray], Any], prior: Prior) -> Rows:
    """The log-likelihood of rows in standard space, by chunks that fit the memory."""

    def rows(u: np.ndarray) -> np.ndarray:
        parts = [function(prior.from_standard(u[i : i + CHUNK])) for i in range(0, len(u), CHUNK)]
        return np.concatenate(parts)

    return rows


def tempered(log_l: Rows, n_dim: int, rng: np.random.Generator) -> np.ndarray:
    """Sequential Monte Carlo from N(0, I): particles (n, d) of the posterior."""
    u = rng.standard_normal((N_PARTICLES, n_dim))
    level, beta = log_l(u), 0.0
    while beta < 1.0:
        step = largest_step(level, 1.0 - beta)
        w = np.exp(step * (level - level.max()))
        w /= w.sum()
        pick = np.minimum(np.searchsorted(np.cumsum(w), (rng.random() + np.arange(len(u))) / len(u)), len(u) - 1)
        u, level, beta = u[pick], level[pick], beta + step
        factor = 2.38 / np.sqrt(n_dim) * np.linalg.cholesky(np.atleast_2d(np.cov(u.T)) + 1e-14 * np.eye(n_dim))
        for _ in range(MOVES):
            there = u + rng.choice([0.2, 0.5, 1.0], (len(u), 1)) * (rng.standard_normal(u.shape) @ factor.T)
            new = log_l(there)
            gain = beta * (new - level) - 0.5 * ((there**2).sum(axis=1) - (u**2).sum(axis=1))
            taken = np.log(rng.random(len(u))) < gain
            u, level = np.where(taken[:, None], there, u), np.where(taken, new, level)
    return u


def largest_step(level: np.ndarray, most: float) -> float:
    """The step of the inverse temperature that keeps half of the particles' effective number."""

    def share(step: float) -> float:
        w = np.exp(step * (level - level.max()))
        return float(w.sum() ** 2 / (w @ w) / len(w))

    if share(most) > KEPT:
        return most
    low, high = 1e-14, most
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if share(middle) > KEPT else (low, middle)
    return low


def importance(log_l: Rows, particles: np.ndarray, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """log Z and its standard error by n draws of a mixture of t distributions that is fitted to the particles."""
    few = particles[rng.choice(len(particles), 2000, replace=False)]
    proposal = StudentMixture.of(few, rng, MixtureSettings())
    u = spread_draws(proposal, n, rng)
    log_terms = log_l(u) - 0.5 * ((u**2).sum(axis=1) + u.shape[1] * LOG_2PI) - proposal.log_pdf(u)
    total = float(logsumexp(log_terms))
    w = np.exp(log_terms - total)
    return total - float(np.log(n)), float(np.sqrt(max(w @ w - 1.0 / n, 0.0)))


def summed_over_grid(model: Split, particles: np.ndarray) -> Rows:
    """The likelihood at expensive points in standard space, summed over a grid of the cheap parameters.

    The grid stands about what a linear regression on the particles expects, and is eight standard deviations wide on
    either side.
    """
    d, k = len(model.prior), len(model.cheap)
    expensive, cheap = Prior(dict(model.prior)), Prior(dict(model.cheap))
    design = np.column_stack([np.ones(len(particles)), particles[:, :d]])
    slopes = np.linalg.lstsq(design, particles[:, d:], rcond=None)[0]
    sd = (particles[:, d:] - design @ slopes).std(axis=0)
    side = np.linspace(-8.0, 8.0, GRID[k])
    grid = np.stack(np.meshgrid(*k * [side], indexing="ij"), axis=-1).reshape(-1, k) * sd
    log_cell = float(np.log(sd * (side[1] - side[0])).sum())

    def one(u: np.ndarray) -> float:
        output = model.simulate(expensive.from_standard(u))
        v = np.append(1.0, u) @ slopes + grid
        total = []
        for i in range(0, len(v), CHUNK):
            part = v[i : i + CHUNK]
            values = dict(zip(model.cheap, cheap.from_standard(part).T, strict=True))
            log_prior = -0.5 * ((part**2).sum(axis=1) + k * LOG_2PI)
            total.append(logsumexp(model.log_likelihood(output, **values) + log_prior))
        return float(logsumexp(total)) + log_cell

    return lambda u: np.array([one(row) for row in u])


def interpolated(model: Split, n_nodes: int = 25, reach: float = 5.0) -> Split:
    """The model with its simulator of two parameters replaced by Chebyshev polynomials in standard space."""
    prior = Prior(dict(model.prior))
    nodes = np.cos(np.pi * (np.arange(n_nodes) + 0.5) / n_nodes)
    grid = reach * np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    outputs = model.simulate(prior.from_standard(grid))
    coefficients = np.linalg.solve(chebyshev.chebvander2d(*grid.T / reach, [n_nodes - 1] * 2), outputs)

    def simulate(x: np.ndarray) -> np.ndarray:
        u = np.clip(prior.to_standard(x) / reach, -1.0, 1.0)  # 10⁻⁶ of the prior lies beyond
        return chebyshev.chebvander2d(u[..., 0], u[..., 1], [n_nodes - 1] * 2) @ coefficients

    tried = prior.from_standard(qmc.Sobol(2, seed=0).random(32) * 4.0 - 2.0)
    worst = np.abs(simulate(tried) - model.simulate(tried)).max() / model.truth[2]
    print(f"{model.name}: interpolated within {worst:.1e} of the noise")
    return Split(model.name, simulate, model.log_likelihood, model.prior, model.cheap, model.data, model.truth)


def reference(name: str, seed: int = 0) -> dict[str, Any]:
    """Both ways for a model."""
    model, rng, start = MODELS[name](), np.random.default_rng(seed), time.perf_counter()
    fast = interpolated(model) if name.startswith("cell") else model
    joint = in_standard_space(fast.log_likelihood_all, fast.joint_prior)
    particles = tempered(joint, fast.joint_prior.n_dim, rng)
    log_z, error = importance(joint, particles, N_JOINT, rng)
    d = len(model.prior)
    n = N_NESTED_LINE if d == 1 else N_NESTED
    nested, nested_error = importance(summed_over_grid(model, particles), particles[:, :d], n, rng)
    out = {
        "log_evidence": log_z if model.log_evidence is None else model.log_evidence,
        "joint": log_z, "joint_error": error, "nested": nested, "nested_error": nested_error,
        "closed_form": model.log_evidence is not None, "seconds": round(time.perf_counter() - start),
    }  # fmt: skip
    print(name, json.dumps(out), flush=True)
    gaps = [out[way] - out["log_evidence"] for way in ("joint", "nested")]
    if max(map(abs, gaps)) > 0.02:
        raise RuntimeError(f"{name}: the two ways do not agree: {out}")
    return out


def main() -> None:
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name in sys.argv[1:] or MODELS:
        known[name] = reference(name)
        PATH.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
