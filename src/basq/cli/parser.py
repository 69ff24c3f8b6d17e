"""The commands and their options. Nothing heavy is imported here: ``basq --help`` answers at once."""

import argparse
import difflib
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from basq.settings import BATCH_SIZE, CALLS_PER_DIMENSION, CERTIFY, DLOGZ, DPROB, ON_ERROR, RETRIES, OnError

DONE, FAILED, WRONG_USE, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes."""

BUDGET = f"{CALLS_PER_DIMENSION} (d + 2)"
"""The default budget, for people."""

DEMOS = {
    "banana": "a curved valley in a box, cut off by its edge, 2 parameters",
    "mixture": "a mixture of Gaussians, a normal prior over 3 parameters",
    "gauss": "10,000 nats high, 100 times narrower than the prior, 4 parameters",
    "ring": "a ring, the whole of which has to be found, 2 parameters",
    "bimodal": "two separate modes of different width, 2 parameters",
    "battery": "SPM or SPMe for a resting cell, 3 parameters (needs basq[battery])",
}
"""What `basq demo` can solve; ``demo.PROBLEMS`` makes them."""

EXAMPLES = """examples:
  basq demo                            solve a small problem, write a report
  basq run model.py --pool 8           run the model of a file on 8 processes
  basq resume run.sqlite --pool 16     go on, after a crash or for more calls
  basq certify run.sqlite              prove the answer by independent calls
  basq report run.sqlite               one page about a run, also in progress
  basq compare a.sqlite b.sqlite       which model do the data favour?
  basq list                            all runs here

exit codes:
  0    done (run, resume: converged)
  1    the run failed
  2    wrong use
  3    not converged (compare, certify: not decided, or contradicted)
  130  interrupted (Ctrl-C); resume goes on
  129, 143  ended by SIGHUP or SIGTERM; resume goes on
"""

MODEL_HELP = """Without a name, the file's log_likelihood and prior are taken, or its
model = basq.Model(...), or simulate, log_likelihood(output, ...), prior and
cheap (parameters that need no new simulation); with one, model.py:name is
  - a function, with the file's prior beside it,
  - a pair (log_likelihood, prior),
  - an object with .log_likelihood and .prior, or
  - a basq.Model.
Every call is written to the store the moment it has finished;
the same command goes on after a crash."""

Commands = Any
"""What ``add_subparsers`` gives; its type is private."""


def build_parser() -> argparse.ArgumentParser:
    """All commands. A further one is a function like those below, called here, and a module that does the work."""
    parser = argparse.ArgumentParser(
        prog="basq",
        description="Evidence and posterior of an expensive likelihood, from few calls.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_demo(commands)
    _add_run(commands)
    _add_resume(commands)
    _add_certify(commands)
    _add_compare(commands)
    _add_looks(commands)
    _add_ask_and_tell(commands)
    _add_rescue(commands)
    return parser


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the arguments; those that a command does not know are its own affair, with a guess at what was meant."""
    options, unknown = build_parser().parse_known_args(argv)
    if unknown:
        parser: argparse.ArgumentParser = options.command_parser
        known = re.findall(r"--[a-z-]+", parser.format_usage())
        near = [match for text in unknown for match in difflib.get_close_matches(text.partition("=")[0], known, n=1)]
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return options


class _Version(argparse.Action):
    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, help="show the version", **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from basq.version import __version__, commit

        known = commit()
        print(f"basq {__version__}{f' (commit {known})' if known else ''}")
        parser.exit()


def _command(
    commands: Commands, name: str, at: tuple[str, str], summary: str, examples: str, more: str = ""
) -> argparse.ArgumentParser:
    """Add a command, done by a function of a module of this package."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description="\n".join(filter(None, [f"{summary[0].upper()}{summary[1:]}.", more])),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks")
    parser.set_defaults(command_at=at, command_parser=parser)
    return parser


def _add_demo(commands: Commands) -> None:
    demo = _command(
        commands, "demo", ("demo", "demo"), "solve a small built-in problem, draw its posterior, write a report",
        "  basq demo\n  basq demo ring --output ring.png --report ring.html",
        "The problems:\n" + "\n".join(f"  {name:<9} {text}" for name, text in DEMOS.items()),
    )  # fmt: skip
    demo.add_argument("problem", nargs="?", choices=DEMOS, default="banana", help="which (%(default)s)")
    demo.add_argument("--output", type=Path, default=Path("basq-demo.png"), help="picture to write (%(default)s)")
    demo.add_argument("--report", type=Path, default=Path("basq-demo.html"), help="page to write (%(default)s)")
    demo.add_argument("--seed", type=_whole(0), default=1, help="random seed (%(default)s)")


def _add_run(commands: Commands) -> None:
    run = _command(
        commands, "run", ("drive", "run"), "run the model of a Python file",
        "  basq run model.py\n"
        "  basq run model.py:spme --pool 8 --store spme.sqlite --report spme.html\n"
        "  basq run model.py --batch-size 32 --max-evals 600 --dlogz 0.05\n"
        "  basq run model.py --timeout 600 --retries 1",
        MODEL_HELP,
    )  # fmt: skip
    run.add_argument("model", help="file.py or file.py:name")
    run.add_argument("--store", type=Path, help="SQLite file of the run (file.sqlite or file-name.sqlite, here)")
    _add_budget(run, default=True)
    run.add_argument("--batch-size", type=int, default=BATCH_SIZE, metavar="N", help="points a batch (%(default)s)")
    run.add_argument("--seed", type=_whole(0), help="random seed; the same seed gives the same run")
    run.add_argument("--method", default="auto", metavar="NAME",
                     help="inference method: auto, paper, or that of a plug-in (%(default)s)")  # fmt: skip
    run.add_argument("--on-error", choices=get_args(OnError), default=ON_ERROR,
                     help="a failed call means: nothing known, zero likelihood, stop (%(default)s)")  # fmt: skip
    run.add_argument("--certify", type=int, metavar="N", help="certify the answer by so many calls more")
    run.add_argument("--vectorized", action="store_true", help="the function takes (n, d) and returns (n,)")
    run.add_argument("--pass-dict", action="store_true", help="the function takes a dict of parameter names")
    _add_calls(run)


def _add_resume(commands: Commands) -> None:
    resume = _command(
        commands, "resume", ("drive", "resume"), "go on with a run",
        "  basq resume model.sqlite\n  basq resume model.sqlite --max-evals 500 --dlogz 0.02 --pool 16",
        "The store knows the model's file and all settings;\nwhat is given here replaces them.",
    )  # fmt: skip
    resume.add_argument("store", type=Path, help="SQLite file of the run")
    resume.add_argument(
        "--model", help="file.py or file.py:name, if it has moved or the run was not started by basq run"
    )
    resume.add_argument("--retry-failed", action="store_true",
                        help="make failed calls again: the reason of their failing is gone")  # fmt: skip
    resume.add_argument("--method", metavar="NAME", help="if it is that of a plug-in which the store cannot hold")
    _add_trust(resume)
    _add_budget(resume, default=False)
    _add_calls(resume)


def _add_certify(commands: Commands) -> None:
    certify = _command(
        commands, "certify", ("certify", "certify"), "prove or contradict the answer of a run by independent calls",
        "  basq certify run.sqlite -n 64 --pool 8\n"
        "  basq certify run.sqlite --ask -o points.csv   to evaluate anywhere, then tell",
        "The calls are drawn independently of those of the run, and give an estimate\n"
        "of log Z without bias. A run that is contradicted goes on: basq resume.",
    )  # fmt: skip
    certify.add_argument("store", type=Path, help="SQLite file of the run")
    certify.add_argument("-n", type=int, default=CERTIFY, help="calls (%(default)s)")
    certify.add_argument("--error", type=float, help="stop earlier, once the error of log Z is below this")
    certify.add_argument("--model", help="file.py or file.py:name, if the store does not know it")
    _add_trust(certify)
    certify.add_argument("--ask", action="store_true", help="write the points, instead of evaluating them")
    certify.add_argument("-o", "--output", type=Path, help="CSV file for --ask (by default the terminal)")
    _add_calls(certify, asynchronous=False)


def _add_compare(commands: Commands) -> None:
    compare = _command(
        commands, "compare", ("compare", "compare"), "say which model the data favour",
        "  basq compare spm.sqlite spme.sqlite --odds spme=2\n"
        "  basq compare model.py:spm model.py:spme --pool 8 --max-evals 600",
        "Give the stores of runs, or models of Python files, which are run together:\n"
        "each next batch goes to the model whose calls settle the most.\n"
        "name=place gives a model another name.",
    )  # fmt: skip
    compare.add_argument("models", nargs="+", help="run.sqlite, file.py, file.py:name, or name=one of these")
    compare.add_argument("--odds", action="append", metavar="NAME=X", help="prior odds of a model (1)")
    _add_trust(compare)
    compare.add_argument("-o", "--output", type=Path, help="picture to write")
    compare.add_argument("--store", type=Path, metavar="FOLDER", default=Path("compare"),
                         help="where the runs of models are kept (%(default)s)")  # fmt: skip
    compare.add_argument("--max-evals", type=int, metavar="N", help=f"most calls of all models ({BUDGET} each)")
    compare.add_argument("--max-time", type=_seconds, metavar="SECONDS", help="most seconds")
    compare.add_argument("--dprob", type=float, default=DPROB, help="target error of the probabilities (%(default)s)")
    compare.add_argument("--batch-size", type=int, default=BATCH_SIZE, metavar="N", help="points a batch (%(default)s)")
    compare.add_argument("--pool", type=_pool, metavar="N", help="worker processes, or a pool's name (calls run here)")
    compare.add_argument("--asynchronous", action="store_true", help="give a free worker its next point at once")
    compare.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="most seconds of a call")
    compare.add_argument("--retries", type=_whole(0), default=RETRIES, metavar="N",
                         help="how often a failed call is tried again (%(default)s)")  # fmt: skip
    compare.add_argument("--seed", type=_whole(0), help="random seed")
    _add_progress(compare)


def _add_budget(parser: argparse.ArgumentParser, *, default: bool) -> None:
    more = f" ({BUDGET})" if default else ", those done included"
    parser.add_argument("--max-evals", type=int, metavar="N", help=f"most likelihood calls{more}")
    parser.add_argument(
        "--dlogz",
        type=float,
        default=DLOGZ if default else None,
        help=f"target error of log Z{f' ({DLOGZ:g})' if default else ''}",
    )
    parser.add_argument("--max-time", type=_seconds, metavar="SECONDS", help="most seconds, looked at between batches")


def _add_calls(parser: argparse.ArgumentParser, *, asynchronous: bool = True) -> None:
    parser.add_argument("--pool", type=_pool, metavar="N", help="worker processes, or a pool's name (calls run here)")
    if asynchronous:
        parser.add_argument("--asynchronous", action="store_true", default=None,
                            help="give a free worker its next point at once")  # fmt: skip
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="most seconds of a call")
    parser.add_argument("--retries", type=_whole(0), metavar="N",
                        help=f"how often a failed call is tried again ({RETRIES})")  # fmt: skip
    parser.add_argument("--report", type=Path, metavar="FILE", help="HTML page to write at the end")
    _add_progress(parser)


def _add_progress(parser: argparse.ArgumentParser) -> None:
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--no-progress", dest="progress", action="store_false", default=True, help="no progress bar")
    shown.add_argument("--log", dest="progress", action="store_const", const="log",
                       help="batches, failures and doubts as lines with their times, for jobs")  # fmt: skip


def _add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trust", action="store_true",
                        help="read a store of an older basq, which can run any code, and migrate it")  # fmt: skip


def _add_code(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="file.py or file.py:name, where the prior has functions, which no store holds")
    _add_trust(parser)


def _add_looks(commands: Commands) -> None:
    report = _command(
        commands, "report", ("look", "report"), "write one HTML page about a run, also of one in progress",
        "  basq report run.sqlite\n  basq report run.sqlite -o page.html --title 'SPMe, cell 4'",
    )  # fmt: skip
    report.add_argument("store", type=Path, help="SQLite file of the run")
    report.add_argument("-o", "--output", type=Path, help="page to write (the store's name with .html)")
    report.add_argument("--title", help="heading of the page")
    _add_code(report)
    show = _command(
        commands, "show", ("look", "show"), "print evidence and posterior of a run, also of one in progress",
        "  basq show run.sqlite",
    )  # fmt: skip
    show.add_argument("store", type=Path)
    _add_code(show)
    listing = _command(
        commands, "list", ("look", "list_runs"), "say how far runs are", "  basq list\n  basq list runs/*.sqlite"
    )
    listing.add_argument("stores", type=Path, nargs="*", help="SQLite files (by default *.sqlite here)")


def _add_rescue(commands: Commands) -> None:
    rescue = _command(
        commands, "rescue", ("rescue", "rescue"), "save what is left of a damaged store",
        "  basq rescue run.sqlite -o new.sqlite",
        "Every row of a store has a checksum; those that fit it go into a new store,\nand the run goes on from there.",
    )  # fmt: skip
    rescue.add_argument("store", type=Path, help="SQLite file that is damaged; it is only read")
    rescue.add_argument("-o", "--output", type=Path, required=True, help="SQLite file to make")


def _add_ask_and_tell(commands: Commands) -> None:
    new = _command(
        commands, "new", ("ask_tell", "new"), "start a run that is driven by ask and tell",
        "  basq new run.sqlite model.py:prior --seed 1\n"
        "  basq new run.sqlite model.py        its basq.Model: simulate anywhere",
        "With a basq.Model, tell is given the simulator's outputs.",
    )  # fmt: skip
    new.add_argument("store", type=Path, help="SQLite file to make")
    new.add_argument("prior", help="where the prior is, such as model.py:prior; or a file with a basq.Model")
    new.add_argument("--seed", type=_whole(0), help="random seed")
    new.add_argument("--batch-size", type=int, default=BATCH_SIZE, metavar="N", help="points a batch (%(default)s)")
    new.add_argument("--max-evals", type=int, metavar="N", help=f"most calls ({BUDGET})")
    new.add_argument("--dlogz", type=float, default=DLOGZ, help="target error of log Z (%(default)s)")

    ask = _command(
        commands, "ask", ("ask_tell", "ask"), "write the next points to evaluate",
        "  basq ask run.sqlite -n 32 -o points.csv    32 points to evaluate anywhere",
    )  # fmt: skip
    ask.add_argument("store", type=Path)
    _add_code(ask)
    ask.add_argument("-n", type=int, help="how many (by default the initial design, then a batch)")
    ask.add_argument("-o", "--output", type=Path, help="CSV file to write (by default the terminal)")

    tell = _command(
        commands, "tell", ("ask_tell", "tell"), "read the values of points",
        "  basq tell run.sqlite values.csv\n"
        "  basq tell run.sqlite outputs.json   of a run that has a basq.Model",
        'Outputs of a simulator are a list of {"id": 3, "output": [1.2, 3.4]};\n'
        'an output may be an object of such lists; "error": "why" stands for a failure.',
    )  # fmt: skip
    tell.add_argument("store", type=Path)
    tell.add_argument(
        "values", type=Path, nargs="+",
        help="CSV files with columns id, log_likelihood and, if any, noise, error; or JSON files of outputs",
    )  # fmt: skip
    tell.add_argument("--model", help="file.py or file.py:name that judges outputs, if it has moved")
    _add_trust(tell)


def _whole(least: int) -> Callable[[str], int]:
    """Read a whole number, at least so large: refused here, before anything is written into a store."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text}: give a whole number, {least} or more")
        return number

    return read


def _pool(text: str) -> int | str:
    """Read a number of worker processes, or the name of a pool."""
    return text if text[:1].isalpha() else _whole(1)(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: give a positive number of seconds")
    return seconds
