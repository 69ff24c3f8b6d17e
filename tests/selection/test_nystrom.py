"""Test functions: how well they stand for the kernel that they come from."""

import numpy as np
import pytest

from basq.errors import InputError
from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.gp.kernels.stationary import RBF
from basq.numerics.gaussians import GaussianMixture
from basq.paper.fourier import fourier_features
from basq.paper.models import Vanilla, Wsabi
from basq.paper.target import Target
from basq.selection.nystrom import nystrom_features


def target(d=2, n=8, kernel="rbf", model="wsabi", factorised=True, noise=1e-6):
    x = np.random.default_rng(0).standard_normal((n, d))
    y = np.cos(2.0 * x[:, 0]) + 0.3
    gp = GP.condition(x, y, make_kernel(kernel, d, variance=1.3), noise=noise)
    return Target(Vanilla(gp) if model == "vanilla" else Wsabi(gp, 0.0, matched=model == "wsabi-m"), factorised)


def candidates(t, n, seed=1):
    d = t.surrogate.gp.x.shape[1]
    return t.surrogate.gp.predict(np.random.default_rng(seed).standard_normal((n, d)))


@pytest.mark.parametrize("randomised", [False, True])
@pytest.mark.parametrize("factorised", [False, True])
@pytest.mark.parametrize("model", ["vanilla", "wsabi", "wsabi-m"])
def test_all_eigenfunctions_reproduce_the_kernel(model, factorised, randomised):
    t = target(model=model, factorised=factorised)
    p = candidates(t, 60)
    found = nystrom_features(t, p, 60, 60, np.random.default_rng(2), randomised=randomised)
    np.testing.assert_allclose(found.values @ found.values.T, t.cov(p, p), atol=1e-8)
    np.testing.assert_allclose(found.residual, 0.0, atol=1e-8)


@pytest.mark.parametrize("kernel", ["matern32", "rq", "polynomial"])
def test_other_kernels_are_reproduced_too(kernel):
    t = target(kernel=kernel)
    p = candidates(t, 50)
    exact = t.cov(p, p)
    found = nystrom_features(t, p, 50, 50, np.random.default_rng(2), randomised=False)
    np.testing.assert_allclose(found.values @ found.values.T, exact, atol=1e-8 * exact.max())


def test_features_come_in_order_of_importance():
    t = target()
    p = candidates(t, 300)
    found = nystrom_features(t, p, 12, 300, np.random.default_rng(2), randomised=False)
    eigenvalues = np.linalg.eigvalsh(t.cov(p, p))[::-1][:12]
    np.testing.assert_allclose((found.values**2).sum(axis=0), eigenvalues, rtol=1e-8)


def test_randomised_decomposition_finds_the_leading_subspace():
    t = target()
    p = candidates(t, 400)
    exact, quick = (
        nystrom_features(t, p, 8, 200, np.random.default_rng(3), randomised=randomised).values
        for randomised in (False, True)
    )
    np.testing.assert_allclose((quick**2).sum(axis=0), (exact**2).sum(axis=0), rtol=1e-3)
    np.testing.assert_allclose(quick @ quick.T, exact @ exact.T, atol=1e-2)


@pytest.mark.parametrize("factorised", [False, True])
def test_residual_is_what_the_features_leave_of_the_diagonal(factorised):
    t = target(factorised=factorised)
    p = candidates(t, 500)
    found = nystrom_features(t, p, 10, 50, np.random.default_rng(4))
    assert found.values.shape == (500, 10)
    assert (found.residual >= 0.0).all()
    np.testing.assert_allclose(found.residual, t.var(p) - (found.values**2).sum(axis=1), atol=1e-9)
    more = nystrom_features(t, p, 40, 50, np.random.default_rng(4))
    assert more.residual.mean() < found.residual.mean()


def test_more_features_or_centres_than_candidates_are_cut():
    t = target()
    p = candidates(t, 9)
    found = nystrom_features(t, p, 30, 200, np.random.default_rng(5))
    assert found.values.shape[0] == 9
    assert found.values.shape[1] <= 9
    np.testing.assert_allclose(found.values @ found.values.T, t.cov(p, p), atol=1e-8)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_eigenvalues_of_an_rbf_under_a_gaussian_have_their_closed_form(scale):
    # one datum so far away that the process is its prior
    gp = GP.condition(np.array([[1e3]]), np.zeros(1), RBF(1.7, np.array([scale])), noise=1e-6)
    n = 2048
    points = GaussianMixture.standard(1).sample_quasi(n, np.random.default_rng(6))
    found = nystrom_features(Target(Vanilla(gp), True), gp.predict(points), 5, n, np.random.default_rng(6))
    b = 1.0 - 2.0 / (1.0 + np.sqrt(1.0 + 4.0 / scale**2))
    np.testing.assert_allclose(
        (found.values**2).sum(axis=0) / n, 1.7 * (1.0 - b) * b ** np.arange(5), rtol=0.02, atol=1e-4
    )


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "rq"])
@pytest.mark.parametrize("model", ["vanilla", "wsabi"])
def test_fourier_features_approximate_the_posterior_covariance(model, kernel):
    # with noise well above what the cosines leave unexplained, conditioning them is conditioning the process
    t = target(kernel=kernel, model=model, noise=0.1)
    p = candidates(t, 40)
    estimates = [fourier_features(t, p, 500, 500, np.random.default_rng(seed)).values for seed in range(6)]
    kernels = np.array([e @ e.T for e in estimates])
    error = np.abs(kernels.mean(axis=0) - t.cov(p, p)).max()
    assert error < 0.15 * 1.3
    assert np.abs(kernels.mean(axis=0) - t.cov(p, p)).mean() < 0.04


def test_fourier_features_follow_the_likelihood_where_nothing_is_factorised():
    t = target(factorised=False, noise=0.1)
    p = candidates(t, 40)
    values = fourier_features(t, p, 800, 800, np.random.default_rng(1)).values
    exact = t.cov(p, p)
    assert np.abs((values**2).sum(axis=1) - np.diag(exact)).mean() < 0.15 * np.diag(exact).mean()


@pytest.mark.parametrize("matched", [False, True])
def test_fourier_features_keep_the_sign_of_the_warped_mean(matched):
    # where the mean changes sign, the covariance of its square does: |mean| in its place would turn it round
    x = np.array([[-1.0], [1.0]])
    gp = GP.condition(x, np.array([-1.0, 1.0]), RBF(1.0, np.array([1.0])), noise=0.1)
    t = Target(Wsabi(gp, 0.0, matched), factorised=False)
    p = gp.predict(np.array([[-0.4], [0.4], [0.6]]))
    values = fourier_features(t, p, 200, 200, np.random.default_rng(0)).values
    exact = t.cov(p, p)
    assert exact[0, 1] < -0.01
    np.testing.assert_allclose(values @ values.T, exact, atol=0.6 * abs(exact[0, 1]))


def test_few_fourier_features_are_the_leading_ones():
    t = target(noise=0.1)
    p = candidates(t, 200)
    full = fourier_features(t, p, 300, 300, np.random.default_rng(2)).values
    few = fourier_features(t, p, 10, 300, np.random.default_rng(2))
    assert few.values.shape == (200, 10)
    assert (few.residual >= 0.0).all()
    leading = np.sort((full**2).sum(axis=0))[::-1][:10]
    np.testing.assert_allclose((few.values**2).sum(axis=0), leading, rtol=1e-8)


def test_fourier_features_refuse_a_polynomial_kernel():
    t = target(kernel="polynomial")
    with pytest.raises(InputError, match=r"stationary kernel, not Polynomial.*nystrom"):
        fourier_features(t, candidates(t, 20), 5, 50, np.random.default_rng(0))
