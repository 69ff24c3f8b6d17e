"""report, show and list: runs seen through their stores, without the likelihood, also while they go on."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np

from basq.cli.output import check_output, say, writing
from basq.cli.parser import DONE, FAILED
from basq.errors import BasqError, EvaluationError, counted
from basq.evaluation.store import Store
from basq.results.result import Failure, Result
from basq.run import identity
from basq.run.sampler import Sampler


def report(options: Any) -> None:
    """Write the page of a run."""
    output = options.output or options.store.with_suffix(".html")
    check_output(output)
    result = _result(options.store)
    with writing(output, "report"):
        result.report(output, title=options.title)


def _result(path: Path) -> Result:
    """What is known; of a run without a single value, only its failures and settings."""
    sampler = Sampler.open(path)
    try:
        return sampler.result()
    except EvaluationError:
        failures = tuple(Failure.of(row) for row in sampler.store.rows("state = 'failed'"))
        counts = sampler.store.counts()
        message = f"Running: no call has succeeded yet; {counts['failed']} failed and {counts['pending']} are pending."
        return Result.nothing(sampler.run.prior, message, failures, identity.settings(sampler.store))


def show(options: Any) -> None:
    """Print evidence and posterior."""
    sampler = Sampler.open(options.store)
    say(sampler.result(reason=None if sampler.store.driven else "Not finished"))


def list_runs(options: Any) -> int:
    """Say how far runs are, a line each; a file that cannot be read does not hide the others."""
    paths = options.stores or sorted(Path().glob("*.sqlite"))
    if not paths:
        print("basq: there is no *.sqlite here", file=sys.stderr)
        return DONE
    width = max(len("store"), *(len(str(path)) for path in paths))
    print(f"{'store':<{width}}  {'state':<13}  {'done':>5} {'failed':>6} {'pending':>7}  log Z")
    n_read = 0
    for path in paths:
        try:
            line = _line(path)
            n_read += 1
        except (BasqError, OSError, sqlite3.Error) as error:
            line = " ".join(str(error).split())
        print(f"{path!s:<{width}}  {line}")
    return DONE if n_read else FAILED


def _line(path: Path) -> str:
    """How far a run is: what its last step has learned, which costs no computation."""
    with Store(path) as store:
        counts, steps, driven = store.counts(), store.steps(), store.driven
        n_new = int(np.sum(~np.isnan(store.news().log_likelihood)))
    last = next((record for _, record in reversed(steps) if record), None)
    state, known = "not finished", "nothing learned yet"
    if last is not None:
        known = f"{last['log_evidence']:.3f} ± {last['log_evidence_std']:.3f}"
        if not last["message"].startswith("Running"):
            state = "converged" if last["converged"] else "not converged"
        if n_new:
            known += f", {counted(n_new, 'newer value')}"
    state = "running" if driven else state
    return f"{state:<13}  {counts['done']:>5} {counts['failed']:>6} {counts['pending']:>7}  {known}"
