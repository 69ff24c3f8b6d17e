"""new, ask and tell: a run without a driver, its points evaluated anywhere."""

import csv
import math
import sys
from pathlib import Path
from typing import IO, Any

from basq.cli.model import execute, get, split
from basq.cli.output import check_output, say
from basq.errors import InputError, StoreError
from basq.run.sampler import Sampler


def new(options: Any) -> None:
    """Make the store of a run."""
    if options.store.exists():
        raise StoreError(f"{options.store} exists already; ask goes on with it.")
    sampler = Sampler(
        _prior(options.prior),
        store=options.store,
        seed=options.seed,
        batch_size=options.batch_size,
        max_evals=options.max_evals,
        dlogz=options.dlogz,
    )
    say(f"{options.store}: {sampler.recipe.prior!r}")


def _prior(place: str) -> Any:
    """The object at ``file.py:name``."""
    path, name = split(place)
    if name is None:
        raise InputError(f"{place!r}: give a file and a name in it, such as model.py:prior.")
    return get(execute(path), name, place)


def ask(options: Any) -> None:
    """Write the next points."""
    if options.output is not None:
        check_output(options.output)
    sampler = Sampler.open(options.store)
    points = sampler.ask(options.n)
    if options.output is None:
        _write_points(points, sys.stdout)
    else:
        with options.output.open("w", newline="") as file:
            _write_points(points, file)
    verdict = sampler.verdict
    say(f"{len(points)} points. {verdict.message}", sys.stderr)


def _write_points(points: Any, file: IO[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", *points.names])
    for i, x in zip(points.ids, points.x, strict=True):
        writer.writerow([i, *(repr(float(v)) for v in x)])


def tell(options: Any) -> None:
    """Read the values of points."""
    sampler = Sampler.open(options.store)
    values = [value for path in options.values for value in _read_values(path)]
    ids, numbers, noise, errors = (list(column) for column in zip(*values, strict=True)) if values else ([],) * 4
    sampler.tell(ids, numbers, noise, error=errors)
    n_failed, counts = sum(math.isnan(v) for v in numbers), sampler.store.counts()
    print(f"{len(ids) - n_failed} values, {n_failed} failures; {counts['pending']} calls are still pending.")


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
