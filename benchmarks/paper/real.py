"""The paper's three real cases, from what `benchmarks.real_world` has stored; it runs them, and takes an hour."""

import json
from pathlib import Path

import numpy as np

from benchmarks.paper.experiment import Experiment, Task, by, number, table
from benchmarks.study import Row

STORED = Path("benchmarks/results/real_world.jsonl")


def tasks(seeds: int, quick: bool) -> list[Task]:
    """Nothing to run here."""
    return []


def work() -> Row:
    raise NotImplementedError("python -m benchmarks.real_world runs the real cases")


def section(rows: list[Row]) -> str:
    """What is stored: the last state of every run, averaged over the seeds."""
    stored = [json.loads(line) for line in STORED.read_text().splitlines()] if STORED.exists() else []
    body = []
    for (size, case, method), mine in by(stored, "size", "case", "method").items():
        last = [r["track"][-1] for r in mine]
        body.append([
            case, size, method, len(mine), *(number(float(np.mean([x[k] for x in last])), d) for k, d in
            (("calls", 0), ("log_z", 2), ("sd", 2))), number(float(np.mean([x.get("rmse", np.nan) for x in last])), 4),
            number(float(np.mean([x["seconds"] for x in last])), 0),
        ])  # fmt: skip
    return table(["case", "size", "method", "seeds", "calls", "log Z", "sd", "RMSE of conditionals", "seconds"], body)


EXPERIMENT = Experiment("real", tasks, work, section)
