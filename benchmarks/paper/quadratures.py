"""Questions 2, 3 and 5 of the paper: herding, plain samples and Fourier features against recombination."""

import numpy as np

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, by, log_mae, measured, number, table, tracked
from benchmarks.study import Row

METHODS = {
    "recombination, Nyström": {},
    "recombination, exact eigenvectors": {"test_functions": "nystrom-exact"},
    "recombination, Fourier features": {"test_functions": "fourier"},
    "herding, Nyström": {"selection": "herding"},
    "plain samples of the proposal": {"selection": "samples"},
}
PROBLEMS = {"mixture-10-shared": 1000, "branin_hoo": 400, "oscillatory": 400}
BATCHES = (8, 100)


def tasks(seeds: int, quick: bool) -> list[Task]:
    problems = list(PROBLEMS)[:2] if quick else list(PROBLEMS)
    return [
        {"problem": p, "method": m, "batch": b, "seed": s}
        for s in range(seeds)
        for p in problems
        for m in METHODS
        for b in BATCHES
    ]


def work(problem: str, method: str, batch: int, seed: int) -> Row:
    made = basq.problems.mixture(10, seed, shared=True) if "mixture" in problem else getattr(basq.problems, problem)()
    calls = PROBLEMS[problem] if batch > 8 else PROBLEMS[problem] // 4
    run = tracked(made, Paper(mean="constant", **METHODS[method]), batch=batch, calls=calls, seed=seed)
    return {"problem": problem, "method": method, "batch": batch, "seed": seed, "calls": calls} | measured(made, run)


def section(rows: list[Row]) -> str:
    body = [
        [p, b, mine[0]["calls"], m, len(mine), number(log_mae(mine)),
         f"{100.0 * np.median(np.abs([r['error'] for r in mine])):.2f} %",
         number(float(np.mean([r["seconds"] for r in mine])), 1)]
        for (p, b, m), mine in by(rows, "problem", "batch", "method").items()
    ]  # fmt: skip
    header = ["problem", "batch", "calls", "selection", "repeats", "logMAE", "median \\|error\\|", "CPU s"]
    return table(header, body)


EXPERIMENT = Experiment("quadratures", tasks, work, section)
