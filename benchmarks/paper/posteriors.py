"""Supplement, qualitative posterior pictures: the three 2-D functions, true and estimated."""

import json

import numpy as np
from matplotlib.figure import Figure

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, measured, number, table, tracked
from benchmarks.study import Row

PROBLEMS = ("branin_hoo", "ackley", "oscillatory")
METHODS = {"BASQ (IVR)": Paper(), "vanilla, constant mean": Paper(model="vanilla", mean="constant")}
CALLS, BATCH = 600, 100
REACH, GRID = 4.0, 49


def tasks(seeds: int, quick: bool) -> list[Task]:
    return [{"problem": p, "method": m, "seed": 0} for p in PROBLEMS for m in METHODS]


def work(problem: str, method: str, seed: int) -> Row:
    made = getattr(basq.problems, problem)()
    run = tracked(made, METHODS[method], batch=BATCH, calls=CALLS, seed=seed)
    found = measured(made, run)
    shown = {"true": np.exp(made.log_posterior(_grid())), "found": np.exp(run.result.log_pdf(_grid()))}
    densities = {name: np.round(np.nan_to_num(values), 5).tolist() for name, values in shown.items()}
    return {"problem": problem, "method": method, "seed": seed, "kl": found["kl"], "without": found["without"],
            "seconds": found["seconds"], "densities": json.dumps(densities)}  # fmt: skip


def _grid() -> np.ndarray:
    t = np.linspace(-REACH, REACH, GRID)
    return np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)


def section(rows: list[Row]) -> str:
    body = [[r["problem"], r["method"], number(float(r["kl"]), 4), f"{100.0 * r['without']:.1f} %",
             number(float(r["seconds"]), 1)] for r in rows]  # fmt: skip
    return table(["problem", "method", "KL", "no density at", "CPU s"], body)


def draw(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(9.6, 9.6), layout="constrained")
    axes = figure.subplots(len(PROBLEMS), 1 + len(METHODS), sharex=True, sharey=True)
    by = {(r["problem"], r["method"]): r for r in rows}
    for line, problem in zip(axes, PROBLEMS, strict=True):
        for axis, method in zip(line, ("true", *METHODS), strict=True):
            row = by.get((problem, method if method in METHODS else next(iter(METHODS))))
            if row is None:
                continue
            stored = row["densities"] if isinstance(row["densities"], dict) else json.loads(row["densities"])
            values = np.array(stored["found" if method in METHODS else "true"]).reshape(GRID, GRID)
            top = float(np.max(stored["true"]))
            axis.imshow(values, origin="lower", extent=(-REACH, REACH) * 2, vmin=0.0, vmax=top, cmap="viridis")
            axis.set_title(f"{problem}: {method}", fontsize=9)
    return figure


EXPERIMENT = Experiment("posteriors", tasks, work, section, draw)
