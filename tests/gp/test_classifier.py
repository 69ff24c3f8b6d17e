"""The classifier of zero likelihood."""

import numpy as np
import pytest
from scipy import stats

from basq.gp.classifier import ClassifierSettings, Feasibility, kernel


def walled(n, d=2, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, d))
    return x, x[:, 0] + 0.5 * x[:, 1] < 0.3


@pytest.mark.parametrize("theta", [np.log(ClassifierSettings().first), np.log([1.0, 0.1, 10.0, 1.0])])
def test_against_many_draws_of_the_process(theta):
    x, new = np.random.default_rng(0).normal(size=(4, 2)), np.random.default_rng(1).normal(size=(3, 2))
    finite = np.array([True, True, False, True])
    found = Feasibility.at(x, finite, theta)
    everywhere = np.concatenate([x, new])
    root = np.linalg.cholesky(kernel(theta, 2)(everywhere, everywhere) + 1e-10 * np.eye(7))
    latent = np.random.default_rng(2).standard_normal((200_000, 7)) @ root.T
    weights = stats.norm.cdf(np.where(finite, 1.0, -1.0) * latent[:, :4]).prod(axis=1)
    assert found.log_evidence == pytest.approx(np.log(weights.mean()), abs=0.05)
    expected = weights @ stats.norm.cdf(latent[:, 4:]) / weights.sum()
    np.testing.assert_allclose(np.exp(found.log_probability(new)), expected, atol=0.04)  # it is an approximation


def test_a_point_amid_many_of_its_own_label_is_not_doubted():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(100, 2)), 75.0 + rng.normal(size=(10, 2))])
    p = np.exp(Feasibility.learn(x, np.arange(110) < 100).log_probability(x[:100]))
    assert p.min() > 0.99


@pytest.mark.parametrize("d", [2, 5])
def test_a_straight_wall_is_found_and_its_uncertainty_is_real(d):
    x, finite = walled(150, d)
    found = Feasibility.learn(x, finite)
    new, truth = walled(4000, d, seed=1)
    p = np.exp(found.log_probability(new))
    assert p.mean() == pytest.approx(truth.mean(), abs=0.05)
    assert np.mean((p > 0.5) == truth) > 0.93
    claimed, found = np.mean(p * (1.0 - p)), np.mean((p - truth) ** 2)
    assert found - 0.01 < claimed < found + 0.05


def test_a_disc():
    x = np.random.default_rng(0).normal(size=(120, 2))
    found = Feasibility.learn(x, (x**2).sum(axis=1) < 1.0)
    angle = np.linspace(0.0, 2.0 * np.pi, 50)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert np.exp(found.log_probability(0.6 * circle)).min() > 0.8
    assert np.exp(found.log_probability(1.5 * circle)).max() < 0.2


def test_the_search_goes_on_where_the_last_one_ended():
    x, finite = walled(60)
    first = Feasibility.learn(x, finite)
    again = Feasibility.learn(x, finite, first)
    assert again.log_evidence >= first.log_evidence - 0.01


def test_one_zero_only():
    x, _ = walled(20)
    finite = np.arange(20) > 0
    p = np.exp(Feasibility.learn(x, finite).log_probability(x))
    assert np.isfinite(p).all()
    assert p[0] < p[1:].mean()


@pytest.mark.parametrize("size", [1e3, 1e5, 1e8])
def test_points_far_away_leave_digits_for_those_near_by(size):
    """A posterior that is so much narrower than its prior: the design lies as far away."""
    rng = np.random.default_rng(0)
    x = np.concatenate([size * rng.normal(size=(25, 2)), 2.0 * rng.normal(size=(40, 2))])
    found = Feasibility.learn(x, x[:, 0] < 0.5)
    p = np.exp(found.log_probability(np.array([[-1.0, 0.0], [2.0, 0.0], [-size, 0.0], [size, 0.0]])))
    assert (p[[0, 2]] > 0.9).all()
    assert (p[[1, 3]] < 0.1).all()


def test_every_hyperparameter_has_its_turn():
    x, finite = walled(48)
    found, turns = None, []
    for _ in range(5):
        found = Feasibility.learn(x, finite, found)
        turns.append(found.turn)
    assert turns == [0, 1, 2, 3, 0]
