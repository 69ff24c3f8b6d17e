"""Conditionals of cheap parameters between evaluated points, and the posterior of all parameters together."""

import pickle

import numpy as np
import pytest
from scipy import stats

from basq.cheap.conditionals import Conditionals
from basq.cheap.joint import joint_posterior
from basq.posterior.sampled import SampledPosterior

LEVELS = (np.arange(128) + 0.5) / 128


def location(u):
    return 0.5 * u[:, 0] - 0.3 * u[:, 1] ** 2


def scale(u):
    return 0.2 * np.exp(0.4 * u[:, 1])


def skewed(u):
    """Quantiles of a skewed law whose location and scale vary with u (n, 2): (n, 128, 1)."""
    shape = stats.gamma(4.0).ppf(LEVELS) / 2.0 - 2.0
    return (location(u)[:, None] + scale(u)[:, None] * shape)[:, :, None]


@pytest.fixture(scope="module")
def conditionals():
    rng = np.random.default_rng(0)
    u = 1.5 * rng.normal(size=(120, 2))
    return Conditionals.learn(u, skewed(u), rng.normal(size=(1000, 2)))


def test_location_and_scale_between_the_points(conditionals):
    u = np.random.default_rng(1).normal(size=(200, 2))
    mean, root = conditionals.moments(u)
    np.testing.assert_allclose(mean[:, 0], location(u) + scale(u) * (2.0 - 2.0), atol=0.03)
    np.testing.assert_allclose(root[:, 0, 0], scale(u), rtol=0.06)


def test_draws_have_the_shape_of_the_law(conditionals):
    u = np.tile([[0.3, -0.2]], (4000, 1))
    v = conditionals.sample(u, np.random.default_rng(2))[:, 0]
    truth = stats.gamma(4.0, loc=location(u)[0] - 2.0 * scale(u)[0], scale=0.5 * scale(u)[0])
    assert stats.kstest(v, truth.cdf).statistic < 0.04


def test_density_is_that_of_the_law(conditionals):
    grid = np.linspace(-0.6, 1.2, 400)
    u = np.tile([[0.3, -0.2]], (400, 1))
    density = np.exp(conditionals.log_pdf(grid[:, None], u))
    truth = stats.gamma(4.0, loc=location(u)[0] - 2.0 * scale(u)[0], scale=0.5 * scale(u)[0]).pdf(grid)
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.01)
    assert 0.5 * np.trapezoid(np.abs(density - truth), grid) < 0.05


def gaussian(mean, cov):
    log_density = stats.multivariate_normal(mean, cov).logpdf
    points = np.random.default_rng(5).multivariate_normal(mean, cov, 4000)
    return SampledPosterior.build(log_density, points, np.zeros(4000), np.random.default_rng(0))


def test_joint_of_a_gaussian_is_that_gaussian():
    cov = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, -0.2], [0.3, -0.2, 0.5]])
    rng = np.random.default_rng(3)
    u = 1.5 * rng.normal(size=(60, 1))
    gain, rest = cov[1:, :1] / cov[0, 0], cov[1:, 1:] - cov[1:, :1] @ cov[:1, 1:] / cov[0, 0]
    draws = (u @ gain.T)[:, None] + rng.multivariate_normal(np.zeros(2), rest, (60, 256))
    joint = joint_posterior(gaussian([0.0], cov[:1, :1]), u, draws, seed=1)
    mean, found = joint.moments()
    np.testing.assert_allclose(mean, 0.0, atol=0.06)
    np.testing.assert_allclose(found, cov, atol=0.08)
    x = rng.multivariate_normal(np.zeros(3), cov, 200)
    truth = stats.multivariate_normal(np.zeros(3), cov).logpdf(x)
    assert np.median(np.abs(joint.log_pdf(x) - truth)) < 0.15
    assert joint.marginal([2]).cdf([0.0])[0] == pytest.approx(0.5, abs=0.03)
    given = joint.conditional([0], [1.0])
    np.testing.assert_allclose(given.moments()[0], gain[:, 0], atol=0.1)
    again = pickle.loads(pickle.dumps(joint))
    np.testing.assert_array_equal(again.sample(5, np.random.default_rng(0)), joint.sample(5, np.random.default_rng(0)))


def test_cheap_parameters_may_stand_anywhere():
    rng = np.random.default_rng(4)
    u = rng.normal(size=(40, 2))
    draws = 5.0 + np.tile(stats.norm.ppf(LEVELS)[:, None], (40, 1, 1))
    joint = joint_posterior(gaussian([0.0, 1.0], np.eye(2)), u, draws, seed=0, dims=np.array([0, 2]))
    np.testing.assert_allclose(joint.moments()[0], [0.0, 5.0, 1.0], atol=0.06)
