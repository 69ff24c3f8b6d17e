"""Outputs live in the store: they survive what calls survive, and are enough to read the whole result."""

import sqlite3
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from scipy import stats

import basq
from basq.evaluation.schema import FORMAT
from basq.evaluation.store import Store
from helpers.models import gauss, infer, line, model
from helpers.old_stores import aged

SCRIPT = textwrap.dedent("""
    import os, sys, time
    import numpy as np
    from scipy import stats
    import basq

    store, log, pool = sys.argv[1], sys.argv[2], int(sys.argv[3]) or None

    def note(text):
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, (text + "\\n").encode())
        os.close(file)

    def simulate(x):
        note("call")
        time.sleep(0.01)
        return x[0] + x[1] * np.linspace(0.0, 1.0, 20)

    def log_likelihood(output, sigma):
        return -0.5 * np.sum((output - 1.0) ** 2) / sigma**2 - 20.0 * np.log(sigma)

    model = basq.Model(simulate, log_likelihood, {"a": (-3, 3), "b": (-3, 3)}, {"sigma": stats.halfcauchy(scale=1)})
    note("up")
    basq.infer(model, pool=pool, store=store, seed=1, batch_size=8, max_evals=72, dlogz=0.0, progress=False)
    note("end")
""")


def lines(log):
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("pool", [0, 2])
def test_a_driver_killed_at_random_moments_loses_no_output(tmp_path, pool):
    path, log, rng = tmp_path / "run.sqlite", tmp_path / "log", np.random.default_rng(pool)
    command = [sys.executable, "-c", SCRIPT, str(path), str(log), str(pool)]
    kept = 0
    for _ in range(3):
        n = lines(log).count("up")
        with subprocess.Popen(command) as driver:
            while lines(log).count("up") == n:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 1.0))
            driver.kill()
        time.sleep(1.2 if pool else 0.0)  # its workers notice
        assert "end" not in lines(log), "the run ended before it was killed often enough"
        if path.exists():
            with Store(path, 2) as store:
                assert len(store.with_outputs()) == store.counts()["done"] >= kept
                kept = store.counts()["done"]
    subprocess.run(command, check=True, timeout=120)
    assert lines(log).count("call") <= 72 + 3 * max(pool, 1)  # those under way at a kill
    found = basq.Sampler.open(path).result()
    plain_path = tmp_path / "plain.sqlite"
    subprocess.run([*command[:3], str(plain_path), str(tmp_path / "other"), "0"], check=True, timeout=120)
    plain = basq.Sampler.open(plain_path).result()
    np.testing.assert_array_equal(found.observations.x, plain.observations.x)
    assert found.log_evidence == plain.log_evidence
    np.testing.assert_array_equal(found.outputs.load(), plain.outputs.load())
    np.testing.assert_array_equal(found.sample(100, seed=1), plain.sample(100, seed=1))


def test_a_store_without_its_model_gives_the_whole_result(tmp_path, monkeypatch):
    path = tmp_path / "run.sqlite"
    run = infer(model(), store=path)
    opened = basq.Sampler.open(path).result()
    assert opened.names == ("a", "b", "sigma")
    assert opened.cheap == ("sigma",)
    np.testing.assert_array_equal(opened.sample(50, seed=1), run.sample(50, seed=1))
    np.testing.assert_array_equal(opened.outputs.load(), run.outputs.load())
    opened.save(tmp_path / "result.basq")
    monkeypatch.chdir(tmp_path.parent)
    loaded = basq.Result.load(tmp_path / "result.basq")
    np.testing.assert_array_equal(loaded.outputs.load(), run.outputs.load())
    path.unlink()
    np.testing.assert_array_equal(loaded.sample(50, seed=1), run.sample(50, seed=1))
    with pytest.raises(basq.EvaluationError, match="which is not there any more"):
        loaded.outputs.load()


def test_outputs_are_found_again_from_another_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = infer(model(), store="run.sqlite", max_evals=16)
    monkeypatch.chdir(tmp_path.parent)
    np.testing.assert_array_equal(run.outputs.load()[0], line(run.observations.x[0]))


def test_a_model_without_cheap_parameters_keeps_its_outputs(tmp_path):
    given = basq.Model(line, lambda output: gauss(output, 0.2), {"a": (-3, 3), "b": (-3, 3)})
    infer(given, store=tmp_path / "run.sqlite")
    opened = basq.Sampler.open(tmp_path / "run.sqlite").result()
    np.testing.assert_array_equal(opened.outputs.load()[0], line(opened.observations.x[0]))


def test_a_run_goes_on_with_more_calls(tmp_path):
    path = tmp_path / "run.sqlite"
    infer(model(), store=path, max_evals=32)
    longer = infer(model(), store=path)
    plain = infer(model())
    np.testing.assert_array_equal(longer.observations.x, plain.observations.x)
    assert len(longer.outputs) == 40


def test_another_likelihood_simulator_or_prior_is_refused(tmp_path):
    path = tmp_path / "run.sqlite"
    infer(model(), store=path, max_evals=16)

    def other(output, sigma):
        return gauss(output, 2.0 * sigma)

    with pytest.raises(basq.StoreError, match="values of another log-likelihood: it was line and gauss_many, not"):
        infer(model(log_likelihood=other), store=path)
    with pytest.raises(basq.StoreError, match="values of another log-likelihood"):
        infer(model(lambda x: 2.0 * line(x)), store=path)
    with pytest.raises(basq.StoreError, match="values of another log-likelihood"):
        infer(model(keep=lambda output: output), store=path)
    with pytest.raises(basq.StoreError, match=r"it has cheap parameters Prior\(sigma"):
        infer(model(cheap={"sigma": stats.halfcauchy(scale=2.0)}), store=path)
    with pytest.raises(basq.StoreError, match="it has cheap parameters"):
        basq.infer(lambda x: 0.0, {"a": (-3, 3), "b": (-3, 3)}, store=path, progress=False)
    assert basq.Sampler.open(path).result().n_evals == 16  # and nothing is lost


def test_a_plain_store_is_refused_to_a_model(tmp_path):
    path = tmp_path / "run.sqlite"
    prior = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
    basq.infer(lambda x: gauss(line(x), 0.2), prior, store=path, seed=1, max_evals=16, progress=False)
    with pytest.raises(basq.StoreError, match="it has cheap parameters None"):
        infer(model(), store=path)


def test_stores_of_format_2_get_a_table_for_outputs(tmp_path):
    path = tmp_path / "run.sqlite"
    prior = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
    function = basq.Model(line, lambda output: gauss(output, 0.2), prior)
    infer(function, store=path, max_evals=16)
    aged(path, version=2)
    again = infer(function, store=path, max_evals=24)
    assert again.n_evals == 24
    assert [output is None for output in again.outputs.load()] == [True] * 16 + [False] * 8
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    connection.close()


def test_outputs_are_compressed(tmp_path):
    path = tmp_path / "run.sqlite"
    infer(
        model(lambda x: np.append(line(x), np.zeros(100_000)), lambda o, sigma: gauss(o[:20], sigma)),
        store=path,
        max_evals=16,
    )
    assert path.stat().st_size < 16 * 100_000
