"""The default engine on real models: error, calls, calibration, posterior, by group of models.

    python -m benchmarks.zoo                    # all models of basq.problems.zoo, 5 data seeds
    python -m benchmarks.zoo --quick            # 1 data seed (minutes)
    python -m benchmarks.zoo --replicas 3       # three replicas at a third of the calls; --budget 3: at all of them
    python -m benchmarks.zoo --file problems.py # others: a file of PROBLEMS = {name: f(seed) -> (log ℓ, prior, log Z)}

Batches of 16, budget 50 (d + 2), the engine's own stop. Only problems with a reference count
(`benchmarks.zoo_references` makes them). Rows go to benchmarks/results/zoo.csv at once; a second call goes on where the
first was stopped. The last line is JSON.
"""

import importlib.util
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import basq
from basq.problems.zoo.references import LEVELS
from benchmarks.study import Row, run_all, study_parser

ZOO = basq.problems.zoo


def work(
    model: str,
    seed: int,
    file: str = "",
    changes: str = "",
    recognise: int = 1,
    replicas: int | None = None,
    budget: float = 1.0,
) -> Row:
    """One run, or replicas; ``changes`` are settings in JSON, ``budget`` is in units of 50 (d + 2)."""
    log_likelihood, prior, log_evidence, quantiles, vectorized = _problem(model, seed, file)
    d = len(prior)
    method = basq.Auto(basq.auto.Settings().changed(json.loads(changes or "{}")), recognise=bool(recognise))
    calls, start = Calls(log_likelihood), time.process_time()
    row: Row = {"model": model, "seed": seed, "file": file, "changes": changes, "recognise": recognise}
    row |= ({"replicas": replicas, "budget": budget} if replicas else {}) | {"d": d}
    try:
        result = basq.infer(
            calls, prior, method=method, batch_size=16, max_evals=int(budget * 50 * (d + 2)),
            replicas=replicas, vectorized=vectorized, seed=seed, progress=False,
        )  # fmt: skip
    except Exception as error:  # a crash is a row, too
        nothing = {
            "calls": 0,
            "error": np.inf,
            "sd": 0.0,
            "low": 0.0,
            "high": 0.0,
            "converged": 0,
            "total_variation": 1.0,
            "seconds": 0.0,
        }
        return row | nothing | {"message": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - start - calls.seconds
    return row | {
        "calls": result.n_evals,
        "error": result.log_evidence - log_evidence,
        "sd": result.log_evidence_std,
        "low": result.log_evidence_interval[0] - log_evidence,
        "high": result.log_evidence_interval[1] - log_evidence,
        "converged": int(result.converged),
        "total_variation": variation(result, quantiles) if quantiles is not None else float("nan"),
        "seconds": seconds,
        "message": result.message,
    }


class Calls:
    """A log-likelihood that books its own time."""

    def __init__(self, log_likelihood: Any) -> None:
        self.log_likelihood, self.seconds = log_likelihood, 0.0

    def __call__(self, x: np.ndarray) -> Any:
        start = time.process_time()
        out = self.log_likelihood(x)
        self.seconds += time.process_time() - start
        return out


def _problem(model: str, seed: int, file: str) -> tuple[Any, Any, float, np.ndarray | None, bool]:
    if file:
        own = module_of(file)
        log_likelihood, prior, log_evidence = own.PROBLEMS[model](seed)
        quantiles = getattr(own, "QUANTILES", {}).get(model)
        return log_likelihood, prior, log_evidence, None if quantiles is None else np.array(quantiles), False
    problem = ZOO.MODELS[model](seed)
    assert problem.log_evidence is not None
    return problem.log_likelihood, problem.prior, problem.log_evidence, problem.quantiles, True


def module_of(file: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def variation(result: Any, quantiles: np.ndarray, n: int = 20_000) -> float:
    """Mean over the marginals of the total variation in 25 cells of equal probability under the reference."""
    samples, expected = result.sample(n, seed=0), np.full(len(LEVELS) + 1, 1.0 / (len(LEVELS) + 1))
    found = [np.histogram(x, np.r_[-np.inf, q, np.inf])[0] / n for x, q in zip(samples.T, quantiles, strict=True)]
    return float(np.mean([0.5 * np.abs(f - expected).sum() for f in found]))


def figures(rows: list[Row]) -> dict[str, float]:
    """Everything that is asked of a set of runs."""
    error, sd = np.array([r["error"] for r in rows], float), np.array([r["sd"] for r in rows], float)
    converged = np.array([r["converged"] for r in rows], dtype=bool)
    wrong = converged & ~(np.abs(error) <= np.maximum(0.3, 3.0 * sd))
    tv = np.array([r["total_variation"] for r in rows], float)[converged]
    return {
        "runs": len(rows),
        "within_0.1": float(np.mean(np.abs(error) < 0.1)),
        "within_0.3": float(np.mean(np.abs(error) < 0.3)),
        "converged": float(np.mean(converged)),
        "converged_wrong": float(np.mean(wrong)),
        "coverage_95": float(np.mean(np.abs(error) < 1.96 * sd)),
        "interval_95": float(np.mean([float(r["low"]) < 0.0 < float(r["high"]) for r in rows])),
        "coverage_95_converged": float(np.mean((np.abs(error) < 1.96 * sd)[converged])) if converged.any() else np.nan,
        "total_variation_converged": float(np.nanmean(tv)) if np.isfinite(tv).any() else float("nan"),
        "mean_calls": float(np.mean([r["calls"] for r in rows])),
        "share_of_budget": float(np.mean([r["calls"] / (50 * (r["d"] + 2)) for r in rows])),
        "median_seconds": float(np.median([r["seconds"] for r in rows])),
        "most_seconds": float(np.max([r["seconds"] for r in rows])),
    }


def table(rows: list[Row], groups: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Print a line per run and per group, and return all figures."""
    for r in sorted(rows, key=lambda r: (r["model"], r["seed"])):
        print(f"{r['model']:<30} {r['seed']:>3} d {r['d']:>2} calls {r['calls']:>4} error {r['error']:>9.3f} sd "
              f"{r['sd']:>8.3f} {'converged' if r['converged'] else '-':<9} TV {r['total_variation']:.3f} "
              f"{r['seconds']:>6.1f} s")  # fmt: skip
    out = {}
    for group, models in groups.items():
        mine = [r for r in rows if r["model"] in models]
        if mine:
            out[group] = f = figures(mine)
            print(f"{group:<24} {f['runs']:>4} runs: <0.1 {f['within_0.1']:.2f} conv {f['converged']:.2f} wrong "
                  f"{f['converged_wrong']:.3f} cov {f['coverage_95']:.2f} budget {f['share_of_budget']:.2f} "
                  f"{f['median_seconds']:.1f} s")  # fmt: skip
    overall = figures(rows)
    overall["worst_group_within_0.1"] = min(f["within_0.1"] for f in out.values())
    print(json.dumps(overall, indent=1))
    return {"overall": overall, "groups": out}


def main() -> None:
    parser = study_parser(__doc__, "zoo.csv", quick="1 data seed", seeds=5, jobs=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--models", default="", help="comma-separated; all by default")
    parser.add_argument("--file", default="", help="a Python file with problems")
    parser.add_argument("--changes", default="", help="settings that differ, in JSON: '{\"batch.tail\": 0.0}'")
    parser.add_argument("--no-recognition", action="store_true", help="noise scales are not looked for")
    parser.add_argument("--replicas", type=int, help="of every run; rows in zoo_replicas.csv")
    parser.add_argument("--budget", type=float, default=1.0, help="of all replicas, in units of 50 (d + 2)")
    options = parser.parse_args()
    if options.replicas and options.output.name == "zoo.csv":
        options.output = options.output.with_name("zoo_replicas.csv")
    names = list(module_of(options.file).PROBLEMS) if options.file else list(ZOO.MODELS)
    names = options.models.split(",") if options.models else names
    groups = {"file": tuple(names)} if options.file else ZOO.GROUPS
    seeds = range(options.first_seed, options.first_seed + (1 if options.quick else options.seeds))
    tasks = [
        {"model": m, "seed": s, "file": options.file, "changes": options.changes,
         "recognise": int(not options.no_recognition)}
        | ({"replicas": options.replicas, "budget": options.budget} if options.replicas else {})
        for s in seeds for m in names
        if options.file or ZOO.MODELS[m](s).log_evidence is not None
    ]  # fmt: skip
    rows = run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart)
    print(json.dumps(table(rows, groups)))


if __name__ == "__main__":
    main()
