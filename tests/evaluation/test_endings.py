"""Runs that somebody ends: schedulers by signals, the system by killing workers, a call by crashing all of it."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import basq
from basq.evaluation import processes
from basq.evaluation.begun import DEATHS, Begun
from basq.evaluation.store import Store
from basq.run import interrupt
from helpers.small import PRIOR, gauss, infer

SCRIPT = """
import os, sys, time
import numpy as np, basq
def slow(x):
    time.sleep(0.3)
    return float(-np.sum(x**2))
def fragile(x):
    if x[0] > 2.7:
        os.kill(os.getpid(), 9)
    return float(-np.sum(x**2))
CALLS = []
def hangs(x):
    CALLS.append(x)
    time.sleep(3600.0 * (len(CALLS) > 3))
    return float(-np.sum(x**2))
def simulator(x):
    __import__("subprocess").run(["sleep", "0.3"], check=True)
    return float(-np.sum(x**2))
if __name__ == "__main__":
    basq.infer({function}, {{"a": (-3, 3)}}, pool={pool}, store=sys.argv[1], seed=1, progress=False,
               max_evals=32, **{options})
"""


def start(path, function="slow", pool=None, **options):
    code = SCRIPT.format(function=function, pool=pool, options=options)
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stderr=subprocess.PIPE, text=True,
                            start_new_session=True)  # fmt: skip


def counts(path):
    try:
        with Store(path) as store:
            return store.counts()
    except basq.StoreError:
        return {"done": 0}


def ended(process, path, number, *, group):
    """End a run when a few calls are done: its exit code, what it said, what is in its store."""
    with process:
        while counts(path)["done"] < 3:
            time.sleep(0.05)
        (os.killpg if group else os.kill)(process.pid, number)
        _, err = process.communicate(timeout=60)
    return process.returncode, err, counts(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("pool", [None, 2])
def test_a_scheduler_that_ends_a_run_loses_no_call(tmp_path, pool, number):
    path = tmp_path / "run.sqlite"
    code, err, found = ended(start(path, pool=pool), path, number, group=True)  # workers are sent the signal, too
    assert code == 128 + number
    assert f"ended by {number.name}; what has returned is in {path}: the same command goes on" in err
    assert "Traceback" not in err
    assert found["failed"] == 0
    with Store(path) as store:
        assert not store.get("begun")
        rows = store.rows()
    assert {row["attempt"] for row in rows if row["state"] == "pending"} <= {0}  # the running ones came in


def test_a_simulator_that_is_sent_the_signal_too_has_not_failed(tmp_path):
    path = tmp_path / "run.sqlite"
    code, _, found = ended(start(path, "simulator"), path, signal.SIGTERM, group=True)
    assert code == 143
    assert found["failed"] == 0


def test_signals_that_are_ignored_stay_so(tmp_path):
    path = tmp_path / "run.sqlite"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        process = start(path)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        while counts(path)["done"] < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    infer(gauss, max_evals=16)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_call_that_does_not_end_in_time_is_left(tmp_path):
    path = tmp_path / "run.sqlite"
    code = "import basq.run.interrupt as i\ni.GRACE = 0.5\n" + SCRIPT.format(function="hangs", pool=None, options={})
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stderr=subprocess.PIPE, text=True)
    with process:
        while counts(path)["done"] < 3:
            time.sleep(0.05)
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert f"what has returned is in {path}" in err


def test_a_run_without_a_store_says_what_would_have_kept_it(capsys):
    def asks(x):
        signal.raise_signal(signal.SIGTERM)
        return gauss(x)

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)  # other tests' packages may have left a handler of theirs
    try:
        with pytest.raises(SystemExit) as caught:
            infer(asks)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value.code == 143
    assert "nothing was stored: next time, give store=" in capsys.readouterr().err


# --- a call that ends the run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["None", "__import__('concurrent.futures').futures.ThreadPoolExecutor(2)"])
def test_a_call_that_kills_the_run_is_not_made_for_ever(tmp_path, pool):
    path = tmp_path / "run.sqlite"
    codes = []
    while not codes or codes[-1]:
        assert len(codes) < 20, "it is made for ever"
        with start(path, "fragile", pool) as process:
            process.communicate(timeout=60)
        codes.append(process.returncode)
    with Store(path) as store:
        failures = store.failures()
        done = store.done().x[:, 0]
        assert store.counts()["pending"] == 0
    guilty = [f for f in failures if f.x[0] > 2.7]
    assert guilty
    assert (done <= 2.7).all()
    if pool == "None":  # of two that are under way together, both are suspected
        assert len(guilty) == len(failures)
        assert len(codes) == DEATHS * len(guilty) + 1
    assert "The run died 3 times while this call was under way" in failures[0].error
    assert "--retry-failed" in failures[0].error


def test_rows_of_a_vectorised_batch_that_killed_the_run_are_called_apart(tmp_path):
    path, sizes = tmp_path / "run.sqlite", []

    def many(x):
        sizes.append(len(x))
        return np.array([gauss(row) for row in x])

    sampler = basq.Sampler(PRIOR, store=path, seed=1, batch_size=8, max_evals=40, log_likelihood=many)
    batch = sampler.ask()
    Begun(sampler.store).note([int(i) for i in batch.ids[:8]])  # and the run died
    infer(many, vectorized=True, store=path, max_evals=40)
    assert sizes == [1] * 8 + [24, 8]
    with Store(path) as store:
        assert not store.get("begun")


def test_what_is_under_way_is_known_before_it_is_called(tmp_path):
    path, seen = tmp_path / "run.sqlite", []

    def looks(x):
        with Store(path) as store:
            seen.append((x, store.get("begun"), store.waiting()))
        return gauss(x)

    infer(looks, store=path, max_evals=16)
    for x, begun, waiting in seen:
        (i,) = map(int, begun)
        np.testing.assert_array_equal(waiting.x[waiting.ids == i], x[None])


# --- calls that failed for a reason that is gone ----------------------------------------------------------------------


def test_failed_calls_are_made_again(tmp_path):
    path, licence = tmp_path / "run.sqlite", tmp_path / "licence"

    def licensed(x):
        if x[0] > 0.0 and not licence.exists():
            raise ConnectionError("no licence")
        return gauss(x)

    first = infer(licensed, store=path, max_evals=40)
    assert first.n_failed > 0
    licence.touch()
    same = infer(licensed, store=path, max_evals=40)
    assert same.n_failed == first.n_failed  # outcomes are final, if nothing else is said
    mended = infer(licensed, store=path, max_evals=40, retry_failed=True)
    assert mended.n_failed == 0
    assert mended.n_evals == 40
    np.testing.assert_array_equal(mended.observations.log_likelihood, [gauss(x) for x in mended.observations.x])


def test_there_is_nothing_to_make_again_without_a_store():
    with pytest.raises(basq.InputError, match="retry_failed=True makes the failed calls of a store again: give store"):
        infer(gauss, retry_failed=True)


# --- what failing means -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "zero"), [("os.kill(os.getpid(), signal.SIGKILL)", False), ("os.kill(os.getpid(), signal.SIGSEGV)", True),
                      ("os._exit(1)", True)],
)  # fmt: skip
def test_a_call_that_the_system_has_killed_is_no_zero(tmp_path, how, zero):
    def ends(x):
        if x[0] > 2.0:
            exec(how, {"os": os, "signal": signal})
        return gauss(x)

    path = tmp_path / "run.sqlite"
    found = infer(ends, pool=2, on_error="zero", store=path, max_evals=24)
    assert found.n_failed > 0
    n_zero = int(np.isneginf(found.observations.log_likelihood).sum())
    assert n_zero == (found.n_failed if zero else 0)
    again = basq.Sampler.open(path).result()  # the store knows it, too
    np.testing.assert_array_equal(again.observations.x, found.observations.x)
    assert again.log_evidence == found.log_evidence


def test_the_signals_are_those_of_this_system():
    assert signal.SIGSEGV in processes.CRASHES
    assert signal.SIGKILL not in processes.CRASHES
    assert signal.SIGTERM in interrupt.ENDINGS
