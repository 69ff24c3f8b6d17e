"""How busy the workers are kept, and what the evaluation layer itself costs.

    python -m benchmarks.workers            # 16 workers, 3 seeds (10 minutes)
    python -m benchmarks.workers --quick    # 1 seed, fewer calls (2 minutes)

Calls sleep for a lognormal time with a heavy tail (median 1 s, sigma 1: one in a hundred takes ten times as long). A
worker counts as busy while it is in a call. Two spans are printed: from when all workers are up (16 interpreters take
seconds to start on two cores) until the last point was handed out, which is what a scheme of handing out can influence;
and the whole run, in which the first workers and the last calls are waited for. Overheads are ratios to bare
equivalents measured next to them. The last line is JSON.
"""

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import basq
from basq.evaluation.backends import open_pool
from basq.evaluation.call import Call, Outcome
from basq.evaluation.store import Store
from basq.evaluation.task import Task

N_WORKERS, BATCH_SIZE = 16, 16
MEDIAN, SIGMA = 1.0, 1.0


class Sleeper:
    """A likelihood of three overlapping Gaussians whose calls take time, always the same at the same point.

    It needs nothing but NumPy, so that workers are up at once.
    """

    def __init__(self, seed: int, median: float, n_dim: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.median, self.means, self.sds = median, 0.4 * rng.standard_normal((3, n_dim)), rng.uniform(0.15, 0.3, 3)

    def __call__(self, x: np.ndarray) -> tuple[float, dict[str, float]]:
        begun = time.time()
        rng = np.random.default_rng(int.from_bytes(x.tobytes()))
        time.sleep(self.median * np.exp(SIGMA * rng.standard_normal()))
        return self.log_density(x, self.sds**2), {"begun": begun, "ended": time.time()}

    def log_density(self, x: np.ndarray, variances: np.ndarray) -> float:
        exponents = -0.5 * ((x - self.means) ** 2).sum(axis=1) / variances
        return float(np.log(np.sum(np.exp(exponents) / (2 * np.pi * variances) ** (x.size / 2))))

    def log_evidence(self) -> float:
        """Under a standard normal prior."""
        return self.log_density(np.zeros(self.means.shape[1]), self.sds**2 + 1.0)


def utilisation(path: Path) -> tuple[float, float]:
    """Share of the workers' time spent in calls: while points were handed out to all of them, and in the whole run."""
    with Store(path) as store:
        rows = [row for row in store.rows() if row["state"] == "done"]
    spans = np.array([(r["extra"]["begun"], r["extra"]["ended"]) for r in rows])
    names = np.array([r["worker"] for r in rows])
    all_up = max(spans[names == name, 0].min() for name in set(names))

    def busy(start: float, end: float) -> float:
        inside = np.minimum(spans[:, 1], end) - np.maximum(spans[:, 0], start)
        return float(np.clip(inside, 0.0, None).sum() / (N_WORKERS * (end - start)))

    return busy(all_up, spans[:, 0].max()), busy(spans[:, 0].min(), spans[:, 1].max())


def busy_workers(n_calls: int, seed: int, directory: Path, median: float) -> list[dict[str, Any]]:
    """Both modes on the same problem with the same budget."""
    rows, problem = [], Sleeper(seed, median)
    for asynchronous in (False, True):
        path = directory / f"{seed}-{asynchronous}.sqlite"
        start = time.perf_counter()
        result = basq.infer(
            problem, [stats.norm()] * 4, pool=N_WORKERS, asynchronous=asynchronous, store=path,
            batch_size=BATCH_SIZE, max_evals=n_calls, dlogz=0.0, seed=seed, progress=False,
        )  # fmt: skip
        handing, whole = utilisation(path)
        row = {
            "mode": "asynchronous" if asynchronous else "synchronous", "seed": seed, "calls": result.n_evals,
            "utilisation": handing, "utilisation_whole": whole, "seconds": time.perf_counter() - start,
            "error": result.log_evidence - problem.log_evidence(), "std": result.log_evidence_std,
        }  # fmt: skip
        print(
            f"{row['mode']:>12}  seed {seed}  {row['calls']} calls in {row['seconds']:.0f} s  busy {handing:.3f} "
            f"(whole run {whole:.3f})  error {row['error']:+.3f} ± {row['std']:.3f}", flush=True,
        )  # fmt: skip
        rows.append(row)
    return rows


def nothing(x: np.ndarray) -> float:
    return 0.0


def pool_cost(n: int) -> float:
    """A call through our worker processes over a bare submit to an executor."""
    points = np.random.default_rng(0).standard_normal((n, 4))
    with ProcessPoolExecutor(2) as executor:
        list(executor.map(nothing, points[:50]))
        start = time.perf_counter()
        for future in [executor.submit(nothing, x) for x in points]:
            future.result()
        bare = time.perf_counter() - start
    with open_pool(Call(nothing, ("a", "b", "c", "d")), 2) as pool:
        for part in (points[:50], points):
            start = time.perf_counter()
            for i, x in enumerate(part):
                pool.submit(Task((i,), x[None]))
            found = 0
            while found < len(part):
                found += len(pool.collect(None))
        ours = time.perf_counter() - start
    return ours / bare


def store_cost(n: int, directory: Path) -> float:
    """A stored call over a bare committed insert of the same numbers, both durable, taken in turns."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 4))
    store = Store(directory / "calls.sqlite", 4)
    ids = store.add(x, x, False, 0)
    bare = sqlite3.connect(directory / "bare.sqlite", isolation_level=None)
    bare.execute("PRAGMA synchronous = FULL")
    bare.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY, x BLOB, value REAL)")
    seconds = {"ours": [], "bare": []}
    for i in range(n):
        start = time.perf_counter()
        store.finish([(int(ids[i]), Outcome(float(x[i, 0]), worker="here:1", seconds=1.0))])
        middle = time.perf_counter()
        bare.execute("BEGIN")
        bare.execute("INSERT INTO calls VALUES (?, ?, ?)", (i, x[i].tobytes(), float(x[i, 0])))
        bare.execute("COMMIT")
        seconds["ours"].append(middle - start)
        seconds["bare"].append(time.perf_counter() - middle)
    store.close()
    bare.close()
    return statistics.median(seconds["ours"]) / statistics.median(seconds["bare"])


def opening_cost(n: int, directory: Path) -> float:
    """Opening a large store, with all it has learned from, over reading its file."""
    path, rng = directory / "large.sqlite", np.random.default_rng(0)
    with Store(path, 6) as store:
        store._connection.execute("PRAGMA synchronous = OFF")  # only to write it quickly
        x = rng.standard_normal((n, 6))
        ids = store.add(x, x, False, 0)
        store.finish(
            [(int(i), Outcome(float(v), worker="node17:12345", seconds=1.2)) for i, v in zip(ids, x[:, 0], strict=True)]
        )
        news = store.news()
        record = {
            "n_evals": 1,
            "log_evidence": -1.25,
            "log_evidence_std": 0.1,
            "status": "running",
            "message": "Running: …",
            "seconds": {"fit": 0.1},
        }
        for step, first in enumerate(range(0, n, BATCH_SIZE)):
            store.learned(step, type(news)(news.table[first : first + BATCH_SIZE]), record)
    ratios = []
    for _ in range(7):
        start = time.perf_counter()
        path.read_bytes()
        middle = time.perf_counter()
        with Store(path) as store:
            assert sum(len(calls) for calls, _ in store.steps()) == n
            assert len(store.pending()) == len(store.news()) == 0
        ratios.append((time.perf_counter() - middle) / (middle - start))
    return statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 seed, fewer calls, shorter ones")
    options = parser.parse_args()
    n_calls, seeds, median = (192, 1, 0.5) if options.quick else (320, 3, MEDIAN)
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as name:  # on a real disk: /tmp may be memory
        directory = Path(name)
        costs = {
            "pool_ratio": pool_cost(500 if options.quick else 2000),
            "store_ratio": store_cost(200 if options.quick else 1000, directory),
            "open_ratio": opening_cost(100_000, directory),
        }
        for key, target in (("pool_ratio", 3), ("store_ratio", 2), ("open_ratio", 10)):
            print(f"{key}: {costs[key]:.2f} (target ≤ {target})", flush=True)
        rows = [row for seed in range(seeds) for row in busy_workers(n_calls, seed, directory, median)]
    summary: dict[str, Any] = {k: round(v, 2) for k, v in costs.items()}
    for mode in ("synchronous", "asynchronous"):
        mine = [row for row in rows if row["mode"] == mode]
        summary[mode] = {
            "utilisation": round(float(np.mean([r["utilisation"] for r in mine])), 3),
            "utilisation_whole": round(float(np.mean([r["utilisation_whole"] for r in mine])), 3),
            "rms_error": round(float(np.sqrt(np.mean([r["error"] ** 2 for r in mine]))), 4),
            "seconds": round(float(np.mean([r["seconds"] for r in mine])), 1),
        }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
