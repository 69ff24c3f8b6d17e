"""Densities smoothed from samples are nearer to the truth than kernel estimates, and do not wave."""

import numpy as np
import pytest
from scipy import stats

from basq.posterior.sampled import smooth_1d


def kernel_error(samples, law, t):
    return np.trapezoid(np.abs(stats.gaussian_kde(samples)(t) - law.pdf(t)), t)


@pytest.mark.parametrize(
    ("law", "ratio"),
    [
        (stats.norm(2e-14, 1e-16), 0.7),
        (stats.norm(), 0.7),
        (stats.t(3), 0.9),
        (stats.skewnorm(5), 0.8),
        (stats.gamma(2.0), 1.0),
    ],
    ids=lambda v: getattr(getattr(v, "dist", None), "name", str(v)),
)
def test_it_is_better_than_a_kernel_estimate(law, ratio):
    errors = []
    for seed in range(4):
        samples = law.rvs(4000, random_state=seed)
        low, high = law.ppf([1e-4, 1 - 1e-4])
        t = np.linspace(low - 0.05 * (high - low), high, 4001)
        density = smooth_1d(samples)
        ours = np.trapezoid(np.abs(density.pdf(t) - law.pdf(t)), t)
        errors.append((ours, kernel_error(samples, law, t)))
        turns = np.diff(np.sign(np.diff(density.pdf(np.linspace(*law.ppf([0.01, 0.99]), 400)))))
        assert np.abs(turns).sum() == 2  # one maximum: no waves
    ours, kernel = np.mean(errors, axis=0)
    assert ours < ratio * kernel


def test_quantiles_are_not_widened():
    samples = stats.norm.rvs(size=4000, random_state=0)
    density = smooth_1d(samples)
    for q in (0.025, 0.16, 0.5, 0.84, 0.975):
        truth = stats.norm.ppf(q)
        sd = np.sqrt(q * (1 - q) / 4000) / stats.norm.pdf(truth)  # of the samples' own quantile
        assert abs(density.ppf([q])[0] - truth) < 2.0 * sd
    assert density.moments()[1][0, 0] == pytest.approx(samples.var(), rel=0.01)


def test_narrow_modes_far_apart_are_kept():
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.normal(-5, 0.02, 1200), rng.normal(5, 0.05, 2800)])
    density = smooth_1d(samples)
    assert density.cdf([0.0])[0] == pytest.approx(0.3, abs=0.01)
    assert density.pdf([-5.0])[0] == pytest.approx(0.3 * stats.norm(0, 0.02).pdf(0), rel=0.15)
    assert density.pdf([0.0])[0] < 0.01


def test_an_unconstrained_parameter_is_flat_up_to_the_edges_of_its_prior():
    u = stats.norm.rvs(size=4000, random_state=1)  # standard space: the posterior is the prior
    x = np.linspace(0.01, 0.99, 99)
    flat = smooth_1d(u).pdf(stats.norm.ppf(x)) / stats.norm.pdf(stats.norm.ppf(x))
    np.testing.assert_allclose(flat, 1.0, atol=0.15)


@pytest.mark.parametrize("samples", [np.full(50, 3.0), np.array([0.0, 1.0]), np.linspace(0, 1e-200, 40)])
def test_few_or_equal_samples(samples):
    density = smooth_1d(samples)
    assert np.isfinite(density.values).all()
    assert np.trapezoid(density.values, density.grid) == pytest.approx(1.0)
