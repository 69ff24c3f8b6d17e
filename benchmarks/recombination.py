"""Time recombination by the tree against the linear programme, on the same weighted points.

Run ``python -m benchmarks.recombination [--quick]``.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass

import numpy as np

from basq.numerics.linalg import square_distances
from basq.selection.recombination import Method, Recombination, recombine
from basq.types import FloatArray


@dataclass(frozen=True)
class Candidates:
    """Weighted points (N,) with their test functions (N, m) and what those leave unexplained (N,)."""

    features: FloatArray
    weights: FloatArray
    residual: FloatArray


def candidates(n: int, n_features: int, n_dim: int = 10, n_nystrom: int = 200) -> Candidates:
    """Nyström features of an RBF kernel at standard normal points with exponential weights."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, n_dim))
    landmarks = x[:n_nystrom]
    scale = float(n_dim)

    def kernel(a: FloatArray, b: FloatArray) -> FloatArray:
        out: FloatArray = np.exp(-0.5 * square_distances(a, b) / scale)
        return out

    values, vectors = np.linalg.eigh(kernel(landmarks, landmarks))
    leading = slice(-1, -n_features - 1, -1)
    features = kernel(x, landmarks) @ vectors[:, leading]
    explained = (features**2 / values[leading]).sum(axis=1)
    return Candidates(features, rng.exponential(size=n), np.sqrt(np.maximum(1.0 - explained, 0.0)))


def timed(points: Candidates, method: Method, repeats: int) -> tuple[Recombination, float]:
    """The recombination, and the median of its wall times in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        rule = recombine(points.features, points.weights, objective=points.residual, method=method)
        seconds.append(time.perf_counter() - start)
    return rule, statistics.median(seconds)


def worst_moment(points: Candidates, rule: Recombination) -> float:
    """Largest error of total and moments, computed here and not taken from the rule."""
    columns = np.column_stack([np.ones(len(points.weights)), points.features])
    error = rule.weights @ columns[rule.index] - points.weights @ columns
    return float(np.max(np.abs(error) / (points.weights @ np.abs(columns))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer points and repeats")
    quick = parser.parse_args().quick
    points = candidates(4_000 if quick else 20_000, 49 if quick else 99)
    n, m = points.features.shape
    tree, tree_seconds = timed(points, "tree", 5 if quick else 15)
    lp, lp_seconds = timed(points, "lp", 1 if quick else 3)
    print(f"{n} weighted points, {m} features and the constant")
    record: dict[str, object] = {"n": n, "m": m, "ratio": round(lp_seconds / tree_seconds, 1)}
    for name, rule, seconds in (("tree", tree, tree_seconds), ("lp", lp, lp_seconds)):
        error = worst_moment(points, rule)
        objective = rule.weights @ points.residual[rule.index] / (points.weights @ points.residual)
        print(
            f"{name:5s} {1e3 * seconds:9.1f} ms   {len(rule.index)} points   moment error {error:.1e}   "
            f"objective {objective:.3f} of the given"
        )
        record |= {
            f"{name}_seconds": seconds,
            f"{name}_moment_error": error,
            f"{name}_fallback": rule.fallback,
        }
    print(f"the tree is {lp_seconds / tree_seconds:.0f} times as fast")
    print(json.dumps(record))


if __name__ == "__main__":
    main()
