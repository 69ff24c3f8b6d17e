"""What a certificate finds, and how it says so."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

from basq.certificate import pareto
from basq.certificate.certificate import FEWEST
from basq.status import Finding
from helpers.surrogates import LOG_Z, MEAN, SD, believed, cheap_designs, drawn, judged, log_likelihood

N = 64
NUMBER = r"-?\d+\.\d+ ± \d+\.\d+"


@pytest.fixture(scope="module")
def plan():
    return drawn(N, np.random.default_rng(1))


@pytest.fixture(scope="module")
def right(plan):
    return judged(plan)


# --- findings ---------------------------------------------------------------------------------------------------------


def test_a_right_surrogate_is_certified(right):
    assert right.finding is Finding.CERTIFIED
    assert right.certified
    assert abs(right.log_evidence - LOG_Z) < 4.0 * right.log_evidence_std < 0.2
    assert right.k_hat <= pareto.LARGEST
    assert abs(right.z) < 2.0
    assert (right.n_evals, right.n_failed, len(right.surprises)) == (N, 0, 0)
    assert right.total_variation < 0.01
    assert N / 4 < right.effective <= N
    assert re.search(rf"^Certified: {N} independent calls give log Z = {NUMBER} ", right.message)
    assert f"{abs(right.z):.1f} sd from the surrogate's" in right.message


def test_right_surrogates_are_certified_nearly_always():
    rng = np.random.default_rng(2)
    with cheap_designs():
        found = [judged(drawn(N, rng), sd=0.02).finding for _ in range(100)]
    assert found.count(Finding.CERTIFIED) >= 93
    assert found.count(Finding.CONTRADICTED) <= 3


@pytest.mark.parametrize("off", [-0.5, 0.2, 0.5])
def test_a_wrong_evidence_is_contradicted_by_its_distance(off):
    found = judged(drawn(N, np.random.default_rng(3), off=off), off=off)
    assert found.finding is Finding.CONTRADICTED
    assert not found.certified
    assert found.z * off < 0.0
    assert abs(found.z) > 3.0
    assert abs(found.log_evidence - LOG_Z) < 4.0 * found.log_evidence_std
    assert found.message.startswith("Contradicted: ")
    assert f"{abs(found.z):.1f} sd from the surrogate's" in found.message


def test_an_error_of_the_surrogate_that_is_declared_is_no_contradiction():
    found = judged(drawn(N, np.random.default_rng(3), off=0.1), off=0.1, sd=0.1)
    assert found.finding is Finding.CERTIFIED


def test_a_surprise_contradicts_and_is_said_where(plan):
    """Half of the posterior on one side lies ten nats above its prediction; log Z would not tell, unsure as it is."""
    beyond = (plan.u[:, 0] > MEAN[0] + 0.5 * SD[0]) & (believed().log_pdf(plan.u) > -3.0)
    found = judged(plan, log_likelihood(plan.u) + 10.0 * beyond, sd=20.0, target=10.0)
    assert found.finding is Finding.CONTRADICTED
    assert set(found.surprises) <= set(np.flatnonzero(beyond))
    assert "too low at (" in found.message
    where = [float(value) for value in re.search(r"at \((.*?)\)", found.message).group(1).split(",")]
    assert np.abs(plan.u[found.surprises] - where).sum(axis=1).min() < 1e-2
    assert np.nanmax(found.residuals) == pytest.approx(10.0)


@pytest.mark.parametrize("wrong", [{"shift": 1.5}, {"width": 0.4}, {"width": 3.0}])
def test_a_wrong_posterior_is_never_certified(wrong):
    """However good its log Z is."""
    rng = np.random.default_rng(4)
    with cheap_designs():
        for _ in range(50):
            plan = drawn(N, rng, believed(**wrong))
            assert not judged(plan).certified
            assert not judged(plan, target=10.0, sd=10.0).certified


@pytest.mark.parametrize("n", [0, 1, 2, 8, FEWEST - 1])
def test_few_calls_decide_nothing(plan, n):
    found = judged(plan.at(np.arange(n)))
    assert found.finding is Finding.UNDECIDED
    assert f"{n} calls are too few" in found.message
    assert str(FEWEST) in found.message
    assert not found.good_to(1e9)
    assert len(found.weights) == n


def test_calls_without_a_value_yet_decide_nothing(plan):
    found = judged(plan.at(np.arange(60)), n_pending=4)
    assert found.finding is Finding.UNDECIDED
    assert re.search(r"^Not decided: 4 of \d+ calls have no value yet", found.message)
    assert np.isfinite(found.log_evidence)


def test_a_few_calls_that_outweigh_all_others_decide_nothing(plan):
    values = log_likelihood(plan.u)
    values[np.argsort(plan.log_drawn)[:3]] = values.max() + 3.0  # where hardly anything was drawn
    found = judged(plan, values, target=10.0)
    assert found.k_hat > pareto.LARGEST
    assert found.finding is not Finding.CERTIFIED
    assert not found.good_to(10.0)
    assert "k̂" in found.message


def test_weights_of_a_heavy_tail_are_said_to_be_so(plan):
    """Though none of them is against the surrogate: it had expected them."""
    heavy = replace(plan, log_drawn=plan.log_drawn - np.where(np.arange(N) < 3, 6.0, 0.0))
    found = judged(heavy, target=10.0)
    assert found.finding is Finding.UNDECIDED
    assert found.k_hat > pareto.LARGEST
    assert "outweigh all others" in found.message


def test_an_error_above_the_target_decides_nothing(plan, right):
    target = 0.5 * right.log_evidence_std
    found = judged(plan, target=target)
    assert found.finding is Finding.UNDECIDED
    assert re.search(rf"^Not decided: {N} independent calls give log Z = {NUMBER}", found.message)
    assert f"{target:g}" in found.message
    assert found.good_to(2.5 * target)
    assert not found.good_to(target)


def test_a_run_that_failed_its_own_tests_is_not_certified(plan):
    found = judged(plan, sound=False)
    assert found.finding is Finding.UNDECIDED
    assert "has not passed its own tests" in found.message


def test_but_it_can_be_contradicted(plan):
    assert judged(plan, off=0.5, sound=False).finding is Finding.CONTRADICTED


def test_a_doubt_goes_before_everything(plan):
    found = judged(plan, doubt="log_likelihood is 3 where it was 4")
    assert found.finding is Finding.UNDECIDED
    assert found.message == "Not decided: log_likelihood is 3 where it was 4."


# --- weights ----------------------------------------------------------------------------------------------------------


def test_weights_and_residuals_are_those_of_the_calls(plan, right):
    np.testing.assert_allclose(right.log_weights, log_likelihood(plan.u) + plan.log_prior - plan.log_drawn)
    assert right.weights.sum() == pytest.approx(1.0)
    some = np.isfinite(plan.log_expected)
    np.testing.assert_allclose(right.residuals[some], 0.0, atol=1e-9)
    assert (np.abs(right.weights @ plan.u - MEAN) < 0.6 * SD).all()
    assert right.effective == pytest.approx(1.0 / np.sum(right.weights**2))


def test_calls_of_zero_likelihood_have_no_weight(plan):
    values = np.where(plan.u[:, 0] > MEAN[0], -np.inf, log_likelihood(plan.u))
    found = judged(plan, values)
    assert found.n_failed == 0
    assert (found.weights[plan.u[:, 0] > MEAN[0]] == 0.0).all()
    assert found.finding is not Finding.CERTIFIED
    assert found.log_evidence == pytest.approx(LOG_Z - np.log(2.0), abs=4.0 * found.log_evidence_std)


def test_no_likelihood_anywhere_is_no_error(plan):
    found = judged(plan, np.full(N, -np.inf))
    assert not found.weights.any()
    assert found.effective == 0.0
    assert found.k_hat == np.inf


def test_nor_is_it_where_it_is_judged(plan):
    found = judged(plan, np.full(N, -np.inf))
    assert found.finding is not Finding.CERTIFIED
    assert "nan" not in found.message


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_surrogate_in_the_wrong_place_leaves_a_number_all_the_same():
    """Where it has more than all calls together."""
    rng = np.random.default_rng(7)
    with cheap_designs():
        found = [judged(drawn(N, rng, believed(shift=2.0), 3.0), off=3.0, target=10.0) for _ in range(50)]
    assert not any(each.certified for each in found)
    assert all(np.isfinite([each.log_evidence, each.log_evidence_std, each.z]).all() for each in found)


# --- failed calls -----------------------------------------------------------------------------------------------------


def test_failed_calls_make_the_error_larger_and_no_bias(plan, right):
    values = log_likelihood(plan.u)
    values[:6] = np.nan
    found = judged(plan, values, target=1.0)
    assert (found.n_evals, found.n_failed) == (N - 6, 6)
    assert found.log_evidence_std > 2.0 * right.log_evidence_std
    assert abs(found.log_evidence - LOG_Z) < 2.0 * found.log_evidence_std
    assert not found.weights[:6].any()
    assert f"{N - 6} independent calls" in found.message
    assert np.isfinite(found.total_variation)


def test_failures_where_nothing_was_expected_cost_nothing(plan, right):
    unimportant = ~(plan.log_expected > -50.0)
    assert unimportant.any()
    found = judged(plan, np.where(unimportant, np.nan, log_likelihood(plan.u)))
    assert found.finding is Finding.CERTIFIED
    assert found.log_evidence_std == pytest.approx(right.log_evidence_std, rel=0.5)


def test_where_the_posterior_fails_nothing_is_certified(plan):
    inside = believed().log_pdf(plan.u) > -3.0
    found = judged(plan, np.where(inside, np.nan, log_likelihood(plan.u)))
    assert found.finding is Finding.UNDECIDED
    assert found.log_evidence_std > 0.1


def test_when_all_have_failed_nothing_is_said(plan):
    found = judged(plan, np.full(N, np.nan))
    assert (found.finding, found.n_evals, found.n_failed) == (Finding.UNDECIDED, 0, N)
    assert "too few" in found.message
    assert not found.weights.any()


# --- noise ------------------------------------------------------------------------------------------------------------


def test_noise_that_is_stated_makes_no_bias():
    """A noisy log-likelihood is too large, in the mean of its exponential, by half of its variance."""
    rng, noise, found, naive = np.random.default_rng(5), 0.8, [], []
    with cheap_designs():
        for _ in range(300):
            plan = drawn(N, rng)
            values = log_likelihood(plan.u) + noise * rng.standard_normal(N)
            found.append(np.exp(judged(plan, values, noise=noise).log_evidence - LOG_Z))
            naive.append(np.exp(judged(plan, values).log_evidence - LOG_Z))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - 1.0) < 4.0 * error
    assert np.mean(naive) == pytest.approx(np.exp(0.5 * noise**2), abs=6.0 * error)


def test_noise_is_part_of_the_error(plan, right):
    rng = np.random.default_rng(6)
    noisy = judged(plan, log_likelihood(plan.u) + 0.3 * rng.standard_normal(N), noise=0.3)
    assert noisy.log_evidence_std > 2.0 * right.log_evidence_std
    assert noisy.finding is Finding.CERTIFIED


def test_noise_of_no_value_is_none(plan, right):
    """A failed call, say."""
    found = judged(plan, noise=np.full(N, np.nan))
    assert found.log_evidence == right.log_evidence


# --- the rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"off": 0.5}, {"target": 1e-6}, {"n_pending": 3}, {"sound": False}, {"doubt": "it has changed"}]
)
def test_every_message_is_a_sentence(plan, options):
    found = judged(plan, **options)
    assert found.message == f"{found.finding.value.capitalize()}: {found.why}."
    assert found.message.startswith(("Certified: ", "Contradicted: ", "Not decided: "))
    assert "nan" not in found.message
    assert ".." not in found.message
    assert "\n" not in found.message


def test_it_can_be_pickled(right):
    copy = pickle.loads(pickle.dumps(right))
    assert copy.message == right.message
    assert (copy.log_evidence, copy.log_evidence_std, copy.k_hat) == (
        right.log_evidence, right.log_evidence_std, right.k_hat,
    )  # fmt: skip
    np.testing.assert_array_equal(copy.weights, right.weights)
