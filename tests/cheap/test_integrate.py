"""Integrals over cheap parameters, against closed forms and brute force."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from basq.cheap.integrate import integrate
from basq.cheap.line import integrate_line


def gaussian(mean, sd):
    """A Gaussian likelihood in standard space, and the log of its integral over N(0, I)."""
    mean, sd = np.atleast_1d(mean), np.atleast_1d(sd)
    truth = np.sum(np.log(sd) - 0.5 * np.log1p(sd**2) - 0.5 * mean**2 / (1.0 + sd**2))
    return lambda v: -0.5 * (((v - mean) / sd) ** 2).sum(axis=1), float(truth)


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.3, 1e-3), (-4.321, 1e-5), (2.0, 30.0), (6.0, 0.01)])
def test_one_parameter_however_narrow(mean, sd):
    log_l, truth = gaussian(mean, sd)
    found = integrate(lambda v: log_l(v) - 1e6, 1, np.random.default_rng(0))
    assert found.log_likelihood == pytest.approx(truth - 1e6, abs=1e-6)
    assert found.error < 1e-6
    var = sd**2 / (1.0 + sd**2)
    assert found.draws.mean() == pytest.approx(mean / (1.0 + sd**2), abs=0.02 * np.sqrt(var))
    assert found.draws.std() == pytest.approx(np.sqrt(var), rel=0.03)


def test_two_peaks_and_a_wall_on_a_line():
    def log_density(v):
        inside = np.logaddexp(stats.norm.logpdf(v, -3.03, 1e-3), stats.norm.logpdf(v, 2.1, 0.01))
        return np.where(v < 2.1, inside, -np.inf)

    log_integral, error, nodes, log_weights = integrate_line(log_density)
    assert log_integral == pytest.approx(np.log(1.5), abs=1e-6)
    assert error < 1e-6
    assert np.exp(log_weights[nodes < 0.0]).sum() == pytest.approx(2.0 / 3.0)
    assert (np.diff(nodes) >= 0.0).all()


@pytest.mark.parametrize(("n_dim", "sd"), [(2, 0.01), (3, 0.5), (5, 0.1), (8, 0.05)])
def test_several_parameters(n_dim, sd):
    rng = np.random.default_rng(n_dim)
    mean, sd = rng.normal(size=n_dim), sd * np.exp(rng.normal(size=n_dim))
    log_l, truth = gaussian(mean, sd)
    found = integrate(log_l, n_dim, rng)
    assert found.error < 0.01
    assert abs(found.log_likelihood - truth) < 4.0 * found.error
    assert found.draws.shape == (128, n_dim)
    posterior_sd = sd / np.sqrt(1.0 + sd**2)
    assert (found.draws.mean(axis=0) - mean / (1.0 + sd**2)) / posterior_sd == pytest.approx(0.0, abs=0.05)
    assert found.draws.std(axis=0) / posterior_sd == pytest.approx(1.0, abs=0.05)


def test_a_tilted_ridge_of_two_parameters():
    def log_l(v):
        return -0.5 * ((v[:, 0] / 0.5) ** 2 + ((v[:, 1] - v[:, 0] ** 2) / 0.03) ** 2)

    grid = np.stack(np.meshgrid(*2 * [np.linspace(-6.0, 6.0, 1201)], indexing="ij"), axis=-1).reshape(-1, 2)
    truth = logsumexp(log_l(grid) - 0.5 * (grid**2).sum(axis=1) - np.log(2 * np.pi)) + 2 * np.log(0.01)
    for seed in range(4):
        found = integrate(log_l, 2, np.random.default_rng(seed))
        assert abs(found.log_likelihood - truth) < 4.0 * found.error < 0.2


@pytest.mark.parametrize("n_dim", [2, 3])
def test_two_modes(n_dim):
    near, truth_near = gaussian(np.full(n_dim, 1.0), np.full(n_dim, 0.1))
    far, truth_far = gaussian(np.full(n_dim, -1.5), np.full(n_dim, 0.3))
    for seed in range(4):
        found = integrate(lambda v: np.logaddexp(near(v), far(v)), n_dim, np.random.default_rng(seed))
        assert found.log_likelihood == pytest.approx(np.logaddexp(truth_near, truth_far), abs=0.02)
        share = np.exp(truth_near - np.logaddexp(truth_near, truth_far))
        assert np.mean(found.draws[:, 0] > 0.0) == pytest.approx(share, abs=0.01)


def test_a_corner_of_zero_likelihood():
    log_l, _ = gaussian([0.3, 0.3], [0.1, 0.1])
    one = stats.norm(0.3 / 1.01, 0.1 / np.sqrt(1.01))
    whole = gaussian(0.3, 0.1)[1]
    truth = 2 * whole + one.logsf(0.0) + one.logsf(0.5)
    for seed in range(4):
        found = integrate(
            lambda v: np.where((v[:, 0] > 0.0) & (v[:, 1] > 0.5), log_l(v), -np.inf), 2, np.random.default_rng(seed)
        )
        assert abs(found.log_likelihood - truth) < 4.0 * found.error + 0.002
        assert (found.draws > [0.0, 0.5]).all()


@pytest.mark.parametrize("n_dim", [1, 3])
def test_nothing_but_zero(n_dim):
    found = integrate(lambda v: np.full(len(v), -np.inf), n_dim, np.random.default_rng(0))
    assert found.log_likelihood == -np.inf
    assert found.draws.shape == (0, n_dim)
