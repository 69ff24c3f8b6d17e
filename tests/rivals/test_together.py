"""Comparisons in the words of `infer`: asynchronous, with a callback, with values that are known already."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import basq
from basq import Status
from basq.evaluation.store import Store
from helpers.small import PRIOR


def gaussian(width, shift=0.0):
    def log_likelihood(x):
        return shift - 0.5 * float(np.sum((np.asarray(x) / width) ** 2))

    return log_likelihood


def log_evidence(width, shift=0.0):
    return shift + np.log(2.0 * np.pi * width**2 / 36.0)


def compare(models, **options):
    together = {name: (f, PRIOR) for name, f in models.items()}
    return basq.compare(together, **({"seed": 1, "progress": False} | options))


# --- status -----------------------------------------------------------------------------------------------------------


def test_a_comparison_and_its_models_have_a_status():
    models = {"a": gaussian(0.3), "b": gaussian(0.3, -1.0), "far": gaussian(0.3, -60.0)}
    found = compare(models)
    assert found.status is Status.CONVERGED
    assert found.results["far"].status is Status.OUT
    assert {found.results["a"].status, found.results["b"].status} <= {Status.CONVERGED, Status.ENDED}
    spent = compare({"a": gaussian(0.01), "b": gaussian(0.011)}, max_evals=80, dlogz=1e-6)
    assert spent.status is Status.NOT_CONVERGED


def test_finished_runs_are_as_sure_as_asked_for_or_not():
    results = {n: basq.infer(gaussian(w), PRIOR, seed=1, progress=False) for n, w in (("a", 0.3), ("b", 0.33))}
    assert basq.compare(results).status is Status.CONVERGED
    assert basq.compare(results, dprob=1e-6).status is Status.NOT_CONVERGED


def test_a_model_whose_calls_fail_has_failed():
    calls = []

    def fragile(x):
        calls.append(x)
        if len(calls) > 3:
            raise RuntimeError("no licence")
        return gaussian(0.3)(x)

    found = compare({"a": gaussian(0.3), "b": fragile})
    assert found.results["b"].status is Status.FAILED
    assert found.results["b"].message.startswith("Not converged: ")
    assert found.status is Status.NOT_CONVERGED


# --- callback ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_callback_is_told_of_every_batch_and_whose_it_is(asynchronous):
    seen = {"a": [], "b": []}
    found = compare(
        {"a": gaussian(0.3), "b": gaussian(0.5)},
        asynchronous=asynchronous,
        callback=lambda name, state: seen[name].append(state),
    )
    for name, result in found.results.items():
        assert [state.history[-1] for state in seen[name]] == list(result.history)
        assert len(seen[name][-1].observations) == result.n_evals


def test_an_error_of_the_callback_leaves_with_what_was_paid_for():
    def stop(name, state):
        raise ZeroDivisionError(name)

    with pytest.raises(ZeroDivisionError, match="a") as caught:
        compare({"a": gaussian(0.3), "b": gaussian(0.5)}, callback=stop)
    assert len(caught.value.observations["a"]) == 32


# --- values that are known already ------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_known_values_count_and_spare_the_first_look(asynchronous):
    calls = []

    def counted(x):
        calls.append(x)
        return gaussian(0.3)(x)

    x = np.random.default_rng(0).uniform(-3.0, 3.0, (60, 2))
    known = {"a": (x, np.array([gaussian(0.3)(row) for row in x]))}
    found = compare(
        {"a": counted, "b": gaussian(0.5)}, evaluations=known, max_evals=150, asynchronous=asynchronous, batch_size=8
    )
    a = found.results["a"]
    assert a.n_evals == 60 + len(calls)
    np.testing.assert_array_equal(a.observations.x[:60], x)
    assert a.log_evidence == pytest.approx(log_evidence(0.3), abs=0.1)
    assert found.n_evals <= 150
    assert a.settings["n_given"] == 60


def test_known_values_may_be_an_older_store(tmp_path):
    old = basq.infer(gaussian(0.3), PRIOR, max_evals=48, seed=1, store=tmp_path / "old.sqlite", progress=False)
    found = compare({"a": gaussian(0.3), "b": gaussian(0.5)}, evaluations={"a": tmp_path / "old.sqlite"})
    np.testing.assert_array_equal(found.results["a"].observations.x[:48], old.observations.x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluations": ([[0.0, 0.0]], [1.0])}, "must be a dict by the names of models"),
        ({"evaluations": {"c": ([[0.0, 0.0]], [1.0])}}, "'c' cannot have any; allowed are those that are run here: a"),
        ({"evaluations": {"b": ([[0.0, 0.0]], [1.0])}}, "'b' cannot have any"),
        ({"evaluations": {"a": ([[0.0]], [1.0])}}, r"shapes \(1, 1\)"),
        ({"evaluations": {"a": ([[0.0, 0.0]] * 60, [1.0] * 60)}, "max_evals": 50}, "leaves no call after the 60"),
        ({"callback": 3}, "callback=3: give a function that takes the name of a model and its state"),
    ],
)
def test_wrong_arguments_cost_no_call(options, message):
    def never(x):
        raise AssertionError("called")

    done = basq.infer(gaussian(0.3), PRIOR, max_evals=32, seed=1, progress=False)
    with pytest.raises(basq.InputError, match=message):
        basq.compare({"a": (never, PRIOR), "b": done}, seed=1, progress=False, **options)


def test_known_values_are_part_of_the_first_look():
    known = {"a": ([[0.0, 0.0]] * 3, [0.0] * 3)}
    with pytest.raises(basq.InputError, match="max_evals=66: a first look at all models takes 67 calls"):
        compare({"a": gaussian(0.3), "b": gaussian(0.5)}, evaluations=known, max_evals=66)
    assert compare({"a": gaussian(0.3), "b": gaussian(0.5)}, evaluations=known, max_evals=67).n_evals == 67


# --- asynchronous -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [None, 2, "threads"])
def test_an_asynchronous_comparison_finds_the_same_probabilities(pool):
    widths = {"a": (0.3, 0.0), "b": (0.5, -1.5), "far": (0.3, -60.0)}
    models = {name: gaussian(*w) for name, w in widths.items()}
    if pool == "threads":
        with ThreadPoolExecutor(3) as executor:
            found = compare(models, pool=executor, asynchronous=True)
    else:
        found = compare(models, pool=pool, asynchronous=True)
    assert found.status is Status.CONVERGED
    assert found.results["far"].status is Status.OUT
    assert found.results["far"].n_evals < 48
    log_b = log_evidence(*widths["a"]) - log_evidence(*widths["b"])
    assert found.log_bayes_factor("a", "b")[0] == pytest.approx(log_b, abs=0.1)
    p = 1.0 / (1.0 + np.exp(-log_b))
    assert found.probabilities["a"] == pytest.approx(p, abs=0.05)


def test_a_slow_call_of_one_model_does_not_hold_up_the_others():
    """As it would, and for ever, if a batch of one model had to end before the next begins."""
    others, first = threading.Event(), threading.Event()
    n_calls = []

    def slow(x):
        if not first.is_set():
            first.set()
            assert others.wait(60.0)
        return gaussian(0.3)(x)

    def quick(x):
        n_calls.append(x)
        if len(n_calls) == 40:
            others.set()
        return gaussian(0.5)(x)

    with ThreadPoolExecutor(2) as executor:
        found = compare({"slow": slow, "quick": quick}, pool=executor, asynchronous=True, dlogz=1e-6, max_evals=150)
    assert others.is_set()
    assert found.results["slow"].n_failed == 0
    assert found.n_evals == 150


def test_never_more_calls_at_once_than_workers_and_never_beyond_the_budget(tmp_path):
    def timed(width):
        def log_likelihood(x):
            import time

            begun = time.time()
            time.sleep(0.02)
            return gaussian(width)(x), {"begun": begun, "ended": time.time()}

        return log_likelihood

    models = {"a": timed(0.011), "b": timed(0.01), "c": timed(0.012)}
    found = compare(models, pool=2, asynchronous=True, dlogz=1e-6, max_evals=130, store=tmp_path)
    assert found.n_evals == 130
    assert found.message.startswith("All 130 calls are spent")
    spans = []
    for path in tmp_path.glob("*.sqlite"):
        with Store(path) as store:
            spans += [(row["extra"]["begun"], row["extra"]["ended"]) for row in store.rows()]
    ends = np.array(spans)
    at_once = [int(np.sum((ends[:, 0] <= t) & (t < ends[:, 1]))) for t in ends[:, 0]]
    assert max(at_once) == 2


@pytest.mark.parametrize("at", [5, 40])
def test_an_interrupted_asynchronous_comparison_is_taken_up(at, tmp_path, capsys):
    calls = []

    def interrupting(x):
        calls.append(x)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return gaussian(0.3)(x)

    models = {"a": interrupting, "b": gaussian(0.5)}
    found = compare(models, asynchronous=True, store=tmp_path)
    assert found.status is Status.INTERRUPTED
    assert found.message == f"Interrupted after {found.n_evals} calls."
    assert found.results["a"].n_evals == at
    again = compare(models, asynchronous=True, store=tmp_path)
    assert again.status is Status.CONVERGED
    assert again.results["a"].n_evals == len(calls)


def test_an_asynchronous_error_says_whose_it_is():
    def broken(x):
        raise RuntimeError("no licence")

    with pytest.raises(basq.EvaluationError, match=r"^b: .*no licence") as caught:
        compare({"a": gaussian(0.3), "b": broken}, asynchronous=True)
    assert set(caught.value.observations) == {"a", "b"}


def test_time_that_is_over_ends_an_asynchronous_comparison():
    found = compare({"a": gaussian(0.3), "b": gaussian(0.5)}, asynchronous=True, max_time=1e-9)
    assert found.status is Status.NOT_CONVERGED
    assert "The time is over" in found.message
    assert found.n_evals == 0
