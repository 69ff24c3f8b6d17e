"""The evidence of a log-model by importance sampling."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from basq.auto.chart import Chart
from basq.auto.importance import estimate
from basq.auto.log_model import LogModel
from basq.auto.settings import Integration, Settings
from basq.auto.smc import temper
from basq.numerics.gaussians import GaussianMixture
from basq.observations import Observations

SETTINGS = Settings()
PRIOR = GaussianMixture.standard(3)


def draws(n, most=0):
    """So many draws at first, and so many more."""
    return replace(Integration(), draws_per_dim=n, least_dims=1, most_draws=most)


@pytest.fixture(scope="module")
def model():
    """A surrogate of a Gaussian log-likelihood with a bend, sure enough of itself for more draws to matter."""
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.standard_normal((60, 3)), 0.5 + 0.4 * rng.standard_normal((60, 3))])
    values = -0.5 * ((u - 0.5) ** 2).sum(axis=1) / 0.09 - 0.3 * np.sin(3.0 * u[:, 0])
    nothing = np.zeros(len(u))
    seen = Observations(u, u, values, nothing, nothing, nothing.astype(bool), nothing.astype(np.intp))
    reference = Chart.of(0.5 + 0.3 * rng.standard_normal((500, 3)))
    return LogModel.fit(seen, PRIOR.log_pdf(u), reference, None, SETTINGS)


def test_further_draws_agree_with_many_full_ones(model):
    points = temper(model, PRIOR, 1000, np.random.default_rng(1), SETTINGS.samples).u
    reference = estimate(model, PRIOR, points, np.random.default_rng(2), draws(100_000))
    errors, claimed = [], []
    for seed in range(30):
        few = estimate(model, PRIOR, points, np.random.default_rng(seed), draws(500))
        more = estimate(model, PRIOR, points, np.random.default_rng(seed), draws(500, 20_000), error=0.005)
        assert more.monte_carlo < few.monte_carlo
        np.testing.assert_array_equal(more.u, few.u)  # the posterior's draws stay
        errors.append((few.log_mean - reference.log_mean, more.log_mean - reference.log_mean))
        claimed.append((few.monte_carlo, more.monte_carlo))
    z = np.array(errors) / np.hypot(claimed, reference.monte_carlo)
    assert 0.5 < np.sqrt(np.mean(z[:, 0] ** 2)) < 1.6
    assert 0.5 < np.sqrt(np.mean(z[:, 1] ** 2)) < 1.6
    rms = np.sqrt(np.mean(np.square(errors), axis=0))
    assert rms[1] < 0.5 * rms[0]


class Rash(LogModel):
    """Believes in a peak, in a place where it is so unsure that the expected likelihood is what it was."""

    def mean(self, u):
        return super().mean(u) + np.where(u[:, 0] > 1.3, 20.0, 0.0)


def test_further_draws_where_nothing_is_known_do_not_rule(model):
    rash = Rash(model.gp, model.chart, model.scale, model.reach, model.feasible, model.in_play, model.settings)
    points = temper(model, PRIOR, 1000, np.random.default_rng(1), SETTINGS.samples).u
    reference = estimate(model, PRIOR, points, np.random.default_rng(2), draws(100_000))
    for seed in range(10):
        found = estimate(rash, PRIOR, points, np.random.default_rng(seed), draws(500, 20_000), error=0.005)
        assert abs(found.log_mean - reference.log_mean) < 4.0 * np.hypot(found.monte_carlo, reference.monte_carlo)
        assert found.monte_carlo < 0.02


def test_the_evidence_is_that_of_the_function(model):
    points = temper(model, PRIOR, 1000, np.random.default_rng(1), SETTINGS.samples).u
    found = estimate(model, PRIOR, points, np.random.default_rng(2), draws(4000, 20_000), error=0.01)
    rng = np.random.default_rng(3)
    law = stats.multivariate_normal(np.full(3, 0.5 / 1.09), 0.09 / 1.09 * np.eye(3))
    x = law.rvs(400_000, random_state=rng)
    normal = stats.multivariate_normal(np.full(3, 0.5), 1.09 * np.eye(3)).logpdf(np.zeros(3)) + 1.5 * np.log(
        2 * np.pi * 0.09
    )
    truth = normal + np.log(np.mean(np.exp(-0.3 * np.sin(3.0 * x[:, 0]))))
    assert abs(found.log_mean - truth) < 0.05


@pytest.mark.parametrize("error", [np.inf, 0.005])
def test_heavy_draws_show_what_the_samples_have_missed(model, error):
    points = temper(model, PRIOR, 1000, np.random.default_rng(1), SETTINGS.samples).u
    whole = estimate(model, PRIOR, points, np.random.default_rng(2), draws(2000, 20_000), error=error)
    half = estimate(
        model, PRIOR, points[points[:, 0] < 0.3], np.random.default_rng(2), draws(2000, 20_000), error=error
    )
    assert len(half.heavy) > len(whole.heavy)
    assert np.mean(half.heavy[:, 0] > 0.3) > 0.9


class Doubtful(LogModel):
    """Sure of nothing: the expected likelihood is next to none wherever the mean is not."""

    def integrand(self, u):
        found = super().integrand(u)
        return replace(found, expected=found.expected - 800.0 * (1.0 + u[:, 0] ** 2))


def test_a_likelihood_that_is_expected_to_be_next_to_nothing(model):
    doubtful = Doubtful(model.gp, model.chart, model.scale, model.reach, model.feasible, model.in_play, model.settings)
    points = temper(model, PRIOR, 1000, np.random.default_rng(1), SETTINGS.samples).u
    found = estimate(doubtful, PRIOR, points, np.random.default_rng(2), draws(500, 2000), error=0.005)
    assert np.isfinite([found.log_mean, found.monte_carlo]).all()


def test_a_promise_above_everything_seen_is_an_error():
    """A parabola seen on its slopes only: its peak is known, and not believed."""
    rng = np.random.default_rng(3)
    u = rng.standard_normal((60, 3))
    u = u[((u - 0.5) ** 2).sum(axis=1) > 1.5]
    values = -0.5 * ((u - 0.5) ** 2).sum(axis=1) / 0.05**2
    seen = Observations.empty(3).append(u, u, values, np.zeros(len(u)))
    model = LogModel.fit(seen, PRIOR.log_pdf(u), Chart.first(u, values, SETTINGS.chart), None, SETTINGS)
    found = estimate(model, PRIOR, temper(model, PRIOR, 1000, rng, SETTINGS.samples).u, rng, draws(4000))
    truth = 3.0 * np.log(0.05) - 0.5 * 3.0 * 0.25 / 1.0025 - 1.5 * np.log(1.0025)
    assert found.log_mean < truth - 10.0
    assert found.tamed > 0.3 * (truth - found.log_mean)


def test_surrogate_variance_against_sample_paths():
    """Few points of a bumpy likelihood: log Z of the paths that the process may take varies as much as it says."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((40, 3))
    values = -2.0 * ((u - 0.3) ** 2).sum(axis=1) + np.sin(3.0 * u[:, 0] * u[:, 1]) + np.cos(2.0 * u[:, 1] * u[:, 2])
    seen = Observations.empty(3).append(u, u, values, np.zeros(40))
    unsure = LogModel.fit(seen, PRIOR.log_pdf(u), Chart.first(u, values, SETTINGS.chart), None, SETTINGS)
    points = temper(unsure, PRIOR, 1000, rng, SETTINGS.samples).u
    found = estimate(unsure, PRIOR, points, rng, draws(2000))
    w = np.exp(found.log_weights)
    p = unsure.integrand(found.u[rng.choice(len(w), 600, p=w)]).prediction
    eigenvalues, vectors = np.linalg.eigh(unsure.cov(p, p))
    paths = rng.standard_normal((4000, 600)) @ (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T
    # draws of the expected likelihood: relative to it, log Z of a path is the log of a plain mean
    log_z = np.log(np.exp(paths - 0.5 * p.var / unsure.scale.factor**2).mean(axis=1))
    assert 1e-3 < found.surrogate_var < 0.1  # something is uncertain, and not so much that first order fails
    assert found.surrogate_var == pytest.approx(log_z.var(), rel=0.3)
