"""Which mixture the figures are of: ten instances of both kinds, for the paper's method and the default engine."""

import numpy as np

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, by, log_mae, measured, number, table, tracked
from benchmarks.study import Row

METHODS = {
    "Paper(), its defaults": Paper(),
    "Paper(mean='constant')": Paper(mean="constant"),
    "default engine, 1,000 calls": "auto",
    "default engine, own stop": "auto",
}
CALLS, BATCH, N_DIM = 1000, 100, 10
KINDS = {1: "one covariance for all (the figures)", 0: "a variance of its own each (the text)"}


def tasks(seeds: int, quick: bool) -> list[Task]:
    instances = range(max(seeds, 3 if quick else 10))
    return [{"shared": k, "method": m, "seed": s} for s in instances for k in KINDS for m in METHODS]


def work(shared: int, method: str, seed: int) -> Row:
    problem = basq.problems.mixture(N_DIM, seed, shared=bool(shared))
    own = "own stop" in method
    run = tracked(problem, METHODS[method], batch=16 if own else BATCH, calls=CALLS, seed=seed,
                  dlogz=0.1 if own else 0.0)  # fmt: skip
    found = measured(problem, run)
    calls = run.result.n_evals
    return {"shared": shared, "method": method, "seed": seed, "calls": calls} | found


def section(rows: list[Row]) -> str:
    body = []
    for (shared, method), mine in by(rows, "shared", "method").items():
        errors = np.array([r["error"] for r in mine], dtype=float)
        z = [np.log1p(e) / s for e, s in zip(errors, [r["sd"] for r in mine], strict=True) if s > 0.0]
        body.append([
            KINDS[shared], method, len(mine), number(float(np.median([r["calls"] for r in mine])), 0),
            number(log_mae(mine)), number(float(np.mean(np.log(np.abs(errors))))),
            f"{number(100.0 * float(errors.mean()), 1)} %", f"{100.0 * float(np.median(np.abs(errors))):.1f} %",
            number(float(np.sqrt(np.mean(np.square(z)))), 1), number(float(np.mean([r["seconds"] for r in mine])), 1),
        ])  # fmt: skip
    header = ["mixture", "method", "instances", "median calls", "logMAE", "mean of log error", "mean error",
              "median \\|error\\|", "rms z", "CPU s"]  # fmt: skip
    return table(header, sorted(body, key=lambda line: (line[0], line[1])))


EXPERIMENT = Experiment("generator", tasks, work, section)
