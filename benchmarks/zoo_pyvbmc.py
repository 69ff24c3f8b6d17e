"""The default engine and PyVBMC on twelve real models, one of each group: calls, error of log Z, processor time.

    python -m benchmarks.zoo_pyvbmc            # one data seed of each (needs the extra 'bench'; half an hour)
    python -m benchmarks.zoo_pyvbmc --quick    # three models

Both get the same log-likelihood, as a black box, and 50 (d + 2) calls at most, and stop by themselves. PyVBMC works in
standard space with its defaults, starts at the best of ten draws from the prior, which count, and has its plausible
box one prior standard deviation wide; a crash counts with all calls. Seconds are those of the processor, on one thread,
less the likelihood's. Rows go to benchmarks/results/zoo_pyvbmc.csv at once; a second call goes on where the first was
stopped. The last line is JSON.
"""

import importlib
import json
import time
import warnings
from typing import Any

import numpy as np

import basq
from benchmarks.study import Row, run_all, study_parser
from benchmarks.zoo import Calls

ZOO = basq.problems.zoo.MODELS
MODELS = (
    "normal_regression", "logistic_regression", "ar1", "sir", "one_compartment", "damped_oscillation", "pumps",
    "two_normals", "weibull_survival", "psychometric", "logistic_growth", "supernovae",
)  # fmt: skip
N_FIRST = 10
"""Draws from the prior, of which PyVBMC starts at the best."""


def work(model: str, seed: int, tool: str) -> Row:
    """One run of one tool."""
    importlib.import_module("pyvbmc")  # imports are not counted, for either tool
    problem = ZOO[model](seed)
    assert problem.log_evidence is not None
    calls, start = Calls(problem.log_likelihood), time.process_time()
    found = {"basq": ours, "PyVBMC": pyvbmc}[tool](calls, basq.Prior(problem.prior), seed)
    seconds = time.process_time() - start - calls.seconds
    found["error"] = found.pop("log_evidence") - problem.log_evidence
    return {"model": model, "seed": seed, "tool": tool, "d": len(problem.prior)} | found | {"seconds": seconds}


def ours(log_likelihood: Any, prior: basq.Prior, seed: int) -> Row:
    """The default engine."""
    result = basq.infer(log_likelihood, prior, vectorized=True, seed=seed, progress=False)
    return {
        "calls": result.n_evals,
        "log_evidence": result.log_evidence,
        "sd": result.log_evidence_std,
        "converged": int(result.converged),
    }


def pyvbmc(log_likelihood: Any, prior: basq.Prior, seed: int) -> Row:
    """PyVBMC in standard space."""
    from pyvbmc import VBMC

    np.random.seed(seed)  # noqa: NPY002  PyVBMC draws from NumPy's global state
    rng, d = np.random.default_rng(seed), prior.n_dim

    def log_joint(u: np.ndarray) -> float:
        points = np.atleast_2d(u)
        value = float(log_likelihood(prior.from_standard(points))[0] + prior.measure.log_pdf(points)[0])
        return max(value, -1e100) if not np.isnan(value) else -1e100

    first = rng.standard_normal((N_FIRST, d))
    best = first[[int(np.argmax([log_joint(u) for u in first]))]]
    box = [np.full((1, d), value) for value in (-np.inf, np.inf, -1.0, 1.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _, found = VBMC(log_joint, np.clip(best, -5.0, 5.0), *box, options={"display": "off"}).optimize()
        except Exception as error:  # a crash is a row, too
            print(f"PyVBMC: {type(error).__name__}: {error}")
            return {"calls": 50 * (d + 2), "log_evidence": np.inf, "sd": 0.0, "converged": 0}
    return {
        "calls": int(found["func_count"]) + N_FIRST,
        "log_evidence": float(found["elbo"]),
        "sd": float(found["elbo_sd"]),
        "converged": int(bool(found["success_flag"])),
    }


def table(rows: list[Row]) -> dict[str, Any]:
    """Print a line per run; return what is asked."""
    by = {(r["model"], r["seed"], r["tool"]): r for r in rows}
    for (model, seed, tool), r in sorted(by.items()):
        print(f"{model:<22} {seed} {tool:<7} calls {r['calls']:>4} error {r['error']:>9.3f} sd {r['sd']:>7.3f} "
              f"{'converged' if r['converged'] else '-':<9} {r['seconds']:>7.1f} s")  # fmt: skip
    pairs = [(by[m, s, "basq"], by[m, s, "PyVBMC"]) for m, s, tool in by if tool == "basq" and (m, s, "PyVBMC") in by]

    def ratio(name: str) -> float:
        return float(np.exp(np.mean([np.log(a[name] / b[name]) for a, b in pairs])))

    out: dict[str, Any] = {"models": len(pairs), "calls": ratio("calls"), "overhead": 1.0 / ratio("seconds")}
    for k, tool in enumerate(("basq", "PyVBMC")):
        error, sd = (np.array([abs(pair[k][name]) for pair in pairs]) for name in ("error", "sd"))
        out[tool] = {
            "within_0.1": float(np.mean(error < 0.1)),
            "median_error": float(np.median(error)),
            "coverage_95": float(np.mean(error < 1.96 * sd)),
            "converged": float(np.mean([pair[k]["converged"] for pair in pairs])),
        }
    return out


def main() -> None:
    parser = study_parser(__doc__, "zoo_pyvbmc.csv", quick="three models", seeds=1, jobs=1)
    options = parser.parse_args()
    models = MODELS[:3] if options.quick else MODELS
    tasks = [
        {"model": m, "seed": s, "tool": t} for s in range(options.seeds) for m in models for t in ("basq", "PyVBMC")
    ]
    print(json.dumps(table(run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart))))


if __name__ == "__main__":
    main()
