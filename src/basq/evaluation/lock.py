"""Who drives a store: a lock beside its file, the operating system's own, so that it ends with its process."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from basq.errors import StoreError


class Lock:
    """A lock beside a file, which is there only as long as somebody holds it, unless that one was killed.

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
        lock = _acquired(self._path, time.monotonic() + patience)
        if lock is None:
            yield False
            return
        self._mine = True
        try:
            yield True
        finally:
            self._mine = False
            with suppress(OSError):
                self._path.unlink()  # while it is held: whoever waits for it sees that it is another one then
            lock.close()

    @property
    def taken(self) -> bool:
        """Whether somebody holds it."""
        if self._path is None or self._mine:
            return self._mine
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=0.0)) as lock:
                lock.execute("SELECT 1 FROM sqlite_master")
        except sqlite3.DatabaseError as error:
            return error.sqlite_errorcode == sqlite3.SQLITE_BUSY  # otherwise there is no lock
        return False


def _acquired(path: Path, end: float) -> sqlite3.Connection | None:
    """Lock the file that has this name now; None if another process has it until the end of patience."""
    while True:
        try:
            path.touch()
        except OSError as error:
            raise StoreError(f"The lock {str(path)!r} cannot be made: {error.strerror}.") from error
        try:
            number = path.stat().st_ino
        except FileNotFoundError:  # its last holder has just removed it
            continue
        lock = sqlite3.connect(path, isolation_level=None, timeout=max(end - time.monotonic(), 0.0))
        try:
            lock.execute("PRAGMA journal_mode = OFF")  # nothing is ever written to it
            lock.execute("BEGIN EXCLUSIVE")
            if path.stat().st_ino == number:
                return lock
        except FileNotFoundError:
            pass
        except sqlite3.DatabaseError as error:
            lock.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return None
            raise StoreError(f"{str(path)!r} stands where the store's lock has to be ({error}); remove it.") from error
        lock.close()
