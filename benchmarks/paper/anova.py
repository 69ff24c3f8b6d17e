"""Functional ANOVA of N, M and r on the 10-D mixture, with marginal plots.

The paper fits a random forest to 125 runs and decomposes its variance (Hutter et al. 2014; Optuna has the same
evaluator). Its runs are a complete grid, on which the decomposition is exact by means over the other settings: no
forest is needed.
"""

from itertools import combinations, product

import numpy as np
from matplotlib.figure import Figure

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, measured, number, table, tracked
from benchmarks.study import Row

GRID = {"N": (20_000, 50_000, 100_000, 500_000, 1_000_000), "M": (200, 500, 1000, 5000, 10_000),
        "r": (0.0, 0.25, 0.5, 0.75, 1.0)}  # fmt: skip
"""The paper's 125 points."""
QUICK = {"N": GRID["N"][:2], "M": GRID["M"][:2], "r": GRID["r"][::2]}
FACTORS = tuple(GRID)
METRICS = ("logMAE", "logKL", "seconds", "logMAE/s", "logKL/s")
PRINTED = {
    ("N",): (0.0835, 0.0465, 0.6347, 0.1729, 0.1811),
    ("M",): (0.1041, 0.0824, 0.2497, 0.6401, 0.6789),
    ("r",): (0.0041, 0.0226, 0.0071, 0.0040, 0.0024),
    ("N", "M"): (0.0710, 0.1134, 0.0903, 0.1077, 0.1206),
    ("N", "r"): (0.1021, 0.1299, 0.0058, 0.0062, 0.0024),
    ("M", "r"): (0.4598, 0.4381, 0.0059, 0.0604, 0.0123),
    ("N", "M", "r"): (0.1754, 0.3116, 0.1671, 0.0065, 0.0023),
}
CALLS, BATCH = 1000, 100


def tasks(seeds: int, quick: bool) -> list[Task]:
    grid = QUICK if quick else GRID
    return [
        dict(zip(FACTORS, point, strict=True)) | {"seed": s} for s in range(seeds) for point in product(*grid.values())
    ]


def work(N: int, M: int, r: float, seed: int) -> Row:
    problem = basq.problems.mixture(10, seed, shared=True)
    method = Paper(n_candidates=N, n_nystrom=M, r=r)
    run = tracked(problem, method, batch=BATCH, calls=CALLS, seed=seed)
    return {"N": N, "M": M, "r": r, "seed": seed} | measured(problem, run)


def decomposition(values: np.ndarray) -> dict[tuple[int, ...], float]:
    """Shares of the variance of values on a complete grid that every set of its axes explains, alone or together."""
    effects: dict[tuple[int, ...], np.ndarray] = {(): np.full_like(values, values.mean())}
    axes = range(values.ndim)
    for size in range(1, values.ndim + 1):
        for subset in combinations(axes, size):
            others = tuple(a for a in axes if a not in subset)
            effect = np.broadcast_to(values.mean(axis=others, keepdims=True), values.shape).copy()
            for part, lower in effects.items():
                if set(part) < set(subset):
                    effect -= lower
            effects[subset] = effect
    total = float(values.var())
    return {s: float(e.var()) / total if total > 0.0 else 0.0 for s, e in effects.items() if s}


def largest_grid(rows: list[Row]) -> tuple[dict[str, list[float]], dict[str, np.ndarray], int]:
    """The levels of the largest complete grid among the rows, each metric on it, and the least number of repeats."""
    have: dict[tuple[float, ...], list[Row]] = {}
    for row in rows:
        have.setdefault(tuple(float(row[f]) for f in FACTORS), []).append(row)
    best: dict[str, list[float]] = {}
    for n, m, r in product(*(range(2, 6) for _ in FACTORS)):
        levels = [list(GRID["N"][:n]), list(GRID["M"][:m]), list(GRID["r"][:: 2 if r == 3 else 1][:r])]
        complete = all(tuple(map(float, point)) in have for point in product(*levels))
        if complete and np.prod([len(x) for x in levels]) > np.prod([len(x) for x in best.values()] or [0]):
            best = dict(zip(FACTORS, levels, strict=True))
    if not best:
        return {}, {}, 0
    points = [have[tuple(map(float, p))] for p in product(*best.values())]
    shape = [len(x) for x in best.values()]
    error = np.array([np.log(np.mean([abs(r["error"]) for r in g])) for g in points]).reshape(shape)
    kl = np.array([np.log(np.mean([r["kl"] for r in g])) for g in points]).reshape(shape)
    seconds = np.array([np.mean([r["seconds"] for r in g]) for g in points]).reshape(shape)
    values = dict(zip(METRICS, (error, kl, seconds, error / seconds, kl / seconds), strict=True))
    return best, values, min(map(len, points))


def section(rows: list[Row]) -> str:
    levels, values, n = largest_grid(rows)
    if not levels:
        return "No complete grid has been run yet.\n"
    shares = {m: decomposition(v) for m, v in values.items()}
    names = {key: tuple(FACTORS.index(f) for f in key) for key in PRINTED}
    body = [
        [", ".join(key), *(number(shares[m][axes], 3) for m in METRICS), *(number(x, 3) for x in PRINTED[key])]
        for key, axes in names.items()
    ]
    grid = "; ".join(f"{f} = {', '.join(f'{x:g}' for x in v)}" for f, v in levels.items())
    best = min(product(*(range(len(v)) for v in levels.values())), key=lambda i: values["logMAE/s"][i])
    chosen = ", ".join(f"{f} = {levels[f][i]:g}" for f, i in zip(FACTORS, best, strict=True))
    note = f"Grid: {grid}; {n} repeat{'s' if n > 1 else ''} a point. Least logMAE a second: {chosen}.\n"
    return f"{note}\n{table(['set', *METRICS, *(f'printed {m}' for m in METRICS)], body)}"


def draw(rows: list[Row]) -> Figure:
    levels, values, _ = largest_grid(rows)
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    axes = figure.subplots(2, 3)
    for row, metric in enumerate(("logMAE", "seconds")):
        for column, (factor, x) in enumerate(levels.items()):
            others = tuple(k for k in range(3) if k != column)
            mean, sd = values[metric].mean(axis=others), values[metric].std(axis=others)
            axes[row, column].errorbar(x, mean, sd, fmt="o-", color="#0072B2", capsize=3)
            axes[row, column].set(xlabel=factor, ylabel=metric, xscale="linear" if factor == "r" else "log")
    return figure


EXPERIMENT = Experiment("anova", tasks, work, section, draw)
