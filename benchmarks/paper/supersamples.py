"""The supersample ratio: what more prior draws for each candidate earn, and what they cost."""

import numpy as np

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, by, log_mae, measured, number, table, tracked
from benchmarks.study import Row

RATIOS = (2, 5, 10, 20)
CALLS, BATCH = 1000, 100


def tasks(seeds: int, quick: bool) -> list[Task]:
    ratios = (2, 10) if quick else RATIOS
    return [{"shared": k, "ratio": r, "seed": s} for s in range(seeds) for k in (1, 0) for r in ratios]


def work(shared: int, ratio: int, seed: int) -> Row:
    problem = basq.problems.mixture(10, seed, shared=bool(shared))
    run = tracked(problem, Paper(supersamples=ratio), batch=BATCH, calls=CALLS, seed=seed)
    return {"shared": shared, "ratio": ratio, "seed": seed} | measured(problem, run)


def section(rows: list[Row]) -> str:
    body = []
    for (shared, ratio), mine in sorted(by(rows, "shared", "ratio").items(), reverse=True):
        seconds, error = float(np.mean([r["seconds"] for r in mine])), log_mae(mine)
        kind = "one covariance" if shared else "own variances"
        rms = float(np.sqrt(np.mean([r["error"] ** 2 for r in mine])))
        body.append([kind, ratio, len(mine), number(error), f"{100.0 * rms:.1f} %", number(seconds, 1),
                     number(error / seconds, 3)])  # fmt: skip
    return table(["mixture", "ratio", "repeats", "logMAE", "rms error", "CPU s", "logMAE/s"], body)


EXPERIMENT = Experiment("supersamples", tasks, work, section)
