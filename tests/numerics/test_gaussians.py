"""Gaussian mixtures against SciPy, grids and their own samples."""

import numpy as np
import pytest
from scipy import stats

from basq.numerics.gaussians import GaussianMixture, log_normal_pdf


def line_mixture():
    return GaussianMixture(
        np.array([0.2, 0.5, 0.3]), np.array([[-3.0], [0.5], [2.0]]), np.array([[[0.5]], [[2.0]], [[0.1]]])
    )


def plane_mixture():
    return GaussianMixture(
        np.array([0.6, 0.1, 0.3]),
        np.array([[0.0, 1.0], [-2.0, -1.0], [2.0, 0.5]]),
        np.array([[[1.0, 0.6], [0.6, 0.8]], [[0.3, 0.0], [0.0, 1.5]], [[0.7, -0.4], [-0.4, 0.6]]]),
    )


def grid(mixture, n=241, reach=9.0):
    """Nodes and trapezoidal weights that cover every component."""
    sd = np.sqrt(np.einsum("kii->ki", mixture.covs))
    axes = [
        np.linspace(low, high, n)
        for low, high in zip(
            (mixture.means - reach * sd).min(axis=0), (mixture.means + reach * sd).max(axis=0), strict=True
        )
    ]
    nodes = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    return nodes, float(np.prod([a[1] - a[0] for a in axes]))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_log_normal_pdf(d):
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, d))
    mean, cov = rng.standard_normal(d), root @ root.T + 0.2 * np.eye(d)
    x = 3.0 * rng.standard_normal((20, d))
    x.flags.writeable = mean.flags.writeable = cov.flags.writeable = False
    expected = np.atleast_1d(stats.multivariate_normal(mean, cov).logpdf(x))
    np.testing.assert_allclose(log_normal_pdf(x, mean, cov), expected, rtol=1e-11)


def test_log_normal_pdf_far_out_and_narrow():
    x = np.array([[1e3, 0.0]])
    found = log_normal_pdf(x, np.zeros(2), 1e-10 * np.eye(2))
    assert found[0] == pytest.approx(-0.5e16 - np.log(2.0 * np.pi * 1e-10), rel=1e-12)


@pytest.mark.parametrize("mixture", [line_mixture(), plane_mixture()], ids=["line", "plane"])
class TestMixture:
    def test_log_pdf(self, mixture):
        x = 4.0 * np.random.default_rng(0).standard_normal((30, mixture.n_dim))
        expected = sum(
            w * stats.multivariate_normal(m, s).pdf(x)
            for w, m, s in zip(mixture.weights, mixture.means, mixture.covs, strict=True)
        )
        np.testing.assert_allclose(mixture.log_pdf(x), np.log(expected), rtol=1e-10, atol=1e-12)

    def test_log_pdf_far_out_is_finite(self, mixture):
        x = np.full((1, mixture.n_dim), 1e3)
        assert np.isfinite(mixture.log_pdf(x)).all()
        assert mixture.log_pdf(x)[0] < -1e4

    def test_integrates_to_one_and_has_its_covariance(self, mixture):
        x, volume = grid(mixture)
        p = volume * np.exp(mixture.log_pdf(x))
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        offset = x - p @ x
        np.testing.assert_allclose(mixture.cov, (p[:, None] * offset).T @ offset, rtol=1e-11, atol=1e-12)

    def test_samples_have_its_moments(self, mixture):
        n = 40_000
        x = mixture.sample(n, np.random.default_rng(1))
        assert x.shape == (n, mixture.n_dim)
        mean = mixture.weights @ mixture.means
        error = np.sqrt(np.diag(mixture.cov) / n)
        assert (np.abs(x.mean(axis=0) - mean) < 4.5 * error).all()
        products = np.einsum("ni,nj->nij", x - mean, x - mean)
        error = products.std(axis=0) / np.sqrt(n)
        assert (np.abs(products.mean(axis=0) - mixture.cov) < 4.5 * error).all()

    def test_samples_follow_every_coordinate(self, mixture):
        x = mixture.sample(5_000, np.random.default_rng(2))
        for i in range(mixture.n_dim):

            def cdf(t, i=i):
                sd = np.sqrt(mixture.covs[:, i, i])
                return stats.norm.cdf((t[:, None] - mixture.means[:, i]) / sd) @ mixture.weights

            assert stats.kstest(x[:, i], cdf).pvalue > 1e-3

    def test_samples_come_in_no_order(self, mixture):
        x = mixture.sample(20_000, np.random.default_rng(3))
        halves = x[:10_000, 0], x[10_000:, 0]
        assert stats.ks_2samp(*halves).pvalue > 1e-3

    def test_samples_repeat_with_the_seed(self, mixture):
        first, second, other = (mixture.sample(100, np.random.default_rng(s)) for s in (4, 4, 5))
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, other)
        assert mixture.sample(0, np.random.default_rng(0)).shape == (0, mixture.n_dim)

    def test_quasi_samples(self, mixture):
        n = 4096
        x = mixture.sample_quasi(n, np.random.default_rng(6))
        assert x.shape == (n, mixture.n_dim)
        mean = mixture.weights @ mixture.means
        assert (np.abs(x.mean(axis=0) - mean) < 0.5 * np.sqrt(np.diag(mixture.cov) / n)).all()
        np.testing.assert_allclose(np.cov(x.T).reshape(mixture.cov.shape), mixture.cov, rtol=0.02, atol=0.02)
        for i in range(mixture.n_dim):

            def cdf(t, i=i):
                sd = np.sqrt(mixture.covs[:, i, i])
                return stats.norm.cdf((t[:, None] - mixture.means[:, i]) / sd) @ mixture.weights

            assert stats.kstest(x[:, i], cdf).statistic < 0.5 / np.sqrt(n)

    @pytest.mark.parametrize("n", [1, 3, 100])
    def test_any_number_of_quasi_samples(self, mixture, n):
        first, second = (mixture.sample_quasi(n, np.random.default_rng(7)) for _ in range(2))
        assert first.shape == (n, mixture.n_dim)
        np.testing.assert_array_equal(first, second)
        assert np.isfinite(first).all()


def test_standard():
    mixture = GaussianMixture.standard(3)
    assert mixture.n_dim == 3
    np.testing.assert_array_equal(mixture.cov, np.eye(3))
    x = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_allclose(mixture.log_pdf(x), stats.norm.logpdf(x).sum(axis=1), rtol=1e-13)
