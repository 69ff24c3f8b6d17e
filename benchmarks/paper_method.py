"""The paper's method on the paper's synthetic problems: error, claimed error and overhead.

    python -m benchmarks.paper_method            # 10 seeds, 12 configurations, 4 problems (hours on one core)
    python -m benchmarks.paper_method --quick    # 2 seeds, a third of the calls (minutes)
    python -m benchmarks.paper_method --full     # every model x mean x proposal

Rows go to benchmarks/results/paper_method.csv at once; a second call goes on where the first was stopped.
"""

import json
from itertools import product

import numpy as np

import basq
from benchmarks.study import Row, run_all, study_parser

PROBLEMS = {"mixture": 10, "branin_hoo": 6, "ackley": 6, "oscillatory": 6}
"""Problem and its number of batches of 100 calls, as in the paper."""

MODELS, MEANS, PROPOSALS = ("wsabi-l", "wsabi-m", "vanilla", "bbq"), ("zero", "constant"), ("ivr", "ub", "igb")
OWN_VARIANTS = (("wsabi-l", "zero"), ("wsabi-m", "constant"))
"""Models whose UB and IGB variants are run by default: the paper's, and its repair."""


def configurations(full: bool) -> list[tuple[str, str, str]]:
    """Model, mean and proposal of every configuration."""
    everything = list(product(MODELS, MEANS, PROPOSALS))
    return [c for c in everything if full or c[2] == "ivr" or c[:2] in OWN_VARIANTS]


def work(problem: str, model: str, mean: str, proposal: str, seed: int, batches: int) -> Row:
    """One run."""
    truth = basq.problems.mixture(10, seed) if problem == "mixture" else getattr(basq.problems, problem)()
    result = basq.infer(
        truth.log_likelihood,
        truth.prior,
        method=basq.Paper(model=model, mean=mean, proposal=proposal, audited=False),  # what the surrogate claims
        batch_size=100,
        max_evals=100 * batches,
        dlogz=0.0,
        vectorized=True,
        seed=seed,
        progress=False,
    )
    ratio = float(np.exp(result.log_evidence - truth.log_evidence))
    overhead = sum(sum(v for k, v in r.seconds.items() if k != "evaluate") for r in result.history)
    return {
        "problem": problem,
        "model": model,
        "mean": mean,
        "proposal": proposal,
        "seed": seed,
        "batches": batches,
        "relative_error": ratio - 1.0,
        "claimed_sd": ratio * result.log_evidence_std,
        "seconds": overhead,
    }


def table(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Print medians over the seeds, and return them by 'problem model mean proposal'."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(" ".join(row[k] for k in ("problem", "model", "mean", "proposal")), []).append(row)
    print(
        f"{'problem model mean proposal':<38} {'n':>3} {'med err':>9} {'med |err|':>9} {'max |err|':>9} {'claimed':>9} "
        f"{'rms z':>8} {'sec':>6}"
    )
    out = {}
    for name in sorted(groups):
        error = np.array([r["relative_error"] for r in groups[name]], dtype=float)
        sd = np.array([r["claimed_sd"] for r in groups[name]], dtype=float)
        seconds = float(np.median([r["seconds"] for r in groups[name]]))
        out[name] = {
            "runs": len(error),
            "median_error": float(np.median(error)),
            "median_abs_error": float(np.median(np.abs(error))),
            "max_abs_error": float(np.max(np.abs(error))),
            "median_claimed_sd": float(np.median(sd)),
            "rms_z": float(np.sqrt(np.mean((error / sd) ** 2))),
            "median_seconds": seconds,
        }
        v = out[name]
        print(
            f"{name:<38} {v['runs']:>3} {v['median_error']:>+9.4f} {v['median_abs_error']:>9.4f} "
            f"{v['max_abs_error']:>9.4f} {v['median_claimed_sd']:>9.4f} {v['rms_z']:>8.1f} {seconds:>6.1f}"
        )
    return out


def main() -> None:
    parser = study_parser(__doc__, "paper_method.csv", quick="2 seeds, a third of the calls", seeds=10, jobs=1)
    parser.add_argument("--full", action="store_true", help="all 24 configurations")
    options = parser.parse_args()
    tasks = [
        {
            "problem": p,
            "model": m,
            "mean": c,
            "proposal": g,
            "seed": s,
            "batches": max(n // (3 if options.quick else 1), 2),
        }
        for s in range(2 if options.quick else options.seeds)
        for (p, n), (m, c, g) in product(PROBLEMS.items(), configurations(options.full))
    ]
    rows = run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart)
    figures = table(rows)
    best = {
        p: min((v["median_abs_error"], name) for name, v in figures.items() if name.startswith(p + " "))
        for p in PROBLEMS
    }
    for problem, (error, name) in best.items():
        print(f"best on {problem}: {name.removeprefix(problem + ' ')}, median |error| {error:.4f}")
    print(
        json.dumps(
            {"configurations": figures, "best": {p: {"configuration": n, "error": e} for p, (e, n) in best.items()}}
        )
    )


if __name__ == "__main__":
    main()
