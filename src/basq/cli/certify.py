"""certify: independent calls for the answer of a run."""

import sys
from pathlib import Path
from typing import Any

from basq.cli.ask_tell import write_points
from basq.cli.drive import CALLS
from basq.cli.model import Model
from basq.cli.opened import opened
from basq.cli.output import check_outputs, say, writing
from basq.cli.parser import DONE, INTERRUPTED, NOT_CONVERGED
from basq.errors import InputError, counted
from basq.evaluation.store import Store
from basq.results.result import Result


def certify(options: Any) -> int:
    """Have the calls of a certificate made, or hand out their points, and say what they prove."""
    check_outputs([options.output, options.report], [options.store])
    if options.ask:
        return _ask(options)
    with Store(options.store) as store:
        command = store.get("command") or {}
    place = options.model or command.get("model")
    sampler = opened(options)
    result = sampler.result()
    if result.certificate is None or result.certificate.n_pending:
        if place is None:
            raise InputError(f"{options.store} does not say where its model is; add --model model.py, or --ask.")
        given = {key: getattr(options, key, None) for key in CALLS if key != "asynchronous"}
        given = {key: command.get(key) if value is None else value for key, value in given.items()}
        sampler.store.close()
        result = _run(result, Model.load(place), options, {k: v for k, v in given.items() if v is not None})
    return _said(result, options.report)


def _run(result: Result, model: Model, options: Any, calls: dict[str, Any]) -> Result:
    return result.certify(
        model.log_likelihood, options.n, error=options.error, store=options.store, progress=options.progress,
        **calls,
    )  # fmt: skip


def _ask(options: Any) -> int:
    """Write the points."""
    points = opened(options).certify(options.n)
    write_points(points, options.output)
    say(f"{counted(len(points), 'point')}; tell their values, and certify says what they prove.", sys.stderr)
    return DONE


def _said(result: Result, report: Path | None) -> int:
    say(result)
    if report is not None:
        print()
        with writing(report, "report"):
            result.report(report)
    found = result.certificate
    if found is not None and found.n_pending:
        print("basq: go on with the same command", file=sys.stderr)
        return INTERRUPTED
    return DONE if found is not None and found.certified else NOT_CONVERGED
