"""What the errors are worth: coverage of the surrogate's own, and of those that the audits calibrate."""

import json

import numpy as np

import basq
from basq import Paper, problems
from basq.run.steps import State
from benchmarks.paper.experiment import Experiment, Task, by, number, table
from benchmarks.study import Row

PROBLEMS = {
    "mixture 10, shared": lambda s: problems.mixture(10, s, shared=True),
    "mixture 10": lambda s: problems.mixture(10, s),
    "mixture 6": lambda s: problems.mixture(6, s),
    "mixture 3": lambda s: problems.mixture(3, s),
    "branin_hoo": lambda s: problems.branin_hoo(),
    "ackley": lambda s: problems.ackley(),
    "oscillatory": lambda s: problems.oscillatory(),
    "lumpy 3": lambda s: problems.lumpy(3, s),
    "bimodal 3": lambda s: problems.bimodal(3),
}
METHODS = {
    "WSABI-L, zero mean": ("wsabi-l", "zero"),
    "WSABI-L": ("wsabi-l", "constant"),
    "WSABI-M": ("wsabi-m", "constant"),
    "vanilla": ("vanilla", "constant"),
    "BBQ": ("bbq", "constant"),
}
BATCH, CANDIDATES = 50, 8000
DLOGZ = 0.1


def tasks(seeds: int, quick: bool) -> list[Task]:
    return [{"problem": p, "method": m, "seed": s} for s in range(seeds) for p in PROBLEMS for m in METHODS]


def work(problem: str, method: str, seed: int) -> Row:
    """Every state of a run: calls, error of log Z, claimed and calibrated error, and whether either would stop."""
    made, (model, mean) = PROBLEMS[problem](seed), METHODS[method]
    states: list[list[float]] = []

    def look(state: State) -> None:
        fit = state.fitted
        states.append([len(state.observations), fit.log_evidence - made.log_evidence, fit.claimed_std,
                       fit.log_evidence_std, float(fit.converged(DLOGZ)[0])])  # fmt: skip

    basq.infer(
        made.log_likelihood, made.prior, batch_size=BATCH, method=Paper(model, mean, n_candidates=CANDIDATES),
        max_evals=450 if made.n_dim > 3 else 300, dlogz=0.0, vectorized=True, seed=seed, progress=False, callback=look,
    )  # fmt: skip
    return {"problem": problem, "method": method, "seed": seed, "states": json.dumps(states)}


def section(rows: list[Row]) -> str:
    out = []
    for key in ("method", "problem"):
        groups = {k: _states(mine) for (k,), mine in by(rows, key).items()}
        body = [[name, *_line(states)] for name, states in groups.items()]
        header = [key, "states", "covered: claimed", "calibrated", "rms z: claimed", "calibrated", "claimed stops",
                  "of them wrong", "calibrated stops", "of them wrong"]  # fmt: skip
        out.append(table(header, [*body, ["all", *_line(_states(rows))]]))
    return "\n".join(out)


def _states(rows: list[Row]) -> np.ndarray:
    """States with two audits at least."""
    tables = [r["states"] if isinstance(r["states"], list) else json.loads(r["states"]) for r in rows]
    return np.concatenate([np.array(t, dtype=float)[2:] for t in tables])


def _line(states: np.ndarray) -> list[object]:
    """Coverage of 95 % intervals, rms z with outliers at 20, and how often each stop would be wrong by three dlogz."""
    _, error, claimed, calibrated, stops = states.T
    usable = np.isfinite(error)
    out: list[object] = [len(states)]
    z = [np.where(usable, np.abs(error) / np.maximum(sd, 1e-12), np.inf) for sd in (claimed, calibrated)]
    out += [f"{100.0 * np.mean(v < 1.96):.0f} %" for v in z]
    out += [number(float(np.sqrt(np.mean(np.minimum(v[usable & ~np.isnan(v)], 20.0) ** 2))), 1) for v in z]
    for stop in (claimed <= DLOGZ, stops > 0.0):
        wrong = np.abs(error[stop & usable]) > 3.0 * DLOGZ
        out += [int(stop.sum()), int(wrong.sum())]
    return out


EXPERIMENT = Experiment("errors", tasks, work, section)
