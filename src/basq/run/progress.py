"""How far a run is: a bar on a terminal, a line now and then in a log file."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tqdm import tqdm

TERMINAL, LOG = 0.2, 30.0
"""Least seconds between two signs of life."""

SIZE = (100, 24)
"""Columns and rows of a terminal that does not say how many it has."""


class Progress(Protocol):
    """What is told how a run goes."""

    def finished(self, n: int) -> None:
        """So many more calls have finished."""
        ...

    def learned(self, n: int, news: str) -> None:
        """A step has ended after n calls; the news is what is known now."""
        ...


@contextmanager
def shown(budget: int, n_done: int, wanted: bool) -> Iterator[Progress]:
    """Show calls and what is known on standard error, if wanted."""
    if not wanted:
        yield Silent()
    elif sys.stderr.isatty():
        size = {"dynamic_ncols": True} if _has_size() else {"ncols": SIZE[0], "nrows": SIZE[1]}
        with tqdm(total=budget, initial=n_done, unit="call", mininterval=TERMINAL, **size) as bar:
            yield Bar(bar)
    else:
        lines = Lines(budget, n_done)
        try:
            yield lines
        finally:
            lines.write(last=True)


def _has_size() -> bool:
    """Whether the terminal knows its size; in a container it may say zero."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):
        return False


class Silent:
    """Says nothing."""

    def finished(self, n: int) -> None:
        pass

    def learned(self, n: int, news: str) -> None:
        pass


class Bar:
    """A progress bar; it counts calls as they finish."""

    def __init__(self, bar: "tqdm[None]") -> None:
        self._bar = bar

    def finished(self, n: int) -> None:
        self._bar.update(n)

    def learned(self, n: int, news: str) -> None:
        self._bar.set_postfix_str(news, refresh=False)
        self._bar.update(n - self._bar.n)
        self._bar.refresh()


class Lines:
    """Whole lines, few enough for a log file that is kept."""

    def __init__(self, budget: int, n_done: int) -> None:
        self._budget, self._n, self._known = budget, n_done, ""
        self._start = time.monotonic()
        self._written, self._news = self._start - LOG, False

    def finished(self, n: int) -> None:
        self._n += n
        if self._known:  # the first line is worth waiting for
            self._tell()

    def learned(self, n: int, news: str) -> None:
        self._n, self._known = n, f", {news}"
        self._tell()

    def _tell(self) -> None:
        self._news = True
        self.write()

    def write(self, *, last: bool = False) -> None:
        """Write a line, unless the last one is too young or there is nothing new."""
        now = time.monotonic()
        if self._news and (last or now - self._written >= LOG):
            passed = f"{now - self._start:.0f} s"
            print(
                f"basq: {self._n} of at most {self._budget} calls after {passed}{self._known}",
                file=sys.stderr,
                flush=True,
            )
            self._written, self._news = now, False
