"""Command line: a demonstration, and runs without a driver: new, ask, tell, list, show."""

import argparse
import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

EXAMPLES = """examples:
  basq demo --output corner.png
  basq new run.sqlite model.py:prior --seed 1      start a run without a driver
  basq ask run.sqlite -n 32 -o points.csv          32 points to evaluate, on a cluster or anywhere
  basq tell run.sqlite values.csv                  their values: columns id, log_likelihood
  basq show run.sqlite                             evidence and posterior so far
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(argv)
    from basq.errors import BasqError

    try:
        options.run(options)
    except (BasqError, OSError) as error:
        print(f"basq: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="basq",
        description="Evidence and posterior of an expensive likelihood, from few calls.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    demo = commands.add_parser("demo", help="solve a small built-in problem and draw its posterior")
    demo.add_argument("--output", type=Path, default=Path("basq-demo.png"), help="picture to write (%(default)s)")
    demo.add_argument("--seed", type=_seed, default=1, help="random seed (%(default)s)")
    demo.set_defaults(run=_demo)

    new = commands.add_parser("new", help="start a run that is driven by ask and tell")
    new.add_argument("store", type=Path, help="SQLite file to make")
    new.add_argument("prior", help="where the prior is, such as model.py:prior")
    new.add_argument("--seed", type=_seed, help="random seed")
    new.add_argument("--batch-size", type=int, default=16, help="points a batch (%(default)s)")
    new.add_argument("--max-evals", type=int, help="most calls (50 (d + 2))")
    new.add_argument("--dlogz", type=float, default=0.1, help="target error of log Z (%(default)s)")
    new.set_defaults(run=_new)

    ask = commands.add_parser("ask", help="write the next points to evaluate")
    ask.add_argument("store", type=Path)
    ask.add_argument("-n", type=int, help="how many (by default the initial design, then a batch)")
    ask.add_argument("-o", "--output", type=Path, help="CSV file to write (by default the terminal)")
    ask.set_defaults(run=_ask)

    tell = commands.add_parser("tell", help="read the values of points")
    tell.add_argument("store", type=Path)
    tell.add_argument(
        "values", type=Path, nargs="+", help="CSV files with columns id, log_likelihood and, if any, noise, error"
    )
    tell.set_defaults(run=_tell)

    listing = commands.add_parser("list", help="say how far runs are")
    listing.add_argument("stores", type=Path, nargs="*", help="SQLite files (by default *.sqlite here)")
    listing.set_defaults(run=_list)

    show = commands.add_parser("show", help="print evidence and posterior of a run, also of one in progress")
    show.add_argument("store", type=Path)
    show.set_defaults(run=_show)
    return parser


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{seed} is negative; give 0 or more")
    return seed


def _demo(options: Any) -> None:
    """Solve the paper's mixture in three dimensions."""
    import basq

    problem = basq.problems.mixture(n_dim=3, seed=options.seed)
    print(f"{problem.name}: a mixture of Gaussians as likelihood, a normal prior over {problem.n_dim} parameters")
    result = basq.infer(
        problem.log_likelihood,
        problem.prior,
        batch_size=16,
        max_evals=128,
        dlogz=0.01,
        vectorized=True,
        seed=options.seed,
    )
    error = result.log_evidence - problem.log_evidence
    print(f"\n{result}\n")
    print(f"truth: log Z = {problem.log_evidence:.3f}   (error {error:+.3f})")
    result.plot_corner().savefig(options.output, dpi=150)
    print(f"picture: {options.output}")


# --- a run without a driver -------------------------------------------------------------------------------------------


def _new(options: Any) -> None:
    from basq.errors import StoreError
    from basq.loop import Sampler

    if options.store.exists():
        raise StoreError(f"{options.store} exists already; ask goes on with it.")
    sampler = Sampler(
        _load(options.prior),
        store=options.store,
        seed=options.seed,
        batch_size=options.batch_size,
        max_evals=options.max_evals,
        dlogz=options.dlogz,
    )
    print(f"{options.store}: {sampler.run.prior!r}")


def _load(place: str) -> Any:
    """The object at ``file.py:name``."""
    import runpy

    from basq.errors import InputError

    path, _, name = place.rpartition(":")
    if not path or not Path(path).is_file():
        raise InputError(f"{place!r}: give a file and a name in it, such as model.py:prior.")
    sys.path.insert(0, str(Path(path).resolve().parent))  # its neighbours can be imported, as when it is run
    found = runpy.run_path(path)
    if name not in found:
        raise InputError(f"{path} has no {name!r}.")
    return found[name]


def _ask(options: Any) -> None:
    from basq.loop import Sampler

    sampler = Sampler.open(options.store)
    points = sampler.ask(options.n)
    if options.output is None:
        _write_points(points, sys.stdout)
    else:
        with options.output.open("w", newline="") as file:
            _write_points(points, file)
    verdict = sampler.verdict
    print(f"{len(points)} points. {verdict.message}", file=sys.stderr)


def _write_points(points: Any, file: IO[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", *points.names])
    for i, x in zip(points.ids, points.x, strict=True):
        writer.writerow([i, *(repr(float(v)) for v in x)])


def _tell(options: Any) -> None:
    from basq.loop import Sampler

    sampler = Sampler.open(options.store)
    values = [value for path in options.values for value in _read_values(path)]
    ids, numbers, noise, errors = (list(column) for column in zip(*values, strict=True)) if values else ([],) * 4
    sampler.tell(ids, numbers, noise, error=errors)
    n_failed, counts = sum(math.isnan(v) for v in numbers), sampler.store.counts()
    print(f"{len(ids) - n_failed} values, {n_failed} failures; {counts['pending']} calls are still pending.")


def _read_values(path: Path) -> list[tuple[int, float, float, str | None]]:
    """Read id, value, noise and error of every row of a CSV file; one without a value is a failure."""
    from basq.errors import InputError

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


def _list(options: Any) -> None:
    from basq.evaluation.store import Store

    for path in options.stores or sorted(Path().glob("*.sqlite")):
        with Store(path) as store:
            counts, steps = store.counts(), store.steps()
        last = next((record for _, record in reversed(steps) if record), None)
        known = "nothing learned yet"
        if last is not None:
            known = f"log Z = {last['log_evidence']:.3f} ± {last['log_evidence_std']:.3f}. {last['message']}"
        print(f"{path}: {counts['done']} done, {counts['failed']} failed, {counts['pending']} pending; {known}")


def _show(options: Any) -> None:
    from basq.loop import Sampler

    print(Sampler.open(options.store).result())
