"""Covariance functions against scikit-learn and finite differences."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as reference

from basq.errors import InputError
from basq.gp.kernels import KERNELS, KernelName, make_kernel
from basq.gp.kernels.base import Differentiable, Kernel, Spectral, Stationary
from basq.gp.kernels.polynomial import Polynomial
from basq.gp.kernels.stationary import RBF
from helpers.kernels import differences, half

NAMES = list(KERNELS)
STATIONARY = [name for name in NAMES if name != "polynomial"]


def kernel_of(name, d=3):
    """A kernel with hyperparameters that are all different."""
    scales = np.array([0.6, 1.3, 2.1, 0.9])[:d]
    if name == "polynomial":
        return Polynomial(0.7, scales + 0.5)
    if name == "rbf-iso":
        return RBF(1.7, np.full(d, 0.8), isotropic=True)
    kernel = KERNELS[name](1.7, scales)
    return replace(kernel, shape=0.6) if name == "rq" else kernel


def points(n, d=3, seed=0, centre=0.0):
    x = centre + np.random.default_rng(seed).standard_normal((n, d))
    x.flags.writeable = False
    return x


def expected_matrix(name, kernel, a, b):
    scale, v = kernel.lengthscale, kernel.variance
    if name == "polynomial":
        return v * (1.0 + np.einsum("ik,jk,k->ij", a, b, scale**-2.0)) ** 3
    if name == "rq":
        r2 = cdist(a / scale, b / scale, "sqeuclidean")
        return v * (1.0 + r2 / (2.0 * kernel.shape)) ** -kernel.shape
    if name.startswith("rbf"):
        return v * reference.RBF(scale)(a, b)
    nu = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}[name]
    return v * reference.Matern(scale, nu=nu)(a, b)


@pytest.mark.parametrize("name", NAMES)
class TestEveryKernel:
    def test_matrix(self, name):
        kernel, a, b = kernel_of(name), points(12), points(9, seed=1)
        expected = expected_matrix(name, kernel, a, b)
        np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-12, atol=1e-14)

    def test_matrix_with_itself_has_the_prior_variance_on_its_diagonal(self, name):
        kernel, x = kernel_of(name), points(40, centre=3.0)
        np.testing.assert_allclose(np.diag(kernel(x, x)), kernel.diagonal(x), rtol=1e-12)

    def test_matrix_is_positive_semidefinite(self, name):
        kernel, x = kernel_of(name), points(40)
        k = kernel(x, x)
        np.testing.assert_allclose(k, k.T, rtol=1e-13)
        assert np.linalg.eigvalsh(k).min() > -1e-12 * np.trace(k)

    def test_theta_round_trip(self, name):
        kernel = kernel_of(name)
        theta = kernel.theta
        moved = kernel.with_theta(theta + 0.1 * np.arange(1, len(theta) + 1))
        back = moved.with_theta(theta)
        np.testing.assert_allclose(moved.theta, theta + 0.1 * np.arange(1, len(theta) + 1), rtol=1e-13)
        np.testing.assert_allclose(back.theta, theta, rtol=1e-13, atol=1e-15)
        assert type(moved) is type(kernel)
        assert kernel.theta[kernel.variance_index] == pytest.approx(np.log(kernel.variance))
        assert moved.variance == pytest.approx(np.exp(moved.theta[kernel.variance_index]), rel=1e-13)
        x = points(5)
        np.testing.assert_allclose(back(x, x), kernel(x, x), rtol=1e-13)

    @pytest.mark.parametrize("centre", [0.0, 3.0])
    def test_with_gradient(self, name, centre, block):
        kernel, x = kernel_of(name), points(15, centre=centre)
        g = np.random.default_rng(5).standard_normal((15, 15))
        g = g + g.T
        k, contract = kernel.with_gradient(x)
        np.testing.assert_allclose(np.triu(k), np.triu(expected_matrix(name, kernel, x, x)), rtol=1e-12, atol=1e-14)

        def value(theta):
            return 0.5 * np.sum(g * expected_matrix(name, kernel.with_theta(theta), x, x))

        numerical = differences(value, kernel.theta)
        found = contract(half(g))
        assert found.shape == kernel.theta.shape
        np.testing.assert_allclose(found, numerical, rtol=1e-7, atol=1e-8 * np.abs(numerical).max())

    def test_input_gradient(self, name):
        kernel, x, point = kernel_of(name), points(10), np.array([0.3, -0.2, 0.5])
        numerical = differences(lambda p: kernel(p[None], x)[0], point).T
        found = kernel.input_gradient(point, x)
        assert found.shape == x.shape
        np.testing.assert_allclose(found, numerical, rtol=1e-7, atol=1e-8 * np.abs(numerical).max())

    def test_input_gradient_at_a_data_point_is_finite(self, name):
        kernel, x = kernel_of(name), points(4)
        found = kernel.input_gradient(x[2], x)
        assert np.isfinite(found).all()
        if name != "polynomial":
            np.testing.assert_array_equal(found[2], 0.0)

    def test_one_dimension(self, name):
        kernel, x = kernel_of(name, d=1), points(6, d=1)
        np.testing.assert_allclose(kernel(x, x), expected_matrix(name, kernel, x, x), rtol=1e-7)
        k, contract = kernel.with_gradient(x)
        assert k.shape == (6, 6)
        assert contract(np.eye(6)).shape == kernel.theta.shape

    def test_make_kernel(self, name):
        kernel = make_kernel(name, 4, lengthscale=0.5, variance=2.0)
        np.testing.assert_array_equal(kernel.lengthscale, np.full(4, 0.5))
        assert kernel.variance == 2.0
        assert kernel.variance_index == (1 if name == "rbf-iso" else 4)
        assert len(kernel.theta) == kernel.variance_index + (2 if name == "rq" else 1)


@pytest.mark.parametrize("name", STATIONARY)
def test_matrix_far_from_the_origin(name):
    kernel, a, b = kernel_of(name), points(12, centre=1e4), points(9, seed=1, centre=1e4)
    np.testing.assert_allclose(kernel(a, b), expected_matrix(name, kernel, a, b), rtol=1e-9)


@pytest.mark.parametrize("name", STATIONARY)
def test_gradient_with_duplicate_points(name, block):
    kernel, x = kernel_of(name), np.concatenate([points(6, centre=2.0)] * 2)
    g = np.random.default_rng(6).standard_normal((12, 12))
    g = g + g.T
    k, contract = kernel.with_gradient(x)

    def value(theta):
        return 0.5 * np.sum(g * expected_matrix(name, kernel.with_theta(theta), x, x))

    found = contract(half(g))
    assert np.isfinite(np.triu(k)).all()
    np.testing.assert_allclose(found, differences(value, kernel.theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["rbf", "matern12", "matern32", "matern52", "rq"])
def test_isotropic_gradient_is_the_sum_of_the_separate_ones(family):
    separate = KERNELS[family](1.3, np.full(3, 0.7))
    if family == "rq":
        separate = replace(separate, shape=0.8)
    together = replace(separate, isotropic=True)
    x = points(10)
    g = np.random.default_rng(7).standard_normal((10, 10))
    g = g + g.T
    each, one = (k.with_gradient(x)[1](half(g)) for k in (separate, together))
    assert len(one) == len(each) - 2
    np.testing.assert_allclose(one, np.concatenate([[each[:3].sum()], each[3:]]), rtol=1e-12)
    moved = together.with_theta(together.theta + 0.3)
    np.testing.assert_allclose(moved.lengthscale, 0.7 * np.exp(0.3), rtol=1e-13)


@pytest.mark.parametrize("name", STATIONARY)
def test_frequencies_follow_the_spectral_density(name):
    kernel, n = kernel_of(name), 40_000
    frequencies = kernel.sample_frequencies(n, np.random.default_rng(8))
    assert frequencies.shape == (n, 3)
    x = points(8)
    for y in points(5, seed=9):
        waves = np.cos(frequencies @ (x - y).T)
        error = waves.std(axis=0) / np.sqrt(n)
        expected = kernel(x, y[None])[:, 0] / kernel.variance
        assert (np.abs(waves.mean(axis=0) - expected) < 4.5 * error).all()


def test_unknown_name_lists_the_allowed():
    with pytest.raises(InputError, match="'cosine'") as caught:
        make_kernel("cosine", 2)
    assert all(name in str(caught.value) for name in NAMES)


def test_the_table_has_every_name():
    assert tuple(KERNELS) == get_args(KernelName)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_say_what_they_can_do(name):
    kernel = kernel_of(name)
    assert kernel.gaussian == name.startswith("rbf")
    assert isinstance(kernel, Spectral) == (name != "polynomial")
    assert isinstance(kernel, Differentiable)
    assert all(hasattr(kernel, member) for member in vars(Kernel) if not member.startswith("_"))


def test_a_stationary_kernel_needs_its_profile_only():
    class Squared(Stationary):
        """κ = (1 + r²/2)⁻², a rational quadratic of fixed shape."""

        def profile(self, r2):
            base = 1.0 + r2 / 2.0
            return base**-2.0, 2.0 * base**-3.0

    kernel, x = Squared(1.7, np.array([0.6, 1.3, 2.1])), points(15)
    other = replace(KERNELS["rq"](1.7, kernel.lengthscale * np.sqrt(0.5)), shape=2.0)
    np.testing.assert_allclose(kernel(x, x), other(x, x), rtol=1e-12)
    g = half(np.random.default_rng(5).standard_normal((15, 15)))
    for mine, theirs in zip(kernel.with_gradient(x), other.with_gradient(x), strict=True):
        if callable(mine):
            np.testing.assert_allclose(mine(g), theirs(g)[:-1], rtol=1e-11)
        else:
            np.testing.assert_allclose(np.triu(mine), np.triu(theirs), rtol=1e-12)
    assert not isinstance(kernel, Spectral)
    assert not kernel.gaussian
    np.testing.assert_array_equal(kernel.with_theta(kernel.theta).theta, kernel.theta)
