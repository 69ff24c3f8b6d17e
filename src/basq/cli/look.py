"""report, show and list: runs seen through their stores, without the likelihood, also while they go on."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np

from basq.cli.opened import opened
from basq.cli.output import check_outputs, say, writing
from basq.cli.parser import DONE, FAILED
from basq.errors import BasqError, EvaluationError, counted
from basq.evaluation.store import Store
from basq.report.tables import with_error
from basq.results.result import Result
from basq.run import identity
from basq.run.order import proven
from basq.status import Status


def report(options: Any) -> None:
    """Write the page of a run."""
    output = options.output or options.store.with_suffix(".html")
    check_outputs([output], [options.store])
    result = _result(options)
    with writing(output, "report"):
        result.report(output, title=options.title)


def _result(options: Any) -> Result:
    """What is known; of a run without a single value, only its failures and settings."""
    sampler = opened(options)
    try:
        return sampler.result()
    except EvaluationError:
        store = sampler.store
        counts = store.counts()
        why = f"no call has succeeded yet; {counts['failed']} failed and {counts['pending']} are pending"
        settings = identity.settings(store)
        return Result.nothing(sampler.recipe.prior, Status.RUNNING, why, store.failures(), settings)


def show(options: Any) -> None:
    """Print evidence and posterior."""
    sampler = opened(options)
    say(sampler.result(ended=None if sampler.store.driven else _ended(sampler.store) or Status.NOT_FINISHED))


def _ended(store: Store) -> Status | None:
    """How the last run of a store has ended, by its own word; None if it was killed, or more has come in since."""
    ended = store.get("ended")
    return Status(ended["status"]) if ended and ended["n_evals"] == len(store.done()) else None


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
        counts, last, driven = store.counts(), store.last_record(), store.driven
        n_new = int(np.sum(~np.isnan(store.news().log_likelihood)))
        proof, ended = proven(store), _ended(store)
    status, known = Status.RUNNING, "nothing learned yet"
    if last is not None:
        status, known = ended or Status(last["status"]), f"{last['log_evidence']:.3f}"
        known += f" ± {last['log_evidence_std']:.3f}" if status is Status.CONVERGED else " so far"
        if n_new:
            known += f", {counted(n_new, 'newer value')}"
    if proof is not None:
        known = f"{with_error(proof.log_evidence, proof.log_evidence_std)}, {proof.finding}"
        status = status if proof.certified else Status.NOT_CONVERGED
    if driven:
        status = Status.RUNNING
    elif status is Status.RUNNING:
        status = Status.NOT_FINISHED
    state = status.word.lower()
    return f"{state:<13}  {counts['done']:>5} {counts['failed']:>6} {counts['pending']:>7}  {known}"
