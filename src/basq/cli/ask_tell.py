"""new, ask and tell: a run without a driver, its points evaluated anywhere."""

import csv
import json
import math
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np

from basq.cheap.model import Model as ExpensiveAndCheap
from basq.cli.model import Model, execute, get, split
from basq.cli.opened import opened
from basq.cli.output import check_outputs, say
from basq.errors import InputError, StoreError
from basq.evaluation import rest
from basq.evaluation.store import Store
from basq.run.arguments import as_pending
from basq.run.points import Points
from basq.run.sampler import Sampler


def new(options: Any) -> None:
    """Make the store of a run."""
    if options.store.exists():
        raise StoreError(f"{options.store} exists already; ask goes on with it.")
    prior, place = _prior(options.prior)
    sampler = Sampler(
        prior,
        store=options.store,
        seed=options.seed,
        batch_size=options.batch_size,
        max_evals=options.max_evals,
        dlogz=options.dlogz,
    )
    if place is not None:
        sampler.store.set(command={"model": place})
    cheap = "" if sampler.recipe.cheap is None else f"; integrated over at every call: {sampler.recipe.cheap!r}"
    say(f"{options.store}: {sampler.recipe.prior!r}{cheap}")


def _prior(place: str) -> tuple[Any, str | None]:
    """The prior at ``file.py:name``; or the model there or in the file, and where it will be found again."""
    path, name = split(place)
    if name is not None:
        found = get(execute(path), name, place)
        return found, f"{path.resolve()}:{name}" if isinstance(found, ExpensiveAndCheap) else None
    said = f"{place!r}: give a file and a name in it, such as model.py:prior, or a file with a basq.Model"
    try:
        model = Model.load(place)
    except InputError as error:
        raise InputError(f"{said} ({error})") from error
    if not model.simulates:
        raise InputError(f"{said}.")
    return model.log_likelihood, model.place


def ask(options: Any) -> None:
    """Write the next points."""
    check_outputs([options.output], [options.store])
    sampler = opened(options)
    points = sampler.ask(options.n)
    write_points(points, options.output)
    verdict = sampler.verdict
    say(f"{len(points)} points. {verdict.message}", sys.stderr)


def write_points(points: Points, output: Path | None) -> None:
    """Write points as CSV into a file, or on the terminal."""
    if output is None:
        _write_rows(points, sys.stdout)
    else:
        with output.open("w", newline="") as file:
            _write_rows(points, file)


def _write_rows(points: Points, file: IO[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", *points.names])
    for i, x in zip(points.ids, points.x, strict=True):
        writer.writerow([i, *(repr(float(v)) for v in x)])


def tell(options: Any) -> None:
    """Read the values of points, or the outputs of a simulator."""
    if any(path.suffix == ".json" for path in options.values):
        _tell_outputs(options)
        return
    if any(path.suffix == rest.ENDING for path in options.values):
        _tell_rest(options)
        return
    sampler = Sampler.open(options.store, allow_pickle=options.trust)
    values = [value for path in options.values for value in _read_values(path)]
    ids, numbers, noise, errors = (list(column) for column in zip(*values, strict=True)) if values else ([],) * 4
    sampler.tell(ids, numbers, noise, error=errors)
    n_failed, counts = sum(math.isnan(v) for v in numbers), sampler.store.counts()
    print(f"{len(ids) - n_failed} values, {n_failed} failures; {counts['pending']} calls are still pending.")


def _tell_rest(options: Any) -> None:
    """Read what the store could not take when its disk was full."""
    rows = [row for path in options.values for row in rest.read(path)]
    with Store(options.store) as store:
        waiting = set(store.waiting().ids.tolist())
        news = [row for row in rows if row[0] in waiting]  # the others were written meanwhile
        store.finish(news)
        print(f"{len(news)} outcomes; {store.counts()['pending']} calls are still pending.")


def _tell_outputs(options: Any) -> None:
    """Read outputs, which the model of the run judges; a call with an error has none."""
    rows = [row for path in options.values for row in _read_outputs(path)]
    sampler = Sampler.open(options.store, _model(options), allow_pickle=options.trust)
    failed = [(i, error) for i, _, error in rows if error is not None]
    done = [(i, output) for i, output, error in rows if error is None]
    as_pending(np.array([row[0] for row in rows], dtype=int), sampler.store)  # all of them, or nothing is recorded
    before = sampler.store.counts()["failed"]
    sampler.tell([i for i, _ in done], outputs=[output for _, output in done])
    sampler.tell([i for i, _ in failed], state="failed", error=[error for _, error in failed])
    counts = sampler.store.counts()
    n_failed = counts["failed"] - before
    print(f"{len(rows) - n_failed} outputs, {n_failed} failures; {counts['pending']} calls are still pending.")


def _model(options: Any) -> Any:
    """The model that the store names, or that is given."""
    with Store(options.store) as store:
        place = options.model or (store.get("command") or {}).get("model")
    if place is None:
        raise InputError(f"{options.store} does not say where its model is; add --model model.py.")
    model = Model.load(place)
    if not model.simulates:
        raise InputError(f"{place}: outputs need a basq.Model, or simulate, log_likelihood and prior in the file.")
    return model.log_likelihood


def _read_outputs(path: Path) -> list[tuple[int, Any, str | None]]:
    """Read id, output and error of every entry of a JSON file: arrays as lists, or dicts of them."""
    form = 'a list of {"id": 3, "output": [1.2, 3.4]}, with "error": "why" instead of an output for a failure'
    if path.suffix != ".json":
        raise InputError(f"{path}: give outputs in .json files, each {form}.")
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [(int(row["id"]), None if row.get("error") else row["output"], row.get("error")) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(f"{path}: {type(problem).__name__}: {problem}; allowed is {form}.") from problem


def _read_values(path: Path) -> list[tuple[int, float, float, str | None]]:
    """Read id, value, noise and error of every row of a CSV file; one without a value is a failure."""
    with path.open(newline="") as file:
        reader = csv.DictReader(file, skipinitialspace=True)
        missing = {"id", "log_likelihood"} - set(reader.fieldnames or ())
        if missing:
            raise InputError(f"{path}: there is no column {', '.join(sorted(missing))}; the first line names them.")
        rows = list(reader)
    out = []
    for line, row in enumerate(rows, start=2):
        error = row.get("error") or (None if row["log_likelihood"] else "no value was given")
        try:
            value = math.nan if error else float(row["log_likelihood"])
            out.append((int(row["id"]), value, float(row.get("noise") or 0.0), error))
        except (TypeError, ValueError) as problem:
            raise InputError(f"{path}, line {line}: {problem}; nothing was recorded.") from problem
    return out
