"""Where likelihood calls run: here, in worker processes, or in whatever has a ``map``."""

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from basq.errors import EvaluationError, InputError
from basq.evaluation.call import Call
from basq.types import FloatArray

Evaluate = Callable[[FloatArray], FloatArray]


class Mapper(Protocol):
    """Anything with a ``map``: an Executor, a multiprocessing pool."""

    def map(self, function: Any, points: Any) -> Any:
        """Apply the function to every point, in order."""
        ...


@contextmanager
def evaluator(call: Call, pool: int | Mapper | None) -> Iterator[Evaluate]:
    """Give a function that evaluates a batch, and clean up what it needed.

    It maps points (n, d) to log-likelihoods and the standard deviations of their noise, (n, 2).

    Parameters
    ----------
    pool : None, int or anything with ``.map``
        Serial, that many worker processes, or the user's own executor (which is left running).
    """
    if call.vectorized:
        if pool is not None:
            raise InputError("pool and vectorized=True exclude each other: a vectorised function gets whole batches.")
        yield call.many
    elif pool is None:
        yield lambda x: np.array([call.one(row) for row in x])
    elif isinstance(pool, int | np.integer) and not isinstance(pool, bool):
        if pool < 1:
            raise InputError(f"pool={pool}: give at least one worker process, or None to stay in this one.")
        from loky import ProcessPoolExecutor

        with ProcessPoolExecutor(max_workers=int(pool), env={"OMP_NUM_THREADS": "1"}) as executor:
            yield lambda x: mapped(executor, call, x)
    elif hasattr(pool, "map"):
        yield lambda x: mapped(pool, call, x)
    else:
        raise InputError(f"pool={pool!r}: allowed are None, a number of processes, or an object with .map.")


def mapped(pool: Mapper, call: Call, x: FloatArray) -> FloatArray:
    """Evaluate points (n, d) one by one in a pool: (n, 2)."""
    try:
        return np.array(list(pool.map(call.one, list(x))))
    except BrokenExecutor as error:
        raise EvaluationError(
            f"A worker process died while log_likelihood was evaluated at {len(x)} points (killed, out of memory, or a "
            f"crash in compiled code): {error}"
        ) from error
