"""Command line: runs, runs without a driver, reports; ``basq --help`` lists the commands."""

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from basq.cli.output import say
from basq.cli.parser import DONE, FAILED, INTERRUPTED, WRONG_USE, build_parser, parse

__all__ = ["build_parser", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = parse(argv)
    from basq.errors import BasqError, FitError, InputError

    module, name = options.command_at
    try:
        code: int | None = getattr(import_module(f"basq.cli.{module}"), name)(options)
    except KeyboardInterrupt:
        print("basq: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if options.debug:
            traceback.print_exception(error)
        expected = isinstance(error, BasqError | OSError)
        line = str(error) if expected else f"{type(error).__name__}: {error}"
        say(f"basq: {' '.join(line.split())}", sys.stderr)
        hidden = not expected or isinstance(error, FitError) or getattr(error, "call_traceback", None)
        if hidden and not options.debug:
            print("basq: --debug shows the traceback", file=sys.stderr)
        return WRONG_USE if isinstance(error, InputError | OSError) else FAILED
    return DONE if code is None else code
