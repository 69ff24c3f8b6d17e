"""The Gaussian integrals against trapezoidal quadrature that shares no code with them."""

import numpy as np
import pytest
from scipy import stats

from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.gp.kernels.stationary import RBF
from basq.numerics.gaussians import GaussianMixture
from basq.paper.blocks import Blocks, log_smoothed, pair, single

TOLERANCE = 1e-11


def rbf(variance, *scales):
    return RBF(variance, np.array(scales))


def gaussian(mean, cov):
    return GaussianMixture(np.ones(1), np.array([mean]), np.array([cov]))


LINE = gaussian([0.4], [[1.3]])
LINE_MIXTURE = GaussianMixture(
    np.array([0.5, 0.2, 0.3]), np.array([[-1.0], [0.3], [1.5]]), np.array([[[0.6]], [[1.2]], [[0.4]]])
)
PLANE = gaussian([0.3, -0.5], [[1.2, 0.6], [0.6, 0.8]])
PLANE_MIXTURE = GaussianMixture(
    np.array([0.5, 0.2, 0.3]),
    np.array([[-0.8, 0.2], [0.3, -0.7], [1.0, 0.6]]),
    np.array([[[0.6, 0.2], [0.2, 0.5]], [[1.0, -0.4], [-0.4, 0.7]], [[0.4, 0.0], [0.0, 0.9]]]),
)
CASES = {
    "line": (LINE, rbf(1.7, 0.8)),
    "line-mixture": (LINE_MIXTURE, rbf(0.6, 1.1)),
    "plane": (PLANE, rbf(1.7, 0.7, 1.4)),
    "plane-mixture": (PLANE_MIXTURE, rbf(0.6, 1.2, 0.8)),
}


def density(measure, x):
    return sum(
        w * stats.multivariate_normal(m, s).pdf(x).reshape(len(x))
        for w, m, s in zip(measure.weights, measure.means, measure.covs, strict=True)
    )


def matrix(kernel, a, b):
    exponent = np.zeros((len(a), len(b)))
    for k, scale in enumerate(kernel.lengthscale):
        exponent += ((a[:, None, k] - b[None, :, k]) / scale) ** 2
    return kernel.variance * np.exp(-0.5 * exponent)


def nodes(measure, step=0.27, reach=8.7):
    """Grid that covers the measure, without its empty corners, and the measure's weights on it."""
    sd = np.sqrt(np.einsum("kii->ki", measure.covs))
    low, high = (measure.means - reach * sd).min(axis=0), (measure.means + reach * sd).max(axis=0)
    axes = [np.arange(a, b + step, step) for a, b in zip(low, high, strict=True)]
    x = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    w = step ** x.shape[1] * density(measure, x)
    keep = w > 1e-17 * w.max()
    return x[keep], w[keep]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    measure, kernel = CASES[request.param]
    rng = np.random.default_rng(3)
    x = measure.means.mean(axis=0) + 1.2 * rng.standard_normal((7, measure.n_dim))
    x.flags.writeable = False
    grid, w = nodes(measure)
    assert w.sum() == pytest.approx(1.0, abs=1e-13)
    gp = GP.condition(x, np.ones(7), kernel, noise=1e-3)
    return Blocks(gp, measure), x, kernel, grid, w


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE)


class TestBlocks:
    def test_z(self, case):
        blocks, x, kernel, grid, w = case
        close(blocks.z, matrix(kernel, x, grid) @ w)

    def test_q(self, case):
        blocks, x, kernel, grid, w = case
        k = matrix(kernel, x, grid)
        close(blocks.q, (k * w) @ k.T)

    @pytest.mark.parametrize("other", [False, True], ids=["own", "other"])
    def test_double_integrals(self, case, other):
        blocks, x, kernel, grid, w = case
        inner = rbf(0.9, *(0.7 * kernel.lengthscale[::-1] + 0.4)) if other else kernel
        kw = matrix(kernel, x, grid) * w
        middle = matrix(inner, grid, grid)
        close(blocks.chain(inner), kw @ middle @ kw.T)
        close(blocks.half_chain(inner), kw @ (middle @ w))
        close(blocks.double(inner), w @ middle @ w)
        if not other:
            middle *= middle
            close(blocks.double(blocks.squared_kernel), w @ middle @ w)

    def test_squared_kernel(self, case):
        blocks, x, kernel, _, _ = case
        close(blocks.squared_kernel(x, x + 0.3), matrix(kernel, x, x + 0.3) ** 2)

    def test_symmetry(self, case):
        blocks, _, kernel, _, _ = case
        r = blocks.chain(kernel)
        np.testing.assert_allclose(r, r.T, rtol=1e-13)
        np.testing.assert_allclose(blocks.q, blocks.q.T, rtol=1e-13)


@pytest.mark.parametrize("name", ["line", "plane"])
def test_pair_is_the_product_density_at_every_point(name):
    measure, first = CASES[name]
    second = rbf(0.8, *(0.6 * first.lengthscale + 0.3))
    rng = np.random.default_rng(4)
    d = measure.n_dim
    x, y, at = rng.standard_normal((5, d)), rng.standard_normal((4, d)), 2.0 * rng.standard_normal((20, d))
    mu, sigma = measure.means[0], measure.covs[0]
    p = pair(first, x, second, y, mu, sigma)
    assert p.log_mass.shape == (5, 4)
    np.testing.assert_array_equal(p.cov, p.cov.T)
    k, h, g = matrix(first, x, at), matrix(second, y, at), density(measure, at)
    for i in range(5):
        for j in range(4):
            component = stats.multivariate_normal(p.left[i] + p.right[j], p.cov)
            close(np.exp(p.log_mass[i, j]) * component.pdf(at), k[i] * h[j] * g)


@pytest.mark.parametrize("name", ["line", "plane"])
def test_single_is_the_product_density_at_every_point(name):
    measure, kernel = CASES[name]
    rng = np.random.default_rng(5)
    x, at = rng.standard_normal((5, measure.n_dim)), 2.0 * rng.standard_normal((20, measure.n_dim))
    s = single(kernel, x, measure.means[0], measure.covs[0])
    k, g = matrix(kernel, x, at), density(measure, at)
    for i in range(5):
        close(np.exp(s.log_mass[i]) * stats.multivariate_normal(s.means[i], s.cov).pdf(at), k[i] * g)


def test_smoothed_kernel():
    kernel, spread = rbf(1.3, 0.7, 1.2), np.array([[0.5, 0.2], [0.2, 0.9]])
    grid, w = nodes(gaussian([0.0, 0.0], spread))
    a, b = np.array([[0.3, -0.2], [1.0, 1.0]]), np.array([[0.0, 0.4], [-1.0, 0.5], [0.3, -0.2]])
    expected = [[matrix(kernel, s + grid, t[None])[:, 0] @ w for t in b] for s in a]
    close(np.exp(log_smoothed(kernel, a, b, spread)), expected)


@pytest.mark.parametrize("scale", [1.0, 1e-2])
def test_far_points_have_finite_log_masses(scale):
    kernel = rbf(1.7, 0.7 * scale, 1.4 * scale)
    mu, sigma = PLANE.means[0], PLANE.covs[0]
    x = mu + 1e3 * np.array([[1.0, 0.0], [0.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    s, p = single(kernel, x, mu, sigma), pair(kernel, x, kernel, x, mu, sigma)
    w = np.diag(kernel.lengthscale**2)
    expected = [-0.5 * u @ np.linalg.solve(w + sigma, u) for u in x - mu]
    constant = np.log(1.7) - 0.5 * np.linalg.slogdet(np.eye(2) + sigma @ np.linalg.inv(w))[1]
    np.testing.assert_allclose(s.log_mass, constant + np.array(expected), rtol=1e-11)
    assert np.isfinite(p.log_mass).all()
    assert (p.log_mass <= 2.0 * np.log(1.7)).all()
    blocks = Blocks(GP.condition(x, np.ones(4), kernel), PLANE)
    assert np.isfinite(blocks.z).all()
    assert np.isfinite(blocks.q).all()
    assert np.isfinite(blocks.chain(kernel)).all()
    np.testing.assert_array_equal(blocks.z[:3], 0.0)


def test_only_rbf_kernels_have_closed_forms():
    assert make_kernel("rbf", 2).gaussian
    assert make_kernel("rbf-iso", 2).gaussian
    x = np.zeros((1, 2))
    for name in ("matern12", "matern32", "matern52", "rq", "polynomial"):
        kernel = make_kernel(name, 2)
        assert not kernel.gaussian
        with pytest.raises(TypeError, match="RBF"):
            _ = Blocks(GP.condition(x, np.ones(1), kernel), PLANE).z


def test_ten_dimensions_do_not_underflow():
    d = 10
    kernel, measure = rbf(1.0, *np.full(d, 0.3)), GaussianMixture.standard(d)
    x = np.random.default_rng(6).standard_normal((20, d))
    blocks = Blocks(GP.condition(x, np.ones(20), kernel, noise=1e-6), measure)
    one = [
        Blocks(GP.condition(x[:, [k]], np.ones(20), rbf(1.0, 0.3), noise=1e-6), GaussianMixture.standard(1))
        for k in range(d)
    ]
    np.testing.assert_allclose(blocks.z, np.prod([b.z for b in one], axis=0), rtol=1e-11)
    np.testing.assert_allclose(blocks.q, np.prod([b.q for b in one], axis=0), rtol=1e-10)
    expected = np.prod([b.chain(b.kernel) for b in one], axis=0)
    np.testing.assert_allclose(blocks.chain(kernel), expected, rtol=1e-10)
