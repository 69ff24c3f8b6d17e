"""Certificates of the default engine's answers: coverage, error, and what they notice of surrogates spoilt on purpose.

    python -m benchmarks.certificate            # 200 runs, and 4 ways to spoil 4 problems of 10 seeds
    python -m benchmarks.certificate --quick    # some of each (minutes)

Batches of 16, budget 50 (d + 2), the engine's own stop; then three certificates of 64 calls each. Runs of models with
several modes count where the posterior shows all of them: whose mean marginal total variation is small. Truths of the
zoo have errors of their own, which are allowed for. Rows go to benchmarks/results/certificate.csv at once; a second
call goes on where the first was stopped. The last line is JSON.
"""

import json
from typing import Any

import numpy as np

import basq
from basq.certificate.certificate import Certificate
from basq.certificate.design import Design
from basq.problems.zoo.references import LEVELS
from benchmarks.engine import FAMILIES, OTHERS, posterior_quality
from benchmarks.spoilt import SPOILT
from benchmarks.study import Row, run_all, study_parser
from benchmarks.zoo import variation

ZOO = basq.problems.zoo
SYNTHETIC = FAMILIES | OTHERS
SEVERAL = ("bimodal", "narrow", "banana", "consecutive_reaction", *ZOO.GROUPS["signals"], *ZOO.GROUPS["mixtures"])
"""Beginnings of the names of problems with several modes."""
ALL_FOUND = 0.15
"""Mean marginal total variation below which no mode can be missing that matters."""
TO_SPOIL = ("gauss 6", "student 4", "rosen 2", "logistic_growth")
N_SYNTHETIC, N_ZOO = 3, 2
"""Seeds of each family and each model."""
N_SPOILT = 10
N_CERTIFICATES = 3
"""Of every run, for firmer figures."""
N_TRUE = 200_000


def work(model: str, seed: int, spoilt: str, calls: int) -> Row:
    """One run and its certificate; or that of a surrogate spoilt on purpose."""
    problem: Any = SYNTHETIC[model](seed) if model in SYNTHETIC else ZOO.MODELS[model](seed)
    result = basq.infer(
        problem.log_likelihood, problem.prior, batch_size=16, max_evals=50 * (problem.n_dim + 2), vectorized=True,
        seed=seed, progress=False,
    )  # fmt: skip
    truth = np.nan if problem.log_evidence is None else problem.log_evidence
    row: Row = {"model": model, "seed": seed, "spoilt": spoilt, "calls": calls, "d": problem.n_dim,
                "run_calls": result.n_evals, "converged": int(result.converged),
                "run_error": result.log_evidence - truth, "run_sd": result.log_evidence_std}  # fmt: skip
    every = [wrongly(result, problem, spoilt, calls, seed)] if spoilt else certificates(result, problem, calls)
    found, certified = every[0], [c for c in every if c.certified]
    truth_sd = getattr(problem, "log_evidence_std", 0.0) or 0.0
    off = [abs(c.log_evidence - truth) for c in certified]
    right = [means(c, problem) for c in certified]
    return row | {
        "truth_sd": truth_sd,
        "total_variation": distance(result, problem),
        "finding": str(found.finding),
        "error": found.log_evidence - truth,
        "sd": found.log_evidence_std,
        "k_hat": found.k_hat,
        "effective": found.effective,
        "wrong_place": found.total_variation,
        "certificates": len(every),
        "certified": len(certified),
        "covered": sum(o < 1.96 * np.hypot(c.log_evidence_std, truth_sd) for o, c in zip(off, certified, strict=True)),
        "wrong": sum(o > max(0.3, 3.0 * c.log_evidence_std) for o, c in zip(off, certified, strict=True)),
        "means_within": sum(within for within, _ in right),
        "means": sum(n for _, n in right),
        "why": found.why,
    }


def certificates(result: Any, problem: Any, calls: int) -> list[Certificate]:
    """Some of one run, each with points of its own."""
    out = []
    for _ in range(N_CERTIFICATES):
        result = result.certify(problem.log_likelihood, calls, vectorized=True, progress=False)
        out.append(result.certificate)
    return out


def wrongly(result: Any, problem: Any, how: str, calls: int, seed: int) -> Certificate:
    """The certificate of a surrogate that is not the one of the run."""
    rng = np.random.default_rng([seed, 1])
    posterior, log_evidence = SPOILT[how](result, rng)
    best = float(result.observations.log_values.max())
    design = Design.draw(posterior, log_evidence, result.prior, best, calls, rng)
    x = result.prior.from_standard(design.u)
    values, none = np.asarray(problem.log_likelihood(x), dtype=float), np.zeros(calls)
    return Certificate(design, x, values, none, 0, (log_evidence, result.log_evidence_std), 0.1)


def distance(result: Any, problem: Any) -> float:
    """Mean marginal total variation of the run's posterior."""
    if isinstance(problem, basq.problems.Problem):
        return posterior_quality(problem, result)[0]
    return variation(result, problem.quantiles) if problem.quantiles is not None else float("nan")


def means(found: Certificate, problem: Any) -> tuple[int, int]:
    """How many posterior means, of how many, lie within two standard errors of the truth.

    Of the parameters; where only quantiles are known, of the share of the true marginal below a parameter.
    """
    if isinstance(problem, basq.problems.Problem):
        if problem.sample_posterior is None:
            return 0, 0
        values, truth = found.x, problem.sample_posterior(N_TRUE, np.random.default_rng(0)).mean(axis=0)
    else:
        if problem.quantiles is None:
            return 0, 0
        values = np.stack([np.interp(x, q, LEVELS) for x, q in zip(found.x.T, problem.quantiles, strict=True)], axis=1)
        truth = np.full(problem.n_dim, 0.5)
    mean, error = found.expectation(values)
    return int((np.abs(mean - truth) <= 2.0 * error).sum()), problem.n_dim


def figures(rows: list[Row]) -> dict[str, float]:
    """Everything that is asked of a set of honest runs."""
    counted = [r for r in rows if not (str(r["model"]).startswith(SEVERAL) and r["total_variation"] >= ALL_FOUND)]
    certified = [r for r in counted if r["finding"] == "certified"]
    error = np.array([r["error"] for r in certified], float)
    runs = np.array([r["run_error"] for r in certified], float)
    total = {key: sum(int(r[key]) for r in counted) for key in ("certificates", "certified", "covered", "wrong")}
    shares = np.array([r["covered"] / r["certified"] for r in counted if r["certified"]])
    right = sum(r["means_within"] for r in counted), sum(r["means"] for r in counted)
    return {
        "runs": len(counted),
        "left_out_for_missing_modes": len(rows) - len(counted),
        "certificates": total["certificates"],
        "certified": total["certified"] / total["certificates"],
        "contradicted": float(np.mean([r["finding"] == "contradicted" for r in counted])),
        "coverage_95_certified": total["covered"] / total["certified"],
        "coverage_95_certified_se": float(shares.std() / np.sqrt(len(shares))),
        "median_error": float(np.median([abs(float(r["error"])) for r in counted])),
        "median_error_certified": float(np.median(np.abs(error))),
        "median_run_error_certified": float(np.median(np.abs(runs))),
        "certified_and_wrong": total["wrong"] / total["certificates"],
        "certified_and_wrong_of_all": sum(int(r["wrong"]) for r in rows) / sum(int(r["certificates"]) for r in rows),
        "means_within_2_se": right[0] / right[1],
        "median_effective": float(np.median([r["effective"] for r in certified])),
    }


def noticed(rows: list[Row]) -> dict[str, float]:
    """What is said of surrogates spoilt in one way."""
    flagged = [r["finding"] == "contradicted" or not r["k_hat"] <= 0.7 for r in rows]
    return {
        "surrogates": len(rows),
        "contradicted_or_k_hat": float(np.mean(flagged)),
        "not_certified": float(np.mean([r["finding"] != "certified" for r in rows])),
        "median_error": float(np.nanmedian([abs(r["error"]) for r in rows])),
    }


def table(rows: list[Row]) -> dict[str, Any]:
    """Print a line per run, and return all figures."""
    for r in sorted(rows, key=lambda r: (r["spoilt"], r["model"], r["seed"])):
        print(f"{r['spoilt'] or 'run':<18} {r['model']:<28} {r['seed']:>2} d {r['d']:>2} run {r['run_error']:>8.3f} "
              f"± {r['run_sd']:<6.3f} certificate {r['error']:>8.3f} ± {r['sd']:<6.3f} {r['finding']}")  # fmt: skip
    honest, wrong = [r for r in rows if not r["spoilt"]], [r for r in rows if r["spoilt"]]
    out: dict[str, Any] = {"runs": figures(honest)}
    if wrong:
        out["spoilt"] = noticed(wrong) | {how: noticed([r for r in wrong if r["spoilt"] == how]) for how in SPOILT}
    return out


def main() -> None:
    parser = study_parser(__doc__, "certificate.csv", quick="few of each", seeds=N_SPOILT, jobs=2)
    parser.add_argument("--calls", type=int, default=64)
    parser.add_argument("--first-seed", type=int, default=0, help="of the runs")
    options = parser.parse_args()
    first, n_zoo, n_synthetic = options.first_seed, 1 if options.quick else N_ZOO, 1 if options.quick else N_SYNTHETIC
    which = [(f, s) for s in range(first, first + n_synthetic) for f in list(SYNTHETIC)[:: 4 if options.quick else 1]]
    zoo = list(ZOO.MODELS)[:: 8 if options.quick else 1]
    which += [(m, s) for s in range(first, first + n_zoo) for m in zoo if ZOO.MODELS[m](s).log_evidence is not None]
    tasks: list[Row] = [{"model": m, "seed": s, "spoilt": "", "calls": options.calls} for m, s in which]
    for how in SPOILT:
        seeds = range(2 if options.quick else options.seeds)
        tasks += [{"model": m, "seed": s, "spoilt": how, "calls": options.calls} for m in TO_SPOIL for s in seeds]
    rows = run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart)
    print(json.dumps(table(rows)))


if __name__ == "__main__":
    main()
