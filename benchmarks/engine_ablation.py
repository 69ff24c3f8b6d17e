"""What each part of the default engine earns: the same runs with one part taken out or replaced.

    python -m benchmarks.engine_ablation            # 3 seeds of 10 families
    python -m benchmarks.engine_ablation --quick    # 1 seed of 4 (minutes)

Batches of 16, budget 50 (d + 2), the engine's own stop. Rows go to benchmarks/results/engine_ablation.csv at once; a
second call goes on where the first was stopped.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

import basq
from basq.auto.chart import Reference
from basq.auto.log_model import LogModel
from basq.auto.scouts import Scout
from basq.gp.kernels.trend import TrendKernel
from basq.observations import Observations
from basq.paper.method import Paper
from basq.run.steps import State
from benchmarks import engine
from benchmarks.study import Row, run_all, study_parser

QUICK = ("gauss 6", "student 4", "rosen 2", "bimodal 3")
FAMILIES = (*QUICK, "lumpy 4", "cigar 4", "rosen 4", "narrow 3", "mixture 4", "heavy 6")


def without_reference(fit: Any) -> Any:
    """Make a LogModel.fit that never whitens: standard space as it is."""

    def plain(
        observations: Observations, log_measure: Any, reference: Reference, *args: Any, **options: Any
    ) -> LogModel:
        d = len(reference.mean)
        model: LogModel = fit(observations, log_measure, Reference(np.zeros(d), np.eye(d)), *args, **options)
        return model

    return plain


def switched_off(first: int, last: int | None) -> Callable[[TrendKernel], Any]:
    """Make a hyperprior that holds some of the trend's variances at nothing; counted after the lengthscales."""
    original = TrendKernel.hyperprior

    def bounded(kernel: TrendKernel) -> Any:
        prior, d = original(kernel), len(kernel.lengthscale)
        lower, upper = prior.lower.copy(), prior.upper.copy()
        off = slice(d + first, None if last is None else d + last)
        lower[off] = upper[off] = -20.0
        return replace(prior, lower=lower, upper=upper)

    return bounded


def nobody(cells: Any, explorer: Any, observations: Observations, *args: Any, **options: Any) -> Scout:
    nowhere = np.empty((0, observations.u.shape[1]))
    return Scout(np.zeros(len(observations), dtype=bool), 0, nowhere, np.empty(0, dtype=np.intp), nowhere)


def plain_samples(cell: Any, points: Any, weights: Any, n: int, rng: np.random.Generator) -> Any:
    return points[rng.choice(len(points), n, replace=False, p=weights)]


def greedy_variance(cell: Any, points: Any, weights: Any, n: int, rng: np.random.Generator) -> Any:
    """One point after the other, each where the density-weighted variance left by the earlier ones is largest."""
    some = rng.choice(len(points), min(600, len(points)), replace=False, p=weights)
    gp, z = cell.model.gp, cell.model.reference.whiten(points[some])
    log_density = cell.model.integrand(points[some]).expected + cell.measure.log_pdf(points[some])
    density = np.exp(log_density - log_density.max())
    p = gp.predict(z)
    cov, chosen = gp.cov(p, p), []
    for _ in range(n):
        score = density * np.diag(cov)
        score[chosen] = -1.0
        best = int(score.argmax())
        chosen.append(best)
        column = cov[:, best] / np.sqrt(max(cov[best, best], 1e-12))
        cov = cov - np.outer(column, column)
    return points[some[chosen]]


VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "no reference": {"basq.auto.cells.LogModel.fit": without_reference(LogModel.fit)},
    "no quadratic trend": {"basq.gp.kernels.trend.TrendKernel.hyperprior": switched_off(2, 4)},
    "no bends": {"basq.gp.kernels.trend.TrendKernel.hyperprior": switched_off(4, None)},
    "standard space only": {"basq.prior.prior.Prior.flat": property(lambda prior: np.zeros(prior.n_dim, dtype=bool))},
    "no noise shaping": {"basq.auto.log_model.NOISE_SLOPE": 0.0},
    "no widened variances": {"basq.auto.log_model.overfit": lambda n, n_dim: 1.0},
    "no exploration": {
        "basq.auto.engine.EXPLORING": 0.0, "basq.auto.engine.EXPLORING_ONLY": 0.0, "basq.auto.engine.PATIENCE": 0.0,
        "basq.auto.engine.quota": lambda n_dim: 0.0, "basq.auto.engine.unseen": lambda n_modes, n_explored, n_dim: 0.0,
    },
    "no tails": {"basq.auto.batch.TAIL": 0.0},
    "no summit": {"basq.auto.batch.SUMMIT": 0.0},
    "no ceiling": {"basq.auto.log_model.headroom": lambda n_dim: 1e3},
    "no scouts": {"basq.auto.engine.Scout.send": nobody},
    "no cells": {"basq.auto.cells.MAX_CELLS": 1},
    "no audit": {"basq.auto.engine.calibration": lambda audits: 1.0, "basq.auto.error.calibration": lambda audits: 1.0},
    "samples, not recombination": {"basq.auto.batch.integrate_batch": plain_samples},
    "greedy variance, not recombination": {"basq.auto.batch.integrate_batch": greedy_variance},
}  # fmt: skip


@contextmanager
def changed(variant: str) -> Iterator[None]:
    with ExitStack() as stack:
        for target, value in VARIANTS[variant].items():
            stack.enter_context(patch(target, value))
        yield


def work(variant: str, family: str, seed: int) -> Row:
    with changed(variant):
        return {"variant": variant, **engine.work(family, seed)}


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
    log_mean = (model.gp.y - residuals) / model.scale.factor + 0.5 * np.minimum(var / model.scale.factor**2, 4.0)
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
