"""Nothing goes on when the run has ended, and nothing waits for ever."""

import ctypes
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import basq
from basq.evaluation import processes
from basq.evaluation.backends import open_pool
from basq.evaluation.call import Call
from basq.evaluation.guard import end
from basq.evaluation.processes import Child
from basq.evaluation.store import Store
from basq.evaluation.task import Task
from helpers.processes import gone
from helpers.small import OPTIONS, PRIOR, gauss, infer

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")


def pids(folder, n):
    """What n processes have left there, as soon as it is there."""
    for _ in range(600):
        found = [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
        if len(found) >= n:
            return found
        time.sleep(0.1)
    raise AssertionError("they did not start")


SCRIPT = """
import ctypes, os, subprocess, sys
from pathlib import Path
import basq
folder = Path(sys.argv[1])
def holds_the_interpreter(x):
    (folder / str(os.getpid())).touch()
    ctypes.PyDLL(None).pause()
def starts_a_session(x):
    child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    (folder / str(child.pid)).touch()
    (folder / str(os.getpid())).touch()
    child.wait()
basq.infer({function}, {{"a": (0, 1)}}, pool=2, progress=False)
"""


@pytest.mark.parametrize(("function", "n"), [("holds_the_interpreter", 2), ("starts_a_session", 4)])
def test_nothing_outlives_a_driver_that_was_killed(tmp_path, function, n):
    with subprocess.Popen([sys.executable, "-c", SCRIPT.format(function=function), str(tmp_path)]) as driver:
        started = pids(tmp_path, n)
        driver.kill()
    assert all(map(gone, started))


@pytest.mark.parametrize("options", [{"start_new_session": True}, {"env": {}}, {"start_new_session": True, "env": {}}])
def test_a_simulator_ends_with_its_call_whatever_its_session(tmp_path, options):
    def starts(x):
        child = subprocess.Popen(["/bin/sleep", "3600"], **options)
        (tmp_path / str(child.pid)).touch()
        child.wait()

    with open_pool(Call(starts, ("a",)), 1, timeout=0.5) as pool:
        pool.submit(Task((0,), np.zeros((1, 1))))
        ((_, (outcome,)),) = pool.collect(60.0)
    assert "took longer than timeout" in outcome.error
    assert all(map(gone, pids(tmp_path, 1)))


def test_the_guard_is_started_again(tmp_path):
    from basq.evaluation.guard import guard

    def first(x):
        return float(x[0])

    with open_pool(Call(first, ("a",)), 1) as pool:
        pool.submit(Task((0,), np.zeros((1, 1))))
        pool.collect(60.0)
        before = guard._pid
        os.kill(before, signal.SIGKILL)
    with open_pool(Call(first, ("a",)), 1) as pool:
        pool.submit(Task((0,), np.zeros((1, 1))))
        pool.collect(60.0)
    assert guard._pid != before


def test_strangers_are_left_alone():
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, "BASQ_WORKER": "of another run"})
    try:
        end(2**22 + 1, "no such mark")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


class LoadsForEver:
    def __getstate__(self):
        return {"not": "empty"}

    def __setstate__(self, state):
        ctypes.PyDLL(None).pause()

    def __call__(self, x):
        return 0.0


def test_a_worker_that_never_loads_is_not_waited_for(monkeypatch):
    import cloudpickle

    monkeypatch.setattr(processes, "LOADING", 0.5)
    child = Child(cloudpickle.dumps(Call(LoadsForEver(), ("a",))))
    (outcome,) = child.evaluate(np.zeros((1, 1)), timeout=60.0)
    assert outcome.lost
    assert "had not loaded log_likelihood after 0.5 s" in outcome.error
    assert not child.alive


# --- loops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["id IN (3, 40)", "id < 10", "id > 44", "batch = 1"])
def test_rows_that_somebody_has_deleted_are_no_endless_loop(tmp_path, which):
    path = tmp_path / "run.sqlite"
    infer(gauss, store=path)
    with Store(path) as store, store.transaction():
        n = store._connection.execute(f"DELETE FROM calls WHERE {which}").rowcount
        store._connection.execute("DELETE FROM steps")  # otherwise they are known all the same
        store._connection.execute("UPDATE calls SET step = NULL")
        assert n > 0
    found = infer(gauss, store=path)
    assert found.n_evals == OPTIONS["max_evals"]


def test_no_more_points_than_a_run_can_have_are_asked_for():
    sampler = basq.Sampler(PRIOR, seed=1, max_evals=64)
    with pytest.raises(basq.InputError, match=r"ask\(99999999\): all calls of this run are max_evals=64"):
        sampler.ask(99999999)
    assert sampler.store.n_calls == 0
