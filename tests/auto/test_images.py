"""Images of the posterior: where twin modes are to be expected."""

import numpy as np
import pytest
from scipy import stats

import basq
from basq.auto.chart import Chart
from basq.auto.exploration import Bulk
from basq.auto.images import images, n_apart, unseen_images
from basq.auto.settings import Settings
from basq.prior import Prior

MIXTURE = {
    "mean1": stats.norm(0, 10),
    "mean2": stats.norm(0, 10),
    "sd1": stats.halfnorm(scale=2),
    "sd2": stats.halfnorm(scale=2),
    "share": stats.beta(5, 5),
}


DATA = np.concatenate([np.linspace(-3, -1, 15), np.linspace(1.5, 2.5, 10)])


def mixture(x):
    parts = x[4] * stats.norm.pdf(DATA, x[0], x[2]) + (1 - x[4]) * stats.norm.pdf(DATA, x[1], x[3])
    return float(np.log(parts + 1e-300).sum())


def test_labels_of_a_mixture_are_exchanged_all_at_once():
    prior = Prior(MIXTURE)
    u = prior.to_standard(np.array([[-2.0, 2.0, 0.6, 0.3, 0.6]]))
    value = mixture(prior.from_standard(u)[0])
    twins = [i for i in images(prior, 30) if mixture(prior.from_standard(i.of(u))[0]) == pytest.approx(value)]
    assert len(twins) == 1
    np.testing.assert_allclose(prior.from_standard(twins[0].of(u))[0], [2.0, -2.0, 0.3, 0.6, 0.4])


def test_images_leave_the_prior_as_it_is_and_can_be_undone():
    u = np.random.default_rng(0).normal(size=(20, 5))
    every = images(Prior(MIXTURE), 100)
    assert len({i.of(u).tobytes() for i in every}) == len(every)
    for image in every:
        np.testing.assert_allclose((image.of(u) ** 2).sum(axis=1), (u**2).sum(axis=1))
        np.testing.assert_allclose(image.origin(image.of(u)), u)


def test_parameters_with_other_priors_are_not_exchanged():
    every = images(Prior({"a": (0, 1), "b": (0, 2), "c": stats.norm(0, 1)}), 100)
    assert all((i.place == np.arange(3)).all() for i in every)
    assert len(every) == 3


def test_there_are_no_images_under_a_prior_that_is_not_separable():
    correlated = Prior(stats.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]))
    assert images(correlated, 10) == ()


def test_an_image_that_was_seen_is_not_asked_for_again():
    rng, settings = np.random.default_rng(0), Settings().exploration
    population = [2.0, 0.0] + 0.1 * rng.normal(size=(400, 2))
    bulk = Bulk.of(Chart.of(population), population, settings)
    every, best = images(Prior({"a": stats.norm(0, 1), "b": stats.norm(0, 2)}), 10), np.array([2.0, 0.0])
    wanted = unseen_images(every, best, population[:5], bulk, [bulk])
    np.testing.assert_allclose(wanted, [[-2.0, 0.0]])  # the other one leaves the posterior where it is
    seen = np.concatenate([population[:5], [[-2.05, 0.03]]])
    assert not len(unseen_images(every, best, seen, bulk, [bulk]))
    twin = Bulk.of(Chart.of(-population), -population, settings)
    assert n_apart(every, [best, -best], [bulk, twin]) == 1


def test_both_labellings_of_a_mixture_are_found():
    def log_likelihood(m):
        parts = stats.norm.pdf(DATA, m[0], 0.7) + stats.norm.pdf(DATA, m[1], 0.7)
        return float(np.log(0.5 * parts + 1e-300).sum())

    prior = {"mean1": stats.norm(0, 10), "mean2": stats.norm(0, 10)}
    result = basq.infer(log_likelihood, prior, max_evals=200, seed=3, progress=False)
    grid = np.linspace(-5.0, 5.0, 401)
    density = stats.norm.pdf(grid, 0, 10)
    values = np.array([[log_likelihood((a, b)) for b in grid] for a in grid])
    mass = np.exp(values - values.max()) * density * density[:, None]
    truth = values.max() + np.log(np.trapezoid(np.trapezoid(mass, grid), grid))
    assert result.converged
    assert result.log_evidence == pytest.approx(truth, abs=4.0 * result.log_evidence_std)
    assert 0.4 < np.mean(result.sample(4000, seed=0)[:, 0] < 0.0) < 0.6
