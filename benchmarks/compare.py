"""Rival models with known evidences: calls until their probabilities are known, shared out cleverly or equally.

    python -m benchmarks.compare            # 20 sets of rivals
    python -m benchmarks.compare --quick    # 6 sets (minutes)

Every set has four to eight models of different shapes and dimensions, whose log-evidences are moved so that the best is
at 0, the next within 4 nats and the others up to 10⁴ nats below, as simulators are. Three ways to share out the calls,
until the same certainty: `basq.compare`, the same number for each model, and every model on its own until it converges.
Rows go to benchmarks/results/compare.csv at once; a second call goes on where the first was stopped.
"""

import json
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

import basq
from basq.problems import Problem
from basq.rivals.comparison import Comparison
from basq.rivals.race import Race
from basq.run.driver import Driver
from basq.run.interrupt import Interrupt
from basq.run.stopping import Stopping
from benchmarks.study import Row, run_all, study_parser

P = basq.problems
SHAPES = {
    **{f"gauss {d}": partial(P.gauss, d) for d in (2, 4, 6, 8)},
    **{f"lumpy {d}": partial(P.lumpy, d) for d in (4, 6)},
    **{f"mixture {d}": partial(P.mixture, d) for d in (3, 4, 6)},
    **{f"student {d}": lambda seed, d=d: P.student(d) for d in (4, 6)},
    "cigar 4": partial(P.cigar, 4),
    "rosen 2": lambda seed: P.rosen(2),
    "bimodal 2": lambda seed: P.bimodal(2),
    "skew 3": lambda seed: P.skew(3),
}
DPROB, DLOGZ, BATCH = 0.05, 0.1, 16


class Moved:
    """A problem's log-likelihood with a constant added, so that its evidence is what it should be."""

    def __init__(self, problem: Problem, log_evidence: float) -> None:
        self.prior, self.log_evidence = problem.prior, log_evidence
        self._function, self._shift = problem.log_likelihood, log_evidence - problem.log_evidence

    def log_likelihood(self, x: np.ndarray) -> Any:
        return self._function(x) + self._shift


def rivals(seed: int) -> dict[str, Moved]:
    """A set of models: one at log Z = 0, one close to it, the others farther and farther away."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    gaps = np.concatenate([[0.0, rng.uniform(0.0, 4.0)], np.exp(rng.uniform(np.log(2.0), np.log(1e4), n - 2))])
    shapes = rng.choice(list(SHAPES), n, replace=False)
    order = rng.permutation(n)
    return {str(shapes[i]): Moved(SHAPES[shapes[i]](seed), -float(gaps[i])) for i in order}


class Equal(Race):
    """The same number of calls for every model, until the same certainty."""

    def choose(self) -> str | None:
        if super().choose() is None:
            return None
        return min(self.drivers, key=self.asked)


class Alone(Race):
    """Every model on its own until it converges."""

    def choose(self) -> str | None:
        for name, driver in self.drivers.items():
            if not driver.sampler.has_learned or not driver.sampler.verdict.stop:
                return name
        return None


def race(kind: type[Race], models: dict[str, Moved], seed: int) -> Comparison:
    """Run a set of models."""
    own = {name: 50 * (m.prior.n_dim + 2) for name, m in models.items()}
    budget = sum(own.values())
    with ExitStack() as stack:
        drivers = {
            name: stack.enter_context(
                Driver.open(
                    m.log_likelihood, m.prior, method="auto", batch_size=BATCH, dlogz=DLOGZ, vectorized=True,
                    max_evals=own[name] if kind is Alone else budget, pass_dict=False, pool=None, timeout=None,
                    retries=0, on_error="record", seed=1000 * seed + i, interrupt=Interrupt(stored=False),
                )
            )
            for i, (name, m) in enumerate(models.items())
        }  # fmt: skip
        contest = kind(drivers, {}, dict.fromkeys(models, 1.0), Stopping(DLOGZ, budget), DPROB)
        for _ in contest.run():
            pass
        return contest.comparison(tuple(models), interrupted=False)


WAYS: dict[str, type[Race]] = {"shared": Race, "equal": Equal, "alone": Alone}


def work(seed: int, way: str) -> Row:
    """One set of models, one way to share out the calls."""
    models = rivals(seed)
    found = race(WAYS[way], models, seed)
    log_p = np.array([m.log_evidence for m in models.values()])
    truth = np.exp(log_p - np.logaddexp.reduce(log_p))
    ours, sd = (np.array(list(d.values())) for d in (found.probabilities, found.probability_stds))
    worst = int(np.argmax(np.abs(ours - truth)))
    return {
        "seed": seed,
        "way": way,
        "models": len(models),
        "calls": found.n_evals,
        "error": float(ours[worst] - truth[worst]),
        "sd": float(sd[worst]),
        "largest_sd": float(sd.max()),
        "decided": int(found.decided),
        "right": int(found.best == max(models, key=lambda name: models[name].log_evidence)),
    }


def table(rows: list[Row]) -> dict[str, float]:
    """Print a line for each way, and return the ratios of calls."""
    print(f"{'way':<8} {'sets':>4} {'calls':>6} {'|error| of p: mean':>19} {'max':>6} {'claimed':>8} "
          f"{'in 2 sd + 0.01':>15} {'decided':>8} {'and wrong':>10}")  # fmt: skip
    out: dict[str, float] = {}
    calls = {way: {r["seed"]: r["calls"] for r in rows if r["way"] == way} for way in WAYS}
    for way in WAYS:
        mine = [r for r in rows if r["way"] == way]
        error, sd = (np.array([r[k] for r in mine], dtype=float) for k in ("error", "sd"))
        wrong = [r["decided"] and not r["right"] for r in mine]
        print(f"{way:<8} {len(mine):>4} {np.mean([r['calls'] for r in mine]):>6.0f} {np.abs(error).mean():>19.4f} "
              f"{np.abs(error).max():>6.3f} {np.mean([r['largest_sd'] for r in mine]):>8.4f} "
              f"{np.mean(np.abs(error) <= 2.0 * sd + 0.01):>15.2f} {np.mean([r['decided'] for r in mine]):>8.2f} "
              f"{np.mean(wrong):>10.2f}")  # fmt: skip
        out[f"{way}_wrong"] = float(np.mean(wrong))
    for way in ("equal", "alone"):
        logs = np.array([np.log(calls[way][s] / calls["shared"][s]) for s in calls["shared"] if s in calls[way]])
        out[f"{way}_over_shared"] = float(np.exp(logs.mean()))
        out[f"{way}_over_shared_error"] = float(np.exp(logs.mean()) * logs.std() / np.sqrt(len(logs)))
    return out


def main() -> None:
    parser = study_parser(__doc__, "compare.csv", quick="6 sets", seeds=20, jobs=2)
    options = parser.parse_args()
    seeds = range(6 if options.quick else options.seeds)
    tasks = [{"seed": s, "way": way} for s in seeds for way in WAYS]
    print(json.dumps(table(run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart))))


if __name__ == "__main__":
    main()
