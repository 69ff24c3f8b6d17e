"""Which code made the figures in benchmarks/results, with what settings, and which of them are stale.

    python -m benchmarks.made            # one line a table; exit code 1 if any has rows that nobody recorded
    python -m benchmarks.made --adopt    # record for tables without one the commit that stored them

Beside every table `x.csv` lies `x.made.jsonl`: one line for every session that added rows, with the commit of the
code, whether the working tree differed from it in `src`, the command, the values of all settings, and a digest of the
table as it was left. A table is *stale* where the code that it measures has changed since one of its
commits, and *unrecorded* where its digest is another one: somebody has written to it by other means.
"""

import argparse
import hashlib
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
COMMON = ("gp", "numerics", "posterior", "prior", "problems", "run", "selection")
CODE = {"paper": (*COMMON, "paper"), "": ("",)}
"""Folders of src/basq that a table depends on, by the first word of its name or its folder; all of them for others."""
MOST_VALUES = 24
"""Values of a setting that are recorded one by one."""


class Session:
    """The record of one session: a line beside the table, written anew with every row, so that none goes unrecorded.

    Parameters
    ----------
    path : Path
        Of the table.
    tasks : sequence of dict
        All that the session wants.
    """

    def __init__(self, path: Path, tasks: Sequence[dict[str, Any]]) -> None:
        self.path, self.rows = path, 0
        self.before = _beside(path).read_text() if path.exists() and _beside(path).exists() else ""
        self.line = {
            "commit": _git("rev-parse", "--short=12", "HEAD"),
            "changed": bool(_git("status", "--porcelain", "--", "src")),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "command": " ".join([f"python -m {_module()}", *sys.argv[1:]]),
            "settings": _settings(tasks),
            "versions": {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__},
        }

    def added(self) -> None:
        """Note that the table has one more row."""
        self.rows += 1
        line = self.line | {"rows": self.rows, "digest": digest(self.path)}
        _beside(self.path).write_text(f"{self.before}{json.dumps(line)}\n")


def adopt(path: Path) -> None:
    """Record for a table what version control knows of it: the commit that stored it as it is."""
    line = {
        "commit": _git("log", "-1", "--format=%h", "--abbrev=12", "--", str(path)),
        "changed": True,
        "date": _git("log", "-1", "--format=%cs", "--", str(path)),
        "command": "unknown: recorded afterwards, from the commit that stored the table",
        "rows": max(len(path.read_text().splitlines()) - (path.suffix == ".csv"), 0),
        "settings": {},
        "versions": {},
        "digest": digest(path),
    }
    _beside(path).write_text(json.dumps(line) + "\n")


def verdict(path: Path) -> tuple[str, str]:
    """How a table stands, "fresh", "stale" or "unrecorded", and why."""
    beside = _beside(path)
    if not beside.exists():
        return "unrecorded", "nobody says what made it"
    lines = [json.loads(line) for line in beside.read_text().splitlines()]
    if lines[-1]["digest"] != digest(path):
        return "unrecorded", "it was written to after its last record"
    changed: set[str] = set()
    for commit in {line["commit"] for line in lines}:
        try:
            files = _git("diff", "--name-only", commit, "HEAD", "--", *code(path)).splitlines()
        except subprocess.CalledProcessError:
            return "stale", f"commit {commit} is not known here"
        changed |= {"/".join(Path(f).parts[2:4]) for f in files}
    if changed:
        shown = sorted(changed)
        return "stale", f"since then: {', '.join(shown[:6])}{f' and {len(shown) - 6} more' if len(shown) > 6 else ''}"
    return "fresh", f"{sum(line['rows'] for line in lines)} rows of {lines[-1]['commit']}"


def code(path: Path) -> list[str]:
    """What a table depends on, as paths for git."""
    name = path.parent.name if path.parent != RESULTS else path.stem.split("_")[0]
    return [f"src/basq/{folder}" for folder in CODE.get(name, CODE[""])]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def tables() -> list[Path]:
    """All stored tables."""
    found = [*RESULTS.rglob("*.csv"), *RESULTS.rglob("*.jsonl")]
    return sorted(p for p in found if not p.name.endswith(".made.jsonl"))


def _settings(tasks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Every value of every key of the tasks; the first and the last of long lists, and how many."""
    out: dict[str, Any] = {}
    for key in next(iter(tasks), {}):
        values = list(dict.fromkeys(task[key] for task in tasks))
        out[key] = values if len(values) <= MOST_VALUES else {"n": len(values), "first": values[0], "last": values[-1]}
    return out


def _module() -> str:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return str(spec.name).removesuffix(".__main__") if spec else Path(sys.argv[0]).name


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}.made.jsonl")


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adopt", action="store_true", help="record tables that have no record")
    if parser.parse_args().adopt:
        for path in tables():
            if not _beside(path).exists():
                adopt(path)
    found = {path: verdict(path) for path in tables()}
    for path, (status, why) in found.items():
        print(f"{status:<11} {path.relative_to(RESULTS).as_posix():<34} {why}")
    return int(any(status == "unrecorded" for status, _ in found.values()))


if __name__ == "__main__":
    sys.exit(main())
