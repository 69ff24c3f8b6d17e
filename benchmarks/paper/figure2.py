"""Figure 2, synthetic problems: KL of the posterior and error of Z, per call and per second, for all methods."""

import json

import numpy as np
from matplotlib.figure import Figure

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, by, log_mae, mean_sd, measured, number, table, tracked
from benchmarks.peer_tools import TOOLS, installed
from benchmarks.study import Row

PROBLEMS = ("branin_hoo", "ackley", "oscillatory")
METHODS = {
    "IVR": (Paper(proposal="ivr"), 100, 600),
    "IGB": (Paper(proposal="igb"), 100, 600),
    "UB": (Paper(proposal="ub"), 100, 600),
    "IVR, vanilla, constant mean": (Paper(model="vanilla", mean="constant"), 100, 600),
    "batch WSABI": (Paper(selection="local-penalisation"), 16, 160),
    "default engine": ("auto", 100, 600),
}
"""Method, batch size and calls: those of the paper, and for batch WSABI what its search can do."""
PEERS = ("dynesty, static", "dynesty, dynamic", "UltraNest", "PyVBMC")
SLOW = ("batch WSABI", "PyVBMC")


def tasks(seeds: int, quick: bool) -> list[Task]:
    names = [*METHODS, *(p for p in PEERS if installed(p))]
    return [
        {"problem": p, "method": m, "seed": s}
        for s in range(seeds)
        for p in PROBLEMS
        for m in names
        if not (m in SLOW and (quick or s > 2))
    ]


def work(problem: str, method: str, seed: int) -> Row:
    made = getattr(basq.problems, problem)()
    row: Row = {"problem": problem, "method": method, "seed": seed}
    if method in METHODS:
        chosen, batch, calls = METHODS[method]
        run = tracked(made, chosen, batch=batch, calls=calls, seed=seed)
        return row | {"calls": run.result.n_evals} | measured(made, run)
    answer = TOOLS[method].run(made, seed, None)
    kl, without = made.kl_divergence(answer.log_pdf) if answer.log_pdf else (float("nan"), 1.0)
    error = answer.log_evidence - made.log_evidence
    return row | {"calls": answer.calls, "error": float(np.expm1(error)), "sd": answer.sd, "kl": kl, "without": without,
                  "seconds": answer.seconds, "track": json.dumps([[answer.calls, answer.seconds, error]])}  # fmt: skip


def section(rows: list[Row]) -> str:
    body = [
        [p, m, len(mine), number(float(np.mean([r["calls"] for r in mine])), 0), number(log_mae(mine)),
         f"{100.0 * np.median(np.abs([r['error'] for r in mine])):.2f} %",
         mean_sd([float(np.log(r["kl"])) for r in mine if r["kl"] > 0.0]),
         f"{100.0 * np.mean([r['without'] for r in mine]):.1f} %",
         number(float(np.mean([r["seconds"] for r in mine])), 1)]
        for (p, m), mine in sorted(by(rows, "problem", "method").items())
    ]  # fmt: skip
    header = [
        "problem",
        "method",
        "repeats",
        "calls",
        "logMAE",
        "median \\|error\\|",
        "logKL",
        "no density at",
        "CPU s",
    ]
    return table(header, body)


def draw(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(11.0, 6.4), layout="constrained")
    axes = figure.subplots(2, len(PROBLEMS))
    names = [m for m in (*METHODS, *PEERS) if any(r["method"] == m for r in rows)]
    for k, method in enumerate(names):
        for column, problem in enumerate(PROBLEMS):
            mine = [r for r in rows if r["method"] == method and r["problem"] == problem]
            tracks = [np.array(r["track"] if isinstance(r["track"], list) else json.loads(r["track"])) for r in mine]
            for track in tracks:
                for row, x in ((0, 1), (1, 0)):
                    axes[row, column].loglog(track[:, x], np.abs(np.expm1(track[:, 2])),
                                             "o-" if len(track) > 1 else "*", ms=3 if len(track) > 1 else 9,
                                             lw=0.8, color=f"C{k}", alpha=0.7)  # fmt: skip
            axes[0, column].plot([], [], "o-", color=f"C{k}", label=method)
            axes[0, column].set(title=problem, xlabel="CPU seconds")
            axes[1, column].set(xlabel="likelihood calls")
    for row in axes:
        row[0].set_ylabel("|error| of Z")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    return figure


EXPERIMENT = Experiment("figure2", tasks, work, section, draw)
