"""What each part of the default engine earns: the same runs with one part taken out or replaced.

    python -m benchmarks.engine_ablation            # 3 seeds of all families of `benchmarks.engine`
    python -m benchmarks.engine_ablation --quick    # 1 seed of 4 (minutes)

Batches of 16, budget 50 (d + 2), the engine's own stop. Rows go to benchmarks/results/engine_ablation.csv at once; a
second call goes on where the first was stopped.
"""

import json
from typing import Any

import numpy as np

import basq
from basq.auto import Settings
from basq.paper import Paper
from basq.run.steps import State
from benchmarks import engine
from benchmarks.study import Row, run_all, study_parser

QUICK = ("gauss 6", "student 4", "rosen 2", "bimodal 3")
FAMILIES = (*engine.FAMILIES, *engine.OTHERS)


VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "no chart": {"chart.follows": False},
    "no quadratic trend": {
        "kernel.trend.lower": (-12.0, -6.0, -20.0, -20.0, -12.0),
        "kernel.trend.upper": (16.0, 16.0, -20.0, -20.0, 12.0),
    },
    "no bends": {
        "kernel.trend.lower": (-12.0, -6.0, -6.0, -8.0, -20.0), "kernel.trend.upper": (16.0, 16.0, 14.0, 12.0, -20.0),
    },
    "no shear": {"kernel.sheared_from": np.inf},
    "standard space only": {"chart.flat": False},
    "no noise shaping": {"values.noise_slope": 0.0},
    "no widened variances": {"values.most_overfit": 1.0},
    "no exploration": {
        "exploration.share": 0.0, "exploration.share_only": 0.0, "exploration.patience": 0.0, "exploration.quota": 0.0,
        "exploration.quota_per_dim": 0.0, "error.unseen": False,
    },
    "no tails": {"batch.tail": 0.0},
    "no summit": {"batch.summit": 0.0},
    "no climbs": {"batch.climb": 0.0},
    "no ceiling": {"values.headroom": 1e3},
    "no scouts": {"scouts.sent": False},
    "no cells": {"cells.most": 1},
    "no audit": {"audit.counts": False},
    "samples, not recombination": {"batch.recombined": False},
}  # fmt: skip
"""Settings of the engine with one part taken out or replaced."""


def work(variant: str, family: str, seed: int) -> Row:
    return {"variant": variant, **engine.work(family, seed, basq.Auto(Settings().changed(VARIANTS[variant])))}


def warps(family: str, seed: int) -> Row:
    """The engine's last observations under other warps: error of log Z, and leave-one-out error of the likelihood."""
    problem = engine.FAMILIES[family](seed)
    states: list[State] = []
    basq.infer(
        problem.log_likelihood, problem.prior, vectorized=True, seed=seed, progress=False, callback=states.append
    )  # fmt: skip
    fitted, seen = states[-1].fitted, states[-1].observations
    model = fitted.cells[0].model
    truth = np.exp(seen.log_values - model.scale.top)
    residuals, var = model.gp.left_out
    predicted = model.gp.y - residuals
    log_mean = model.scale.nats(predicted) + 0.5 * np.minimum(var * model.scale.slope(predicted) ** 2, 4.0)
    row = {
        "family": family, "seed": seed, "calls": len(seen), "log": fitted.log_evidence - problem.log_evidence,
        "log_loo": _rms(truth - np.exp(np.minimum(log_mean, 10.0))),
    }  # fmt: skip
    for name, method in (("identity", Paper(model="vanilla")), ("root", Paper(model="wsabi-l"))):
        other = method.fit(seen, problem.prior, None, np.random.default_rng(0))
        scale = np.exp(other.log_scale - model.scale.top)
        mean = other.surrogate.gp.y - other.surrogate.gp.left_out[0]
        likelihood = mean if name == "identity" else other.surrogate.offset + 0.5 * mean**2
        row |= {name: other.log_evidence - problem.log_evidence, f"{name}_loo": _rms(truth - scale * likelihood)}
    return row


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def table(rows: list[Row], warp_rows: list[Row]) -> dict[str, Any]:
    columns = ("runs", "<0.1", "rms e", "calls", "cov95", "rms z", "wrong", "conv", "TV")
    print(f"{'variant':<36} " + " ".join(f"{c:>6}" for c in columns))
    out: dict[str, Any] = {}
    for variant in VARIANTS:
        mine = [r for r in rows if r["variant"] == variant]
        if mine:
            f = engine.figures(mine)
            f["rms_error"] = _rms(np.clip([r["error"] for r in mine], -3.0, 3.0))
            f["mean_calls"] = float(np.mean([r["calls"] for r in mine]))
            out[variant] = f
            numbers = [f[k] for k in ("within_0.1", "rms_error", "mean_calls", "coverage_95", "rms_z")]
            numbers += [f[k] for k in ("confidently_wrong", "converged", "total_variation")]
            print(f"{variant:<36} {f['runs']:>6} " + " ".join(f"{x:>6.3g}" for x in numbers))
    print("\nwarps, same observations: |error of log Z| and leave-one-out error of the likelihood, medians")
    for family in dict.fromkeys(r["family"] for r in warp_rows):
        mine = [r for r in warp_rows if r["family"] == family]
        cells = [
            f"{w}: {np.nanmedian([abs(r[w]) for r in mine]):.3f} ({np.median([r[f'{w}_loo'] for r in mine]):.3f})"
            for w in ("log", "root", "identity")
        ]
        print(f"{family:<11} " + "   ".join(cells))
    return {"variants": out, "warps": warp_rows}


def main() -> None:
    parser = study_parser(__doc__, "engine_ablation.csv", quick="1 seed of 4 families", seeds=3, jobs=2)
    options = parser.parse_args()
    families, n_seeds = (QUICK, 1) if options.quick else (FAMILIES, options.seeds)
    tasks = [{"variant": v, "family": f, "seed": s} for s in range(n_seeds) for v in VARIANTS for f in families]
    rows = run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart)
    smooth = ("mixture 4",) if options.quick else ("mixture 4", "mixture 10", "lumpy 4", "lumpy 8", "student 4")
    warp_tasks = [{"family": f, "seed": s} for f in smooth for s in range(n_seeds)]
    warp_output = options.output.with_name(f"{options.output.stem}_warps.csv")
    warp_rows = run_all(warps, warp_tasks, warp_output, jobs=options.jobs, restart=options.restart)
    print(json.dumps(table(rows, warp_rows)))


if __name__ == "__main__":
    main()
