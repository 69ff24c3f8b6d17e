"""Processes that are not the worker, and answers that nobody waits for: no value may come to another's point."""

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from basq.evaluation import processes, worker
from basq.evaluation.backends import open_pool
from basq.evaluation.call import Call
from basq.evaluation.processes import Child
from basq.evaluation.task import Task
from helpers.commands import run_python
from helpers.small import gauss, infer

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
NAMES = ("a",)
PATIENCE = 10.0
"""Seconds that a call has here: too many for one that works, so that one that hangs fails its test."""


def evaluated(function, n, pool=2, timeout=PATIENCE):
    """Values and errors at the points 0, 1, …, n - 1, through workers."""
    with open_pool(Call(function, NAMES), pool, timeout) as opened:
        for i in range(n):
            opened.submit(Task((i,), np.array([[float(i)]])))
        found = {}
        while len(found) < n:
            for task, (outcome,) in opened.collect(PATIENCE):
                found[task.ids[0]] = outcome
    assert [found[i].error for i in range(n)] == [None] * n
    return [found[i].log_likelihood for i in range(n)]


# --- forked children ------------------------------------------------------------------------------------------------


def exits(x):
    if os.fork() == 0:
        sys.exit(0)
    return float(x[0])


def fails_to_start_a_program(x):
    if os.fork() == 0:
        os.execv("/there/is/no/such/program", ["program"])
    return float(x[0])


def goes_on(x):
    os.fork()
    return float(x[0])


def reads_late(x):
    """Forks where a value is read, not where it is computed."""

    class Late:
        def __float__(self):
            os.fork()
            return float(x[0])

    return Late()


@pytest.mark.parametrize("function", [exits, fails_to_start_a_program, goes_on, reads_late])
def test_no_child_of_a_call_becomes_a_second_worker(function):
    assert evaluated(function, 30) == list(range(30))


def test_no_child_of_a_call_with_a_time_limit_becomes_a_second_worker_of_an_executor():
    with ThreadPoolExecutor(2) as pool:
        assert evaluated(exits, 30, pool) == list(range(30))


def test_no_child_of_a_vectorised_call_becomes_a_second_worker():
    def many(x):
        os.fork()
        return x[:, 0]

    with open_pool(Call(many, NAMES, vectorized=True), 1, PATIENCE) as opened:
        for i in range(10):
            opened.submit(Task((2 * i, 2 * i + 1), np.array([[2.0 * i], [2.0 * i + 1.0]])))
        answers = []
        while len(answers) < 10:
            answers += opened.collect(PATIENCE)
    assert all([o.log_likelihood for o in outcomes] == list(task.ids) for task, outcomes in answers)


class ForksWhenLoaded:
    """Forks a child which fails to load: it must not tell the driver so in the name of the worker."""

    def __setstate__(self, state):
        if os.fork() == 0:
            raise ImportError
        time.sleep(0.3)  # the child would be first

    def __getstate__(self):
        return {"not": "empty"}

    def __call__(self, x):
        return float(x[0])


def test_no_child_of_the_loading_becomes_a_second_worker():
    assert evaluated(ForksWhenLoaded(), 10) == list(range(10))


def test_no_child_of_the_loading_becomes_a_second_worker_of_an_executor():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert evaluated(ForksWhenLoaded(), 10, pool, timeout=None) == list(range(10))


@pytest.mark.parametrize(
    ("act", "code"), [("return 0.0", 0), ("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('why')", 1), ("1 / 0", 1)]
)
def test_a_child_ends_with_the_exit_code_that_any_process_would_have(act, code):
    out, err = run_python(
        f"""
        import os, sys
        import numpy as np
        from basq.evaluation.call import Call

        def forks(x):
            child = os.fork()
            if child == 0:
                {act}
            else:
                return float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        print([o.log_likelihood for o in Call(forks, ("a",)).attempt(np.zeros((1, 1)))])
        """
    )
    assert out == f"[{float(code)}]\n"
    assert ("ZeroDivisionError" in err) == (act == "1 / 0")
    assert ("why" in err) == ("why" in act)


def test_no_child_of_a_call_in_this_process_becomes_a_second_driver(tmp_path):
    out, _ = run_python(
        f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from helpers.small import gauss, infer

        def forks(x):
            if os.fork() == 0 and x[0] > 0.0:
                sys.exit()
            return gauss(x)

        print(repr(infer(forks, max_evals=32, store={str(tmp_path / "run.sqlite")!r}).log_evidence))
        """
    )
    assert out == f"{infer(gauss, max_evals=32).log_evidence!r}\n"


def test_no_child_of_the_callback_becomes_a_second_driver(tmp_path):
    out, _ = run_python(
        f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from helpers.small import gauss, infer

        found = infer(gauss, max_evals=32, callback=lambda _: os.fork(), store={str(tmp_path / "run.sqlite")!r})
        print(repr(found.log_evidence))
        """
    )
    assert out == f"{infer(gauss, max_evals=32).log_evidence!r}\n"


# --- answers that nobody waits for ----------------------------------------------------------------------------------


def mirror(x):
    return float(x[0])


@pytest.fixture
def child():
    child = Child(cloudpickle.dumps(Call(mirror, NAMES)))
    yield child
    child.kill()


def point(value):
    return Task((), np.array([[value]]))


def test_the_answer_to_an_earlier_question_is_not_taken_for_that_to_the_last(child):
    child.start(point(1.0), None)
    child.start(point(2.0), None)
    heard = [child.answer(None) for _ in range(3)]
    assert heard[:2] == [None, None]  # it has started; 1.0 is nobody's any more
    assert heard[2][0].log_likelihood == 2.0


def test_a_call_that_was_interrupted_ends_with_its_process(child, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(processes, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            child.evaluate(np.ones((1, 1)), PATIENCE)
    assert not child.alive


def test_a_worker_of_a_given_pool_is_right_after_an_interrupted_call(monkeypatch):
    payload, token = cloudpickle.dumps(Call(mirror, NAMES)), "a run"

    def interrupted(*_):
        raise KeyboardInterrupt

    try:
        with monkeypatch.context() as patched:
            patched.setattr(processes, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                worker.remote(token, payload, np.ones((1, 1)), PATIENCE)
        assert worker.remote(token, None, np.full((1, 1), 2.0), PATIENCE) is None  # asks for the function
        assert worker.remote(token, payload, np.full((1, 1), 2.0), PATIENCE)[0].log_likelihood == 2.0
    finally:
        worker.forget(token)
