"""Other tools and ours on any problem: calls and overhead at equal accuracy.

    python -m benchmarks.peers                                       # all tools that are installed, some problems
    python -m benchmarks.peers --tools PyVBMC basq --problems "rosen 2" branin_hoo supernovae

Problems are those of the engine's study (`rosen 2`), the paper's (`branin_hoo`) and the zoo's models (`supernovae`). A
tool runs with its defaults to its own stop, in an interpreter of its own: `.venv-<distribution>` where there is one,
for tools whose pins do not suit the others, else this one. Rows, with the tool's version, go to
benchmarks/results/peers.csv at once. A tool's overhead and calls are compared with ours over problems and seeds at
which *both* are within 0.1 of log Z; how often they are is in the table too. The last line is JSON.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import basq
from basq.problems import Problem
from benchmarks.engine import FAMILIES
from benchmarks.peer_tools import TOOLS, Tool
from benchmarks.study import Row, run_all, study_parser

ROOT = Path(__file__).parents[1]
PAPERS: dict[str, Callable[[int], Problem]] = {
    "mixture 10 shared": lambda seed: basq.problems.mixture(10, seed, shared=True),
    "branin_hoo": lambda seed: basq.problems.branin_hoo(),
    "ackley": lambda seed: basq.problems.ackley(),
    "oscillatory": lambda seed: basq.problems.oscillatory(),
}
USUAL = ("rosen 2", "student 4", "gauss 6", "bimodal 3", "branin_hoo", "mixture 10 shared", "damped_oscillation")
CLOSE = 0.1
MOST_CALLS = {"PyVBMC": {"rosen 2": 100, "student 4": 200, "gauss 6": 300}, "BOBE": {"rosen 2": 24}}
"""Where only overhead is compared, at as many calls: BOBE would take hours for all of them."""


def named(name: str, seed: int) -> Problem:
    """Any problem by its name."""
    if name in PAPERS:
        return PAPERS[name](seed)
    if name in FAMILIES:
        return FAMILIES[name](seed)
    model = basq.problems.zoo.MODELS[name](seed)
    assert model.log_evidence is not None
    return Problem(name, model.log_likelihood, basq.Prior(model.prior), model.log_evidence)


def interpreter(tool: Tool) -> str:
    """The Python that has a tool: of an environment of its own where there is one."""
    own = ROOT / f".venv-{tool.distribution.lower()}" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def work(problem: str, tool: str, seed: int) -> Row:
    """One run of one tool, in its own interpreter."""
    command = [interpreter(TOOLS[tool]), "-m", "benchmarks.peers", "--child", json.dumps([problem, tool, seed])]
    one = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=one)
    row: Row = {"problem": problem, "tool": tool, "seed": seed, "version": "", "calls": 0, "error": float("nan"),
                "sd": float("nan"), "converged": 0, "seconds": float("nan"), "failure": ""}  # fmt: skip
    if done.returncode:
        return row | {"failure": done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "no message"}
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return row | found


def child(problem: str, tool: str, seed: int) -> Row:
    """What an interpreter prints."""
    made = named(problem, seed)
    answer = TOOLS[tool].run(made, seed, None)
    return {"version": TOOLS[tool].version, "calls": answer.calls, "error": answer.log_evidence - made.log_evidence,
            "sd": answer.sd, "converged": int(answer.converged), "seconds": answer.seconds}  # fmt: skip


def table(rows: list[Row]) -> dict[str, Any]:
    """Print a line a problem and tool; return calls and overhead of every tool over ours at equal accuracy."""
    by = {(r["problem"], r["seed"], r["tool"]): r for r in rows}
    for (problem, seed, tool), r in sorted(by.items()):
        print(f"{problem:<20} {seed} {tool:<17} calls {r['calls']:>7} error {r['error']:>+8.3f} sd {r['sd']:>6.3f} "
              f"{r['seconds']:>8.1f} s {r['failure']}")  # fmt: skip
    out: dict[str, Any] = {}
    for tool in dict.fromkeys(r["tool"] for r in rows if r["tool"] != "basq"):
        pairs = [(r, by[p, s, "basq"]) for (p, s, t), r in by.items() if t == tool and (p, s, "basq") in by]
        both = [(a, b) for a, b in pairs if abs(a["error"]) < CLOSE and abs(b["error"]) < CLOSE]
        ratio = {k: float(np.exp(np.mean([np.log(a[k] / b[k]) for a, b in both]))) if both else float("nan")
                 for k in ("calls", "seconds")}  # fmt: skip
        out[tool] = {
            "runs": len(pairs), "both_close": len(both), "calls": ratio["calls"], "overhead": ratio["seconds"],
            "close": float(np.mean([abs(a["error"]) < CLOSE for a, _ in pairs])) if pairs else float("nan"),
            "ours_close": float(np.mean([abs(b["error"]) < CLOSE for _, b in pairs])) if pairs else float("nan"),
        }  # fmt: skip
        print(f"{tool} ÷ basq: {ratio['calls']:.1f} times the calls, {ratio['seconds']:.1f} times the overhead "
              f"({len(both)} of {len(pairs)} runs at which both are within {CLOSE})")  # fmt: skip
    return out


# --- overhead at as many calls, for the study of overhead and the engine's -------------------------------------------


def against(peer: str) -> dict[str, float]:
    """Processor time of a peer over ours by problem; nothing where the peer is not installed."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    try:
        importlib.import_module(TOOLS[peer].module)
    except ImportError as error:
        print(f"{peer} is not installed here ({error}): not measured.")
        return {}
    out = {}
    for family, most in MOST_CALLS[peer].items():
        problem = FAMILIES[family](0)
        ours(problem, 50)  # what is imported when first used
        found = TOOLS[peer].run(problem, 0, most)
        start = time.process_time()
        ours(problem, found.calls)
        mine = time.process_time() - start
        out[family] = ratio = found.seconds / mine
        print(f"{family}: {peer} {found.seconds:.1f} s for {found.calls} calls, ours {mine:.2f} s, ratio {ratio:.0f}")
    return out


PEERS = tuple(MOST_CALLS)


def ours(problem: Problem, calls: int) -> None:
    """Run our engine to a number of calls."""
    basq.infer(
        problem.log_likelihood, problem.prior, batch_size=16, max_evals=calls, dlogz=0.0, vectorized=True, seed=0,
        progress=False,
    )  # fmt: skip


def main() -> None:
    parser = study_parser(__doc__, "peers.csv", quick="two problems", seeds=1, jobs=1)
    parser.add_argument("--tools", nargs="+", choices=list(TOOLS), help="those that are installed")
    parser.add_argument("--problems", nargs="+", default=list(USUAL))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*json.loads(options.child))))
        return
    tools = options.tools or [name for name, tool in TOOLS.items() if _there(tool)]
    problems = options.problems[:2] if options.quick else options.problems
    tasks = [
        {"problem": p, "tool": t, "seed": s}
        for s in range(options.seeds)
        for p in problems
        for t in dict.fromkeys(["basq", *tools])
    ]
    print(json.dumps(table(run_all(work, tasks, options.output, jobs=options.jobs, restart=options.restart))))


def _there(tool: Tool) -> bool:
    """Whether some interpreter has the tool."""
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({tool.module!r}) is None)"
    return not subprocess.run([interpreter(tool), "-c", look], check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    main()
