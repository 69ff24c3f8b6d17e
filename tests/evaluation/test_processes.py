"""Worker processes, failures, time limits and interrupts: real processes, really killed."""

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import basq
from basq.errors import EvaluationError, InputError
from basq.evaluation.backends import open_pool
from basq.evaluation.call import Call
from basq.evaluation.evaluator import ALL_FAILED, Evaluator
from basq.evaluation.store import Store
from basq.evaluation.task import Task
from helpers.commands import run
from helpers.processes import gone
from helpers.small import Heavy, gauss, infer


@pytest.fixture(scope="module")
def plain():
    return infer(gauss)


def evaluate(call, x, pool=2, timeout=None):
    """The outcomes at points (n, d), through workers."""
    with open_pool(call, pool, timeout) as opened:
        for i, row in enumerate(x):
            opened.submit(Task((i,), row[None]))
        found = {}
        while len(found) < len(x):
            for task, outcomes in opened.collect(60.0):
                found[task.ids[0]] = outcomes[0]
    return [found[i] for i in range(len(x))]


# --- the same run, whoever does it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 8])
def test_any_number_of_workers_gives_the_same_run(plain, n):
    result = infer(lambda x: gauss(x) + 0.0, pool=n)
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)
    assert result.log_evidence == plain.log_evidence


def test_slow_calls_do_not_change_the_run(plain):
    def uneven(x):
        time.sleep(0.05 * (x[0] > 0.5))
        return gauss(x)

    assert infer(uneven, pool=4).log_evidence == plain.log_evidence


def test_vectorised_likelihoods_get_whole_batches():
    sizes = []

    def many(x):
        sizes.append(len(x))
        return np.array([gauss(row) for row in x])

    here = infer(many, vectorized=True)
    assert sizes == [32, 8, 8]
    assert infer(many, vectorized=True, pool=2).log_evidence == here.log_evidence


def test_functions_of_a_script_work_without_a_guard(tmp_path):
    """Neither an import guard nor an importable module is asked of the user, nor is the script run again."""
    script = tmp_path / "model.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np, basq
        print("script", flush=True)
        data = np.arange(3.0)
        class Model:
            def __call__(self, x):
                return float(-np.sum((x - data[:2]) ** 2))
        result = basq.infer(Model(), {"a": (-3, 3), "b": (-3, 3)}, pool=2, max_evals=32, seed=1, progress=False)
        print(result.n_evals)
        """)
    )
    out, err = run([sys.executable, script])
    assert out.split() == ["script", "32"]
    assert err == ""


def test_the_function_travels_to_each_worker_once(tmp_path):
    infer(Heavy(tmp_path), pool=2)
    marks = [p.name.split("-")[0] for p in tmp_path.iterdir()]
    assert len(marks) == len(set(marks)) <= 2


def test_workers_have_one_thread_each():
    def threads(x):
        import threadpoolctl

        np.linalg.inv(np.eye(50))
        return float(max(pool["num_threads"] for pool in threadpoolctl.threadpool_info()))

    outcomes = evaluate(Call(threads, ("a",)), np.zeros((4, 1)))
    assert {o.log_likelihood for o in outcomes} == {1.0}
    assert len({o.worker for o in outcomes}) <= 2


def test_what_cannot_travel_is_refused_before_any_call():
    lock = threading.Lock()

    def locked(x):
        with lock:
            return gauss(x)

    with pytest.raises(InputError, match=r"cannot be sent to worker processes.*pool=None"):
        infer(locked, pool=2)


class Unloadable:
    def __call__(self, x):
        return 0.0

    def __reduce__(self):
        return os.getenv, ()  # a call that fails in the worker


def test_a_function_that_cannot_be_loaded_says_so():
    with pytest.raises(EvaluationError, match="could not be loaded in a worker process: TypeError"):
        infer(Unloadable(), pool=2)


# --- failures -------------------------------------------------------------------------------------------------------


class OnceThenFine:
    """Fails the first time at some points, in whichever process, and works afterwards."""

    def __init__(self, directory, fail):
        self.directory, self.fail = directory, fail

    def __call__(self, x):
        mark = self.directory / f"{x[0]:.17g}"
        if x[0] > 1.5 and not mark.exists():
            mark.touch()
            return self.fail()
        return gauss(x)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def crash():
    ctypes.string_at(0)


def breakdown():
    raise ArithmeticError("unlucky")


def test_a_killed_worker_costs_one_call_which_is_run_again(tmp_path, plain):
    result = infer(OnceThenFine(tmp_path, die), pool=3, store=tmp_path / "run.sqlite")
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)
    assert result.log_evidence == plain.log_evidence
    assert result.failures == ()
    with Store(tmp_path / "run.sqlite") as store:
        rows = store.rows()
    n_marks = len([p for p in tmp_path.iterdir() if p.suffix not in (".sqlite", ".lock")])
    tried_twice = [row for row in rows if row["attempt"] == 2]
    assert 0 < n_marks == len(tried_twice)  # the others were not disturbed
    assert all("died by signal SIGKILL at a = " in row["error"] for row in tried_twice)
    assert {row["attempt"] for row in rows} == {1, 2}


def test_a_crash_in_compiled_code_is_a_failed_call(tmp_path):
    def segfault(x):
        if x[0] > 2.5:
            crash()
        return gauss(x)

    result = infer(segfault, pool=2)
    assert result.n_evals + result.n_failed == 48
    assert "SIGSEGV" in result.failures[0].error


@pytest.mark.parametrize("pool", [None, 2])
def test_retries(tmp_path, plain, pool):
    result = infer(OnceThenFine(tmp_path, breakdown), pool=pool, retries=1, store=tmp_path / "run.sqlite")
    assert result.log_evidence == plain.log_evidence
    assert result.failures == ()
    with Store(tmp_path / "run.sqlite") as store:
        (row, *_) = [row for row in store.rows() if row["attempt"] == 2]
    assert "ArithmeticError: unlucky" in row["error"]
    assert 'raise ArithmeticError("unlucky")' in row["traceback"]
    assert row["log_likelihood"] == gauss(row["x"])


def test_retries_run_out(tmp_path):
    def stubborn(x):
        if x[0] > 2.5:
            breakdown()
        return gauss(x)

    result = infer(stubborn, retries=2)
    assert result.n_failed > 0
    assert {f.attempts for f in result.failures} == {3}
    assert all(f.x[0] > 2.5 for f in result.failures)
    assert result.n_evals + result.n_failed == 48
    assert f"{result.n_failed} more calls failed" in str(result)


@pytest.mark.parametrize(
    ("value", "text"),
    [(np.nan, "nan"), (np.inf, "inf"), ("high", "'high'"), (np.zeros(3), r"shape (3,)"), (None, "None")],
    ids=str,
)
@pytest.mark.parametrize("pool", [None, 2])
def test_wrong_values_are_failures(value, text, pool):
    result = infer(lambda x: value if x[0] > 2.0 else gauss(x), pool=pool)
    assert result.n_failed > 0
    assert text in result.failures[0].error


def test_a_bad_row_of_a_vectorised_likelihood_costs_only_itself():
    def many(x):
        return np.array([np.nan if row[0] > 2.0 else gauss(row) for row in x])

    result = infer(many, vectorized=True)
    assert 0 < result.n_failed < 48
    assert all(f.x[0] > 2.0 for f in result.failures)


def raises_on_one(x):
    if (x[:, 0] > 2.0).any():
        breakdown()
    return np.array([gauss(row) for row in x])


def dies_on_one(x):
    if (x[:, 0] > 2.0).any():
        die()
    return np.array([gauss(row) for row in x])


def hangs_on_one(x):
    if (x[:, 0] > 2.0).any():
        time.sleep(3600.0)
    return np.array([gauss(row) for row in x])


@pytest.mark.parametrize(
    ("function", "text", "options"),
    [
        (raises_on_one, "ArithmeticError: unlucky", {"pool": None}),
        (raises_on_one, "ArithmeticError: unlucky", {"pool": 2}),
        (dies_on_one, "died by signal SIGKILL", {"pool": 2}),
        (hangs_on_one, "took longer than timeout = 0.5 s", {"pool": 2, "timeout": 0.5}),
    ],
    ids=["raises here", "raises", "dies", "hangs"],
)
def test_a_row_that_ends_a_vectorised_batch_costs_only_itself(function, text, options):
    result = infer(function, vectorized=True, max_evals=32, **options)
    assert 0 < result.n_failed < 16
    assert result.n_evals + result.n_failed == 32
    assert all(f.x[0] > 2.0 for f in result.failures)
    assert all(f"{text}" in f.error and " at a = " in f.error for f in result.failures)  # the point, not the batch


def test_a_batch_of_the_wrong_shape_is_not_tried_in_parts():
    sizes = []

    def not_vectorised(x):
        sizes.append(len(x))
        return np.dot([1.0, 2.0], x) if len(x) == 2 else 0.0  # of the right shape for two points, and wrong

    with pytest.raises(EvaluationError, match=r"was given 32 points and returned shape \(\)"):
        infer(not_vectorised, vectorized=True, batch_size=32)
    assert sizes == [32]


def test_a_simulator_that_exits_has_failed():
    def leaves(x):
        if x[0] > 2.0:
            sys.exit(3)
        return gauss(x)

    assert "SystemExit: 3" in infer(leaves).failures[0].error


class Panic(BaseException):
    """What a library written in Rust raises."""


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [(Panic("index"), "raised Panic: index"), (Speechless(), "Speechless"), (OSError("\udcff"), r"OSError: \udcff")],
)
@pytest.mark.parametrize("pool", [None, 2])
def test_whatever_the_likelihood_raises_is_a_failure(error, text, pool):
    def fails(x):
        if x[0] > 2.0:
            raise error
        return gauss(x)

    failure = infer(fails, pool=pool).failures[0]
    assert text in failure.error
    assert "raise error" in failure.traceback


def test_further_outputs_that_cannot_be_written_cost_no_value(tmp_path):
    def holds_itself(x):
        extra = {}
        extra["me"] = extra
        return gauss(x), extra

    assert infer(holds_itself, store=tmp_path / "run.sqlite").n_failed == 0
    with Store(tmp_path / "run.sqlite") as store:
        assert "Circular reference" in store.rows()[0]["extra"]["error"]


@pytest.mark.parametrize("pool", [None, 2])
def test_a_run_in_which_everything_fails_stops_soon(pool):
    points = []

    def broken(x):
        points.append(x)
        raise FileNotFoundError("mesh.dat")

    said = r"All \d+ calls have failed.*FileNotFoundError: mesh.dat \(test_processes.py, line \d+\) at a = "
    with pytest.raises(EvaluationError, match=said):
        infer(broken, pool=pool, max_evals=500)
    assert pool or len(points) == ALL_FAILED


def test_a_budget_spent_on_failures_alone_is_an_error():
    with pytest.raises(EvaluationError, match="No call has succeeded yet, so there is no result; 10 failed"):
        infer(lambda x: np.nan, max_evals=10)


def test_a_run_in_which_nearly_everything_fails_stops_and_says_so():
    n = 0

    def breaks_later(x):
        nonlocal n
        n += 1
        if n > 60:
            raise ConnectionError("licence server")
        return gauss(x)

    result = infer(breaks_later, max_evals=500)
    assert n < 100
    assert not result.converged
    assert "of the last 16 calls failed (the last: log_likelihood raised ConnectionError: licence" in result.message
    assert result.n_evals == 60


def test_zero_rule():
    def bounded(x):
        if x[0] > 0.3:
            raise ArithmeticError("no solution")
        return gauss(x)

    result = infer(bounded, on_error="zero", max_evals=150, dlogz=0.1)
    truth = np.log(0.5 * 2 * np.pi * 0.1 / 36)
    assert abs(result.log_evidence - truth) < max(0.3, 3.0 * result.log_evidence_std)


# --- time limits ----------------------------------------------------------------------------------------------------


def sleeps(x):
    if x[0] > 2.0:
        time.sleep(3600.0)
    return gauss(x)


def hangs_in_compiled_code(x):
    if x[0] > 2.0:
        ctypes.PyDLL(None).pause()  # holds the interpreter: no Python signal handler can run
    return gauss(x)


@pytest.mark.parametrize("function", [sleeps, hangs_in_compiled_code], ids=["python", "compiled"])
@pytest.mark.parametrize("pool", [None, 3])
def test_a_call_that_takes_too_long_is_ended(function, pool):
    result = infer(function, pool=pool, timeout=0.5, max_evals=32)
    assert 0 < result.n_failed < 16
    assert all(f.x[0] > 2.0 for f in result.failures)
    assert "took longer than timeout = 0.5 s at a = " in result.failures[0].error


def test_an_answer_that_has_come_is_not_too_late():
    """The driver's thread may be busy with another answer while a time limit passes."""

    def sleeps(x):
        time.sleep(x[0])
        return float(x[0])

    class Slow:
        def __call__(self, task, outcomes):
            time.sleep(2.5 * (task.x[0, 0] == 0.0))

        def close(self):
            pass

    with open_pool(Call(sleeps, ("a",)), 2, timeout=2.0) as pool:
        found = []
        for tasks in ([0.5, 0.5], [0.0, 0.1]):  # the first two start both workers
            for value in tasks:
                pool.submit(Task((0,), np.array([[value]])))
            while len(found) < 2:
                found += pool.collect(60.0)
            values = {task.x[0, 0]: outcome.log_likelihood for task, (outcome,) in found}
            found, pool.journal = [], Slow()
    assert values == {0.0: 0.0, 0.1: 0.1}


def test_a_simulator_started_by_the_call_ends_with_it(tmp_path):
    def starts(x):
        if x[0] > 2.0:
            child = subprocess.Popen(["sleep", "3600"])
            (tmp_path / str(child.pid)).touch()
            child.wait()
        return gauss(x)

    infer(starts, pool=2, timeout=0.5, max_evals=32)
    pids = [int(p.name) for p in tmp_path.iterdir()]
    assert pids
    for pid in pids:
        assert gone(pid)


def test_a_simulator_ends_with_a_worker_that_died(tmp_path):
    def starts(x):
        (tmp_path / str(subprocess.Popen(["sleep", "3600"]).pid)).touch()
        die()

    evaluate(Call(starts, ("a",)), np.zeros((1, 1)))
    (path,) = tmp_path.iterdir()
    assert gone(int(path.name))


def test_starting_a_worker_is_not_part_of_its_call():
    """Importing the user's libraries may take longer than a call."""
    call = Call(SlowToLoad(), ("a",))
    outcomes = evaluate(call, np.ones((2, 1)), pool=1, timeout=0.5)
    assert [o.error for o in outcomes] == [None, None]


class SlowToLoad:
    def __setstate__(self, state):
        time.sleep(1.0)

    def __getstate__(self):
        return {"slow": True}

    def __call__(self, x):
        return 0.0


# --- interrupts -----------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, time
import numpy as np, basq
def slow(x):
    print("call", flush=True)
    time.sleep({seconds})
    return float(-np.sum(x**2))
try:
    result = basq.infer(slow, {{"a": (-3, 3)}}, pool={pool}, store=sys.argv[1], seed=1, progress=False, batch_size=4)
except KeyboardInterrupt:
    print("left", flush=True)
else:
    print("result", result.n_evals, result.message, flush=True)
"""


def interrupted(tmp_path, pool, seconds, n_interrupts):
    """Start a run, press Ctrl-C in its process group when a few calls are done; what it printed, and its store."""
    path = tmp_path / "run.sqlite"
    command = [sys.executable, "-c", SCRIPT.format(pool=pool, seconds=seconds), str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not path.exists() or count(path) < 3:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        for _ in range(n_interrupts - 1):
            while "Ctrl-C again" not in process.stderr.readline():
                pass
            os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    lines = [line for line in out.splitlines() if line.startswith(("left", "result"))]
    return lines, path


def count(path):
    try:
        with Store(path) as store:
            return store.counts()["done"]
    except basq.StoreError:
        return 0


@pytest.mark.parametrize("pool", [None, 2])
def test_ctrl_c_returns_the_result_so_far(tmp_path, pool):
    (line,), path = interrupted(tmp_path, pool, 0.2, 1)
    word, n_evals, message = line.split(maxsplit=2)
    assert word == "result"
    assert message.startswith("Interrupted: ")
    assert count(path) == int(n_evals) >= 3  # the running calls came in


def test_ctrl_c_that_reaches_the_workers_of_a_given_pool_returns_the_result_so_far(tmp_path):
    """On a terminal it reaches all processes."""
    spawn = "__import__('multiprocessing').get_context('spawn')"
    pool = f"__import__('concurrent.futures').futures.ProcessPoolExecutor(2, mp_context={spawn})"
    (line,), path = interrupted(tmp_path, pool, 0.5, 1)
    word, n_evals, message = line.split(maxsplit=2)
    assert word == "result"
    assert message.startswith("Interrupted: ")
    assert count(path) == int(n_evals) >= 3
    with Store(path) as store:
        assert store.counts()["failed"] == 0


def test_ctrl_c_says_what_keeps_the_calls(tmp_path, capsys):
    def presses(x):
        signal.raise_signal(signal.SIGINT)
        return gauss(x)

    for store in (None, tmp_path / "run.sqlite"):
        assert infer(presses, store=store).n_evals == 1
        err = capsys.readouterr().err
        assert "Ctrl-C again" in err
        assert ("not stored: result.save(...) keeps the calls" in err) == (store is None)
        assert max(map(len, err.splitlines())) < 80


def test_ctrl_c_begins_no_further_call():
    points = []

    def presses(x):
        points.append(x)
        if len(points) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return gauss(x)

    assert infer(presses).n_evals == len(points) == 5


@pytest.mark.parametrize("pool", [None, 2])
def test_a_second_ctrl_c_leaves_at_once(tmp_path, pool):
    lines, path = interrupted(tmp_path, pool, 1.0, 2)
    assert lines == ["left"]
    assert count(path) >= 3


def test_a_dead_worker_is_noticed_though_a_process_it_started_lives_on():
    """A fork inherits the worker's end of the pipe, so that the pipe alone would never say that the worker is gone."""

    def forks(x):
        if x[0] > 0.5:
            if os.fork() == 0:
                time.sleep(20.0)
                os._exit(0)
            die()
        return gauss(x)

    start = time.monotonic()
    fine, lost = evaluate(Call(forks, ("a",)), np.array([[0.0], [1.0]]), pool=1)
    assert time.monotonic() - start < 15.0
    assert fine.error is None
    assert lost.lost
    assert "died by signal SIGKILL" in lost.error


def test_how_a_worker_died_is_told():
    def slow_end(x):
        os.closerange(3, 1000)  # as an interpreter does that takes its time to end
        time.sleep(0.2)
        os._exit(7)

    outcomes = evaluate(Call(slow_end, ("a",)), np.zeros((2, 1)), pool=1)
    assert {o.error for o in outcomes} == {"The worker process died with exit code 7 at x = [0]."}


def test_a_driver_without_workers_does_not_wait_for_them(monkeypatch):
    """However many tasks are handed in after the thread that takes them has failed."""

    def no_process(payload):
        raise OSError("no more processes")

    monkeypatch.setattr("basq.evaluation.processes.Child", no_process)
    with open_pool(Call(gauss, ("a",)), 2) as pool:
        for i in range(5000):
            pool.submit(Task((i,), np.zeros((1, 1))))
        with pytest.raises(OSError, match="no more processes"):
            pool.collect(60.0)


def test_a_call_that_an_interrupted_run_would_try_again_is_tried_when_it_is_taken_up(tmp_path, plain):
    def unlucky():
        if len(list(marks.iterdir())) <= 2:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(1.0)  # the driver waits for this call
        breakdown()

    path, marks = tmp_path / "run.sqlite", tmp_path / "marks"
    marks.mkdir()
    results = [infer(OnceThenFine(marks, unlucky), pool=1, retries=1, store=path) for _ in range(3)]
    assert [r.message.startswith("Interrupted") for r in results] == [True, True, False]
    result = results[-1]
    assert result.failures == ()
    assert result.log_evidence == plain.log_evidence


def test_workers_end_with_a_killed_driver(tmp_path):
    path = tmp_path / "run.sqlite"
    script = SCRIPT.format(pool=2, seconds=600).replace(
        "time.sleep(600)", "print(__import__('os').getpid()); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        pids = set()
        while len(pids) < 2:
            line = process.stdout.readline().strip()
            pids |= {int(line)} if line.isdigit() else set()
        process.kill()
        assert all(gone(pid) for pid in pids)


# --- asynchronous ---------------------------------------------------------------------------------------------------


def test_asynchronous_runs_find_the_answer_and_keep_the_budget():
    def uneven(x):
        time.sleep(0.02 * np.random.default_rng(int(1e6 * (x[0] + 10))).exponential())
        return gauss(x)

    result = infer(uneven, pool=4, asynchronous=True, max_evals=96)
    assert result.n_evals == 96
    truth = np.log(2 * np.pi * 0.1 / 36)
    assert abs(result.log_evidence - truth) < max(0.05, 3.0 * result.log_evidence_std)
    assert len(np.unique(result.observations.x, axis=0)) == 96


def test_no_worker_waits_for_the_slowest_call_of_a_batch(tmp_path):
    """One call lasts as long as all others together; they are done meanwhile."""

    def one_slow(x):
        with open(tmp_path / "begun", "a") as log:
            log.write("x")
        first = len((tmp_path / "begun").read_text()) == 1
        if first:
            while len((tmp_path / "begun").read_text()) < 44:
                time.sleep(0.01)
        return gauss(x)

    result = infer(one_slow, pool=2, asynchronous=True)
    assert result.n_evals == 48


def test_every_step_of_an_asynchronous_run_is_shown():
    seen = []
    result = infer(gauss, pool=2, asynchronous=True, callback=lambda state: seen.append(state.history[-1].n_evals))
    assert seen == [record.n_evals for record in result.history]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_error_of_the_callback_loses_no_call(tmp_path, asynchronous):
    def noted(x):
        with open(tmp_path / "done", "a") as log:
            log.write("x")
        return gauss(x)

    def fails(state):
        time.sleep(1.0)  # the calls that are under way finish meanwhile
        raise ZeroDivisionError("a plot of nothing")

    path = tmp_path / "run.sqlite"
    with pytest.raises(ZeroDivisionError) as caught:
        infer(noted, pool=2, asynchronous=asynchronous, store=path, callback=fails, max_evals=96)
    n_done = len((tmp_path / "done").read_text())
    assert n_done >= 32
    assert count(path) == len(caught.value.observations) == n_done


def test_values_reach_the_disk_while_the_driver_is_busy(tmp_path):
    path, x = tmp_path / "run.sqlite", np.random.default_rng(0).standard_normal((8, 2))
    with Store(path, 2) as store, open_pool(Call(gauss, ("a", "b")), 2) as pool:
        ids = store.add(x, x, False, 0)
        evaluator = Evaluator(pool, store, vectorized=False, retries=0, raises=False, interrupted=lambda: False)
        evaluator.start(store.of(ids))
        for _ in range(600):  # the driver thinks, and collects nothing
            if count(path) == 8:
                break
            time.sleep(0.1)
        assert count(path) == 8
        evaluator.finish()
        np.testing.assert_array_equal(store.done().log_likelihood, [gauss(row) for row in x])


def test_an_asynchronous_run_can_be_resumed(tmp_path):
    path = tmp_path / "run.sqlite"
    infer(gauss, pool=2, asynchronous=True, store=path, max_evals=40)
    result = infer(gauss, pool=2, asynchronous=True, store=path, max_evals=64)
    assert result.n_evals == 64
    again = basq.Sampler.open(path).result()
    assert again.log_evidence == result.log_evidence
