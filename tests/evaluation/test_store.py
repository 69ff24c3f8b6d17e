"""The store: durable, resumable, readable by others, and loyal to its problem."""

import functools
import gc
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from scipy import stats

import basq
from basq import Sampler
from basq.cli import main
from basq.errors import AbsentError, StoreError, StoreInUseError
from basq.evaluation import prepare as prepare_module
from basq.evaluation import rest
from basq.evaluation.call import Outcome
from basq.evaluation.calls import Calls
from basq.evaluation.schema import FORMAT
from basq.evaluation.store import Store
from helpers.small import gauss

PRIOR = {"a": (-3.0, 3.0), "b": stats.norm(0.0, 1.0)}
OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 56, "dlogz": 0.0}


def other_gauss(x):
    return float(-0.5 * np.sum((np.asarray(x) - 0.4) ** 2) / 0.1)


def infer(function=gauss, prior=None, **options):
    return basq.infer(function, PRIOR if prior is None else prior, progress=False, **{**OPTIONS, **options})


class Stop(Exception):
    pass


class Mortal:
    """A likelihood that counts its calls and ends the run after some, as a crash of the driver would."""

    def __init__(self, n_calls=10**9):
        self.left, self.points = n_calls, []

    def __call__(self, x):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.points.append(x.tolist())
        return gauss(x)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


@pytest.fixture(scope="module")
def plain():
    return infer()


# --- rows -----------------------------------------------------------------------------------------------------------


def test_every_call_has_its_row(path):
    def likelihood(x):
        return gauss(x), 0.25, {"chi2": -2.0 * gauss(x), "field": np.arange(3.0), "model": object}

    infer(likelihood, store=path, max_evals=40)
    with Store(path) as store:
        rows = store.rows()
    assert [row["id"] for row in rows] == list(range(40))
    row = rows[17]
    assert row["state"] == "done"
    assert row["log_likelihood"] == gauss(row["x"])
    assert row["noise"] == 0.25
    assert row["extra"]["chi2"] == -2.0 * gauss(row["x"])
    assert row["extra"]["field"] == [0.0, 1.0, 2.0]
    assert "object" in row["extra"]["model"]
    assert row["attempt"] == 1
    assert row["seconds"] >= 0.0
    assert ":" in row["worker"]
    assert row["finished"] > 1.7e9
    assert [r["step"] for r in rows] == [0] * 32 + [1] * 8
    np.testing.assert_array_equal(basq.Prior(PRIOR).from_standard(row["u"]), row["x"])


def test_finished_calls_are_committed_one_by_one(path):
    seen = []

    def likelihood(x):
        with sqlite3.connect(path) as reader:  # another connection, as another process would see it
            seen.append(reader.execute("SELECT count(*) FROM calls WHERE state = 'done'").fetchone()[0])
        reader.close()
        return gauss(x)

    infer(likelihood, store=path, max_evals=40)
    assert seen == list(range(40))


def test_settings_are_readable(path):
    infer(store=path)
    with Store(path) as store:
        assert store.get("names") == ["a", "b"]
        assert store.get("prior") == "Prior(a ~ uniform(-3, 3), b ~ norm(0, 1))"
        assert store.get("seed") == "1"
        assert store.get("max_evals") == 56
        assert store.get("method") == "Auto()"
        assert store.get("nothing") is None
        steps = store.steps()
    assert [record["n_evals"] for _, record in steps] == [32, 40, 48, 56]
    assert steps[-1][1]["message"].startswith("Not converged: 56 of max_evals")


def test_outcomes_are_final(path):
    with Store(path, 2) as store:
        ids = store.add(np.zeros((2, 2)), np.ones((2, 2)), True, 0)
        store.finish([(0, Outcome(1.0))])
        store.finish([(0, Outcome(2.0)), (1, Outcome(-np.inf, 0.5))])
        store.retry([(0, Outcome.failed("late"))])
        assert ids.tolist() == [0, 1]
        assert store.done().log_likelihood.tolist() == [1.0, -np.inf]
        assert store.done().noise.tolist() == [0.0, 0.5]
        assert store.done().explores.all()


def test_numbers_survive_exactly(path):
    rng = np.random.default_rng(0)
    x, u, values = rng.standard_normal((50, 3)), rng.standard_normal((50, 3)), rng.standard_normal(50) * 1e300
    with Store(path, 3) as store:
        ids = store.add(x, u, rng.random(50) < 0.5, 7)
        store.finish([(int(i), Outcome(float(v), 1e-300)) for i, v in zip(ids, values, strict=True)])
        store.learned(0, store.news(), {"nan": float("nan")})
    with Store(path) as store:
        ((calls, record),) = store.steps()
        assert len(store.news()) == 0
    for calls_ in (calls,):
        np.testing.assert_array_equal(calls_.x, x)
        np.testing.assert_array_equal(calls_.u, u)
        np.testing.assert_array_equal(calls_.log_likelihood, values)
        assert (calls_.noise == 1e-300).all()
        assert (calls_.batch == 7).all()
    assert np.isnan(record["nan"])


# --- resume ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_calls", [0, 1, 31, 32, 33, 40, 55])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(path, plain, n_calls):
    first, second = Mortal(n_calls), Mortal()
    with pytest.raises(KeyboardInterrupt) as caught:
        infer(first, store=path)
    assert len(caught.value.observations) == n_calls
    result = infer(second, store=path)
    np.testing.assert_array_equal(first.points + second.points, plain.observations.x)
    assert result.log_evidence == plain.log_evidence
    assert result.log_evidence_std == plain.log_evidence_std
    assert [h.n_evals for h in result.history] == [h.n_evals for h in plain.history]


def test_resume_with_other_workers(path, plain):
    with pytest.raises(KeyboardInterrupt):
        infer(Mortal(35), store=path)
    result = infer(Mortal(), store=path, pool=2)
    assert result.log_evidence == plain.log_evidence


def test_a_finished_run_costs_nothing_and_can_be_extended(path, plain):
    infer(store=path, max_evals=40)
    again = Mortal()
    assert infer(gauss, store=path, max_evals=40).n_evals == 40
    assert again.points == []
    longer = infer(store=path)
    assert longer.log_evidence == plain.log_evidence
    np.testing.assert_array_equal(longer.observations.x, plain.observations.x)


def test_seed_may_be_left_out_when_resuming(path):
    infer(store=path, seed=None, max_evals=40)
    with Store(path) as store:
        seed = int(store.get("seed"))
    resumed = infer(store=path, seed=None)
    assert resumed.log_evidence == infer(seed=seed).log_evidence


def test_open_without_likelihood_or_prior(path, plain):
    infer(store=path)
    result = Sampler.open(path).result()
    assert result.log_evidence == plain.log_evidence
    assert result.message == plain.message
    np.testing.assert_array_equal(result.sample(10, seed=1), plain.sample(10, seed=1))


def test_read_while_it_runs(path):
    seen = []

    def look(state):
        seen.append(Sampler.open(path).result().log_evidence - state.fitted.log_evidence)

    infer(store=path, callback=look)
    assert seen == [0.0] * 4


def test_old_values_start_a_new_run(path, tmp_path):
    infer(store=path)
    narrow = {"a": (-1.0, 1.0), "b": stats.norm(0.0, 1.0)}
    result = infer(prior=narrow, evaluations=path, store=tmp_path / "new.sqlite", max_evals=80)
    with Store(path) as old:
        inside = (np.abs(old.done().x[:, 0]) <= 1.0).sum()
    assert 0 < inside < 56
    assert (result.observations.batch == 0).sum() >= inside
    assert result.n_evals == 80
    resumed = infer(prior=narrow, evaluations=path, store=tmp_path / "new.sqlite", max_evals=80)
    assert resumed.log_evidence == result.log_evidence
    with pytest.raises(StoreError, match="has the parameters a, b; they cannot be used for c, d"):
        infer(prior={"c": (0, 1), "d": (0, 1)}, evaluations=path)


# --- another problem ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"prior": {"a": (-3.0, 3.0), "c": stats.norm(0.0, 1.0)}},
            "it has parameters a, b; now given: parameters a, c",
        ),
        ({"prior": {"a": (-3.0, 3.0)}}, "now given: parameters a"),
        ({"prior": {"a": (-3.0, 3.5), "b": stats.norm(0.0, 1.0)}}, r"uniform\(-3, 3\).*3.5.* differ in a\."),
        ({"prior": {"a": (-3.0, 3.0), "b": stats.norm(0.0, 1.1)}}, r"differ in b\."),
        ({"seed": 2}, "seed=1; now given: seed=2"),
        ({"method": basq.Paper()}, r"method=Auto\(\); now given: method=Paper"),
        ({"function": other_gauss}, "values of another log-likelihood: it was gauss, not other_gauss"),
    ],
)
def test_a_store_refuses_another_problem(path, change, text):
    infer(store=path, max_evals=40)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=text) as caught:
        infer(**{"store": path, **change})
    assert f"evaluations={str(path)!r}" in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("on_error", ["record", "zero"])
def test_a_function_that_always_failed_may_be_mended(path, on_error):
    def broken(x):
        raise ArithmeticError("a bug")

    with pytest.raises(basq.EvaluationError, match="a bug"):
        infer(broken, store=path, max_evals=40, on_error=on_error)
    with Store(path) as store, store.driving(), pytest.raises(StoreInUseError):
        infer(store=path, max_evals=40)  # the old one may be about to succeed
    mended = infer(store=path, max_evals=40, on_error=on_error)
    plain = infer(max_evals=40)
    assert mended.log_evidence == plain.log_evidence
    assert mended.n_failed == 0
    with Store(path) as store:
        assert "a bug" in store.rows()[0]["error"]  # still on record


def test_given_values_do_not_hold_a_function_that_always_failed(path):
    def broken(x):
        return np.nan

    x = np.array([[0.0, 0.1], [0.2, 0.3]])
    given = (x, [gauss(row) for row in x])
    assert infer(broken, store=path, evaluations=given, max_evals=40).n_evals == 2
    mended = infer(store=path, max_evals=40)
    assert (mended.n_evals, mended.n_failed) == (40, 0)


def test_comments_and_partial_arguments_do_not_make_another_function(path):
    def first(x, scale):
        return gauss(x) * scale

    infer(functools.partial(first, scale=1.0), store=path, max_evals=40)

    def first(x, scale):
        # the same, with a comment
        return gauss(x) * scale

    assert infer(functools.partial(first, scale=1.0), store=path).n_evals == 56


def test_a_function_is_the_same_in_every_process(path):
    """Sets of texts are ordered by hashes, which are other ones in every process."""
    script = f"""
import basq
def likelihood(x):
    return float(x[0]) if "b" in {{"a", "b", "c", "d", "e"}} else 0.0
basq.infer(likelihood, {{"a": (0, 1)}}, store={str(path)!r}, seed=1, max_evals=32, progress=False)
"""
    for seed in "12":
        subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, check=True)


def test_density_priors_are_told_apart(path):
    points = np.random.default_rng(0).normal(size=(500, 2))
    law = stats.multivariate_normal(np.zeros(2), np.eye(2))
    infer(prior=basq.Prior.from_density(law.logpdf, points), store=path, max_evals=40)
    with pytest.raises(StoreError, match="another problem"):
        infer(prior=basq.Prior.from_density(law.logpdf, 1.1 * points), store=path)


def test_whether_somebody_drives(path):
    with Store(path, 2) as store, Store(path) as other, Store(None, 2) as memory:
        assert not store.driven
        with store.driving(), memory.driving():
            assert store.driven
            assert other.driven
        assert not store.driven
        assert not other.driven
        assert not memory.driven


def test_foreign_files_are_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("my notes, not a database at all\n" * 100)
    with pytest.raises(StoreError, match="cannot be opened: file is not a database"):
        infer(store=text)
    assert text.read_text().startswith("my notes")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(StoreError, match="not a store of basq"):
        infer(store=other)
    assert other.read_bytes() == before
    with pytest.raises(StoreError, match="There is no store"):
        Sampler.open(tmp_path / "nothing.sqlite")


@pytest.mark.parametrize(("name", "text"), [(5, "store=5"), ("", "cannot be opened"), ("..", "cannot be opened")])
def test_names_that_are_no_files(tmp_path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=text):
        infer(store=name)


def test_a_full_disk_is_told_and_costs_only_what_it_cannot_hold(path):
    n_done = 0

    def likelihood(x):
        nonlocal n_done
        if n_done == 20:
            (sampler,) = samplers
            (pages,) = sampler.store._connection.execute("PRAGMA page_count").fetchone()
            sampler.store._connection.execute(f"PRAGMA max_page_count = {pages}")
        n_done += 1
        return gauss(x), {"field": np.zeros(1000 if n_done > 20 else 1)}

    samplers = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sampler, "_begin", watched(Sampler._begin, samplers))
        patch.setattr(rest, "ROOM", 0.0)
        patch.setattr(tempfile, "tempdir", str(path.parent))
        with pytest.raises(StoreError, match="cannot be written: database or disk is full") as caught:
            infer(likelihood, store=path)
    assert len(caught.value.observations) >= 20
    with Store(path) as store:
        n_stored = store.counts()["done"]
        assert n_stored >= 20
    (second,) = path.parent.glob("*.values")
    assert f"are in {second}: when there is room, basq tell {path} {second}" in str(caught.value)
    main(["tell", str(path), str(second)])
    with Store(path) as store:
        assert store.counts()["done"] == n_done > n_stored  # each call that was made
        np.testing.assert_array_equal(store.done().log_likelihood, [gauss(x) for x in store.done().x])


def test_values_that_met_a_full_disk_are_written_when_there_is_room(path, monkeypatch, plain):
    monkeypatch.setattr(rest, "LOOK", 0.0)
    finish, refused = Store.finish, []

    def full(self, outcomes):
        if len(refused) < 3 and self.counts()["done"] >= 20:
            refused.append(outcomes)
            raise StoreError(f"{self} cannot be written: database or disk is full.")
        finish(self, outcomes)

    monkeypatch.setattr(Store, "finish", full)
    assert infer(gauss, store=path).log_evidence == plain.log_evidence
    assert len(refused) == 3


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_deleted_while_it_is_used_is_noticed_and_nothing_is_lost(path, replaced):
    calls = []

    def deletes(x):
        calls.append(x)
        if len(calls) == 20:
            path.unlink()
            if replaced:
                path.touch()
        return gauss(x)

    with pytest.raises(StoreError, match="replaced by another file" if replaced else "was deleted or moved"):
        infer(deletes, store=path)
    assert len(calls) == 20  # at once
    (kept,) = path.parent.glob(f"{path.stem}-*.sqlite")
    with Store(kept) as store:
        assert store.counts()["done"] == 20


@pytest.mark.parametrize("name", [":memory:", "file:run.sqlite?mode=memory"])
def test_a_store_that_would_keep_nothing_is_refused(name):
    with pytest.raises(StoreError, match="give the name of a file; without store, the calls stay in memory"):
        infer(gauss, store=name)


def watched(method, found):
    def begin(self, *args):
        found.append(self)
        return method(self, *args)

    return begin


def test_a_store_can_be_made_by_many_processes_at_once(path):
    script = f"import sys; from basq.evaluation.store import Store; sys.stdin.read(); Store({str(path)!r}, 2)"
    others = [subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) for _ in range(6)]
    time.sleep(3.0)  # all of them wait
    for other in others:
        other.stdin.close()
    assert [other.wait() for other in others] == [0] * 6


def test_processes_that_begin_a_run_at_once_begin_the_same_run(path):
    script = (
        "import sys, basq; sys.stdin.read(); "
        f"s = basq.Sampler({{'a': (0, 1)}}, store={str(path)!r}, evaluations=([[0.5]], [1.0])); print(s.recipe.seed)"
    )
    pipe = subprocess.PIPE
    others = [subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe) for _ in range(6)]
    time.sleep(4.0)  # all of them wait
    for other in others:
        other.stdin.close()
    seeds = set()
    for other in others:
        with other.stdout as out:
            seeds.add(out.read())
    assert [other.wait() for other in others] == [0] * 6
    assert len(seeds) == 1
    with Store(path) as store:
        assert store.counts()["done"] == 1


def test_a_run_that_could_not_begin_can_be_begun(path, monkeypatch):
    """Given values are there from the beginning or not at all."""
    given = np.zeros((3, 2)), np.zeros(3)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "finish", die)
        with pytest.raises(Stop):
            Sampler(PRIOR, store=path, evaluations=given, **OPTIONS)
    sampler = Sampler(PRIOR, store=path, evaluations=given, **OPTIONS)
    assert sampler.store.counts() == {"done": 3, "failed": 0, "pending": 0}


def die(*_):
    raise Stop


def test_functions_of_a_prior_are_not_written_and_asked_for_by_name(path):
    lock = threading.Lock()

    def transform(cube):
        with lock:
            return 6.0 * cube - 3.0

    options = {"prior_transform": transform, "n_dim": 2, "progress": False, **OPTIONS}
    result = basq.infer(gauss, store=path, **options)
    found = Sampler.open(path).result()  # what is known can be read
    assert str(found) == str(result)
    np.testing.assert_allclose(found.marginal("x1").ppf([0.1, 0.9]), result.marginal("x1").ppf([0.1, 0.9]), rtol=1e-3)
    with pytest.raises(AbsentError, match=r"function .*transform is needed .*Sampler\.open\(path, prior=…"):
        Sampler.open(path).ask(3)
    prior = basq.Prior.from_transform(transform, 2)
    assert len(Sampler.open(path, prior=prior).ask(3)) == 3
    with pytest.raises(StoreError, match="is of another problem"):
        Sampler.open(path, prior={"x1": (0, 1), "x2": (0, 1)})
    assert basq.infer(gauss, store=path, **options | {"max_evals": 64}).n_evals == 64


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_store_that_cannot_be_written_can_be_read(path, plain):
    infer(store=path)
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert Sampler.open(path).result().log_evidence == plain.log_evidence
        assert infer(evaluations=path, max_evals=64).n_evals == 64
    finally:
        path.parent.chmod(0o700)


def test_a_sampler_that_is_dropped_closes_its_store(path):
    connection = Sampler(PRIOR, store=path, **OPTIONS).store._connection
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_a_file_that_was_only_begun_holds_no_run_and_can_be_used(path, plain):
    path.touch()  # a driver that was killed at once
    with pytest.raises(StoreError, match="holds no run yet"):
        Sampler.open(path)
    assert infer(store=path).log_evidence == plain.log_evidence


def test_two_drivers_do_not_share_a_store(path, monkeypatch):
    monkeypatch.setattr("basq.run.sampler.PATIENCE", 0.1)
    script = (
        f"import basq, sys, time\nsampler = basq.Sampler({{'a': (0, 1)}}, store={str(path)!r}, seed=1)\n"
        "with sampler.store.driving():\n    print('in', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"in\n"
        sampler = Sampler.open(path)
        with pytest.raises(StoreError, match="in use"):
            sampler.ask()
        with pytest.raises(StoreError, match="in use"):
            basq.infer(gauss, {"a": (0, 1)}, store=path, max_evals=999, progress=False)
        assert sampler.store.get("max_evals") == 150  # what is refused changes nothing
        other.kill()  # the lock dies with its owner
        other.wait()
        assert len(sampler.ask()) == 16


def test_processes_that_ask_at_once_wait_for_each_other(path):
    sampler = Sampler(PRIOR, store=path, **OPTIONS)
    batch = sampler.ask()
    sampler.tell(batch, [gauss(x) for x in batch.x])
    script = f"import basq; s = basq.Sampler.open({str(path)!r}); [s.ask(1) for _ in range(3)]"
    others = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [other.wait() for other in others] == [0] * 3
    assert len(np.unique(sampler.pending().x, axis=0)) == 9


def test_the_lock_stays_where_the_store_is(tmp_path, monkeypatch):
    """Scripts that run simulators change directories."""
    monkeypatch.chdir(tmp_path)
    sampler = Sampler(PRIOR, store="run.sqlite", **OPTIONS)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    sampler.ask()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "run.sqlite"]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_step_of_another_process_is_learned_too(path):
    a = Sampler(PRIOR, store=path, **OPTIONS)
    batch = a.ask()
    b = Sampler.open(path)
    b.tell(batch.ids, [gauss(x) for x in batch.x])
    more = b.ask()
    a.tell(more, [gauss(x) for x in more.x])
    assert a.result().log_evidence == b.result().log_evidence


# --- what a store can be asked ----------------------------------------------------------------------------------------


def test_failures_are_told_in_order_and_the_last_one_alone():
    x = np.arange(8.0).reshape(4, 2)
    with Store(None, 2) as store:
        assert store.failures() == ()
        assert store.last_failure() is None
        ids = [int(i) for i in store.add(x, x, False, 0)]
        store.retry([(ids[1], Outcome.failed("at first"))])
        store.finish([(ids[3], Outcome.failed("late", "Traceback")), (ids[0], Outcome(1.0))])
        store.finish([(ids[1], Outcome.failed("again"))])
        first, last = store.failures()
        assert (first.id, first.error, first.traceback, first.attempts) == (1, "again", None, 2)
        assert (last.id, last.error, last.traceback, last.attempts) == (3, "late", "Traceback", 1)
        np.testing.assert_array_equal(last.x, x[3])
        assert store.last_failure().id == 3


def test_given_values_are_not_those_of_the_run():
    x = np.arange(4.0).reshape(2, 2)
    with Store(None, 2) as store:
        store.give(x, x, np.array([1.0, -np.inf]), np.array([0.0, 0.5]))
        assert not store.has_own_values()
        assert store.counts() == {"done": 2, "failed": 0, "pending": 0}
        np.testing.assert_array_equal(store.done().log_likelihood, [1.0, -np.inf])
        np.testing.assert_array_equal(store.done().noise, [0.0, 0.5])
        (i,) = store.add(x[:1], x[:1], False, 1)
        assert not store.has_own_values()
        store.finish([(int(i), Outcome(2.0, worker="here:1"))])
        assert store.has_own_values()


def test_nothing_is_given_without_a_value():
    with Store(None, 2) as store:
        store.give(np.empty((0, 2)), np.empty((0, 2)), np.empty(0), np.empty(0))
        assert store.extent() == (0, 0)


def test_the_last_record_is_that_of_a_step_with_values():
    with Store(None, 2) as store:
        assert store.last_record() is None
        store.learned(0, Calls.none(2), {})
        assert store.last_record() is None
        store.learned(1, Calls.none(2), {"status": basq.Status.RUNNING, "n_evals": 3})
        store.learned(2, Calls.none(2), {})
        assert store.last_record() == {"status": "running", "n_evals": 3}


def test_steps_have_a_status(path):
    result = infer(store=path)
    with Store(path) as store:
        statuses = [basq.Status(record["status"]) for _, record in store.steps()]
    assert statuses[-1] is result.status is basq.Status.NOT_CONVERGED
    assert set(statuses[:-1]) == {basq.Status.RUNNING}


# --- format ---------------------------------------------------------------------------------------------------------


def set_version(path, version):
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (str(version),))
    connection.close()


def test_a_newer_format_is_refused(path):
    infer(store=path, max_evals=40)
    set_version(path, FORMAT + 1)
    with pytest.raises(StoreError, match=f"has format {FORMAT + 1}, made by a newer basq"):
        infer(store=path)


def test_a_format_that_there_is_no_way_from_is_refused(path):
    infer(store=path, max_evals=40)
    set_version(path, 1)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"has format 1, made by an older basq; this one reads format {FORMAT}"):
        infer(store=path)
    assert path.read_bytes() == before


def test_an_older_format_is_migrated(path, monkeypatch, plain):
    """As it will be when there is a next format: every old file passes through each step, once."""
    infer(store=path, max_evals=40)
    calls = []

    def migrate(connection):
        calls.append(1)
        connection.execute("ALTER TABLE calls ADD COLUMN colour TEXT")

    monkeypatch.setattr(prepare_module, "FORMAT", FORMAT + 1)
    monkeypatch.setattr(prepare_module, "MIGRATIONS", {FORMAT: migrate})
    assert infer(store=path).log_evidence == plain.log_evidence
    assert infer(store=path).log_evidence == plain.log_evidence
    assert calls == [1]


def test_a_failed_migration_changes_nothing(path, monkeypatch):
    infer(store=path, max_evals=40)
    before = path.read_bytes()

    def migrate(connection):
        connection.execute("DROP TABLE steps")
        raise Stop

    monkeypatch.setattr(prepare_module, "FORMAT", FORMAT + 1)
    monkeypatch.setattr(prepare_module, "MIGRATIONS", {FORMAT: migrate})
    with pytest.raises(Stop):
        Store(path)
    assert path.read_bytes() == before


def test_columns_of_no_calls():
    calls = Calls.none(3)
    assert calls.x.shape == calls.u.shape == (0, 3)
    assert len(calls.join(calls)) == 0


def test_records_are_json(path):
    infer(store=path, method=basq.Paper(n_candidates=500, n_nystrom=50), max_evals=24)
    with sqlite3.connect(path) as connection:
        records = [json.loads(r) for (r,) in connection.execute("SELECT record FROM steps ORDER BY step")]
    connection.close()
    assert records[1]["info"]["n_candidates"] == 500
