"""What other tools for expensive likelihoods cost themselves, against ours at as many calls.

    python -m benchmarks.peers            # those of PyVBMC and BOBE that are installed (half an hour)

A peer runs with its defaults to its own stop or a limit of calls, on likelihoods that cost nothing; then our engine
makes exactly as many. Seconds are those of the processor, in this process, with one thread: what else the machine does
and how many cores it has does not matter. Imports are not counted, on either side. The last line is JSON.
"""

import importlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
from scipy.special import ndtri

import basq
from basq.problems import Problem
from benchmarks.engine import FAMILIES

MOST_CALLS = {"PyVBMC": {"rosen 2": 100, "student 4": 200, "gauss 6": 300}, "BOBE": {"rosen 2": 24}}
"""Problems, and the calls at which a peer has to end; BOBE would take hours for all of them."""


def pyvbmc(problem: Problem, most: int) -> None:
    """Run PyVBMC in standard space."""
    from pyvbmc import VBMC

    d, prior = problem.n_dim, problem.prior

    def log_joint(u: np.ndarray) -> float:
        points = np.atleast_2d(u)
        return float(problem.log_likelihood(prior.from_standard(points))[0] + prior.measure.log_pdf(points)[0])

    start, lower, upper = np.zeros((1, d)), np.full((1, d), -np.inf), np.full((1, d), np.inf)
    options = {"display": "off", "max_fun_evals": most}
    VBMC(log_joint, start, lower, upper, np.full((1, d), -1.0), np.full((1, d), 1.0), options=options).optimize()


def bobe(problem: Problem, most: int) -> None:
    """Run BOBE in the unit cube, where the prior is uniform."""
    from BOBE import BOBE

    d = problem.n_dim

    def log_likelihood(cube: np.ndarray) -> float:
        u = ndtri(np.clip(np.asarray(cube, dtype=float).reshape(1, d), 1e-12, 1.0 - 1e-12))
        return float(problem.log_likelihood(problem.prior.from_standard(u))[0])

    with TemporaryDirectory() as directory:
        BOBE(
            log_likelihood, [f"x{i}" for i in range(d)], np.tile([[0.0], [1.0]], d), save_dir=directory, save=False,
            seed=0, verbosity="ERROR",
        ).run(max_evals=most)  # fmt: skip


MODULES = {"PyVBMC": "pyvbmc", "BOBE": "BOBE"}
PEERS: dict[str, Callable[[Problem, int], None]] = {"PyVBMC": pyvbmc, "BOBE": bobe}


def ours(problem: Problem, calls: int) -> None:
    """Run our engine to a number of calls."""
    basq.infer(
        problem.log_likelihood, problem.prior, batch_size=16, max_evals=calls, dlogz=0.0, vectorized=True, seed=0,
        progress=False,
    )  # fmt: skip


def against(peer: str) -> dict[str, float]:
    """Processor time of a peer over ours by problem; nothing where the peer is not installed."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    try:
        importlib.import_module(MODULES[peer])
    except ImportError as error:
        print(f"{peer} is not installed here ({error}): not measured.")
        return {}
    out = {}
    for family, most in MOST_CALLS[peer].items():
        problem, calls = counted(FAMILIES[family](0))
        ours(problem, 50)  # what is imported when first used
        calls.clear()
        theirs = seconds(PEERS[peer], problem, most)
        n = sum(calls)
        mine = seconds(ours, problem, n)
        out[family] = theirs / mine
        print(
            f"{family}: {peer} {theirs:.1f} s for {n} calls, ours {mine:.2f} s, ratio {theirs / mine:.0f}", flush=True
        )
    return out


def counted(problem: Problem) -> tuple[Problem, list[int]]:
    """Return a problem that notes how many points its likelihood is asked for, call by call."""
    calls: list[int] = []

    def log_likelihood(x: np.ndarray) -> np.ndarray:
        calls.append(len(x))
        return np.asarray(problem.log_likelihood(x))

    return replace(problem, log_likelihood=log_likelihood), calls


def seconds(run: Callable[[Problem, int], None], problem: Problem, calls: int) -> float:
    start = time.process_time()
    run(problem, calls)
    return time.process_time() - start


def main() -> None:
    print(json.dumps({peer: against(peer) for peer in PEERS}))


if __name__ == "__main__":
    main()
