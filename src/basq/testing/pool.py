"""The contract of something that runs calls."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from basq.evaluation.backends import open_pool
from basq.evaluation.call import Call
from basq.evaluation.task import Answer, Pool, Task
from basq.inference import infer
from basq.testing.clauses import demand, during, same
from basq.testing.easy import easy, easy_log_likelihood
from basq.types import FloatArray

PATIENCE = 60.0
"""Seconds that a pool has for a handful of calls that take none."""


def check_pool(pool: Any) -> None:
    """Check something to run calls in: whatever is given to `infer` as ``pool``.

    Every value belongs to the point it was asked for, in whatever order; failures stay single; what was not begun can
    be taken back; the pool can be used again; and a run has the same result as without it.

    Parameters
    ----------
    pool : None, int, Executor, Dask client, str, or anything with ``.map``

    Raises
    ------
    AssertionError
    """
    call = Call(_probe, ("number", "square"))
    for attempt in ("first", "second"):
        with during(f"taking the pool for a run the {attempt} time"), open_pool(call, pool) as opened:
            demand(opened.n_workers >= 1, "a pool has at least one worker", opened.n_workers)
            demand(opened.collect(0.0) == [], "nothing comes back before anything was asked for", "answers")
            _check_values(opened, range(12))
            _check_values(opened, range(20, 23))
            _check_cancel(opened)
    _check_equal_runs(pool)


RAISES, UNKNOWN, ZERO = 3.0, 4.0, 5.0
"""Where the probe raises, returns NaN and returns −inf."""


def _probe(x: FloatArray) -> float:
    """Which point it was."""
    if x[0] == RAISES:
        raise ZeroDivisionError("on purpose")
    return {UNKNOWN: np.nan, ZERO: -np.inf}.get(float(x[0]), float(x[0] - 100.0 * x[1]))


def _tasks(numbers: range) -> list[Task]:
    return [Task((i,), np.array([[i, i * i]], dtype=float)) for i in numbers]


def _collected(opened: Pool, enough: Callable[[list[Answer]], bool], what: str) -> list[Answer]:
    """Answers, until there are enough or patience is over."""
    answers: list[Answer] = []
    end = time.monotonic() + PATIENCE
    while not enough(answers):
        demand(time.monotonic() < end, f"{what} come back within {PATIENCE:g} s", f"{len(answers)} did")
        answers += opened.collect(1.0)
    return answers


def _check_values(opened: Pool, numbers: range) -> None:
    """Check calls that are all under way at once."""
    for task in _tasks(numbers):
        opened.submit(task)
    answers = _collected(opened, lambda a: len(a) >= len(numbers), f"{len(numbers)} calls")
    ids = sorted(task.ids[0] for task, _ in answers)
    demand(ids == list(numbers), "every call is answered once", f"answers for {ids}")
    for task, (outcome,) in answers:
        number, value = float(task.ids[0]), outcome.log_likelihood
        if number == RAISES:
            fine = value is None and "ZeroDivisionError" in (outcome.error or "")
            demand(fine, "a call that raises is a failure with its error", outcome)
        elif number == UNKNOWN:
            demand(value is None and outcome.error, "a call that returns NaN is a failure with a reason", outcome)
        else:
            expected = -np.inf if number == ZERO else number - 100.0 * number**2
            demand(value == expected, f"the value at point {number:g} is {expected}", value)


def _check_cancel(opened: Pool) -> None:
    """Check that calls are taken back or answered, and nothing else."""
    numbers = range(30, 38)
    for task in _tasks(numbers):
        opened.submit(task)
    back = [task.ids[0] for task in opened.cancel()]
    answers = _collected(opened, lambda a: len(a) + len(back) >= len(numbers), "calls that were not taken back")
    ids = sorted([*back, *(task.ids[0] for task, _ in answers)])
    demand(ids == list(numbers), "a call is taken back or answered, and not both", f"{ids}")


def _check_equal_runs(pool: Any) -> None:
    prior, _ = easy(2, 1)
    here, there = (
        infer(easy_log_likelihood, prior, pool=where, batch_size=8, max_evals=48, dlogz=0.0, seed=1, progress=False)
        for where in (None, pool)
    )
    clause = "a run in the pool has the same result as one without"
    fine = same(np.sort(here.observations.x, axis=0), np.sort(there.observations.x, axis=0))
    demand(fine and here.log_evidence == there.log_evidence, clause, f"{here.log_evidence} and {there.log_evidence}")
