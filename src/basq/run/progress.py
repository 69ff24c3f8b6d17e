"""How far a run is: a bar on a terminal, a line that changes in a notebook, a line now and then in a file; and the log.

The logger ``basq`` is told of every batch, whatever is shown; nobody hears it unless `logging` has been set up, or a
run is asked for ``progress="log"``.
"""

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from tqdm import tqdm

from basq.errors import InputError
from basq.extras import in_notebook
from basq.settings import Shown

TERMINAL, LOG = 0.2, 30.0
"""Least seconds between two signs of life."""

SIZE = (100, 24)
"""Columns and rows of a terminal that does not say how many it has."""

LOGGER = logging.getLogger("basq")
FORM = "%(asctime)s %(name)s %(levelname)s: %(message)s"


@contextmanager
def shown(budget: int, n_done: int, wanted: Shown) -> Iterator["Progress"]:
    """Show calls and what is known, if wanted."""
    if wanted not in (True, False, "log"):
        raise InputError(f"progress={wanted!r}: allowed are True, False and 'log'.")
    if wanted == "log":
        with _heard():
            yield Progress(budget)
    elif not wanted:
        yield Progress(budget)
    elif in_notebook():
        cell = Cell(budget, n_done)
        try:
            yield cell
        finally:
            cell.write(last=True)
    elif sys.stderr.isatty():
        size = {"dynamic_ncols": True} if _has_size() else {"ncols": SIZE[0], "nrows": SIZE[1]}
        with tqdm(total=budget, initial=n_done, unit="call", mininterval=TERMINAL, **size) as bar:
            yield Bar(budget, bar)
    else:
        lines = Lines(budget, n_done)
        try:
            yield lines
        finally:
            lines.write(last=True)


@contextmanager
def _heard() -> Iterator[None]:
    """Write the log on standard error, unless the user has set up `logging` already."""
    level, handler = LOGGER.level, logging.StreamHandler()
    handler.setFormatter(logging.Formatter(FORM))
    if any(not isinstance(h, logging.NullHandler) for h in LOGGER.handlers + logging.getLogger().handlers):
        handler = logging.NullHandler()  # type: ignore[assignment]  # theirs is enough
    if not LOGGER.isEnabledFor(logging.INFO):
        LOGGER.setLevel(logging.INFO)
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


def _has_size() -> bool:
    """Whether the terminal knows its size; in a container it may say zero."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):
        return False


class Progress:
    """What is told how a run goes; this one tells the log only."""

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def finished(self, n: int) -> None:
        """So many more calls have finished."""

    def learned(self, n: int, news: str, doubt: str = "") -> None:
        """A step has ended after n calls; the news is what is known now, and the doubt what speaks against it."""
        LOGGER.info("%d of at most %d calls: %s%s", n, self._budget, news, doubt and f"; {doubt}")


class Bar(Progress):
    """A progress bar; it counts calls as they finish."""

    def __init__(self, budget: int, bar: "tqdm[None]") -> None:
        super().__init__(budget)
        self._bar = bar

    def finished(self, n: int) -> None:
        self._bar.update(n)

    def learned(self, n: int, news: str, doubt: str = "") -> None:
        super().learned(n, news, doubt)
        self._bar.set_postfix_str(news, refresh=False)
        self._bar.update(n - self._bar.n)
        self._bar.refresh()


class Lines(Progress):
    """Whole lines, few enough for a log file that is kept."""

    wait = LOG

    def __init__(self, budget: int, n_done: int) -> None:
        super().__init__(budget)
        self._n, self._known = n_done, ""
        self._start = time.monotonic()
        self._written, self._news = self._start - self.wait, False

    def finished(self, n: int) -> None:
        self._n += n
        if self._known:  # the first line is worth waiting for
            self._tell()

    def learned(self, n: int, news: str, doubt: str = "") -> None:
        super().learned(n, news, doubt)
        self._n, self._known = n, f", {news}"
        self._tell()

    def _tell(self) -> None:
        self._news = True
        self.write()

    def write(self, *, last: bool = False) -> None:
        """Write a line, unless the last one is too young or there is nothing new."""
        now = time.monotonic()
        if self._news and (last or now - self._written >= self.wait):
            passed = f"{now - self._start:.0f} s"
            self._say(f"{self._n} of at most {self._budget} calls after {passed}{self._known}")
            self._written, self._news = now, False

    def _say(self, line: str) -> None:
        print(f"basq: {line}", file=sys.stderr, flush=True)


class Cell(Lines):
    """One line below a notebook's cell, written over and over."""

    wait = TERMINAL

    def __init__(self, budget: int, n_done: int) -> None:
        super().__init__(budget, n_done)
        self._place: Any = None

    def finished(self, n: int) -> None:
        self._n += n
        self._tell()

    def _say(self, line: str) -> None:
        from IPython.display import display

        bar = f'<progress value="{min(self._n, self._budget)}" max="{self._budget}"></progress>'
        shown = {"text/plain": f"basq: {line}", "text/html": f"<div>{bar} {escape(line)}</div>"}
        if self._place is None:
            self._place = display(shown, raw=True, display_id=True)
        else:
            self._place.update(shown, raw=True)
