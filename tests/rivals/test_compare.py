"""Model comparison: table, verdict, and calls that go where they settle the most."""

import pickle
import signal
import time

import numpy as np
import pytest

import basq
from basq.observations import Observations
from basq.results.result import Result
from basq.rivals.comparison import Comparison
from basq.rivals.race import IDLE
from basq.rivals.standing import Standing
from basq.run.sampler import Sampler

PRIOR = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}


def gaussian(width, shift=0.0):
    """A log-likelihood, and its log-evidence under PRIOR."""

    def log_likelihood(x):
        return shift - 0.5 * float(np.sum((np.asarray(x) / width) ** 2))

    return log_likelihood, shift + np.log(2.0 * np.pi * width**2 / 36.0)


def fake(log_evidence, std, converged=True):
    """A result without a run; with values, if it is to have an evidence."""
    x = np.zeros((32 if np.isfinite(log_evidence) else 0, 2))
    seen = Observations.empty(2).append(x, x, np.zeros(len(x)), np.zeros(len(x)))
    status = basq.Status.CONVERGED if converged else basq.Status.NOT_CONVERGED
    return Result(log_evidence, std, status, "", basq.Prior(PRIOR), seen, (), None)


def comparison(*models, odds=None):
    results = {f"m{i}": fake(*m) for i, m in enumerate(models)}
    return basq.compare(results, prior_odds=odds)


# --- table and verdict ------------------------------------------------------------------------------------------------


def test_table_of_finished_runs():
    found = comparison((-10.0, 0.1), (-12.0, 0.2), (-50.0, 1.0))
    assert found.ranking == ["m0", "m1", "m2"]
    assert found.best == "m0"
    assert found.log_bayes_factor("m0", "m1") == pytest.approx((2.0, np.hypot(0.1, 0.2)))
    assert found.log_bayes_factor("m1", "m0")[0] == -2.0
    assert found.log_bayes_factor("m0", "m0") == (0.0, 0.0)
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    assert found.probabilities["m0"] == pytest.approx(1 / (1 + np.exp(-2.0)), abs=0.01)
    low, high = found.interval("m0")
    assert low < found.probabilities["m0"] < high
    text = str(found)
    assert "m0" in text
    assert "-12.00 ± 0.20" in text
    assert "<table>" in found._repr_html_()
    assert [row["model"] for row in found.rows()] == found.ranking


def test_prior_odds_change_probabilities_and_not_bayes_factors():
    even, uneven = comparison((0.0, 0.01), (0.0, 0.01)), comparison((0.0, 0.01), (0.0, 0.01), odds={"m0": 9, "m1": 1})
    assert even.probabilities["m0"] == pytest.approx(0.5, abs=0.001)
    assert uneven.probabilities["m0"] == pytest.approx(0.9, abs=0.001)
    assert even.log_bayes_factor("m0", "m1") == uneven.log_bayes_factor("m0", "m1")


@pytest.mark.parametrize(
    ("log_b", "std", "words"),
    [
        (2.0, 0.1, "Positive evidence for m0 against m1"),
        (4.0, 0.1, "Strong evidence for m0"),
        (4.9, 0.1, "At least strong evidence for m0"),
        (6.0, 0.1, "Very strong evidence for m0"),
        (0.5, 0.05, "the data hardly tell them apart"),
        (0.9, 0.3, "the error of the evidences is too large to tell"),
        (3.0, 2.0, "the error of the evidences is too large to tell"),
    ],
)
def test_verdict_on_the_scale_of_kass_and_raftery(log_b, std, words):
    found = comparison((log_b, std / np.sqrt(2)), (0.0, std / np.sqrt(2)))
    assert words in found.verdict
    assert found.decided == (not found.verdict.startswith("Not decided"))


def test_a_run_that_has_not_converged_decides_nothing_unless_it_is_far_behind():
    close = comparison((2.0, 0.1), (0.0, 0.1, False))
    assert not close.decided
    assert "m1 has not converged" in close.verdict
    assert comparison((200.0, 0.1), (0.0, 0.1, False)).decided


def test_the_verdict_is_about_the_least_certain_rival():
    found = comparison((10.0, 0.1), (5.0, 0.1), (2.0, 3.0, False))
    assert not found.decided
    assert "m2" in found.verdict


def test_a_model_without_mass_is_not_decided_against():
    found = comparison((0.0, 0.1), (-np.inf, np.inf, False))
    assert not found.decided
    assert "m1 has not converged" in found.verdict
    assert "nan" not in str(found)


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ({"a": fake(0, 0.1)}, {}, "at least two"),
        ([fake(0, 0.1), fake(0, 0.1)], {}, "at least two"),
        ({"a": fake(0, 0.1), "b": 3}, {}, "'b' is int"),
        ({"a": fake(0, 0.1), "b": (3, PRIOR)}, {}, "cannot be called"),
        ({"a": fake(0, 0.1), "b": fake(0, 0.1)}, {"prior_odds": {"x": 1}}, "prior_odds"),
        ({"a": fake(0, 0.1), "b": fake(0, 0.1)}, {"prior_odds": {"a": 1, "b": 0}}, "positive"),
        ({"a": fake(0, 0.1), "b": fake(0, 0.1)}, {"dprob": 0}, "dprob"),
    ],
)
def test_wrong_arguments_are_named(models, options, message):
    with pytest.raises(basq.InputError, match=message):
        basq.compare(models, **options)


def test_unknown_model_is_named():
    with pytest.raises(basq.InputError, match="There is no model 'x'"):
        comparison((0, 0.1), (1, 0.1)).log_bayes_factor("x", "m0")


# --- models that run --------------------------------------------------------------------------------------------------


def counted(width, shift=0.0):
    calls = []
    function, log_evidence = gaussian(width, shift)

    def log_likelihood(x):
        calls.append(np.array(x))
        return function(x)

    return log_likelihood, log_evidence, calls


def test_calls_go_to_the_models_in_the_race():
    a, log_a, calls_a = counted(0.3)
    b, log_b, calls_b = counted(0.3, shift=-1.0)
    c, _, calls_c = counted(0.3, shift=-60.0)
    found = basq.compare({"a": (a, PRIOR), "b": (b, PRIOR), "c": (c, PRIOR)}, seed=1, progress=False)
    assert found.names == ("a", "b", "c")
    assert len(calls_c) == 32  # the first look
    assert len(calls_a) > 48
    assert found.n_evals == len(calls_a) + len(calls_b) + len(calls_c)
    assert found.results["a"].log_evidence == pytest.approx(log_a, abs=0.05)
    assert found.results["b"].log_evidence == pytest.approx(log_b, abs=0.05)
    assert found.probabilities["a"] == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.03)
    assert "Out of the race" in found.results["c"].message
    assert not found.results["c"].converged


def test_a_finished_run_can_race_against_a_new_model():
    a, log_a, _ = counted(0.5)
    done = basq.infer(gaussian(0.3)[0], PRIOR, seed=1, progress=False)
    found = basq.compare({"old": done, "new": (a, PRIOR)}, seed=1, progress=False)
    assert found.results["old"] is done
    assert found.log_bayes_factor("new", "old")[0] == pytest.approx(2 * np.log(0.5 / 0.3), abs=0.05)
    assert found.results["new"].log_evidence == pytest.approx(log_a, abs=0.05)


def test_problems_can_be_given_as_they_are():
    models = {"two": basq.problems.gauss(2), "three": basq.problems.gauss(3)}
    found = basq.compare(models, vectorized=True, seed=1, progress=False)
    truth = models["two"].log_evidence - models["three"].log_evidence
    assert found.log_bayes_factor("two", "three")[0] == pytest.approx(truth, abs=0.1)


def test_the_budget_is_for_all_models_together():
    a, _, calls_a = counted(0.01)
    b, _, calls_b = counted(0.011)
    found = basq.compare({"a": (a, PRIOR), "b": (b, PRIOR)}, max_evals=107, dlogz=1e-6, seed=1, progress=False)
    assert len(calls_a) + len(calls_b) == found.n_evals == 107
    assert "All 107 calls are spent" in found.message


def test_a_budget_that_is_too_small_costs_no_call():
    a, _, calls = counted(0.3)
    with pytest.raises(basq.InputError, match="first look at all models takes 64 calls"):
        basq.compare({"a": (a, PRIOR), "b": (a, PRIOR)}, max_evals=40)
    assert not calls


@pytest.mark.parametrize("place", ["runs", "runs.sqlite"])
def test_stores_hold_every_model_and_a_comparison_is_taken_up(tmp_path, place):
    a, _, calls_a = counted(0.3)
    b, _, calls_b = counted(0.3, shift=-1.0)
    models, store = {"model a": (a, PRIOR), "b": (b, PRIOR)}, tmp_path / place
    first = basq.compare(models, max_evals=70, store=store, seed=1, progress=False)
    spent = len(calls_a) + len(calls_b)
    assert spent == 70
    second = basq.compare(models, store=store, seed=1, progress=False)
    files = sorted(p.name for p in tmp_path.rglob("*.sqlite"))
    assert files == (["b.sqlite", "model_a.sqlite"] if place == "runs" else ["runs-b.sqlite", "runs-model_a.sqlite"])
    assert second.n_evals == len(calls_a) + len(calls_b) > first.n_evals
    whole = basq.compare({p.stem: p for p in tmp_path.rglob("*.sqlite")}, progress=False)  # needs no likelihood
    assert sorted(r.log_evidence for r in whole.results.values()) == sorted(
        r.log_evidence for r in second.results.values()
    )


def test_same_seed_same_answer_in_worker_processes():
    models = {"a": (gaussian(0.3)[0], PRIOR), "b": (gaussian(0.5)[0], PRIOR)}
    here = basq.compare(models, seed=3, progress=False)
    there = basq.compare(models, seed=3, pool=2, progress=False)
    assert here.probabilities == there.probabilities
    assert here.n_evals == there.n_evals


def test_an_error_that_leaves_the_comparison_keeps_what_was_paid_for(tmp_path):
    def broken(x):
        raise RuntimeError("no licence")

    models = {"a": (gaussian(0.3)[0], PRIOR), "b": (broken, PRIOR)}
    with pytest.raises(basq.EvaluationError, match=r"^b: .*no licence") as caught:
        basq.compare(models, store=tmp_path / "runs", seed=1, progress=False)
    assert len(caught.value.observations["a"]) == 32
    assert any("a.sqlite" in note for note in caught.value.__notes__)
    assert any("`observations`" in note for note in caught.value.__notes__)  # also where there is no store


def test_repr_is_short():
    found = comparison((2.0, 0.1), (0.0, 0.1))
    assert isinstance(found, Comparison)
    assert repr(found) == f"<Comparison of m0, m1: {found.verdict}>"


# --- interrupted, out of time, out of luck ----------------------------------------------------------------------------


class Killed(BaseException):
    """Ends a comparison as abruptly as SIGKILL does."""


@pytest.mark.parametrize("step", [0, 1, 3])
def test_a_comparison_killed_while_it_learns_goes_on_as_if_nothing_had_happened(step, tmp_path, monkeypatch):
    models = {"a": (gaussian(0.3)[0], PRIOR), "b": (gaussian(0.3, shift=-1.0)[0], PRIOR)}
    whole = basq.compare(models, max_evals=104, seed=1, progress=False)
    learn, steps = Sampler.learn, []

    def dying(self, **options):
        steps.append(self)
        if len(steps) > step:
            raise Killed
        return learn(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Sampler, "learn", dying)
        with pytest.raises(Killed):
            basq.compare(models, max_evals=104, seed=1, store=tmp_path / "runs", progress=False)
    again = basq.compare(models, max_evals=104, seed=1, store=tmp_path / "runs", progress=False)
    assert again.rows() == whole.rows()
    assert again.message == whole.message


def interrupting(function, at):
    """A log-likelihood during whose n-th call the user presses Ctrl-C."""
    calls = []

    def log_likelihood(x):
        calls.append(x)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return function(x)

    return log_likelihood, calls


@pytest.mark.parametrize("at", [5, 32, 40])
def test_an_interrupt_keeps_what_was_paid_for(at, capsys):
    a, calls = interrupting(gaussian(0.3)[0], at)
    found = basq.compare({"a": (a, PRIOR), "b": (gaussian(0.5)[0], PRIOR)}, seed=1, progress=False)
    assert len(calls) == found.results["a"].n_evals == at
    assert found.message == f"Interrupted after {found.n_evals} calls."
    assert (found.results["b"].n_evals == 0) == (at <= 32)
    if at <= 32:
        assert not found.decided
        assert found.interval("b") == (0.0, 1.0)
        assert "no call has succeeded yet" in found.results["b"].message


def test_time_that_is_over_before_the_first_look_ends():
    def slow(x):
        time.sleep(0.002)
        return gaussian(0.3)[0](x)

    found = basq.compare({"a": (slow, PRIOR), "b": (slow, PRIOR)}, max_time=0.01, seed=1, progress=False)
    assert found.results["b"].n_evals == 0
    assert "The time is over" in found.message
    assert not found.decided


def test_a_model_without_mass_does_not_starve_the_others():
    (a, log_a), (b, log_b) = gaussian(0.1), gaussian(0.1, shift=-0.5)
    models = {"a": (a, PRIOR), "b": (b, PRIOR), "zero": (lambda x: -np.inf, PRIOR)}
    found = basq.compare(models, max_evals=544, seed=1, progress=False)
    assert found.n_evals == 544
    assert found.results["a"].converged
    assert found.results["b"].converged
    assert found.results["a"].log_evidence == pytest.approx(log_a, abs=0.1)
    assert found.results["b"].log_evidence == pytest.approx(log_b, abs=0.1)
    assert not found.decided


@pytest.mark.parametrize("seed", [1, 2])
def test_a_model_that_is_zero_nearly_everywhere_is_not_given_up_at_the_first_look(seed):
    """The first look sees one or two values of it, thousands of nats below the peak."""

    def walled(x):
        u = np.asarray(x) - 1.0
        return -np.inf if np.abs(u).max() > 1.5 else -0.5 * float(np.sum((u / 0.02) ** 2))

    prior = dict.fromkeys("abcd", (-3.0, 3.0))
    log_z = 4 * np.log(np.sqrt(2 * np.pi) * 0.02 / 6.0)
    b, _ = gaussian(0.5, shift=log_z - 20.0 - gaussian(0.5)[1])
    found = basq.compare({"walled": (walled, prior), "easy": (b, PRIOR)}, seed=seed, progress=False)
    assert found.log_bayes_factor("walled", "easy")[0] == pytest.approx(20.0, abs=0.2)
    assert found.best == "walled"
    assert found.decided


def test_a_model_that_calls_do_not_help_does_not_starve_the_others():
    def rough(x):
        return gaussian(0.3)[0](x) + 1.5 * float(np.sin(500.0 * x[0]) + np.sin(700.0 * x[1]))

    found = basq.compare({"a": (rough, PRIOR), "b": (gaussian(0.3)[0], PRIOR)}, max_evals=240, seed=1, progress=False)
    assert found.n_evals == 240
    assert not found.results["a"].converged
    assert found.results["b"].converged


def test_a_model_that_hardly_ever_works_is_said_to_be_the_reason():
    calls = []

    def fragile(x):
        calls.append(x)
        if len(calls) > 3:
            raise RuntimeError("no licence")
        return gaussian(0.3)[0](x)

    found = basq.compare({"a": (gaussian(0.3)[0], PRIOR), "b": (fragile, PRIOR)}, seed=1, progress=False)
    assert len(calls) == 32
    assert "errors that are left are those of b" in found.message


def test_a_run_that_was_given_may_be_the_reason():
    models = {"old": fake(np.log(2 * np.pi * 0.09 / 36), 1.0), "new": (gaussian(0.3)[0], PRIOR)}
    found = basq.compare(models, seed=1, progress=False)
    assert "errors that are left are those of old" in found.message


def test_a_spent_budget_is_said_to_be_the_reason():
    models = {"old": fake(np.log(2 * np.pi * 0.09 / 36), 0.1), "new": (gaussian(0.01)[0], PRIOR)}
    found = basq.compare(models, max_evals=40, dlogz=1e-6, dprob=1e-6, seed=1, progress=False)
    assert "All 40 calls are spent" in found.message


def test_no_call_beyond_the_budget_while_nothing_has_succeeded(tmp_path):
    working = [False]

    def log_likelihood(x):
        if not working[0]:
            raise RuntimeError("no licence")
        return gaussian(0.3)[0](x)

    models, store = {"a": (gaussian(0.3)[0], PRIOR), "b": (log_likelihood, PRIOR)}, tmp_path / "runs"
    for _ in range(2):  # each gives up after 16 failures: all of the first look
        with pytest.raises(basq.EvaluationError):
            basq.compare(models, max_evals=70, store=store, seed=1, progress=False)
    working[0] = True
    found = basq.compare(models, max_evals=70, store=store, seed=1, progress=False)
    assert sum(r.n_evals + r.n_failed for r in found.results.values()) == 70


def test_many_equal_models_all_get_calls():
    """Each is to blame for a small part of the uncertainty only."""
    standing = Standing(np.zeros(25), np.full(25, 0.1), np.zeros(25))
    gains = standing.gain()
    assert (gains > IDLE * gains.max()).all()
    assert gains.max() < IDLE * np.sum(standing.probability_std**2)


def test_a_comparison_is_taken_up_in_another_order_and_with_more_models(tmp_path):
    a, b = (gaussian(0.3)[0], PRIOR), (gaussian(0.5)[0], PRIOR)
    basq.compare({"a": a, "b": b}, max_evals=64, store=tmp_path / "runs", seed=1, progress=False)
    found = basq.compare({"c": b, "b": b, "a": a}, max_evals=96, store=tmp_path / "runs", seed=1, progress=False)
    assert [r.n_evals for r in found.results.values()] == [32, 32, 32]


def test_a_folder_may_have_a_dot_in_its_name(tmp_path):
    (tmp_path / "runs.2026").mkdir()
    models = {"a/1": (gaussian(0.3)[0], PRIOR), "b": (gaussian(0.5)[0], PRIOR)}
    basq.compare(models, max_evals=64, store=tmp_path / "runs.2026", seed=1, progress=False)
    assert sorted(p.name for p in (tmp_path / "runs.2026").glob("*.sqlite")) == ["a_1.sqlite", "b.sqlite"]


@pytest.mark.parametrize("store", ["file", 3])
def test_a_store_that_cannot_be_made_is_named(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    models = {"a": (gaussian(0.3)[0], PRIOR), "b": (gaussian(0.5)[0], PRIOR)}
    with pytest.raises(basq.StoreError, match="store="):
        basq.compare(models, store=store, progress=False)
    with pytest.raises(basq.InputError, match="too much alike"):
        basq.compare({"a/b": models["a"], "a_b": models["b"]}, store="runs", progress=False)
    assert not (tmp_path / "runs").exists()


# --- evidences that are no numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [(np.nan, np.nan, False), (-np.inf, np.inf, False)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_model_without_an_evidence_is_last_and_leaves_everything_open(nothing, place):
    models = [(5.0, 0.1), (1.0, 0.1)]
    models.insert(place, nothing)
    found = comparison(*models)
    lost = f"m{place}"
    assert found.ranking[-1] == lost
    assert found.results[found.best].log_evidence == 5.0
    assert not found.decided
    assert f"{lost} has not converged" in found.verdict
    assert found.interval(lost) == (0.0, 1.0)
    assert found.interval(found.best)[0] == 0.0
    assert "nan" not in str(found)


def test_no_evidence_at_all():
    found = comparison((np.nan, np.nan, False), (-np.inf, np.inf, False))
    assert not found.decided
    assert "m0 and m1 have not converged" in found.verdict
    assert "nan" not in str(found)
    found.plot().draw_without_rendering()


def test_picture_of_models_with_and_without_an_evidence():
    found = comparison((5.0, 0.1), (1.0, 0.1), (-np.inf, np.inf, False), (np.nan, np.nan, False))
    figure = found.plot()
    figure.draw_without_rendering()
    left, _ = figure.axes
    assert [t.get_text() for t in left.texts].count("unknown") == 2
    assert left.get_xlim()[0] == pytest.approx(-6.6)  # the evidences that there are fill the picture


def test_a_hopeless_rival_does_not_squeeze_the_race():
    figure = comparison((0.0, 0.1), (-3.0, 0.2), (-4567.0, 0.5), (-4.0, 0.5, False)).plot()
    figure.draw_without_rendering()
    left, right = figure.axes
    assert -10.0 < left.get_xlim()[0] < -6.0
    assert any("−4,567 ± 1" in t.get_text() for t in left.texts)
    widths = sorted(float(np.ptp(line.get_segments()[0][:, 0])) for line in left.collections if line.get_segments())
    assert widths == pytest.approx([0.4, 0.8, 6.0])  # three times the error of the one that has not converged
    assert "< 0.001" in [t.get_text().strip() for t in right.texts]


def test_twenty_models_a_hundred_thousand_nats_apart():
    found = comparison(*((-1e5 * i, 0.1) for i in range(20)), odds={f"m{i}": 10.0**i for i in range(20)})
    assert found.probabilities["m0"] == 1.0
    assert sum(found.probabilities.values()) == 1.0
    assert found.verdict == "Very strong evidence for m0 against m1, the next (ln B = 100000.00 ± 0.14)."
    assert len(found.rows()) == 20
    found.plot().draw_without_rendering()


def test_wrong_levels_are_named():
    with pytest.raises(basq.InputError, match="level=95"):
        comparison((0, 0.1), (1, 0.1)).interval("m0", 95)


def test_a_comparison_can_be_pickled():
    models = {"a": (gaussian(0.3)[0], PRIOR), "b": (gaussian(0.5)[0], PRIOR)}
    found = basq.compare(models, max_evals=64, seed=1, progress=False)
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found)


def test_prior_odds_are_shown_and_the_rest_have_one():
    found = comparison((0.0, 0.01), (1.5, 0.01), odds={"m0": 100})
    assert found.prior_odds == {"m0": 100.0, "m1": 1.0}
    text = str(found)
    assert "Positive evidence for m1 against m0" in text
    assert "With the prior odds, m0 has the highest probability, 0.957." in text
    assert "prior odds" in text.splitlines()[-3]
    assert "prior odds" not in str(comparison((0.0, 0.01), (1.5, 0.01)))


def test_the_table_says_what_was_allowed_for():
    text = str(comparison((0.0, 0.1), (1.5, 0.1, False)))
    assert "\nm1 has not converged: the probabilities allow for three times its error.\n" in text
    text = str(comparison((0.0, 0.1), (1.5, 0.1, False), (1.0, 0.1, False), (9.0, 0.1, False)))
    assert "\nm1, m2 and m3 have not converged: the probabilities allow for three times their errors.\n" in text
    text = str(comparison((0.0, 0.1), (1.5, 0.1)))
    assert "\nAll of them have converged.\n" in text
    assert "three times" not in text


def test_the_table_fits_a_terminal_whatever_the_best_model_is_called():
    results = {"with background": fake(6.2, 0.01), "a long name for a model, the best": fake(7.8, 0.01)}
    head, first, second = str(basq.compare(results)).splitlines()[-3:]
    assert head.split() == ["model", "log", "Z", "ln", "B", "probability", "95", "%", "interval", "calls"]
    assert (
        len(head) == len(first) == len(second) <= 80 - len("with background") + len("a long name for a model, the best")
    )


def test_a_hopeless_model_has_a_bound_instead_of_zeros():
    *_, best, hopeless = str(comparison((0.0, 0.01), (-50.0, 0.01))).splitlines()
    assert best.count("> 0.999") == 2
    assert hopeless.count("< 0.001") == 2
    *_, b = str(comparison((0.0, 0.01), (-5.0, 3.0))).splitlines()
    assert "± " in b
    assert " to " in b
