"""What an experiment is, and the run that most of them make."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import basq
from basq.results.result import Result
from basq.run.steps import State
from benchmarks.study import Row

Task = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes
    ----------
    name : str
        Of its table, benchmarks/results/paper/<name>.csv, and of its picture, docs/pictures/paper-<name>.png.
    tasks : callable
        Runs wanted for a number of repeats; ``quick`` leaves out the slow ones. The keys of a task are columns of its
        row, so that more repeats can be added later.
    work : callable
        Makes the row of a task.
    section : callable
        What docs/paper.md says, in Markdown, of all rows there are.
    draw : callable or None
        The picture of all rows.
    """

    name: str
    tasks: Callable[[int, bool], list[Task]]
    work: Callable[..., Row]
    section: Callable[[list[Row]], str]
    draw: Callable[[list[Row]], Figure] | None = None


@dataclass(frozen=True)
class Tracked:
    """A result, and after every batch its calls, processor seconds and error of log Z."""

    result: Result
    track: list[tuple[int, float, float]]


def tracked(problem: basq.problems.Problem, method: Any, *, batch: int, calls: int, seed: int, **more: Any) -> Tracked:
    """Run a method to a number of calls, on one processor; its likelihood costs next to nothing."""
    start, track = time.process_time(), []

    def look(state: State) -> None:
        last = state.history[-1]
        track.append((last.n_evals, time.process_time() - start, last.log_evidence - problem.log_evidence))

    options = {"dlogz": 0.0, "vectorized": True, "progress": False} | more
    result = basq.infer(
        problem.log_likelihood, problem.prior, method=method, batch_size=batch, max_evals=calls, seed=seed,
        callback=look, **options,
    )  # fmt: skip
    return Tracked(result, track)


def measured(problem: basq.problems.Problem, run: Tracked) -> Row:
    """The columns of a run: relative error of Z, claimed errors, divergence of the posterior, processor seconds."""
    result = run.result
    ratio = float(np.exp(result.log_evidence - problem.log_evidence))
    kl, without = (float("nan"), 1.0)
    if result.standard_posterior is not None:
        kl, without = problem.kl_divergence(result.log_pdf)
    return {
        "error": ratio - 1.0,
        "sd": result.log_evidence_std,
        "kl": kl,
        "without": without,
        "seconds": run.track[-1][1],
        "track": json.dumps([[n, round(s, 4), round(e, 6)] for n, s, e in run.track]),
    }


def mean_sd(values: Sequence[float], digits: int = 2) -> str:
    """Mean and standard deviation in words; without the second for a single value, and of finite values only."""
    finite = np.array([v for v in values if np.isfinite(v)])
    if not len(finite):
        return "–"
    spread = f" ± {finite.std(ddof=1):.{digits}f}" if len(finite) > 1 else ""
    return f"{finite.mean():.{digits}f}{spread}".replace("-", "−")


def log_mae(rows: Sequence[Row]) -> float:
    """Natural logarithm of the mean absolute error of Z over the repeats: the paper's logMAE."""
    return float(np.log(np.mean([abs(float(r["error"])) for r in rows])))


def table(header: Sequence[str], body: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def number(value: float, digits: int = 2) -> str:
    """A number with a real minus sign; a dash for none."""
    return f"{value:.{digits}f}".replace("-", "−") if np.isfinite(value) else "–"


def by(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some columns, in the order in which they first appear."""
    out: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        out.setdefault(tuple(row[k] for k in keys), []).append(row)
    return out
