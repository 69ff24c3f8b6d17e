"""Shared parts of the studies: a resumable table of runs."""

import argparse
import csv
import json
from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from loky import get_reusable_executor
from tqdm import tqdm

from benchmarks.made import Session

Row = dict[str, Any]


def study_parser(description: str | None, output: str, *, quick: str, seeds: int, jobs: int) -> argparse.ArgumentParser:
    """Make a command line with what all studies take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--jobs", type=int, default=jobs)
    parser.add_argument("--restart", action="store_true", help="forget earlier rows")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results", output))
    return parser


def run_all(work: Callable[..., Row], tasks: Iterable[Row], path: Path, *, jobs: int, restart: bool) -> list[Row]:
    """Run ``work(**task)`` for every task that the CSV file does not hold yet, and return all their rows.

    A row is written as soon as it is known, so a study that was stopped goes on where it was; `benchmarks.made` records
    beside the file what made the rows.
    """
    tasks = list(tasks)
    path.parent.mkdir(parents=True, exist_ok=True)
    if restart and path.exists():
        path.unlink()
    done = read(path)
    keys = list(tasks[0])
    have = {_key(row, keys) for row in done}
    todo = [t for t in tasks if _key(t, keys) not in have]
    executor = get_reusable_executor(max_workers=jobs, timeout=600, env={"OMP_NUM_THREADS": "1"})
    futures = [executor.submit(work, **t) for t in todo]
    session = Session(path, tasks)
    for future in tqdm(as_completed(futures), total=len(todo), unit="run"):
        row = future.result()
        done.append(row)
        _append(path, row)
        session.added()
    wanted = {_key(t, keys) for t in tasks}
    return [row for row in done if _key(row, keys) in wanted]


def _key(row: Row, keys: list[str]) -> str:
    return json.dumps([str(row[k]) for k in keys])


def read(path: Path) -> list[Row]:
    """All rows of a table; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> Any:
    try:
        return json.loads(text.replace("nan", "NaN").replace("inf", "Infinity"))
    except ValueError:
        return text


def _append(path: Path, row: Row) -> None:
    new = not path.exists()
    if not new:
        with path.open(newline="") as file:
            header = next(csv.reader(file))
        if header != list(row):
            raise ValueError(f"{path} has columns {header}, a new row {list(row)}: --restart, or another --output")
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row)
        if new:
            writer.writeheader()
        writer.writerow(row)
