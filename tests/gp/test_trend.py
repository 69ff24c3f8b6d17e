import numpy as np
import pytest

from basq.gp.kernels.trend import KNOTS, TrendPrior, _bumps, _summed_bumps
from helpers.kernels import half


def random_kernel(rng, d, k):
    axes = rng.normal(size=(k, d))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    return TrendPrior().start(axes).with_theta(rng.normal(size=d + 5))


@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 3), (2, 0)])
class TestTrendKernel:
    def test_formula(self, d, k):
        rng = np.random.default_rng(0)
        kernel = random_kernel(rng, d, k)
        a, b = rng.normal(size=(4, d)), rng.normal(size=(5, d))
        s0, s1, s2 = kernel.trend
        knots = np.exp(-0.5 * (KNOTS[:, None] - KNOTS) ** 2) + 1e-6 * np.eye(len(KNOTS))
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                r2 = (((x - y) / kernel.lengthscale) ** 2).sum()
                want = kernel.variance / (1 + 0.5 * r2) + s0 + s1 * (x @ y) + s2 * (x @ y) ** 2
                variables = [(np.arcsinh(axis @ x), np.arcsinh(axis @ y)) for axis in kernel.axes]
                distances = [(np.log(np.sqrt(1 + x @ x)), np.log(np.sqrt(1 + y @ y)))] if k else []
                for p, q in variables + distances:
                    left, right = (np.exp(-0.5 * (v - KNOTS) ** 2) for v in (p, q))
                    want += kernel.additive * left @ np.linalg.solve(knots, right)
                assert kernel(a, b)[i, j] == pytest.approx(want, rel=1e-9)

    def test_diagonal_and_gradient(self, d, k, block):
        rng = np.random.default_rng(1)
        kernel = random_kernel(rng, d, k)
        x, g = rng.normal(size=(7, d)), rng.normal(size=(7, 7))
        g = g + g.T
        matrix, contract = kernel.with_gradient(x)
        np.testing.assert_allclose(np.triu(matrix), np.triu(kernel(x, x)), rtol=1e-12)
        np.testing.assert_allclose(np.diag(matrix), kernel.diagonal(x), rtol=1e-12)
        h = 1e-5
        for i, step in enumerate(h * np.eye(len(kernel.theta))):
            up, down = kernel.with_theta(kernel.theta + step), kernel.with_theta(kernel.theta - step)
            slope = 0.5 * np.vdot(g, up(x, x) - down(x, x)) / (2 * h)
            assert contract(half(g))[i] == pytest.approx(slope, rel=1e-6, abs=1e-7)

    def test_prepared_gives_the_same(self, d, k):
        rng = np.random.default_rng(2)
        kernel, x = random_kernel(rng, d, k), rng.normal(size=(6, d))
        plain, ready = kernel.with_gradient(x), kernel.prepared(x).with_gradient(x)
        np.testing.assert_array_equal(np.triu(plain[0]), np.triu(ready[0]))
        np.testing.assert_array_equal(plain[1](np.eye(6)), ready[1](np.eye(6)))

    def test_weighted_sum_and_its_gradient(self, d, k, block):
        rng = np.random.default_rng(3)
        kernel = random_kernel(rng, d, k)
        data, weights, x = rng.normal(size=(6, d)), rng.normal(size=6), rng.normal(size=(4, d))
        function = kernel.weighted_sum(data, weights)
        np.testing.assert_allclose(function(x), kernel(x, data) @ weights, rtol=1e-9, atol=1e-10)
        values, slope = kernel.weighted_slope(data, weights)(x)
        np.testing.assert_allclose(values, function(x), rtol=1e-9, atol=1e-10)
        for j, step in enumerate(1e-5 * np.eye(d)):
            np.testing.assert_allclose(slope[:, j], (function(x + step) - function(x - step)) / 2e-5, atol=1e-6)


def test_bumps_far_out_are_zero_not_nan():
    far = _bumps(np.array([60.0, -60.0, 8.0]))
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far, np.exp(-0.5 * (np.array([60.0, -60.0, 8.0]) - KNOTS[:, None]) ** 2), atol=1e-13)


def test_summed_bumps():
    rng = np.random.default_rng(0)
    b, coefficients = np.concatenate([rng.normal(0.0, 3.0, (50, 3)), [[-700.0, 90.0, 0.0]]]), rng.normal(size=(3, 11))
    expected = np.einsum("nkj,kj->n", np.exp(-0.5 * (b[..., None] - KNOTS) ** 2), coefficients)
    np.testing.assert_allclose(_summed_bumps(b.T, coefficients), expected, rtol=1e-11, atol=1e-13)


def test_no_points_have_no_features():
    kernel = TrendPrior().start(np.eye(3))
    assert kernel.features(np.empty((0, 3))).shape == (0, 44)
    assert kernel(np.empty((0, 3)), np.zeros((2, 3))).shape == (0, 2)
