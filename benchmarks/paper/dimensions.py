"""Supplement, dimension study (a) to (c): the mixture in 2 to 16 dimensions, the exact sampler, two recombinations."""

import numpy as np
from matplotlib.figure import Figure

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, by, log_mae, mean_sd, measured, number, table, tracked
from benchmarks.study import Row

DIMENSIONS = (2, 4, 6, 8, 10, 12, 14, 16)
VARIANTS = {
    "BASQ": Paper(),
    "exact sampler (no factorisation)": Paper(factorised=False),
    "linear programme": Paper(recombination="lp"),
    "proper recombination": Paper(proper=True),
}
METHODS = VARIANTS | {"BASQ, constant mean": Paper(mean="constant"), "default engine": "auto"}
CALLS, BATCH = 1000, 100


def tasks(seeds: int, quick: bool) -> list[Task]:
    dimensions = DIMENSIONS[1::3] if quick else DIMENSIONS
    study = [("BASQ", d) for d in dimensions]
    study += [("BASQ, constant mean", d) for d in dimensions] + [("default engine", d) for d in dimensions]
    study += [(m, 10) for m in VARIANTS if m != "BASQ"]
    return [{"method": m, "d": d, "seed": s} for s in range(seeds) for m, d in study]


def work(method: str, d: int, seed: int) -> Row:
    problem = basq.problems.mixture(d, seed, shared=True)
    run = tracked(problem, METHODS[method], batch=BATCH, calls=CALLS, seed=seed)
    return {"method": method, "d": d, "seed": seed} | measured(problem, run)


def section(rows: list[Row]) -> str:
    body = [
        [method, d, len(mine), number(log_mae(mine)), f"{100.0 * np.median(np.abs([r['error'] for r in mine])):.2f} %",
         mean_sd([float(np.log(r["kl"])) for r in mine if r["kl"] > 0.0]),
         number(float(np.mean([r["seconds"] for r in mine])), 1)]
        for (method, d), mine in sorted(by(rows, "method", "d").items())
    ]  # fmt: skip
    return table(["method", "d", "repeats", "logMAE", "median \\|error\\|", "logKL", "CPU s"], body)


def draw(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    error, divergence = figure.subplots(1, 2)
    for method in ("BASQ", "BASQ, constant mean", "default engine"):
        groups = sorted(by([r for r in rows if r["method"] == method], "d").items())
        d = [key[0] for key, _ in groups]
        error.semilogy(d, [np.mean(np.abs([r["error"] for r in g])) for _, g in groups], "o-", label=method)
        divergence.semilogy(d, [np.mean([r["kl"] for r in g]) for _, g in groups], "o-", label=method)
    error.set(xlabel="dimension", ylabel="mean |error| of Z")
    divergence.set(xlabel="dimension", ylabel="mean KL divergence")
    error.legend(frameon=False)
    return figure


EXPERIMENT = Experiment("dimensions", tasks, work, section, draw)
