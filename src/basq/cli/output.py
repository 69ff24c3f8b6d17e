"""What a command says, and the files that it writes at its end: looked at before anything is spent."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from basq.cli.words import translated
from basq.errors import BasqError, InputError
from basq.report.target import spare

PREFIX = "basq: "
"""What lines begin with that are not the answer; they go to standard error."""


def say(text: object, file: TextIO | None = None) -> None:
    """Print text in our words; on a terminal its sentences are broken between words, elsewhere a line stays a line."""
    stream, said = file or sys.stdout, translated(str(text))
    print(folded(said, shutil.get_terminal_size().columns) if stream.isatty() else said, file=stream, flush=True)


def folded(text: str, width: int) -> str:
    """Break lines that are too long between words; what follows an empty line is a table and keeps its rows."""
    sentences, blank, table = text.partition("\n\n")
    lines = [_fold(line, width) if len(line) > width else line for line in sentences.split("\n")]
    return "\n".join(lines) + blank + table


def _fold(line: str, width: int) -> str:
    indent = " " * len(PREFIX) if line.startswith(PREFIX) else ""
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path] = ()) -> None:
    """Refuse files that cannot be written, or should not: what the command reads or makes, and each other.

    Parameters
    ----------
    outputs : paths
        None stands for an output that was not asked for.
    inputs : paths
        What the command reads or makes besides.
    """
    taken = list(inputs)
    for path in filter(None, outputs):
        _check_writable(path)
        spare(path, taken)
        taken.append(path)


def _check_writable(path: Path) -> None:
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it, or name another file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{path} must not be written here; name another file.")


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """Say what was written; a disk that is full by now is no wrong use of the command."""
    spare(path)  # as it is now: a run may have taken days
    try:
        yield
    except OSError as error:
        raise BasqError(f"{path} could not be written: {error}.") from error
    print(f"{what}: {path}")
