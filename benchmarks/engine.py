"""The default engine over many families, dimensions and seeds: error, calls, calibration, posterior, overhead.

    python -m benchmarks.engine            # all families, 10 seeds
    python -m benchmarks.engine --quick    # 2 seeds (minutes)
    python -m benchmarks.engine --others   # families that no constant of the engine was chosen by
    python -m benchmarks.engine --many     # twenty dimensions and more
    python -m benchmarks.engine --pyvbmc   # also time PyVBMC on three problems in the same process

Batches of 16, budget 50 (d + 2), the engine's own stop. Rows go to benchmarks/results/engine.csv at once; a second
call goes on where the first was stopped.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import basq
from basq.problems import Problem
from benchmarks.study import Row, run_all, study_parser

P = basq.problems
FAMILIES: dict[str, Callable[[int], Problem]] = {
    "gauss 2": lambda s: P.gauss(2, s),
    "gauss 6": lambda s: P.gauss(6, s),
    "gauss 10": lambda s: P.gauss(10, s),
    "lumpy 4": lambda s: P.lumpy(4, s),
    "lumpy 8": lambda s: P.lumpy(8, s),
    "student 4": lambda s: P.student(4),
    "student 8": lambda s: P.student(8),
    "cigar 4": lambda s: P.cigar(4, s),
    "cigar 8": lambda s: P.cigar(8, s),
    "rosen 2": lambda s: P.rosen(2),
    "rosen 4": lambda s: P.rosen(4),
    "bimodal 2": lambda s: P.bimodal(2),
    "bimodal 3": lambda s: P.bimodal(3),
    "bimodal 4": lambda s: P.bimodal(4),
    "narrow 2": lambda s: P.narrow_modes(2, s),
    "narrow 3": lambda s: P.narrow_modes(3, s),
    "narrow 4": lambda s: P.narrow_modes(4, s),
    "narrow 5": lambda s: P.narrow_modes(5, s),
    "mixture 4": lambda s: P.mixture(4, s),
    "mixture 10": lambda s: P.mixture(10, s),
}
OTHERS: dict[str, Callable[[int], Problem]] = {
    "heavy 3": lambda s: P.heavy(3, s),
    "heavy 6": lambda s: P.heavy(6, s),
    "boxed 3": lambda s: P.boxed(3, s),
    "boxed 7": lambda s: P.boxed(7, s),
    "wall 3": lambda s: P.wall(3, s),
    "wall 6": lambda s: P.wall(6, s),
    "edge 5": lambda s: P.edge(5),
    "funnel 4": lambda s: P.funnel(4),
    "ring 2": lambda s: P.ring(),
    "shell 3": lambda s: P.shell(3),
    "skew 3": lambda s: P.skew(3),
    "banana 2": lambda s: P.banana_and_gauss(),
}
MANY: dict[str, Callable[[int], Problem]] = {
    "gauss 20": lambda s: P.gauss(20, s),
    "gauss 25": lambda s: P.gauss(25, s),
    "boxed 20": lambda s: P.boxed(20, s),
    "boxed 25": lambda s: P.boxed(25, s),
    "twisted 20": lambda s: P.twisted(20, s),
}
EVERY = FAMILIES | OTHERS | MANY
MULTIMODAL = ("bimodal", "narrow")

PYVBMC_CALLS = {
    "gauss 6": 135, "gauss 10": 220, "lumpy 4": 100, "lumpy 8": 235, "student 4": 110, "student 8": 325,
    "cigar 4": 85, "cigar 8": 140, "rosen 2": 90, "rosen 4": 125, "bimodal 3": 75, "mixture 10": 305,
}  # fmt: skip
"""Calls of PyVBMC 1.5 at its own stop, seed 0, defaults (measured beforehand)."""


def work(family: str, seed: int, method: Any = "auto") -> Row:
    """One run."""
    problem = EVERY[family](seed)
    d = problem.n_dim
    start = time.perf_counter()
    result = basq.infer(
        problem.log_likelihood, problem.prior, method=method, batch_size=16, max_evals=50 * (d + 2), vectorized=True,
        seed=seed, progress=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    errors = [r.log_evidence - problem.log_evidence for r in result.history]
    variation, divergence = posterior_quality(problem, result)
    return {
        "family": family,
        "seed": seed,
        "d": d,
        "calls": result.n_evals,
        "error": errors[-1],
        "sd": result.log_evidence_std,
        "converged": int(result.converged),
        "reach": reach(errors, [r.n_evals for r in result.history], 50 * (d + 2)),
        "total_variation": variation,
        "gaussian_kl": divergence,
        "seconds": seconds,
    }


def reach(errors: list[float], calls: list[int], budget: int) -> int:
    """Calls after which |error| stays below 0.1 to the end of the run; the budget if it does not end there."""
    inside = [abs(e) < 0.1 for e in errors]
    if not inside[-1]:
        return budget
    first = len(inside) - 1
    while first > 0 and inside[first - 1]:
        first -= 1
    return calls[first]


def posterior_quality(problem: Problem, result: Any, n: int = 4000) -> tuple[float, float]:
    """Mean marginal total variation, and Gaussianised symmetric KL per dimension, against true samples."""
    if problem.sample_posterior is None:
        return float("nan"), float("nan")
    true, ours = problem.sample_posterior(n, np.random.default_rng(0)), result.sample(n, seed=0)
    distances = []
    for a, b in zip(true.T, ours.T, strict=True):
        edges = np.quantile(np.concatenate([a, b]), np.linspace(0.0, 1.0, 31))
        edges[0], edges[-1] = -np.inf, np.inf
        distances.append(0.5 * np.abs(np.histogram(a, edges)[0] - np.histogram(b, edges)[0]).sum() / n)
    return float(np.mean(distances)), symmetric_kl(true, ours) / problem.n_dim


def symmetric_kl(a: np.ndarray, b: np.ndarray) -> float:
    """Mean of the two Kullback-Leibler divergences between Gaussians with the samples' moments."""
    d = a.shape[1]
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    least = 1e-12 * np.diag(a.var(axis=0))  # samples that have all collapsed onto one point: far off, not an error
    cov_a, cov_b = np.cov(a.T).reshape(d, d), np.cov(b.T).reshape(d, d) + least
    delta = mean_a - mean_b
    inverse_a, inverse_b = np.linalg.inv(cov_a), np.linalg.inv(cov_b)
    traces = np.trace(inverse_a @ cov_b) + np.trace(inverse_b @ cov_a) - 2 * d
    return float(0.25 * (traces + delta @ (inverse_a + inverse_b) @ delta))


def figures(rows: list[Row]) -> dict[str, float]:
    """Everything that is asked of a set of runs."""
    error = np.array([r["error"] for r in rows], dtype=float)
    sd = np.array([r["sd"] for r in rows], dtype=float)
    converged = np.array([r["converged"] for r in rows], dtype=bool)
    wrong = converged & ~(np.abs(error) <= np.maximum(0.3, 3.0 * sd))
    z = error / sd
    return {
        "runs": len(rows),
        "within_0.1": float(np.mean(np.abs(error) < 0.1)),
        "median_calls": float(np.median([r["calls"] for r in rows])),
        "median_reach": float(np.median([r["reach"] for r in rows])),
        "coverage_95": float(np.mean(np.abs(z) < 1.96)),
        "rms_z": float(np.sqrt(np.mean(z**2))),
        "confidently_wrong": float(np.mean(wrong)),
        "converged": float(np.mean(converged)),
        "total_variation": float(np.nanmean([r["total_variation"] for r in rows])) if _known(rows) else float("nan"),
        "gaussian_kl": float(np.nanmax([r["gaussian_kl"] for r in rows])) if _known(rows) else float("nan"),
        "median_seconds": float(np.median([r["seconds"] for r in rows])),
    }


def _known(rows: list[Row]) -> bool:
    return bool(np.isfinite([r["total_variation"] for r in rows]).any())


def table(rows: list[Row]) -> dict[str, Any]:
    """Print a line per family, and return all figures."""
    print(f"{'family':<11} {'runs':>4} {'<0.1':>5} {'calls':>6} {'reach':>6} {'vbmc':>5} {'cov95':>6} {'rms z':>6} "
          f"{'wrong':>6} {'conv':>5} {'TV':>6} {'max KL':>7} {'sec':>6}")  # fmt: skip
    out: dict[str, Any] = {}
    for family in EVERY:
        mine = [r for r in rows if r["family"] == family]
        if mine:
            out[family] = f = figures(mine)
            print(f"{family:<11} {f['runs']:>4} {f['within_0.1']:>5.2f} {f['median_calls']:>6.0f} "
                  f"{f['median_reach']:>6.0f} {PYVBMC_CALLS.get(family, ''):>5} {f['coverage_95']:>6.2f} "
                  f"{f['rms_z']:>6.2f} {f['confidently_wrong']:>6.2f} {f['converged']:>5.2f} "
                  f"{f['total_variation']:>6.3f} {f['gaussian_kl']:>7.3f} {f['median_seconds']:>6.1f}")  # fmt: skip
    compared = [f for f in PYVBMC_CALLS if f in out]
    multimodal = [r for r in rows if r["family"].startswith(MULTIMODAL)]
    overall = figures(rows)
    overall["worst_family_within_0.1"] = min(f["within_0.1"] for f in out.values())
    for key in ("median_reach", "median_calls"):
        ratio = np.mean([np.log(out[f][key] / PYVBMC_CALLS[f]) for f in compared]) if compared else np.nan
        overall[f"{key}_over_pyvbmc"] = float(np.exp(ratio))
    overall["confidently_wrong_multimodal"] = figures(multimodal)["confidently_wrong"] if multimodal else float("nan")
    print(json.dumps(overall, indent=1))
    return {"overall": overall, "families": out}


def main() -> None:
    parser = study_parser(__doc__, "engine.csv", quick="2 seeds", seeds=10, jobs=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--families", default="", help="comma-separated; all by default")
    parser.add_argument("--others", action="store_true", help="other families; rows in engine_others.csv")
    parser.add_argument("--many", action="store_true", help="twenty dimensions and more; rows in engine_many.csv")
    parser.add_argument("--pyvbmc", action="store_true", help="also time PyVBMC (needs the extra 'bench')")
    options = parser.parse_args()
    kind, which = ("others", OTHERS) if options.others else ("many", MANY) if options.many else ("", FAMILIES)
    families = options.families.split(",") if options.families else list(which)
    output = options.output.with_stem(f"{options.output.stem}_{kind}") if kind else options.output
    seeds = range(options.first_seed, options.first_seed + (2 if options.quick else options.seeds))
    tasks = [{"family": f, "seed": s} for s in seeds for f in families]
    results = table(run_all(work, tasks, output, jobs=options.jobs, restart=options.restart))
    if options.pyvbmc:
        from benchmarks.peers import against

        results["pyvbmc_over_ours"] = against("PyVBMC")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
