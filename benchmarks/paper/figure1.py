"""Figure 1 (a) to (d), and the supplement's detail figure: BASQ against batch WSABI on the mixture."""

import json
import time

import numpy as np
from matplotlib.figure import Figure

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, by, number, table, tracked
from benchmarks.study import Row

METHODS = {"BASQ": Paper(), "batch WSABI": Paper(selection="local-penalisation")}
COLOURS = {"BASQ": "#0072B2", "batch WSABI": "#D55E00"}
N_DIM = 10
SIZES = (4, 8, 16, 32, 64, 128)
N_SEEN = 100
"""Observations when a batch is chosen and timed."""
CONVERGENCE = {"BASQ": (100, 1000), "batch WSABI": (16, 192)}
"""Batch size and calls of a run: those that the paper found best for each."""


def tasks(seeds: int, quick: bool) -> list[Task]:
    sizes = SIZES[:4] if quick else SIZES
    overhead = [{"part": "overhead", "method": m, "size": b, "seed": 0} for b in sizes for m in METHODS]
    convergence = [
        {"part": "convergence", "method": m, "size": b, "seed": s}
        for s in range(seeds)
        for m, (b, _) in CONVERGENCE.items()
        if m == "BASQ" or s < (1 if quick else 3)
    ]
    return overhead + convergence


def work(part: str, method: str, size: int, seed: int) -> Row:
    problem = basq.problems.mixture(N_DIM, seed, shared=True)
    row: Row = {"part": part, "method": method, "size": size, "seed": seed}
    if part == "convergence":
        run = tracked(problem, METHODS[method], batch=size, calls=CONVERGENCE[method][1], seed=seed)
        return row | {"seconds": run.track[-1][1], "error": float(np.expm1(run.track[-1][2])),
                      "track": json.dumps(run.track)}  # fmt: skip
    seen = problem.prior.sample(N_SEEN, np.random.default_rng(seed))
    sampler = basq.Sampler(
        problem.prior, method=METHODS[method], batch_size=size, max_evals=N_SEEN + size, seed=seed,
        evaluations=(seen, problem.log_likelihood(seen)),
    )  # fmt: skip
    sampler.learn()
    start = time.process_time()
    sampler.ask(size)
    return row | {"seconds": time.process_time() - start, "error": float("nan"), "track": ""}


def section(rows: list[Row]) -> str:
    cost = by([r for r in rows if r["part"] == "overhead"], "size")
    body = []
    for (size,), pair in sorted(cost.items()):
        seconds = {m: float(np.mean([r["seconds"] for r in pair if r["method"] == m])) for m in METHODS}
        body.append([size, *(number(s, 2) for s in seconds.values()), *(number(size / s, 0) for s in seconds.values()),
                     number(seconds["batch WSABI"] / seconds["BASQ"], 1)])  # fmt: skip
    header = ["batch", "BASQ, CPU s", "batch WSABI, CPU s", "BASQ, points/s", "batch WSABI, points/s", "ratio"]
    out = [table(header, body)]
    end = []
    for (method,), mine in by([r for r in rows if r["part"] == "convergence"], "method").items():
        errors = np.abs([float(r["error"]) for r in mine])
        seconds = float(np.mean([r["seconds"] for r in mine]))
        batch, calls = CONVERGENCE[method]
        end.append([method, len(mine), batch, calls, f"{100.0 * errors.mean():.1f} %", number(seconds, 1)])
    out.append(table(["method", "repeats", "batch", "calls", "mean \\|error\\| of Z", "CPU s"], end))
    return "\n".join(out)


def draw(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(9.6, 6.4), layout="constrained")
    (cost, rate), (calls, seconds) = figure.subplots(2, 2)
    for method, colour in COLOURS.items():
        mine = sorted((r["size"], r["seconds"]) for r in rows if r["part"] == "overhead" and r["method"] == method)
        size, spent = np.array(mine).T
        cost.loglog(size, spent, "o-", color=colour, label=method)
        rate.loglog(size, size / spent, "o-", color=colour, label=method)
        for row in (r for r in rows if r["part"] == "convergence" and r["method"] == method):
            track = row["track"] if isinstance(row["track"], list) else json.loads(row["track"])
            n, s, e = np.array(track).T
            for axis, x in ((calls, n), (seconds, s)):
                axis.loglog(x, np.abs(np.expm1(e)), "-", color=colour, lw=0.9, alpha=0.7)
    cost.set(xlabel="batch size", ylabel="CPU seconds a batch", title="(a) overhead")
    rate.set(xlabel="batch size", ylabel="points a second", title="(b) sampling rate")
    calls.set(xlabel="likelihood calls", ylabel="|error| of Z", title="(c) per call")
    seconds.set(xlabel="CPU seconds of overhead", ylabel="|error| of Z", title="(d) per second")
    cost.legend(frameon=False)
    return figure


EXPERIMENT = Experiment("figure1", tasks, work, section, draw)
