"""Hyperparameter learning: gradients, optima and the cases that have too little data."""

from dataclasses import replace

import numpy as np
import pytest

from basq.gp.fit import Hyperprior, fit, negative_log_posterior, still_right
from basq.gp.gp import GP
from basq.gp.kernels import KERNELS, make_kernel
from basq.gp.kernels.stationary import RBF
from helpers.kernels import differences

NAMES = list(KERNELS)


def data(n=25, d=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    y = 1.0 + np.sin(x[:, 0]) + 0.3 * x[:, -1] ** 2 + 0.05 * rng.standard_normal(n)
    x.flags.writeable = y.flags.writeable = False
    return x, y


def path(kernel, x, seed, noise=0.0):
    """One draw of the process at x."""
    rng = np.random.default_rng(seed)
    k = kernel(x, x) + (noise + 1e-10) * np.eye(len(x))
    return np.linalg.cholesky(k) @ rng.standard_normal(len(x))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("constant_mean", [False, True])
@pytest.mark.parametrize("noise", [1e-3, None])
@pytest.mark.parametrize("known", [0.0, np.linspace(0.0, 0.1, 25)], ids=["exact", "noisy"])
def test_gradient(name, constant_mean, noise, known):
    x, y = data()
    kernel = make_kernel(name, 2)
    prior = Hyperprior.weak(kernel, 2, float(np.mean(y**2)))
    rng = np.random.default_rng(1)
    theta = kernel.theta + 0.3 * rng.standard_normal(len(kernel.theta))
    if noise is None:
        theta = np.append(theta, np.log(0.02))

    def objective(t):
        return negative_log_posterior(
            t, x, y, kernel, prior, constant_mean=constant_mean, noise=noise, known_noise=known
        )

    _, gradient = objective(theta)
    numerical = differences(lambda t: objective(t)[0], theta)
    assert gradient.shape == theta.shape
    np.testing.assert_allclose(gradient, numerical, rtol=1e-6, atol=1e-7 * np.abs(numerical).max())


@pytest.mark.parametrize("name", NAMES)
def test_value_is_likelihood_and_hyperprior(name):
    x, y = data()
    kernel = make_kernel(name, 2)
    prior = Hyperprior.weak(kernel, 2, 1.0)
    theta = kernel.theta + 0.2
    value, _ = negative_log_posterior(theta, x, y, kernel, prior, constant_mean=False, noise=1e-2)
    current = kernel.with_theta(theta)
    gp = GP.condition(x, y, current, noise=1e-2 * current.variance)
    penalty = 0.5 * np.sum(((theta - prior.mean) / prior.sd) ** 2)
    assert value == pytest.approx(penalty - gp.log_marginal_likelihood, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("constant_mean", [False, True])
@pytest.mark.parametrize("noise", [1e-4, None])
def test_fit_improves_the_objective_and_stops_at_an_optimum(name, constant_mean, noise, monkeypatch):
    monkeypatch.setattr("basq.numerics.search.ENOUGH", 0.0)  # to the end
    x, y = data()
    start = make_kernel(name, 2)
    spread = float(np.mean((y - y.mean()) ** 2 if constant_mean else y**2))
    prior = Hyperprior.weak(start, 2, spread)
    gp = fit(x, y, start, constant_mean=constant_mean, noise=noise, max_steps=200)

    def objective(theta):
        return negative_log_posterior(theta, x, y, start, prior, constant_mean=constant_mean, noise=noise)

    first, best = start.theta, gp.kernel.theta
    if noise is None:
        relative = gp.noise[0] / gp.kernel.variance
        first, best = np.append(first, np.log(1e-4)), np.append(best, np.log(relative))
    before, after = objective(first)[0], objective(best)
    assert after[0] < before
    assert np.abs(after[1]).max() < 1e-2 * max(1.0, abs(after[0]))
    assert type(gp.kernel) is type(start)
    assert (gp.mean != 0.0) == constant_mean


def test_a_search_ends_when_the_data_can_hardly_tell(monkeypatch):
    x, y = data(n=60)
    values = {}
    for enough in (0.1, 0.0):
        monkeypatch.setattr("basq.numerics.search.ENOUGH", enough)
        values[enough] = fit(x, y, make_kernel("rbf", 2), noise=1e-4).log_marginal_likelihood
    assert values[0.0] - 0.3 < values[0.1] <= values[0.0] + 0.3


@pytest.mark.parametrize("family", ["rbf", "matern32", "matern52"])
def test_lengthscales_and_variance_of_a_drawn_path_are_found(family):
    truth = KERNELS[family](2.0, np.array([0.5, 1.5]))
    x = np.random.default_rng(2).uniform(-2.5, 2.5, (150, 2))
    gp = fit(x, path(truth, x, seed=3), make_kernel(family, 2), noise=1e-8)
    error = np.log(gp.kernel.lengthscale / truth.lengthscale)
    assert np.abs(error).max() < 0.25
    assert abs(np.log(gp.kernel.variance / truth.variance)) < 1.0


def test_isotropic_lengthscale_of_a_drawn_path_is_found():
    truth = RBF(1.0, np.full(2, 0.7))
    x = np.random.default_rng(4).uniform(-2.5, 2.5, (100, 2))
    gp = fit(x, path(truth, x, seed=5), make_kernel("rbf-iso", 2), noise=1e-8)
    assert gp.kernel.lengthscale[0] == gp.kernel.lengthscale[1] == pytest.approx(0.7, rel=0.1)


def test_learned_noise_is_near_the_truth():
    truth = RBF(1.0, np.array([0.8]))
    x = np.random.default_rng(6).uniform(-4.0, 4.0, (200, 1))
    gp = fit(x, path(truth, x, seed=7, noise=0.04), make_kernel("rbf", 1), noise=None)
    np.testing.assert_allclose(np.sqrt(gp.noise), 0.2, rtol=0.15)
    assert gp.kernel.lengthscale[0] == pytest.approx(0.8, rel=0.4)


def test_noise_is_relative_to_the_kernel_variance():
    x, y = data()
    gp = fit(x, y, make_kernel("rbf", 2), noise=1e-3)
    np.testing.assert_allclose(gp.noise, 1e-3 * gp.kernel.variance, rtol=1e-12)


def test_known_noise_is_added():
    x, y = data()
    known = np.linspace(0.0, 0.1, len(x))
    gp = fit(x, y, make_kernel("rbf", 2), noise=1e-3, known_noise=known)
    np.testing.assert_allclose(gp.noise, 1e-3 * gp.kernel.variance + known, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("constant_mean", [False, True])
def test_two_points_do_not_collapse_the_lengthscale(name, constant_mean):
    x, y = np.array([[-0.4, 0.1], [0.5, -0.3]]), np.array([0.0, 1.0])
    gp = fit(x, y, make_kernel(name, 2), constant_mean=constant_mean)
    assert (gp.kernel.lengthscale > 0.2).all()
    assert (gp.kernel.lengthscale < 20.0).all()
    assert np.isfinite(gp.predict(x + 0.1).mean).all()


@pytest.mark.parametrize("constant_mean", [False, True])
@pytest.mark.parametrize("noise", [1e-6, None])
@pytest.mark.parametrize("level", [0.0, 1.0, -30.0])
def test_constant_data(constant_mean, noise, level):
    x, _ = data(10)
    gp = fit(x, np.full(10, level), make_kernel("rbf", 2), constant_mean=constant_mean, noise=noise)
    p = gp.predict(x + 0.05)
    np.testing.assert_allclose(p.mean, level, rtol=1e-2, atol=1e-6)
    assert np.isfinite(p.var).all()
    if constant_mean:
        assert gp.mean == pytest.approx(level, rel=1e-6, abs=1e-12)


def test_one_point():
    gp = fit(np.zeros((1, 2)), np.array([1.3]), make_kernel("rbf", 2))
    assert gp.predict(np.zeros((1, 2))).mean[0] == pytest.approx(1.3, rel=1e-4)


def test_duplicate_points():
    x, y = data(8)
    gp = fit(np.concatenate([x, x]), np.concatenate([y, y]), make_kernel("matern12", 2))
    np.testing.assert_allclose(gp.predict(x).mean, y, atol=1e-3)


def test_constant_mean_is_the_generalised_least_squares_one():
    x, y = data()
    gp = fit(x, y + 50.0, make_kernel("matern32", 2), constant_mean=True, noise=1e-3)
    ones = np.ones(len(x))
    best = (ones @ gp.precision @ gp.y) / (ones @ gp.precision @ ones)
    assert gp.mean == pytest.approx(best, abs=0.05 * np.sqrt(gp.kernel.variance))
    np.testing.assert_allclose(gp.predict(x).mean, y + 50.0, atol=0.1)


@pytest.mark.parametrize("name", ["rbf", "matern52"])
def test_warm_start_gives_the_same_optimum(name, monkeypatch):
    monkeypatch.setattr("basq.numerics.search.ENOUGH", 1e-9)
    monkeypatch.setattr("basq.numerics.search.LEFT", 1e-9)
    x, y = data(40)
    cold = fit(x, y, make_kernel(name, 2), constant_mean=True, noise=1e-3, max_steps=200)
    warm = fit(x, y, cold.kernel, constant_mean=True, noise=1e-3, max_steps=200, recalled=cold.optimum)
    np.testing.assert_allclose(warm.kernel.theta, cold.kernel.theta, atol=1e-2)
    other = fit(x, y, make_kernel(name, 2, lengthscale=2.0), constant_mean=True, noise=1e-3, max_steps=200)
    np.testing.assert_allclose(other.kernel.theta, cold.kernel.theta, atol=2e-2)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_scaling_the_data_scales_the_fit(factor):
    x, y = data()
    base = fit(x, y, make_kernel("rbf", 2), noise=1e-3, max_steps=200)
    scaled = fit(x, factor * y, make_kernel("rbf", 2, variance=factor**2), noise=1e-3, max_steps=200)
    np.testing.assert_allclose(scaled.kernel.lengthscale, base.kernel.lengthscale, rtol=1e-2)
    assert scaled.kernel.variance == pytest.approx(factor**2 * base.kernel.variance, rel=5e-2)


def test_a_given_hyperprior_is_used():
    x, y = data()
    start = make_kernel("rbf", 2)
    centre, sd = np.log([0.3, 3.0, 1.0]), np.full(3, 1e-3)
    gp = fit(x, y, start, noise=1e-3, hyperprior=Hyperprior(centre, sd, centre - 1.0, centre + 1.0))
    np.testing.assert_allclose(gp.kernel.lengthscale, [0.3, 3.0], rtol=0.02)


def test_bounds_hold_and_an_infinite_spread_is_flat():
    x, y = data()
    start = make_kernel("rbf", 2)
    lower, upper = np.log([0.1, 0.1, 0.1]), np.log([0.4, 0.5, 100.0])
    prior = Hyperprior(np.zeros(3), np.full(3, np.inf), lower, upper)
    gp = fit(x, y, start, noise=1e-3, hyperprior=prior)
    np.testing.assert_allclose(gp.kernel.lengthscale, [0.4, 0.5], rtol=1e-10)
    theta = start.theta + 0.1
    value, _ = negative_log_posterior(theta, x, y, start, prior, constant_mean=False, noise=1e-3)
    current = start.with_theta(theta)
    expected = GP.condition(x, y, current, noise=1e-3 * current.variance).log_marginal_likelihood
    assert value == pytest.approx(-expected, rel=1e-9)


def test_the_best_of_several_starts_wins(monkeypatch):
    monkeypatch.setattr("basq.numerics.search.ENOUGH", 1e-9)
    # a short wave and a long one: either lengthscale is a local optimum
    x = np.linspace(-3.0, 3.0, 25)[:, None]
    y = np.sin(9.0 * x[:, 0]) + 0.4 * x[:, 0]
    starts = [make_kernel("rbf", 1, lengthscale=s) for s in (5.0, 0.2)]
    prior = Hyperprior.weak(starts[0], 1, float(np.mean(y**2)))

    def objective(gp):
        relative = gp.noise[0] / gp.kernel.variance
        theta = np.append(gp.kernel.theta, np.log(relative))
        return negative_log_posterior(theta, x, y, gp.kernel, prior, constant_mean=False, noise=None)[0]

    alone = [fit(x, y, k, noise=None) for k in starts]
    values = [objective(gp) for gp in alone]
    assert abs(values[0] - values[1]) > 1.0
    for warm, other in ((alone[0], starts[1]), (alone[1], starts[0])):  # a search from each
        together = fit(x, y, warm.kernel, noise=None, recalled=warm.optimum, other_starts=[other])
        assert objective(together) == pytest.approx(min(values), abs=1e-3)


def test_a_cold_search_begins_at_the_best_guess(monkeypatch):
    x, y = data(40)
    near, far = make_kernel("rbf", 2, lengthscale=1.5), make_kernel("rbf", 2, lengthscale=0.05)
    expected = fit(x, y, near, noise=1e-3)
    for first, second in ((near, far), (far, near)):
        gp = fit(x, y, first, noise=1e-3, other_starts=[second])
        np.testing.assert_allclose(gp.kernel.theta, expected.kernel.theta, rtol=1e-12)


class TestStillRight:
    """What comes after the learning is drawn from the same process, or is not."""

    @staticmethod
    def grown(change=lambda y: y, n=120, n_new=20, seed=0):
        kernel = make_kernel("rbf", 2, lengthscale=0.8)
        x = np.random.default_rng(seed).standard_normal((n + n_new, 2))
        y = path(kernel, x, seed, noise=1e-2)
        gp = fit(x[:n], y[:n], kernel, noise=1e-2)
        assert gp.n_learned == n
        y[n:] = change(y[n:])
        return gp.grown(x, y, np.full(len(x), 1e-2 * gp.kernel.variance))

    def test_of_the_same_process(self):
        kept = [still_right(self.grown(seed=s)) for s in range(20)]
        assert sum(kept) >= 14

    @pytest.mark.parametrize("change", [lambda y: y + 1.0, lambda y: 3.0 * y, lambda y: -y])
    def test_of_another_one(self, change):
        assert not any(still_right(self.grown(change, seed=s)) for s in range(5))

    def test_not_of_many(self):
        assert not still_right(self.grown(n=60))

    def test_not_on_another_scale(self):
        gp = self.grown()
        assert not still_right(replace(gp, y=1.2 * gp.y))

    def test_never_without_learning(self):
        x, y = data()
        assert not still_right(GP.condition(x, y, make_kernel("rbf", 2), noise=1e-2))


@pytest.mark.parametrize("name", NAMES)
def test_weak_hyperprior(name):
    kernel = make_kernel(name, 4)
    prior = Hyperprior.weak(kernel, 4, 7.0)
    assert prior.mean.shape == prior.sd.shape == kernel.theta.shape
    np.testing.assert_allclose(np.exp(prior.mean[: kernel.variance_index]), 2.0, rtol=1e-12)
    assert np.exp(prior.mean[kernel.variance_index]) == pytest.approx(7.0)
    theta = kernel.theta + 0.3
    penalty, gradient = prior.penalty(theta)
    np.testing.assert_allclose(gradient, differences(lambda t: prior.penalty(t)[0], theta), rtol=1e-8)
    assert penalty > 0.0
    assert prior.penalty(prior.mean)[0] == 0.0
