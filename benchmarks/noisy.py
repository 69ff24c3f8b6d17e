"""The default engine on noisy log-likelihoods: error, calibration, the noise that it finds, widths of the posterior.

    python -m benchmarks.noisy                    # families and real models, 5 seeds
    python -m benchmarks.noisy --quick            # 1 seed (minutes)
    python -m benchmarks.noisy --file problems.py # a file of PROBLEMS = {name: f(seed) -> (log ℓ, prior, log Z)}

Gaussian noise of 1 and 2.5 nats is added to every value, and its standard deviation is stated with the value or not.
Batches of 16, budget 100 (d + 2), a target of log Z's sd that noise leaves in reach. Rows go to
benchmarks/results/noisy.csv at once; a second call goes on where the first was stopped. The last line is JSON.
"""

import json
import time
from typing import Any

import numpy as np

import basq
from basq.problems.zoo.references import LEVELS
from benchmarks.study import Row, run_all, study_parser
from benchmarks.zoo import module_of

P = basq.problems
ZOO = P.zoo.MODELS
FAMILIES = {
    "gauss-2": lambda seed: P.gauss(2, seed),
    "gauss-4": lambda seed: P.gauss(4, seed),
    "gauss-6": lambda seed: P.gauss(6, seed),
    "boxed-4": lambda seed: P.boxed(4, seed),
    "lumpy-4": lambda seed: P.lumpy(4, seed),
    "student-3": lambda seed: P.student(3),
}
MODELS = (
    "logistic_regression", "ar1", "recapture", "dose_response", "weibull_survival", "logistic_growth", "rasch", "pumps",
    "noncentred_schools", "sir",
)  # fmt: skip
INNER = (LEVELS >= 0.16) & (LEVELS <= 0.84)


def work(model: str, sd: float, stated: int, seed: int, file: str = "", changes: str = "") -> Row:
    """One run; ``changes`` are settings in JSON."""
    log_likelihood, prior, log_evidence, quantiles = problem(model, seed, file)
    rng, d = np.random.default_rng([seed, 7]), prior.n_dim if isinstance(prior, basq.Prior) else len(prior)

    def noisy(x: np.ndarray) -> tuple[float, float | None]:
        return float(log_likelihood(x)) + sd * rng.standard_normal(), sd if stated else None

    row: Row = {"model": model, "sd": sd, "stated": stated, "seed": seed, "file": file, "changes": changes, "d": d}
    method, start = basq.Auto(basq.auto.Settings().changed(json.loads(changes or "{}"))), time.process_time()
    result = basq.infer(
        noisy, prior, method=method, max_evals=100 * (d + 2), dlogz=target(sd), seed=seed, progress=False
    )  # fmt: skip
    ratios = widths(result, quantiles) if quantiles is not None else np.array([np.nan])
    return row | {
        "calls": result.n_evals,
        "error": result.log_evidence - log_evidence,
        "claimed": result.log_evidence_std,
        "converged": int(result.converged),
        "noise": float("nan") if result.noise is None else result.noise,
        "width": float(np.exp(np.mean(np.log(ratios)))),
        "least_width": float(ratios.min()),
        "most_width": float(ratios.max()),
        "seconds": time.process_time() - start,
        "message": result.message,
    }


def target(sd: float) -> float:
    """Standard deviation of log Z that is asked for: the usual one, and a tenth of the noise if that is more."""
    return max(0.1, 0.1 * sd)


def problem(model: str, seed: int, file: str) -> tuple[Any, Any, float, np.ndarray | None]:
    """Log-likelihood, prior, log Z and quantiles of the marginals, where they are known."""
    if file:
        own = module_of(file)
        log_likelihood, prior, log_evidence = own.PROBLEMS[model](seed)
        quantiles = getattr(own, "QUANTILES", {}).get(model)
        return log_likelihood, prior, log_evidence, None if quantiles is None else np.array(quantiles)
    if model in ZOO:
        real = ZOO[model](seed)
        assert real.log_evidence is not None
        return real.log_likelihood, real.prior, real.log_evidence, real.quantiles
    family = FAMILIES[model](seed)
    assert family.sample_posterior is not None
    samples = family.sample_posterior(100_000, np.random.default_rng(0))
    return family.log_likelihood, family.prior, family.log_evidence, np.quantile(samples, LEVELS, axis=0).T


def widths(result: Any, quantiles: np.ndarray) -> np.ndarray:
    """Distance of the 16 and 84 % points of every marginal, in that of the reference: (d,)."""
    found = np.quantile(result.sample(20_000, seed=0), LEVELS[INNER][[0, -1]], axis=0)
    return (found[1] - found[0]) / np.ptp(quantiles[:, INNER], axis=1)


def figures(rows: list[Row]) -> dict[str, float]:
    """Everything that is asked of a set of runs."""
    error, claimed = np.array([r["error"] for r in rows], float), np.array([r["claimed"] for r in rows], float)
    noise = np.array([r["noise"] / r["sd"] if r["sd"] else r["noise"] for r in rows], float)
    converged, width = np.array([r["converged"] for r in rows], bool), np.array([r["width"] for r in rows], float)
    covered = np.abs(error) < 1.96 * claimed
    return {
        "runs": len(rows),
        "mean_error": float(np.mean(error)),
        "rms_error": float(np.sqrt(np.mean(error**2))),
        "claimed": float(np.sqrt(np.mean(claimed**2))),
        "coverage_95": float(np.mean(covered)),
        "converged": float(np.mean(converged)),
        "coverage_95_converged": float(np.mean(covered[converged])) if converged.any() else float("nan"),
        "noise_found": float(np.nanmean(noise)) if np.isfinite(noise).any() else float("nan"),
        "noise_off": float(np.nanmean(np.abs(noise - 1.0))) if np.isfinite(noise).any() else float("nan"),
        "width": float(np.exp(np.nanmean(np.log(width)))) if np.isfinite(width).any() else float("nan"),
        "width_off": float(np.nanmean(np.abs(np.log(width)))) if np.isfinite(width).any() else float("nan"),
        "share_of_budget": float(np.mean([r["calls"] / (100 * (r["d"] + 2)) for r in rows])),
        "median_seconds": float(np.median([r["seconds"] for r in rows])),
    }


def table(rows: list[Row]) -> dict[str, Any]:
    """Print a line per model, noise and statement, and for all models together; return all figures."""
    out = {}
    kinds = sorted({(str(r["model"]), float(r["sd"]), int(r["stated"])) for r in rows})
    kinds += sorted({("all", sd, stated) for _, sd, stated in kinds})
    for model, sd, stated in kinds:
        mine = [r for r in rows if model in ("all", r["model"]) and (r["sd"], r["stated"]) == (sd, stated)]
        name = f"{model} {sd:g} {'stated' if stated else 'unknown'}"
        out[name] = f = figures(mine)
        print(f"{name:<34} {f['runs']:>4} runs: error {f['mean_error']:>6.2f} rms {f['rms_error']:.2f} claimed "
              f"{f['claimed']:.2f} cov {f['coverage_95']:.2f} conv {f['converged']:.2f} "
              f"(cov {f['coverage_95_converged']:.2f}) noise {f['noise_found']:.2f} ±{f['noise_off']:.2f} width "
              f"{f['width']:.2f} ±{f['width_off']:.2f} budget {f['share_of_budget']:.2f} "
              f"{f['median_seconds']:.1f} s")  # fmt: skip
    return out


def main() -> None:
    parser = study_parser(__doc__, "noisy.csv", quick="1 seed", seeds=5, jobs=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--models", default="", help="comma-separated; all by default")
    parser.add_argument("--file", default="", help="a Python file with problems")
    parser.add_argument("--noise", default="1,2.5", help="standard deviations in nats, comma-separated")
    parser.add_argument("--stated", default="0,1", help="0: not stated; 1: stated; both by default")
    parser.add_argument("--changes", default="", help="settings that differ, in JSON: '{\"batch.tail\": 0.0}'")
    options = parser.parse_args()
    names = list(module_of(options.file).PROBLEMS) if options.file else [*FAMILIES, *MODELS]
    names = options.models.split(",") if options.models else names
    seeds = range(options.first_seed, options.first_seed + (1 if options.quick else options.seeds))
    tasks = [
        {"model": m, "sd": float(sd), "stated": int(stated), "seed": s, "file": options.file,
         "changes": options.changes}
        for s in seeds for m in names for sd in options.noise.split(",") for stated in options.stated.split(",")
        if options.file or m in FAMILIES or ZOO[m](s).log_evidence is not None
    ]  # fmt: skip
    rows = run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart)
    print(json.dumps(table(rows)))


if __name__ == "__main__":
    main()
