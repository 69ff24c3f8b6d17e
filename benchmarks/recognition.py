"""Noise scales in black boxes: how many are recognised, and what is taken for one that is none.

    python -m benchmarks.recognition            # every parameter of 20 data sets of every model of basq.problems.zoo
    python -m benchmarks.recognition --quick    # of one (seconds)

The truth does not come from a list, but from many calls: parameters have a common noise scale if the log-likelihood has
the form −(A/2) e^(−κs) − n s + c along it at several other points, with the same κ and n, to nine digits. The engine
sees its first design and three calls a parameter. What it recognises has to be one; and every positive parameter that
is one by itself has to be recognised. The last line is JSON.
"""

import argparse
import json
from typing import Any

import numpy as np

from basq.auto.scales import Axis, NoiseScale, Probes, classify
from basq.auto.settings import Settings
from basq.observations import Observations
from basq.prior import Prior
from basq.problems import zoo

EXACT = 1e-9
"""Residual of a form that holds, relative to the values."""
N_LINES = 6
"""Other points at which the form is tested,"""
N_ALONG = 12
"""each with so many calls."""


def observed(problem: Any, prior: Prior, u: np.ndarray) -> Observations:
    """Calls at points u (n, d) of standard space."""
    x = prior.from_standard(u)
    with np.errstate(all="ignore"):
        return Observations.empty(prior.n_dim).append(x, u, problem.log_likelihood(x), np.zeros(len(u)))


def recognised(problem: Any, prior: Prior, seed: int) -> tuple[set[int], list[NoiseScale]]:
    """Places of the parameters that the engine was offered, and what it takes for noise scales."""
    settings, size = Settings(), Settings().start.size(prior.n_dim)
    seen = observed(problem, prior, prior.measure.sample_quasi(size, np.random.default_rng(seed)))
    probes = Probes.plan(seen, prior, settings.recognition)
    every = observed(problem, prior, np.concatenate([seen.u, probes.u.reshape(-1, prior.n_dim)]))
    scales, _ = classify(every, probes, settings.recognition)
    return {a.dim for a in probes.axes}, list(scales)


def misfit(problem: Any, prior: Prior, scales: list[tuple[Axis, float]], rng: np.random.Generator) -> float:
    """Largest residual of the form along the common scale of some parameters, relative to the values.

    n is shared by all lines; A and c belong to each.
    """
    (first, kappa), lines = scales[0], []
    for _ in range(N_LINES):
        x = np.repeat(prior.from_standard(rng.standard_normal((1, prior.n_dim))), N_ALONG, axis=0)
        ends = [prior.coordinate_from_standard(a.dim, np.array([-1.5, 1.5])) for a, _ in scales]
        width = min(abs(k * np.ptp(a.s(e))) for (a, k), e in zip(scales, ends, strict=True))
        common = np.linspace(-0.5, 0.5, N_ALONG) * width
        for a, k in scales:
            s = a.s(x[:, a.dim]) + common / k
            x[:, a.dim] = np.clip(s if a.logarithmic else np.exp(s), *prior.bounds[a.dim])
        own, s = observed(problem, prior, prior.to_standard(x)), first.s(x[:, first.dim])
        usable = np.isfinite(own.log_likelihood) & (np.abs(own.log_likelihood) < 1e7)
        inside = np.all([(x[:, a.dim] > lo) & (x[:, a.dim] < hi) for a, _ in scales
                         for lo, hi in [prior.bounds[a.dim]]], axis=0)  # fmt: skip
        usable &= inside
        if usable.sum() >= 6:
            lines.append((s[usable], own.log_likelihood[usable]))
    if len(lines) < 2:
        return float("nan")
    n_rows, row = sum(len(s) for s, _ in lines), 0
    design, right, scale = np.zeros((n_rows, 1 + 2 * len(lines))), np.empty(n_rows), np.empty(n_rows)
    for i, (s, y) in enumerate(lines):
        rows = slice(row, row + len(s))
        exponent = -kappa * s
        design[rows, 0], design[rows, 1 + 2 * i] = -s, 1.0
        design[rows, 2 + 2 * i] = -np.exp(np.maximum(exponent - exponent.max(), -600.0))
        right[rows], scale[rows] = y, np.abs(y).max()
        row += len(s)
    found = np.linalg.lstsq(design / scale[:, None], right / scale, rcond=1e-15)[0]
    return float(np.abs((design @ found - right) / scale).max())


def is_scale(problem: Any, prior: Prior, dim: int, rng: np.random.Generator) -> bool | None:
    """Whether a positive parameter is a noise scale by brute force; None where the calls do not tell."""
    found = [misfit(problem, prior, [(Axis(dim, False), k)], rng) for k in Axis(dim, False).kappas]
    return None if np.isnan(found).any() else min(found) < EXACT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one data set of every model")
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    counts = {"parameters": 0, "offered": 0, "recognised": 0, "false": 0, "positive_scales": 0, "missed": 0}
    for name, make in zoo.MODELS.items():
        for seed in range(1 if arguments.quick else arguments.seeds):
            problem, rng = make(seed), np.random.default_rng(seed)
            prior = Prior(problem.prior)
            offered, found = recognised(problem, prior, seed)
            places = {k.axis.dim for k in found}
            counts["parameters"] += prior.n_dim
            counts["offered"] += len(offered)
            counts["recognised"] += len(found)
            together = [(k.axis, k.kappa) for k in found]
            if found and misfit(problem, prior, together, rng) > EXACT:  # no common one, but each may be one
                wrong = [a for a, k in together if misfit(problem, prior, [(a, k)], rng) > EXACT]
                counts["false"] += len(wrong)
                for a in wrong:
                    print(f"{name} {seed}: {prior.names[a.dim]} is no noise scale")
            for dim in np.flatnonzero(prior.bounds[:, 0] >= 0.0):
                if is_scale(problem, prior, int(dim), rng):
                    counts["positive_scales"] += 1
                    counts["missed"] += dim not in places
                    if dim not in places:
                        print(f"{name} {seed}: {prior.names[dim]} was missed")
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
