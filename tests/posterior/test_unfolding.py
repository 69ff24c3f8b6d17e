"""A posterior of two equal parts, of which one is known."""

import pickle

import numpy as np
import pytest
from scipy import stats

from basq.numerics.fold import Fold, SignedPermutation, group
from basq.posterior.folded import FoldedPosterior, lifted
from basq.posterior.sampled import SampledPosterior

MEAN = np.array([1.5, -0.5])
LAW = stats.multivariate_normal(MEAN, 0.04 * np.eye(2))
FOLD = Fold(group([SignedPermutation(np.array([1, 0]), np.ones(2))]), MEAN)


def log_density(u):
    return np.atleast_1d(LAW.logpdf(u))


@pytest.fixture(scope="module")
def posterior():
    points = LAW.rvs(4000, random_state=0)
    inner = SampledPosterior.build(log_density, points, np.zeros(4000), np.random.default_rng(0), n_moves=0)
    return FoldedPosterior.of(inner, FOLD)


def test_both_parts_have_half(posterior):
    for u in (posterior.sample(3000, np.random.default_rng(1)), posterior.population):
        assert np.mean(u[:, 0] > u[:, 1]) == pytest.approx(0.5, abs=0.03)
        np.testing.assert_allclose(np.sort(u, axis=1).mean(axis=0), np.sort(MEAN), atol=0.02)
    np.testing.assert_allclose(posterior.moments()[0], [0.5, 0.5], atol=0.05)


def test_density(posterior):
    u = np.array([[1.4, -0.4], [-0.4, 1.4]])
    np.testing.assert_allclose(posterior.pdf(u), 0.5 * LAW.pdf(u[0]))
    marginal = posterior.marginal([0])
    assert marginal.pdf([1.5, -0.5]) == pytest.approx(0.5 * stats.norm.pdf(0, 0, 0.2), rel=0.15)
    conditional = posterior.conditional([1], [1.5])
    assert conditional.moments()[0] == pytest.approx([-0.5], abs=0.02)


def test_it_can_be_pickled(posterior):
    again = pickle.loads(pickle.dumps(posterior))
    np.testing.assert_array_equal(again.pdf(MEAN), posterior.pdf(MEAN))


def test_a_fold_of_some_coordinates_leaves_the_others():
    fold = lifted(FOLD, 4, np.array([1, 3]))
    u = np.array([[9.0, -0.5, 8.0, 1.5]])
    np.testing.assert_array_equal(fold.of(u), [[9.0, 1.5, 8.0, -0.5]])
