"""The default engine, end to end."""

import pickle
import re

import numpy as np
import pytest

import basq
from basq import problems
from basq.auto import Auto, Settings


def run(problem, **options):
    settings = {"seed": 0, "progress": False, "vectorized": True} | options
    return basq.infer(problem.log_likelihood, problem.prior, **settings)


@pytest.mark.parametrize(
    "problem",
    [problems.gauss(2, 1), problems.gauss(6, 0), problems.rosen(2), problems.student(4), problems.mixture(4, 0)],
    ids=lambda p: p.name,
)
def test_evidence_within_its_error(problem):
    result = run(problem)
    error = result.log_evidence - problem.log_evidence
    assert abs(error) < 0.1
    assert abs(error) < 4 * result.log_evidence_std
    assert result.converged
    assert result.log_evidence_std <= 0.1
    assert result.n_evals <= 50 * (problem.n_dim + 2)
    assert len(result.audits) == result.n_batches - 1
    assert result.audits[-1].n_evals < result.n_evals


@pytest.mark.parametrize("batch_size", [1, 8, 100])
def test_batch_sizes(batch_size):
    problem = problems.rosen(2)
    result = run(problem, batch_size=batch_size, max_evals=100 if batch_size > 1 else 60)
    assert abs(result.log_evidence - problem.log_evidence) < 0.5
    assert result.n_evals <= 100


def test_posterior_of_a_correlated_gaussian():
    problem = problems.gauss(3, 2)
    result = run(problem)
    sd = np.sqrt(np.diag(problem.posterior_cov))
    np.testing.assert_allclose(result.mean, problem.posterior_mean, atol=0.2 * sd.max())
    assert np.all(np.abs(result.mean - problem.posterior_mean) < 0.15 * sd)
    np.testing.assert_allclose(np.sqrt(np.diag(result.cov)), sd, rtol=0.15)
    draws = result.sample(2000, seed=1)
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.15)


def test_same_seed_same_run():
    problem = problems.rosen(2)
    a, b = run(problem, max_evals=64), run(problem, max_evals=64)
    np.testing.assert_array_equal(a.observations.x, b.observations.x)
    assert a.log_evidence == b.log_evidence


def test_a_constant_shifts_the_evidence():
    problem = problems.gauss(2, 0)
    plain = run(problem, max_evals=64)
    shifted = basq.infer(
        lambda x: problem.log_likelihood(x) + 2.0**17,
        problem.prior,
        seed=0,
        progress=False,
        vectorized=True,
        max_evals=64,
    )
    assert shifted.log_evidence - 2.0**17 == pytest.approx(plain.log_evidence, abs=0.05)


def test_a_needle_that_was_not_found_lies_within_the_interval():
    """A wave of unknown period: far from the period, a flat signal with more noise explains the data as well."""
    problem = problems.zoo.MODELS["sinusoid"](0)
    result = run(problem, max_evals=150)
    low, high = result.log_evidence_interval
    assert not result.converged
    assert low < problem.log_evidence < high == np.inf
    assert str(result).startswith("log Z not known yet: above ")


def test_one_parameter():
    result = basq.infer(lambda x: -0.5 * ((x[0] - 0.3) / 0.01) ** 2, {"a": (0, 1)}, seed=0, progress=False)
    assert result.log_evidence == pytest.approx(np.log(0.01 * np.sqrt(2 * np.pi)), abs=0.05)
    assert result.marginal("a").ppf([0.5])[0] == pytest.approx(0.3, abs=0.002)


def test_excluded_half():
    def log_likelihood(x):
        return -0.5 * (x**2).sum() if x[0] > 0 else -np.inf

    result = basq.infer(log_likelihood, {"a": (-5, 5), "b": (-5, 5)}, seed=0, progress=False)
    truth = np.log(0.5 * 2 * np.pi / 100)
    assert abs(result.log_evidence - truth) < max(0.3, 4 * result.log_evidence_std)
    assert np.mean(result.sample(1000, seed=0)[:, 0] > 0.0) > 0.85


def test_all_zero_is_said_so():
    result = basq.infer(lambda x: -np.inf, {"a": (0, 1), "b": (0, 1)}, seed=0, progress=False, max_evals=48)
    assert result.log_evidence == -np.inf
    assert not result.converged
    assert "zero" in result.message


def test_constant_likelihood():
    result = basq.infer(lambda x: 3.0, {"a": (0, 1), "b": (0, 1)}, seed=0, progress=False)
    assert result.log_evidence == pytest.approx(3.0, abs=0.02)


def test_noisy_likelihood():
    problem = problems.gauss(2, 3)
    rng = np.random.default_rng(0)

    def noisy(x):
        return problem.log_likelihood(x) + 0.5 * rng.standard_normal(), 0.5

    result = basq.infer(noisy, problem.prior, seed=0, progress=False, max_evals=150)
    assert abs(result.log_evidence - problem.log_evidence) < 4 * result.log_evidence_std + 0.1
    np.testing.assert_array_equal(result.observations.noise, 0.5)


def test_not_converged_is_said_with_reasons():
    result = run(problems.rosen(4), max_evals=48)
    assert not result.converged
    assert "max_evals = 48" in result.message
    assert len(result.message) > 60


def test_a_target_that_calls_cannot_reach_is_said_so():
    problem = problems.gauss(2)
    sharp = run(problem, dlogz=0.005, max_evals=120)
    said = r"above dlogz = 0.005 \(more calls do not lower (0\.\d+) of it: give dlogz = (0\.\d+) or more\)"
    words = re.search(said, sharp.message)
    least, sensible = map(float, words.groups())
    assert 0.005 < least <= sharp.log_evidence_std
    assert sensible > least
    assert run(problem, dlogz=sensible, max_evals=200).converged
    assert "do not lower" not in run(problem, dlogz=0.0, max_evals=80).message


def test_result_can_be_pickled():
    result = run(problems.rosen(2), max_evals=48)
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(result.sample(10, seed=0), again.sample(10, seed=0))
    np.testing.assert_allclose(result.log_pdf([[1.0, 1.0]]), again.log_pdf([[1.0, 1.0]]))


def test_density_prior():
    rng = np.random.default_rng(0)
    prior = basq.Prior.from_density(lambda x: -0.5 * (x @ x) - np.log(2 * np.pi), rng.standard_normal((1000, 2)))
    result = basq.infer(lambda x: -0.5 * ((x - 0.5) ** 2).sum() / 0.04, prior, seed=0, progress=False)
    truth = np.log(0.04 / 1.04) - 0.5 * 0.5 / 1.04
    assert result.log_evidence == pytest.approx(truth, abs=0.06)


def test_auto_is_the_default():
    problem = problems.rosen(2)
    assert run(problem, max_evals=48).log_evidence == run(problem, max_evals=48, method=Auto()).log_evidence


def test_auto_prints_its_settings_and_takes_others():
    assert repr(Auto()) == "Auto()"
    assert "tail                     0.3" in str(Auto())
    other = Auto(Settings().changed({"batch.tail": 0.0}))
    assert repr(other) == "Auto(Settings().changed({'batch.tail': 0.0}))"
    assert eval(repr(other)) == other
    problem = problems.rosen(2)
    plain, without = run(problem, max_evals=64), run(problem, max_evals=64, method=other)
    assert not np.array_equal(plain.observations.x, without.observations.x)
    with pytest.raises(basq.InputError, match=r"Auto\(0.1\): give basq.auto.Settings\(\), or nothing"):
        Auto(0.1)


def test_a_fit_says_where_its_time_went():
    states = []
    run(problems.rosen(2), max_evals=48, callback=states.append)
    assert set(states[-1].fitted.seconds) == {"fit", "integrate", "search"}
    assert all(seconds > 0.0 for seconds in states[-1].fitted.seconds.values())
