"""What it saves to keep cheap parameters apart: calls with the simulator split off, and as one black box.

    python -m benchmarks.cheap            # nine models, 5 seeds (PyBaMM: 2); then the same outputs used again
    python -m benchmarks.cheap --quick    # 1 seed, and every fourth of the uses
    python -m benchmarks.cheap --models epidemic,diffusion

calls
    Each model as a `basq.Model` and as a black box of all its parameters, by the same engine. Batches of 16, budget
    50 (D + 2) for D parameters in all, the engine's own stop. A run that does not converge counts with its whole
    budget, less than it needs: the ratio of calls is too high where the black box did not converge and too low where
    the split did not, so ratios without the latter and the numbers of both are given too. References:
    benchmarks.cheap_reference.
again
    Three other noise models and four other priors for each model, from the outputs of the first run (no simulation)
    and from scratch. None moves the posterior far from where the first run looked. A run from scratch that did not
    converge is nothing to be held against; such uses are counted apart.

Rows go to benchmarks/results/cheap.csv and cheap_again.csv at once; a second call goes on where the first was stopped.
"""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cheap_models import MODELS, WAYS, budget, changes, first, infer
from benchmarks.cheap_reference import PATH as REFERENCES
from benchmarks.study import Row, run_all, study_parser

SLOW_SEEDS = 2
"""Of PyBaMM's models."""


def calls(model: str, seed: int, way: str) -> Row:
    """One run against the reference."""
    case, start = MODELS[model](), time.perf_counter()
    result = infer(case, seed, way)
    return {
        "model": model,
        "seed": seed,
        "way": way,
        "expensive": len(case.prior),
        "cheap": len(case.cheap),
        "calls": result.n_evals,
        "error": result.log_evidence - json.loads(REFERENCES.read_text())[model]["log_evidence"],
        "sd": result.log_evidence_std,
        "converged": int(result.converged),
        "counted": result.n_evals if result.converged else budget(case),
        "seconds": time.perf_counter() - start,
    }


def again(model: str, seed: int, change: str) -> Row:
    """One use of the first run's outputs, and the run from scratch that it stands for."""
    case, (before, counted) = MODELS[model](), first(model, seed)
    parts = changes(model, case)[change]
    made, start = counted.calls, time.perf_counter()
    used = before.again(**parts)
    seconds = time.perf_counter() - start
    scratch = infer(replace(case, **parts), seed + 1000)
    return {
        "model": model,
        "seed": seed,
        "change": change,
        "first_calls": made,
        "calls": counted.calls - made,
        "scratch_calls": scratch.n_evals,
        "log_evidence": used.log_evidence,
        "sd": used.log_evidence_std,
        "converged": int(used.converged),
        "scratch": scratch.log_evidence,
        "scratch_sd": scratch.log_evidence_std,
        "scratch_converged": int(scratch.converged),
        "seconds": seconds,
    }


def table(rows: list[Row]) -> dict[str, Any]:
    """Print a line per model, and return the ratios of calls."""
    print(f"{'model':<17} {'d + k':>6} {'runs':>5} {'calls':>6} {'black':>6} {'ratio':>6} {'conv':>5} {'black':>6} "
          f"{'|error|':>8} {'black':>8} {'sec':>6} {'black':>6}")  # fmt: skip
    out: dict[str, Any] = {}
    logs: list[float] = []
    converged: list[float] = []
    for model in MODELS:
        mine, other = ([r for r in rows if r["model"] == model and r["way"] == way] for way in WAYS)
        if not mine or not other:
            continue
        black = {r["seed"]: r["counted"] for r in other}
        ratio = [float(np.log(r["counted"] / black[r["seed"]])) for r in mine if r["seed"] in black]
        logs += [float(np.mean(ratio))]
        both = [float(np.log(r["counted"] / black[r["seed"]])) for r in mine if r["converged"] and r["seed"] in black]
        converged += [float(np.mean(both))] if both else []
        out[model] = {"ratio": float(np.exp(np.mean(ratio)))} | {
            f"{key}_{way}": float(np.median([abs(r[key]) for r in of]))
            for way, of in zip(WAYS, (mine, other), strict=True)
            for key in ("calls", "error")
        }
        split, whole = (
            (np.median([r["calls"] for r in of]), np.mean([r["converged"] for r in of]),
             np.median([abs(r["error"]) for r in of]), np.median([r["seconds"] for r in of]))
            for of in (mine, other)
        )  # fmt: skip
        print(f"{model:<17} {mine[0]['expensive']:>2} + {mine[0]['cheap']} {len(mine):>5} {split[0]:>6.0f} "
              f"{whole[0]:>6.0f} {out[model]['ratio']:>6.2f} {split[1]:>5.2f} {whole[1]:>6.2f} {split[2]:>8.4f} "
              f"{whole[2]:>8.4f} {split[3]:>6.1f} {whole[3]:>6.1f}")  # fmt: skip
    for way in WAYS:
        of = [r for r in rows if r["way"] == way]
        key = way.replace(" ", "_")
        out[f"{key}_converged"] = float(np.mean([r["converged"] for r in of]))
        out[f"{key}_within_0.05"] = float(np.mean([abs(r["error"]) < 0.05 for r in of]))
    out["ratio"] = float(np.exp(np.mean(logs)))
    out["ratio_where_split_converged"] = float(np.exp(np.mean(converged))) if converged else float("nan")
    return out


def again_table(rows: list[Row]) -> dict[str, Any]:
    """Print a line per change, and return how often the old outputs gave what new ones do."""
    print(
        f"{'change':<17} {'uses':>5} {'new calls':>10} {'scratch':>8} {'|difference|':>13} {'in 2 sd':>8} {'conv':>5}"
    )
    gap = np.array([r["log_evidence"] - r["scratch"] for r in rows])
    error = np.array([np.hypot(r["sd"], r["scratch_sd"]) for r in rows])
    inside = np.abs(gap) <= 2.0 * error
    done = np.array([bool(r["converged"]) for r in rows])
    known = np.array([bool(r["scratch_converged"]) for r in rows])
    for change in dict.fromkeys(r["change"] for r in rows):
        at = np.array([r["change"] == change for r in rows])
        some = [r for r in rows if r["change"] == change]
        print(f"{change:<17} {at.sum():>5} {sum(r['calls'] for r in some):>10} "
              f"{np.mean([r['scratch_calls'] for r in some]):>8.0f} {np.median(np.abs(gap[at & known])):>13.4f} "
              f"{inside[at & known].mean():>8.2f} {np.mean([r['converged'] for r in some]):>5.2f}")  # fmt: skip
    return {
        "uses": len(rows),
        "new_calls": int(sum(r["calls"] for r in rows)),
        "scratch_converged": int(known.sum()),
        "within_error": float(inside[known].mean()),
        "within_error_converged": float(inside[known & done].mean()),
        "median_difference": float(np.median(np.abs(gap[known]))),
        "converged": float(np.mean([r["converged"] for r in rows])),
    }


def main() -> None:
    parser = study_parser(__doc__, "cheap.csv", quick="1 seed, fewer uses", seeds=5, jobs=2)
    parser.add_argument("--models", default="", help="comma-separated; all by default")
    parser.add_argument("--part", choices=("calls", "again"), help="both by default")
    options = parser.parse_args()
    models = options.models.split(",") if options.models else list(MODELS)
    seeds = 1 if options.quick else options.seeds
    pairs = [(m, s) for s in range(seeds) for m in models if s < SLOW_SEEDS or not m.startswith("cell")]
    how = {"jobs": options.jobs, "restart": options.restart}
    out: dict[str, Any] = {}
    if options.part != "again":
        tasks = [{"model": m, "seed": s, "way": way} for m, s in pairs for way in WAYS]
        out["calls"] = table(run_all(calls, tasks, options.output, **how))
    if options.part != "calls":
        tasks = [{"model": m, "seed": s, "change": c} for m, s in pairs for c in changes(m, MODELS[m]())]
        path = Path(options.output).with_stem(f"{options.output.stem}_again")
        out["again"] = again_table(run_all(again, tasks[:: 4 if options.quick else 1], path, **how))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
