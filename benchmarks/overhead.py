"""What the tool itself costs: time by stage, against the least that the method needs on this machine.

    python -m benchmarks.overhead            # all sizes (an hour)
    python -m benchmarks.overhead --quick    # the sizes of the targets (5 minutes)
    python -m benchmarks.overhead --peers    # also PyVBMC and BOBE where they are installed (15 minutes more)

One batch is timed after two warm-up fits, with one BLAS thread below the size where two pay and all above, as in a
run; all look for hyperparameters (Paper would keep those that predicted the last batch well, which costs less).
The floor is one Cholesky factorisation of the n × n kernel matrix, one N × n kernel evaluation and one product of N × n
and n × b matrices (N = 20,000), timed alone in the same process; batches and floors are timed in turns and the best of
each counts, for other work on the machine only ever adds. For the same reason seconds are those of the processor, but
for the store, which waits for the disk. Rows of all sizes go to a file at once; a second call goes on where the first
was stopped. The last line is JSON.
"""

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import basq
from basq.auto import Auto, Settings
from basq.evaluation.call import Outcome
from basq.evaluation.store import Store
from basq.gp.kernels import make_kernel
from basq.numerics.linalg import blas_threads, cholesky
from basq.observations import Observations
from basq.paper.local_penalisation import local_penalisation as penalised

ROWS = Path("benchmarks/results/overhead.jsonl")
N_CANDIDATES = 20_000
TARGETS = {"paper": 6.0, "auto": 8.0}
"""Floors that a batch may cost at n = 1,000, d = 10, batch 100."""
LIMITS = {
    "paper": {"seconds": 12.0, "fit": 4.0, "candidates": 5.0, "features": 2.0, "recombination": 1.0, "evidence": 1.0},
    "auto": {"seconds": 16.0, "fit": 5.0, "candidates": 5.0, "evidence": 4.0, "exploration": 4.0, "features": 1.0},
}
"""Floors above which something got slow: two or three times what a batch and its stages cost, machines being noisy."""
STAGES = {
    "paper": {
        "fit": ["basq.paper.training.fit"],
        "candidates": ["basq.paper.method.propose"],
        "features": ["basq.paper.method.nystrom_features"],
        "recombination": ["basq.paper.method.recombine"],
    },
    "auto": {
        "fit": ["basq.auto.log_model.fit", "basq.auto.exploration.fit"],
        "candidates": ["basq.auto.cells.temper", "basq.auto.batch.selection_measure", "basq.auto.batch.summit"],
        "features": ["basq.auto.batch.nystrom_features"],
        "recombination": ["basq.auto.batch.recombine"],
        "evidence": ["basq.auto.cells.estimate"],
        "audit": ["basq.auto.news.audit"],
        "exploration": ["basq.auto.engine.explore", "basq.auto.engine.Leads.of"],
    },
}
METHODS: dict[str, Any] = {"paper": basq.Paper(), "auto": Auto()}


@dataclass
class Stopwatch:
    """Seconds by stage; a stage inside another counts as itself only."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _running: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._tick()
        self._running.append(name)
        try:
            yield
        finally:
            self._tick()
            self._running.pop()

    def _tick(self) -> None:
        now = time.process_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    @contextmanager
    def watching(self, stages: dict[str, list[str]]) -> Iterator[None]:
        """Time every call of some functions as stages."""
        with ExitStack() as stack:
            for name, places in stages.items():
                for place in places:
                    stack.enter_context(patch(place, self._timed(name, _find(place))))
            yield

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            with self.stage(name):
                return function(*args, **options)

        return timed


def _find(place: str) -> Any:
    """The object at a dotted path."""
    module, _, name = place.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_find(module), name)


def observations(problem: basq.problems.Problem, n: int) -> Observations:
    """A run's points: a quarter from the prior, the rest about the posterior."""
    rng = np.random.default_rng(0)
    wide = problem.prior.sample(n // 4, rng)
    narrow = problem.sample_posterior(n - len(wide), rng)
    x = np.concatenate([wide, narrow + 0.3 * narrow.std(axis=0) * rng.standard_normal(narrow.shape)])
    x = x[rng.permutation(n)]
    u = problem.prior.to_standard(x)
    values = problem.log_likelihood(x)
    explores, batch = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.intp)
    return Observations(x, u, values, prior_weight(problem, u), np.zeros(n), explores, batch)


def prior_weight(problem: basq.problems.Problem, u: np.ndarray) -> np.ndarray:
    return np.asarray(problem.prior.log_weight(u))


def first(seen: Observations, n: int) -> Observations:
    return seen.where(np.arange(len(seen)) < n)


def always_searching() -> Any:
    """No batch of Paper keeps its hyperparameters: an upper bound, and the same work whatever the sizes."""
    return patch("basq.paper.training.still_right", lambda gp: False)


@dataclass(frozen=True)
class Standing:
    """A run that is about to learn from its last batch."""

    name: str
    problem: basq.problems.Problem
    seen: Observations
    fitted: Any
    batch_size: int

    @classmethod
    def of(cls, name: str, n: int, d: int, batch_size: int) -> "Standing":
        """Two fits and selections on the way to n observations, a batch apart."""
        problem, method = basq.problems.mixture(d), METHODS[name]
        seen, fitted = observations(problem, n), None
        with blas_threads(n), always_searching():
            for size in (max(n - 2 * batch_size, n // 2), max(n - batch_size, n // 2)):
                fitted = method.fit(first(seen, size), problem.prior, fitted, np.random.default_rng(size))
                method.select(fitted, batch_size, np.random.default_rng(1), cost_ratio=0.0, taken=np.empty((0, d)))
        return cls(name, problem, seen, fitted, batch_size)

    def one_batch(self) -> dict[str, float]:
        """Seconds by stage of a step that ends with n observations, and of what a user asks for afterwards."""
        method, watch, none = METHODS[self.name], Stopwatch(), np.empty((0, self.problem.n_dim))
        with blas_threads(len(self.seen)), always_searching():
            with watch.watching(STAGES[self.name]), watch.stage("rest"):
                fitted = method.fit(self.seen, self.problem.prior, self.fitted, np.random.default_rng(2))
                with watch.stage("evidence"):
                    _ = fitted.log_evidence, fitted.log_evidence_std
                method.select(fitted, self.batch_size, np.random.default_rng(3), cost_ratio=0.0, taken=none)
            batch = sum(watch.seconds.values())
            with watch.stage("posterior sampling"):
                fitted.posterior.sample(1000, np.random.default_rng(4))
        return {**watch.seconds, "store": store_time(self.problem, self.seen, self.batch_size), "batch": batch}


def store_time(problem: basq.problems.Problem, seen: Observations, batch_size: int) -> float:
    """Seconds for the calls of a batch in the store, committed together."""
    with (
        TemporaryDirectory(dir=".", prefix=".bench-") as directory,
        Store(Path(directory, "s.sqlite"), problem.n_dim) as store,
    ):
        start = time.perf_counter()
        ids = store.add(seen.x[:batch_size], seen.u[:batch_size], False, 0)
        store.finish([(int(i), Outcome(0.0)) for i in ids])
        store.learned(0, store.news(), {})
        return time.perf_counter() - start


def floor(n: int, d: int, batch_size: int) -> dict[str, float]:
    """Seconds of the three operations that no implementation can do without, best of three."""
    rng = np.random.default_rng(0)
    x, candidates, columns = (rng.standard_normal(s) for s in ((n, d), (N_CANDIDATES, d), (n, batch_size)))
    kernel = make_kernel("rbf", d, lengthscale=np.sqrt(d), variance=1.0)
    k = kernel(x, x) + 1e-6 * np.eye(n)
    with blas_threads(n):
        cross = kernel(candidates, x)
        return {
            "cholesky": _best(lambda: cholesky(k)),
            "kernel": _best(lambda: kernel(candidates, x)),
            "product": _best(lambda: cross @ columns),
        }


def _best(work: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.process_time) -> float:
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def peak_memory(name: str, n: int, d: int, batch_size: int) -> float:
    """Largest memory of a step beyond what was there before, in GB; how long the first search takes does not matter."""
    tracemalloc.start()
    quick = Auto(Settings().changed({"kernel.first_steps": 1, "exploration.growth": 9.0}))
    with patch.dict(METHODS, auto=quick):
        Standing.of(name, n, d, batch_size).one_batch()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e9


def gradients_per_batch(name: str) -> float:
    """Marginal-likelihood gradients per batch of a run, after the third batch, in units of one with all observations.

    A gradient with a part of them (one cell, the few that no cell explains) counts by its share of the cost, (m / n)³.
    """
    from basq.gp import fit as module

    sizes: list[list[int]] = [[]]
    n_seen, original = [], module.negative_log_posterior

    def counted(theta: Any, x: Any, *args: Any, **options: Any) -> Any:
        sizes[-1].append(len(x))
        return original(theta, x, *args, **options)

    def next_batch(state: Any) -> None:
        n_seen.append(len(state.observations))
        sizes.append([])

    problem = basq.problems.lumpy(4) if name == "auto" else basq.problems.mixture(4)
    with patch("basq.gp.fit.negative_log_posterior", counted):
        basq.infer(
            problem.log_likelihood, problem.prior, method=METHODS[name], vectorized=True, max_evals=256, dlogz=0.0,
            seed=0, progress=False, callback=next_batch,
        )  # fmt: skip
    counts = [sum((m / n) ** 3 for m in batch) for batch, n in zip(sizes, n_seen, strict=False)]
    return float(np.mean(counts[3:]))


def row(name: str, n: int, d: int, batch_size: int, repeats: int) -> dict[str, Any]:
    """The quickest of some batches by stage, and the floor."""
    standing, batches, floors = Standing.of(name, n, d, batch_size), [], []
    for _ in range(repeats):
        floors.append(sum(floor(n, d, batch_size).values()))
        batches.append(standing.one_batch())
    seconds, least = min(batches, key=lambda b: b["batch"]), min(floors)
    whole = seconds.pop("batch")
    sizes = {"method": name, "n": n, "d": d, "batch_size": batch_size}
    return {**sizes, "floor": least, "seconds": whole, "ratio": whole / least, **seconds}


SIZES = ("method", "n", "d", "batch_size")


def table(sizes: list[tuple[int, int, int]], repeats: int, path: Path | None = None) -> list[dict[str, Any]]:
    """Rows of all methods and sizes; those that a file of JSON lines has already are not measured again."""
    known = [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []
    rows = []
    for name in METHODS:
        for size in sizes:
            found = next((r for r in known if tuple(r[k] for k in SIZES) == (name, *size)), None)
            if found is None:
                found = row(name, *size, repeats)
                if path:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("a") as file:
                        file.write(json.dumps(found) + "\n")
            rows.append(found)
            show(found)
    return rows


def show(r: dict[str, Any]) -> None:
    parts = "  ".join(f"{k} {v:.3f}" for k, v in r.items() if k not in (*SIZES, "floor", "seconds", "ratio"))
    size = f"{r['method']:>5} n={r['n']:<5} d={r['d']:<3} b={r['batch_size']:<4}"
    print(f"{size} {r['seconds']:7.3f} s = {r['ratio']:5.2f} floors   {parts}", flush=True)


def doubling(name: str, repeats: int = 4) -> float:
    """What a batch of 100 costs over one of 50, timed in turns, at n = 1,000 and d = 10."""
    standings = [Standing.of(name, 1000, 10, batch_size) for batch_size in (50, 100)]
    half, full = np.min([[s.one_batch()["batch"] for s in standings] for _ in range(repeats)], axis=0)
    return float(full / half)


def growth(rows: list[dict[str, Any]], name: str, d: int, batch_size: int) -> dict[str, float]:
    """Exponent in n of every stage, by a straight line through the logarithms."""
    mine = [r for r in rows if (r["method"], r["d"], r["batch_size"]) == (name, d, batch_size)]
    stages = [k for k in mine[0] if k not in (*SIZES, "ratio")]
    n = np.log([r["n"] for r in mine])
    return {s: round(float(np.polyfit(n, np.log([max(r.get(s, 0.0), 1e-6) for r in mine]), 1)[0]), 2) for s in stages}


def local_penalisation(n: int, batch_size: int, n_refined: int) -> float:
    """Selection by local penalisation (batch WSABI) over the same batch by recombination.

    Of a hundred starts a point, the paper refines all; ours the best five.
    """
    problem = basq.problems.mixture(10)
    seen, rng = observations(problem, n), np.random.default_rng
    with blas_threads(n), patch("basq.paper.method.local_penalisation", partial(penalised, n_refined=n_refined)):
        fitted = basq.Paper().fit(seen, problem.prior, None, rng(0))

        def seconds(method: basq.Paper, repeats: int) -> float:
            return _best(lambda: method.select(fitted, batch_size, rng(1)), repeats)

        return seconds(basq.Paper(selection="local-penalisation"), 1) / seconds(basq.Paper(), 5)


def import_time(code: str) -> float:
    """Seconds of a fresh interpreter that runs some code, best of five."""
    command = [sys.executable, "-c", code]
    return _best(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), 5, time.perf_counter)


def imports() -> dict[str, float]:
    """Importing basq and the command line's help, over importing NumPy and scipy.linalg."""
    bare, numpy = import_time("pass"), import_time("import numpy, scipy.linalg")
    ours = import_time("import basq")
    helped = import_time(
        "import sys; sys.argv = ['basq', 'list']; from basq.cli import build_parser; build_parser().format_help()"
    )
    return {"import": (ours - bare) / (numpy - bare), "help": (helped - bare) / (numpy - bare)}


def guard(rows: list[dict[str, Any]]) -> None:
    """Fail if a batch or one of its stages costs far more floors than it should."""
    slow = [
        f"{row['method']}: {stage} {row[stage] / row['floor']:.1f} floors, more than {most}"
        for row in rows
        for stage, most in LIMITS[row["method"]].items()
        if row[stage] > most * row["floor"]
    ]
    if slow:
        raise SystemExit("Something got slow. " + "; ".join(slow) + ".")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the sizes of the targets")
    parser.add_argument("--guard", action="store_true", help="only one size; fail if it is far above its target")
    parser.add_argument("--peers", action="store_true", help="also PyVBMC and BOBE, where installed")
    parser.add_argument("--restart", action="store_true", help="forget earlier rows")
    parser.add_argument("--output", type=Path, default=ROWS, help="file of the rows of all sizes")
    options = parser.parse_args()
    if options.guard:
        guard(table([(1000, 10, 100)], repeats=3))
        return
    if options.restart:
        options.output.unlink(missing_ok=True)
    sizes = [(1000, 10, 100)]
    if not options.quick:
        sizes = [(n, d, b) for n in (100, 300, 1000, 3000) for d in (2, 5, 10, 20) for b in (16, 100)]
    rows = table(sizes, repeats=3 if options.quick else 2, path=None if options.quick else options.output)
    found = {(r["method"], r["n"], r["d"], r["batch_size"]): r for r in rows}
    results: dict[str, Any] = {"rows": rows}
    for name in METHODS:
        full = found[name, 1000, 10, 100]
        results[name] = {
            "ratio": full["ratio"], "target": TARGETS[name], "gradients_per_batch": gradients_per_batch(name),
            "doubling_the_batch": doubling(name),
            "gigabytes_at_3000": peak_memory(name, 3000, 10, 100),
        }  # fmt: skip
        if not options.quick:
            results[name]["growth"] = growth(rows, name, 10, 100)
        print(name, {k: v if isinstance(v, dict) else round(v, 2) for k, v in results[name].items()}, flush=True)
    results["local_penalisation_over_recombination"] = {
        f"n={n}, batch {b}, {k} of 100 starts": local_penalisation(n, b, k)
        for n, b, k in ((200, 16, 100), (1000, 16, 100), (200, 16, 5), (1000, 16, 5), (200, 100, 5), (1000, 100, 5))
    }
    results["imports_over_numpy"] = imports()
    if options.peers:
        from benchmarks.peers import PEERS, against

        for peer in PEERS:
            results[f"{peer}_over_ours"] = against(peer)
    for key in ("local_penalisation_over_recombination", "imports_over_numpy", "PyVBMC_over_ours", "BOBE_over_ours"):
        if key in results:
            print(key, {k: round(v, 2) for k, v in results[key].items()}, flush=True)
    print(json.dumps(results, default=float))


if __name__ == "__main__":
    main()
