"""report, show and list: runs seen through their stores, without the likelihood, also while they go on."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from basq import identity
from basq.cli.output import check_output, writing
from basq.errors import EvaluationError
from basq.evaluation.store import Store
from basq.loop import Sampler
from basq.observations import Observations
from basq.result import Failure, Result


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
        return Result(
            -np.inf, np.inf, False,
            f"Running: no call has succeeded yet; {counts['failed']} failed and {counts['pending']} are pending.",
            sampler.run.prior, Observations.empty(sampler.run.prior.n_dim), (), None, failures=failures,
            settings=identity.settings(sampler.store),
        )  # fmt: skip


def show(options: Any) -> None:
    """Print evidence and posterior."""
    print(Sampler.open(options.store).result())


def list_runs(options: Any) -> None:
    """Say how far runs are, a line each."""
    paths = options.stores or sorted(Path().glob("*.sqlite"))
    if not paths:
        print("basq: there is no *.sqlite here", file=sys.stderr)
    for path in paths:
        with Store(path) as store:
            counts, steps = store.counts(), store.steps()
        last = next((record for _, record in reversed(steps) if record), None)
        known = "nothing learned yet"
        if last is not None:
            known = f"log Z = {last['log_evidence']:.3f} ± {last['log_evidence_std']:.3f}. {last['message']}"
        print(f"{path}: {counts['done']} done, {counts['failed']} failed, {counts['pending']} pending; {known}")
