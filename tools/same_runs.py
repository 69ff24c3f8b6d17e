"""Whether two versions of the code make the same runs, bit for bit.

    python tools/same_runs.py --save before.json       # on the one
    python tools/same_runs.py --against before.json    # on the other: which runs differ? exit code 1 if any

Ten problems of the engine's study and four configurations of the paper's method, three batches beyond the design or
more. What is compared is a digest of every point, every value of log Z with its error after every batch, and samples of
the posterior. Only the same machine rounds alike, so a digest says nothing elsewhere.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import basq
from basq import Paper

P = basq.problems
ENGINE: dict[str, Callable[[], P.Problem]] = {
    "gauss 6": lambda: P.gauss(6, 1),
    "lumpy 4": lambda: P.lumpy(4, 1),
    "student 4": lambda: P.student(4),
    "cigar 4": lambda: P.cigar(4, 1),
    "rosen 2": lambda: P.rosen(2),
    "rosen 4": lambda: P.rosen(4),
    "bimodal 3": lambda: P.bimodal(3),
    "narrow 3": lambda: P.narrow_modes(3, 1),
    "mixture 10": lambda: P.mixture(10, 1),
    "wall 3": lambda: P.wall(3, 1),
}
PAPER: dict[str, Paper] = {
    "wsabi-l": Paper(n_candidates=2000),
    "wsabi-m, constant mean": Paper(model="wsabi-m", mean="constant", proposal="ub", n_candidates=2000),
    "vanilla, Matérn": Paper(model="vanilla", kernel="matern52", proposal="optimal", n_candidates=2000),
    "bbq, constant mean": Paper(model="bbq", mean="constant", selection="herding", n_candidates=2000),
}


def digest(problem: P.Problem, method: Paper | str, max_evals: int) -> dict[str, str]:
    """One run in a few hexadecimal digits, and its answer in words."""
    result = basq.infer(
        problem.log_likelihood, problem.prior, method=method, max_evals=max_evals, vectorized=True, seed=1,
        progress=False,
    )  # fmt: skip
    evidence = [(r.n_evals, r.log_evidence, r.log_evidence_std) for r in result.history]
    parts = [result.observations.x, np.asarray(evidence), result.sample(200, seed=1)]
    found = hashlib.sha256(b"".join(np.ascontiguousarray(p, dtype=float).tobytes() for p in parts)).hexdigest()[:16]
    return {"digest": found, "log_evidence": f"{result.log_evidence:.6f} ± {result.log_evidence_std:.6f}"}


def all_digests() -> dict[str, dict[str, str]]:
    """Of all runs, printed as they come."""
    found = {}
    for name, problem in ENGINE.items():
        found[name] = digest(problem(), "auto", 160)
        print(f"{name:<24} {found[name]['digest']}  {found[name]['log_evidence']}", flush=True)
    for name, method in PAPER.items():
        found[name] = digest(P.branin_hoo(), method, 64)
        print(f"{name:<24} {found[name]['digest']}  {found[name]['log_evidence']}", flush=True)
    return found


def main() -> int:
    """Save the digests, or compare them with saved ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--save", type=Path)
    what.add_argument("--against", type=Path)
    options = parser.parse_args()
    found = all_digests()
    if options.save:
        options.save.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    before = json.loads(options.against.read_text())
    other = [name for name in found if before[name]["digest"] != found[name]["digest"]]
    print(
        f"{len(found) - len(other)} of {len(found)} runs are the same" + (f"; not: {', '.join(other)}" if other else "")
    )
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
