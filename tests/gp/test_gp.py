"""Gaussian-process regression against scikit-learn and SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as reference

from basq.gp.gp import GP, pivots
from basq.gp.kernels.polynomial import Polynomial
from basq.gp.kernels.stationary import RBF, Matern12, Matern32, Matern52, RationalQuadratic

SCALES = np.array([0.8, 1.4])
KERNELS = {
    "rbf": (RBF(1.7, SCALES), 1.7 * reference.RBF(SCALES)),
    "matern12": (Matern12(1.7, SCALES), 1.7 * reference.Matern(SCALES, nu=0.5)),
    "matern32": (Matern32(1.7, SCALES), 1.7 * reference.Matern(SCALES, nu=1.5)),
    "matern52": (Matern52(1.7, SCALES), 1.7 * reference.Matern(SCALES, nu=2.5)),
    "rq": (
        RationalQuadratic(1.7, np.full(2, 0.9), isotropic=True, shape=0.6),
        1.7 * reference.RationalQuadratic(0.9, alpha=0.6),
    ),
    "polynomial": (Polynomial(1.7, np.full(2, 1.3)), 1.7 * 1.3**-6 * reference.DotProduct(1.3) ** 3),
}


def data(n=20, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 2))
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] ** 2 + 2.0
    x.flags.writeable = y.flags.writeable = False
    return x, y


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("mean", [0.0, 1.5])
def test_predictions_match_scikit_learn(name, mean):
    (x, y), (new, _) = data(), data(15, seed=1)
    kernel, other = KERNELS[name]
    noise = np.linspace(1e-3, 1e-2, len(x))
    gp = GP.condition(x, y, kernel, mean=mean, noise=noise)
    expected = GaussianProcessRegressor(other, alpha=noise, optimizer=None).fit(x, y - mean)
    expected_mean, expected_cov = expected.predict(new, return_cov=True)

    p = gp.predict(new)
    np.testing.assert_allclose(p.mean, expected_mean + mean, rtol=1e-8)
    np.testing.assert_allclose(gp.predict_mean(new), expected_mean + mean, rtol=1e-8)
    scale = np.diag(expected_cov).max()
    np.testing.assert_allclose(p.var, np.diag(expected_cov), rtol=1e-8, atol=1e-10 * scale)
    np.testing.assert_allclose(gp.cov(p, p), expected_cov, rtol=1e-8, atol=1e-8 * scale)
    assert gp.log_marginal_likelihood == pytest.approx(expected.log_marginal_likelihood(), rel=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_log_marginal_likelihood(name):
    x, y = data()
    kernel, other = KERNELS[name]
    gp = GP.condition(x, y, kernel, mean=0.7, noise=0.01)
    density = stats.multivariate_normal(np.full(len(x), 0.7), other(x) + 0.01 * np.eye(len(x)))
    assert gp.log_marginal_likelihood == pytest.approx(density.logpdf(y), rel=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_weights_and_precision(name):
    x, y = data()
    kernel, other = KERNELS[name]
    gp = GP.condition(x, y, kernel, mean=0.7, noise=0.01)
    total = other(x) + 0.01 * np.eye(len(x))
    np.testing.assert_allclose(gp.precision @ total, np.eye(len(x)), atol=1e-7)
    np.testing.assert_allclose(total @ gp.weights, y - 0.7, atol=1e-7)
    np.testing.assert_allclose(gp.factor @ gp.factor.T, total, rtol=1e-8)


def test_noise_per_point():
    x, y = data()
    noise = np.full(len(x), 1e-8)
    noise[3] = 1e6
    gp = GP.condition(x, y, KERNELS["matern32"][0], noise=noise)
    p = gp.predict(x)
    certain = np.arange(len(x)) != 3
    np.testing.assert_allclose(p.mean[certain], y[certain], atol=1e-5)
    without = GP.condition(x[certain], y[certain], gp.kernel, noise=1e-8).predict(x[3:4])
    assert p.mean[3] == pytest.approx(without.mean[0], abs=1e-4)
    assert p.var[3] == pytest.approx(without.var[0], rel=1e-4)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("sizes", [[8, 12], [10, 1, 9], [5, 5, 5, 5], [20, 0]])
def test_extending_equals_conditioning_on_everything(name, sizes):
    x, y = data()
    noise = np.linspace(1e-2, 2e-2, len(x))
    kernel = KERNELS[name][0]
    whole = GP.condition(x, y, kernel, mean=0.4, noise=noise)
    stops = np.cumsum(sizes)
    grown = GP.condition(x[: sizes[0]], y[: sizes[0]], kernel, mean=0.4, noise=noise[: sizes[0]])
    for a, b in pairwise(stops):
        grown = grown.extend(x[a:b], y[a:b], noise=noise[a:b])
    new, _ = data(15, seed=1)
    p, q = whole.predict(new), grown.predict(new)
    np.testing.assert_allclose(grown.factor, whole.factor, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(q.mean, p.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(grown.cov(q, q), whole.cov(p, p), rtol=1e-9, atol=1e-9 * p.var.max())
    np.testing.assert_allclose(grown.noise, noise, rtol=1e-15)
    assert grown.log_marginal_likelihood == pytest.approx(whole.log_marginal_likelihood, rel=1e-9)
    np.testing.assert_array_equal(grown.x, x)
    np.testing.assert_array_equal(grown.y, y)


def test_prediction_indexing():
    x, y = data()
    gp = GP.condition(x, y, KERNELS["rbf"][0], noise=1e-3)
    new, _ = data(15, seed=1)
    whole = gp.predict(new)
    mask = new[:, 0] > 0.0
    for index in (slice(2, 9), np.array([4, 0, 4]), mask, np.arange(0)):
        part, expected = whole[index], gp.predict(new[index])
        for name in ("x", "mean", "half", "var"):
            np.testing.assert_allclose(getattr(part, name), getattr(expected, name), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gp.cov(whole[:6], whole[6:]), gp.cov(whole, whole)[:6, 6:], atol=1e-13)


@pytest.mark.parametrize("name", KERNELS)
def test_variance_is_the_diagonal_of_the_covariance(name):
    x, y = data()
    gp = GP.condition(x, y, KERNELS[name][0], noise=1e-3)
    p = gp.predict(data(30, seed=2)[0])
    np.testing.assert_allclose(np.diag(gp.cov(p, p)), p.var, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_variance_at_noise_free_data_is_zero_and_not_negative(name):
    x, y = data(8)
    gp = GP.condition(x, y, KERNELS[name][0])
    p = gp.predict(x)
    assert (p.var >= 0.0).all()
    assert p.var.max() < 1e-7 * gp.kernel.diagonal(x).max()
    np.testing.assert_allclose(p.mean, y, rtol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_duplicates_without_noise(name):
    x, y = data(6)
    twice = GP.condition(np.concatenate([x, x]), np.concatenate([y, y]), KERNELS[name][0])
    np.testing.assert_allclose(twice.predict(x).mean, y, atol=1e-4)
    assert np.isfinite(twice.log_marginal_likelihood)


@pytest.mark.parametrize("name", KERNELS)
def test_extending_by_duplicates_without_noise(name):
    x, y = data(6)
    once = GP.condition(x, y, KERNELS[name][0])
    twice = once.extend(x[:2], y[:2])
    np.testing.assert_allclose(twice.predict(x).mean, y, atol=1e-4)
    assert np.isfinite(twice.log_marginal_likelihood)


@pytest.mark.parametrize("name", KERNELS)
def test_growing_is_conditioning_on_everything(name):
    x, y = data(20)
    noise = np.linspace(1e-3, 1e-2, 20)
    some = GP.condition(x[:12], np.zeros(12), KERNELS[name][0], noise=noise[:12])
    grown, whole = some.grown(x, y, noise), GP.condition(x, y, KERNELS[name][0], noise=noise)
    np.testing.assert_allclose(grown.factor, whole.factor, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(grown.y, y)


def test_a_process_grows_only_from_its_own_data():
    x, y = data(20)
    noise = np.full(20, 1e-2)
    some = GP.condition(x[:12], y[:12], KERNELS["rbf"][0], noise=1e-2)
    assert some.grown(x[:12], y[:12], noise[:12]) is not None
    assert some.grown(x[:11], y[:11], noise[:11]) is None
    assert some.grown(x[::-1], y, noise) is None
    assert some.grown(x, y, 2.0 * noise) is None


def test_no_new_points():
    x, y = data(6)
    gp = GP.condition(x, y, KERNELS["rbf"][0])
    p = gp.predict(x[:0])
    assert p.mean.shape == p.var.shape == (0,)
    assert p.half.shape == (6, 0)
    assert gp.cov(p, gp.predict(x)).shape == (0, 6)


@pytest.mark.parametrize("name", KERNELS)
def test_projection_is_the_covariance_times_vectors(name):
    x, y = data(40)
    gp = GP.condition(x, y, KERNELS[name][0], noise=1e-2)
    p, centres = gp.predict(data(300, seed=1)[0]), gp.predict(data(20, seed=2)[0])
    vectors = np.random.default_rng(0).standard_normal((20, 7))
    expected = gp.cov(p, centres) @ vectors
    np.testing.assert_allclose(gp.project(p, centres, vectors), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", KERNELS)
def test_a_sketch_bounds_the_variance_from_above(name):
    x, y = data(120)
    gp = GP.condition(x, y, KERNELS[name][0], noise=1e-3)
    new, _ = data(200, seed=1)
    exact, tolerance = gp.predict(new).var, 1e-6 * gp.kernel.variance  # a Matérn-1/2 feels the rounding of distances
    for size in (10, 40, 119):
        rough = gp.sketch(size).predict(new).var
        assert (rough >= exact - tolerance).all()
        assert len(gp.sketch(size).x) == size
    assert gp.sketch(120) is gp
    # the most telling data first: a random subset knows less
    rng = np.random.default_rng(0)
    random = rng.choice(120, 40, replace=False)
    other = GP.condition(x[random], y[random], gp.kernel, noise=1e-3).predict(new).var
    assert gp.sketch(40).predict(new).var.mean() <= other.mean()


def test_pivots_are_those_of_a_pivoted_cholesky_factorisation():
    from scipy.linalg import lapack

    x, _ = data(60)
    kernel = KERNELS["rbf"][0]
    _, expected, _, _ = lapack.dpstrf(kernel(x, x), lower=1)
    found = pivots(kernel, x, 12)
    np.testing.assert_array_equal(found[1:], expected[1:12] - 1)  # all first candidates are alike
    assert len(set(found)) == 12


def test_left_out_predictions_against_fits_without_the_datum():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    kernel = RBF(2.0, np.full(2, 1.3))
    gp = GP.condition(x, y, kernel, mean=0.3, noise=0.05)
    residuals, variances = gp.left_out
    for i in range(12):
        others = np.arange(12) != i
        p = GP.condition(x[others], y[others], kernel, mean=0.3, noise=0.05).predict(x[[i]])
        assert residuals[i] == pytest.approx(y[i] - p.mean[0])
        assert variances[i] == pytest.approx(p.var[0] + 0.05)
