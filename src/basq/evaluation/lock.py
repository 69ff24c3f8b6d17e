"""Who drives a store: a lock beside its file, the operating system's own, so that it ends with its process."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


class Lock:
    """A lock beside a file.

    Parameters
    ----------
    path : Path or None
        Of the file; None for a store in memory, which nobody else can reach.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else Path(f"{path.resolve()}.lock")  # whatever the directory later
        self._mine = False

    @contextmanager
    def held(self, patience: float) -> Iterator[bool]:
        """Hold the lock, also once more inside; False if another process has it, after so many seconds."""
        if self._path is None or self._mine:
            yield True
            return
        lock = sqlite3.connect(self._path, isolation_level=None, timeout=patience)
        try:
            lock.execute("PRAGMA journal_mode = OFF")  # nothing is ever written to it
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            yield False
            return
        self._mine = True
        try:
            yield True
        finally:
            self._mine = False
            lock.close()

    @property
    def taken(self) -> bool:
        """Whether somebody holds it."""
        if self._path is None or self._mine:
            return self._mine
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=0.0)) as lock:
                lock.execute("SELECT 1 FROM sqlite_master")
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode == sqlite3.SQLITE_BUSY  # otherwise there is no lock
        return False
