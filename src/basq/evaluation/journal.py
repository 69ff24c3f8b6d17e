"""Values on the disk the moment they arrive, also while the driver thinks."""

import queue
import threading
from contextlib import suppress
from pathlib import Path

from basq.errors import StoreError
from basq.evaluation.call import Outcome
from basq.evaluation.store import Store
from basq.evaluation.task import Task

Rows = list[tuple[int, Outcome]]


class Journal:
    """Writes values into a store in a thread of its own, so that no pool waits for a disk.

    The driver writes them again, which changes nothing; a store that cannot be written is its to complain of.

    Parameters
    ----------
    path : Path
        Of the store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: queue.SimpleQueue[Rows | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="basq-journal", daemon=True)
        self._thread.start()

    def __call__(self, task: Task, outcomes: list[Outcome]) -> None:
        """Take the outcomes of a task, from any thread."""
        done = [(i, o) for i, o in zip(task.ids, outcomes, strict=True) if o.log_likelihood is not None]
        if done:
            self._values.put(done)

    def close(self) -> None:
        """Write what has come, and end."""
        self._values.put(None)
        self._thread.join()

    def _write(self) -> None:
        store: Store | None = None  # a connection of the thread's own
        while (rows := self._values.get()) is not None:
            with suppress(StoreError):
                store = store or Store(self._path)
                store.finish(rows)
        if store is not None:
            store.close()
