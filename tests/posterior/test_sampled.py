"""Densities on grids and from samples, against a Gaussian."""

import pickle

import numpy as np
import pytest
from scipy import stats

from basq.errors import InputError
from basq.posterior.sampled import GridDensity, KernelDensity, SampledPosterior, smooth_1d

MEAN = np.array([0.3, -0.2, 0.5])
COV = np.array([[0.5, 0.2, 0.0], [0.2, 0.4, -0.1], [0.0, -0.1, 0.3]])
LAW = stats.multivariate_normal(MEAN, COV)
PRIOR = stats.multivariate_normal(np.zeros(3), np.eye(3))


def log_density(x):
    return np.atleast_1d(LAW.logpdf(x))


@pytest.fixture(scope="module")
def posterior():
    points = np.random.default_rng(0).standard_normal((8192, 3))
    return SampledPosterior.build(
        log_density, points, log_density(points) - PRIOR.logpdf(points), np.random.default_rng(1)
    )


@pytest.fixture(scope="module")
def line():
    grid = np.linspace(-8.0, 8.0, 2001)
    return GridDensity.from_log(grid, 3.0 + stats.norm(0.4, 0.7).logpdf(grid))


def test_grid_density_is_the_density(line):
    law = stats.norm(0.4, 0.7)
    t = np.linspace(-2.0, 3.0, 37)
    np.testing.assert_allclose(line.pdf(t), law.pdf(t), atol=1e-5)
    np.testing.assert_allclose(line.log_pdf(t[:, None]), law.logpdf(t), atol=1e-3)
    np.testing.assert_allclose(line.cdf(t), law.cdf(t), atol=1e-5)
    q = np.linspace(0.001, 0.999, 51)
    np.testing.assert_allclose(line.ppf(q), law.ppf(q), atol=1e-4)
    np.testing.assert_allclose(line.cdf(line.ppf(q)), q, atol=1e-10)
    mean, cov = line.moments()
    np.testing.assert_allclose(mean, [0.4], atol=1e-8)
    np.testing.assert_allclose(cov, [[0.49]], atol=1e-8)
    assert line.n_dim == 1


def test_grid_density_ends_with_its_grid(line):
    np.testing.assert_array_equal(line.pdf([-9.0, 9.0]), 0.0)
    np.testing.assert_array_equal(line.log_pdf([-9.0, 9.0]), -np.inf)
    np.testing.assert_array_equal(line.cdf([-9.0, 9.0]), [0.0, 1.0])


def test_grid_density_samples_itself(line):
    samples = line.sample(4000, np.random.default_rng(2))
    assert samples.shape == (4000, 1)
    assert stats.kstest(samples[:, 0], stats.norm(0.4, 0.7).cdf).pvalue > 1e-3


@pytest.mark.parametrize("levels", [[-0.1], [0.5, 1.2], [np.nan]])
def test_grid_density_refuses_levels_outside_the_unit_interval(line, levels):
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        line.ppf(levels)


def test_smoothed_samples_are_close_to_their_law():
    law = stats.norm(1.0, 2.0)
    density = smooth_1d(law.rvs(4000, random_state=3))
    t = np.linspace(-4.0, 6.0, 21)
    np.testing.assert_allclose(density.pdf(t), law.pdf(t), atol=0.02)
    np.testing.assert_allclose(density.cdf(t), law.cdf(t), atol=0.03)
    assert np.trapezoid(density.values, density.grid) == pytest.approx(1.0)


def test_kernel_density_is_close_to_its_law():
    law = stats.multivariate_normal(MEAN[:2], COV[:2, :2])
    points = law.rvs(4000, random_state=4)
    density = KernelDensity(points)
    assert density.n_dim == 2
    x = points[:50]
    np.testing.assert_allclose(density.pdf(x), law.pdf(x), atol=0.06)
    np.testing.assert_allclose(np.exp(density.log_pdf(x)), density.pdf(x), rtol=1e-10)
    assert density.pdf(x[0]).shape == (1,)
    mean, cov = density.moments()
    np.testing.assert_allclose(mean, MEAN[:2], atol=0.05)
    np.testing.assert_allclose(cov, COV[:2, :2], atol=0.05)
    rows = {tuple(row) for row in points}
    assert all(tuple(row) in rows for row in density.sample(100, np.random.default_rng(5)))
    assert density.sample(5000, np.random.default_rng(5)).shape == (5000, 2)
    for method in (density.cdf, density.ppf):
        with pytest.raises(InputError, match="2; take a marginal"):
            method([0.5])


def test_posterior_density_and_moments(posterior):
    x = LAW.rvs(20, random_state=6)
    np.testing.assert_allclose(posterior.log_pdf(x), LAW.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(posterior.pdf(x), LAW.pdf(x), rtol=1e-12)
    assert posterior.n_dim == 3
    mean, cov = posterior.moments()
    np.testing.assert_allclose(mean, MEAN, atol=0.03)
    np.testing.assert_allclose(cov, COV, atol=0.03)
    assert np.exp(posterior.log_weights).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [3000, 6000])
def test_posterior_samples(posterior, n):
    samples = posterior.sample(n, np.random.default_rng(7))
    assert samples.shape == (n, 3)
    np.testing.assert_allclose(samples.mean(axis=0), MEAN, atol=0.06)
    np.testing.assert_allclose(np.cov(samples.T), COV, atol=0.06)


@pytest.mark.parametrize("i", range(3))
def test_posterior_marginals_of_one_coordinate(posterior, i):
    law, density = stats.norm(MEAN[i], np.sqrt(COV[i, i])), posterior.marginal([i])
    t = law.ppf(np.linspace(0.02, 0.98, 17))
    np.testing.assert_allclose(density.cdf(t), law.cdf(t), atol=0.03)
    np.testing.assert_allclose(density.pdf(t), law.pdf(t), atol=0.06)
    np.testing.assert_allclose(density.cdf(density.ppf([0.1, 0.5, 0.9])), [0.1, 0.5, 0.9], atol=1e-9)


def test_posterior_marginal_of_two_coordinates_keeps_their_order(posterior):
    density = posterior.marginal([2, 0])
    law = stats.multivariate_normal(MEAN[[2, 0]], COV[np.ix_([2, 0], [2, 0])])
    x = law.rvs(20, random_state=8)
    np.testing.assert_allclose(density.pdf(x), law.pdf(x), atol=0.06)


def conditional_law(fixed, value):
    free = [i for i in range(3) if i not in fixed]
    gain = COV[np.ix_(free, fixed)] @ np.linalg.inv(COV[np.ix_(fixed, fixed)])
    return MEAN[free] + gain @ (value - MEAN[fixed]), COV[np.ix_(free, free)] - gain @ COV[np.ix_(fixed, free)]


def test_conditional_of_one_coordinate_is_exact(posterior):
    value = np.array([0.6, 0.1])
    mean, cov = conditional_law([2, 0], value)
    density = posterior.conditional([2, 0], value)
    law = stats.norm(mean[0], np.sqrt(cov[0, 0]))
    t = law.ppf(np.linspace(0.01, 0.99, 21))
    np.testing.assert_allclose(density.pdf(t), law.pdf(t), rtol=1e-3)
    np.testing.assert_allclose(density.cdf(t), law.cdf(t), atol=1e-4)
    np.testing.assert_allclose(density.moments()[0], mean, atol=1e-5)
    np.testing.assert_allclose(density.moments()[1], cov, rtol=1e-4)


def test_conditional_of_two_coordinates(posterior):
    mean, cov = conditional_law([1], np.array([0.3]))
    density = posterior.conditional([1], [0.3])
    assert density.n_dim == 2
    samples = density.sample(3000, np.random.default_rng(9))
    np.testing.assert_allclose(samples.mean(axis=0), mean, atol=0.06)
    np.testing.assert_allclose(np.cov(samples.T), cov, atol=0.06)
    law = stats.multivariate_normal(mean, cov)
    x = law.rvs(30, random_state=1)
    np.testing.assert_allclose(density.log_pdf(x), law.logpdf(x), atol=0.05)


def test_affine_image(posterior):
    a, b = np.array([[2.0, 0.0, 0.0], [0.5, 3.0, 0.0], [0.0, 1.0, -0.5]]), np.array([1.0, -1.0, 4.0])
    moved = posterior.affine(a, b)
    law = stats.multivariate_normal(a @ MEAN + b, a @ COV @ a.T)
    x = law.rvs(20, random_state=2)
    np.testing.assert_allclose(moved.log_pdf(x), law.logpdf(x), rtol=1e-8)
    np.testing.assert_allclose(moved.moments()[0], law.mean, atol=0.1)
    np.testing.assert_allclose(moved.sample(500, np.random.default_rng(3)).mean(axis=0), law.mean, atol=0.25)
    assert moved.conditional([0, 1], law.mean[:2]).moments()[0][0] == pytest.approx(law.mean[2], abs=1e-3)


def test_cdf_needs_one_coordinate(posterior):
    with pytest.raises(InputError, match="take a marginal"):
        posterior.cdf([0.0])
    with pytest.raises(InputError, match="take a marginal"):
        posterior.ppf([0.5])


def test_posteriors_and_their_relatives_are_picklable(posterior):
    moved = posterior.affine(2.0 * np.eye(3), np.zeros(3))
    for density in (posterior, moved, posterior.conditional([1], [0.3]), posterior.marginal([0, 1])):
        again = pickle.loads(pickle.dumps(density))
        x = np.zeros((1, density.n_dim))
        np.testing.assert_array_equal(again.log_pdf(x), density.log_pdf(x))


def test_conditioning_on_the_impossible_is_refused():
    def half_space(x):
        return np.where(x[:, 0] > 0.0, PRIOR.logpdf(x) + np.log(2.0), -np.inf)

    points = np.abs(np.random.default_rng(0).standard_normal((2000, 3)))
    posterior = SampledPosterior.build(half_space, points, np.zeros(2000), np.random.default_rng(1))
    for fixed, value in (([0], [-1.0]), ([0, 1], [-1.0, 0.0])):
        with pytest.raises(InputError, match="No mass"):
            posterior.conditional(fixed, value)


@pytest.mark.parametrize("dims", [[0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_the_marginal_of_all_coordinates_is_the_density_itself(posterior, dims):
    density = posterior.marginal(dims)
    x = LAW.rvs(20, random_state=6)
    np.testing.assert_allclose(density.log_pdf(x[:, dims]), LAW.logpdf(x), rtol=1e-9)
    np.testing.assert_allclose(density.sample(2000, np.random.default_rng(0)).mean(axis=0), MEAN[dims], atol=0.06)


def test_a_single_coordinate_is_on_a_grid_that_finds_narrow_modes():
    modes = (stats.norm(-3.0, 1e-3), stats.norm(2.0, 0.3))

    def log_two(x):
        return np.logaddexp(*(law.logpdf(x[:, 0]) for law in modes)) - np.log(2.0)

    points = np.concatenate([law.rvs(2000, random_state=1) for law in modes])[:, None]
    posterior = SampledPosterior.build(log_two, points, np.zeros(4000), np.random.default_rng(1))
    density = posterior.marginal([0])
    assert density.cdf([0.0])[0] == pytest.approx(0.5, abs=5e-3)
    t = np.linspace(1.0, 3.0, 21)
    np.testing.assert_allclose(density.pdf(t), 0.5 * modes[1].pdf(t), rtol=5e-3)
    np.testing.assert_allclose(posterior.cdf(t), density.cdf(t))
    np.testing.assert_allclose(posterior.ppf([0.3, 0.8]), density.ppf([0.3, 0.8]))
