"""Figure 1 (e) and (f), and the supplement's detail figure: the 16 points that each picks in one dimension."""

import json

import numpy as np
from matplotlib.figure import Figure

import basq
from basq import Paper
from benchmarks.paper.experiment import Experiment, Task, by, number, table
from benchmarks.study import Row

METHODS = {
    "kernel recombination": Paper(),
    "local penalisation": Paper(selection="local-penalisation"),
    "samples": Paper(selection="samples"),
}
N_FIRST, N_NEXT = 4, 16
GRID = 400


def tasks(seeds: int, quick: bool) -> list[Task]:
    return [{"method": m, "seed": s} for s in range(max(seeds, 5)) for m in METHODS]


def work(method: str, seed: int) -> Row:
    problem = basq.problems.mixture(1, seed)
    first = problem.prior.from_standard(problem.prior.measure.sample_quasi(N_FIRST, np.random.default_rng(seed)))
    sampler = basq.Sampler(problem.prior, method=METHODS[method], batch_size=N_NEXT, max_evals=N_FIRST + N_NEXT,
                           seed=seed, evaluations=(first, problem.log_likelihood(first)))  # fmt: skip
    before = sampler.result()
    points = sampler.ask(N_NEXT)
    sampler.tell(points, problem.log_likelihood(points.x))
    after = sampler.result()
    x = np.linspace(-6.0, 6.0, GRID)[:, None]
    curves = {"x": x[:, 0], "prior": problem.prior.log_pdf(x), "truth": problem.log_posterior(x),
              "before": before.log_pdf(x), "after": after.log_pdf(x)}  # fmt: skip
    shown = {k: np.round(v if k == "x" else np.exp(v), 5).tolist() for k, v in curves.items()} if seed == 0 else {}
    return {
        "method": method, "seed": seed, "error_before": float(np.expm1(before.log_evidence)),
        "error": float(np.expm1(after.log_evidence)), "kl": problem.kl_divergence(after.log_pdf)[0],
        "gap": float(np.median(np.diff(np.sort(points.x[:, 0])))),
        "shown": json.dumps({"first": first[:, 0].tolist(), "points": points.x[:, 0].tolist(), **shown}),
    }  # fmt: skip


def section(rows: list[Row]) -> str:
    body = [
        [method, len(mine), f"{100.0 * np.mean(np.abs([r['error_before'] for r in mine])):.1f} %",
         f"{100.0 * np.mean(np.abs([r['error'] for r in mine])):.2f} %",
         number(float(np.mean([r["kl"] for r in mine])), 4), number(float(np.mean([r["gap"] for r in mine])), 3)]
        for (method,), mine in by(rows, "method").items()
    ]  # fmt: skip
    header = ["16 points by", "repeats", "mean \\|error\\| before", "after", "mean KL after", "median gap of points"]
    return table(header, body)


def draw(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    for axis, (method, row) in zip(
        figure.subplots(1, len(METHODS), sharey=True), ((r["method"], r) for r in rows if r["seed"] == 0), strict=False
    ):
        shown = row["shown"] if isinstance(row["shown"], dict) else json.loads(row["shown"])
        axis.plot(shown["x"], shown["prior"], color="0.7", lw=1, label="prior")
        axis.plot(shown["x"], shown["truth"], "k-", lw=1.2, label="true posterior")
        axis.plot(shown["x"], shown["before"], "--", color="#0072B2", lw=1, label="after 4 calls")
        axis.plot(shown["x"], shown["after"], color="#D55E00", lw=1, label="after 20 calls")
        axis.plot(shown["first"], np.zeros(N_FIRST), "ko", ms=5)
        axis.plot(shown["points"], np.full(N_NEXT, -0.02), "|", color="#D55E00", ms=10)
        axis.set(title=method, xlabel="x")
    figure.axes[0].legend(frameon=False, fontsize=7)
    return figure


EXPERIMENT = Experiment("picks", tasks, work, section, draw)
