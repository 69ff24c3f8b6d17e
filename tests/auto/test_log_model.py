import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from basq.auto.cells import Plan, _models
from basq.auto.chart import Chart
from basq.auto.importance import estimate
from basq.auto.log_model import LogModel
from basq.auto.settings import Integration, Settings
from basq.auto.smc import next_temperature, systematic, temper
from basq.auto.values import Reach, Scale
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.student import MixtureSettings, StudentMixture
from basq.observations import Observations
from helpers.observations import observe

SETTINGS = Settings()
VALUES = SETTINGS.values


def fit_to(log_l, u, noise=0.0):
    measure = GaussianMixture.standard(u.shape[1])
    data = observe(u, log_l(u), noise)
    log_measure = measure.log_pdf(u)
    return LogModel.fit(
        data, log_measure, Chart.first(u, data.log_values + log_measure, SETTINGS.chart), None, SETTINGS
    ), measure


def gaussian(u):
    return -0.5 * ((u - 0.5) ** 2).sum(axis=1) / 0.3**2 - 1e5


def test_a_chart_whitens():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 3)) @ np.diag([1.0, 1e-3, 10.0]) + [1.0, 2.0, 3.0]
    z = Chart.of(points).whiten(points)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.cov(z.T), np.eye(3), atol=1e-4)


def test_a_chart_of_one_point_is_finite():
    reference = Chart.of(np.ones((1, 2)))
    assert np.isfinite(reference.whiten(np.zeros((1, 2)))).all()


def test_scale_is_one_when_enough_points_are_in_the_window():
    gap = np.linspace(0.0, VALUES.window(2), 40)
    reach = Reach.of(-gap, gap, 2, VALUES.window(2))
    assert reach.filled
    assert reach.scale(np.inf) == Scale(1.0, 0.0)


def test_scale_shrinks_early_values():
    gap = np.concatenate([[0.0], np.geomspace(1e3, 1e6, 31)])
    reach = Reach.of(-gap - 7.0, gap, 2, VALUES.window(2))
    need = 2 + 3 * 4 // 2
    for bend in reach.bends(VALUES, 0.0):
        scale = reach.scale(bend)
        assert scale.top == -7.0
        assert -scale.scaled(scale.top - np.sort(gap)[need]) <= VALUES.window(2) * (1.0 + 1e-12)
        assert scale.factor == 1.0 or -scale.scaled(scale.top - np.sort(gap)[need]) == pytest.approx(VALUES.window(2))
    assert not reach.filled


@pytest.mark.parametrize("bend", [np.inf, 1e4, 20.0, 0.5])
@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_a_scale_and_its_inverse(bend, factor):
    scale = Scale(factor, -3.0, bend)
    values = -3.0 - np.array([-4.0, -1e-3, 1e-3, 0.1, 3.0, 50.0, 1e4, 1e9])
    y = scale.scaled(values)
    np.testing.assert_allclose(scale.nats(y), values + 3.0, rtol=1e-9)
    step = 1e-6 * np.maximum(np.abs(y), 1e-9)
    slope = (scale.nats(y + step) - scale.nats(y - step)) / (2.0 * step)
    np.testing.assert_allclose(scale.slope(y), slope, rtol=1e-5)


def test_values_are_compressed_where_that_predicts_better():
    rng = np.random.default_rng(2)
    u = rng.normal(size=(60, 2))
    plan = Plan(Chart.standard(2), (), None, None, False)

    def bend(log_likelihood):
        seen = Observations.empty(2).append(u, u, log_likelihood(u), np.zeros(60))
        log_measure = -0.5 * (u**2).sum(axis=1)
        return _models(plan, seen, log_measure, (None,), Settings())[0][0].scale.bend

    assert np.isinf(bend(lambda u: -0.5 * ((u - 0.3) ** 2 / 0.04).sum(axis=1)))
    assert np.isfinite(bend(lambda u: (9.0 * u - np.exp(6.0 * u)).sum(axis=1)))  # counts with a log-rate


def test_an_old_surrogate_learns_more_with_its_own_hyperparameters():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(40, 2))
    seen = Observations.empty(2).append(u, u, gaussian(u), np.zeros(40))
    log_measure = -0.5 * (u**2).sum(axis=1)
    first = LogModel.fit(seen.at(np.arange(30)), log_measure[:30], Chart.standard(2), None, Settings())
    again = first.again(seen, log_measure, Settings())
    assert len(again.gp.y) == 40
    np.testing.assert_array_equal(again.gp.kernel.theta, first.gp.kernel.theta)
    np.testing.assert_allclose(again.predict(u)[0], gaussian(u), atol=0.05)


def test_a_gaussian_is_learned_from_a_few_points():
    rng = np.random.default_rng(0)
    model, _ = fit_to(gaussian, rng.normal(size=(30, 3)))
    u = 0.5 + 0.3 * rng.normal(size=(200, 3))
    mean, sd = model.predict(u)
    np.testing.assert_allclose(mean, gaussian(u), atol=0.05)
    assert sd.max() < 0.5


def test_zero_likelihood_is_learned_as_a_region():
    rng = np.random.default_rng(1)

    def half_space(u):
        return np.where(u[:, 0] > 0.0, -0.5 * (u * u).sum(axis=1), -np.inf)

    model, _ = fit_to(half_space, rng.normal(size=(60, 2)))
    inside, outside = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])
    assert model.mean(inside)[0] - model.mean(outside)[0] > 2.0


def test_known_noise_is_not_interpolated():
    rng = np.random.default_rng(2)
    u = rng.normal(size=(80, 2))
    noise = rng.normal(size=80)

    def noisy(x):
        return -0.5 * (x * x).sum(axis=1) + (noise if len(x) == 80 else 0.0)

    model, _ = fit_to(noisy, u, noise=1.0)
    mean, sd = model.predict(u)
    assert np.sqrt(np.mean((mean + 0.5 * (u * u).sum(axis=1)) ** 2)) < 0.6
    assert sd.max() < 1.0


def test_evidence_of_a_sharp_gaussian():
    rng = np.random.default_rng(3)
    model, measure = fit_to(gaussian, 0.5 + 0.6 * rng.normal(size=(40, 3)))
    population = temper(model, measure, 1000, rng, SETTINGS.samples)
    assert population.beta == 1.0
    found = estimate(model, measure, population.u, rng, Integration())
    s2 = 0.3**2
    truth = -1e5 + 1.5 * np.log(s2 / (1 + s2)) - 1.5 * 0.25 / (1 + s2)
    assert found.log_mean == pytest.approx(truth, abs=4 * found.monte_carlo + 0.02)
    assert found.monte_carlo < 0.03
    weights = np.exp(found.log_weights)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights @ found.u, 0.5 / (1 + s2), atol=0.03)


def test_tempering_stops_where_nothing_is_known():
    rng = np.random.default_rng(4)
    u = rng.normal(size=(12, 6))
    model, measure = fit_to(lambda x: -1e4 * (np.sin(3 * x) ** 2).sum(axis=1), u)
    assert temper(model, measure, 500, rng, SETTINGS.samples).beta < 1.0


def test_next_temperature_keeps_its_share_of_the_effective_size():
    log_l = np.random.default_rng(5).normal(size=2000) * 30.0
    beta = next_temperature(log_l, 0.0, SETTINGS.samples)
    w = np.exp(beta * (log_l - log_l.max()))
    assert w.sum() ** 2 / (w @ w) / len(w) == pytest.approx(SETTINGS.samples.kept, abs=0.01)
    assert next_temperature(np.zeros(10), 0.3, SETTINGS.samples) == 1.0


def test_systematic_resampling_is_even():
    weights = np.array([0.5, 0.25, 0.25, 0.0])
    counts = np.bincount(systematic(weights, len(weights), np.random.default_rng(6)), minlength=4)
    assert counts[0] == 2
    assert counts[3] == 0


def test_student_mixture_is_a_density():
    rng = np.random.default_rng(7)
    mixture = StudentMixture.of(rng.normal(size=(2000, 1)) * 0.3 + 1.0, rng, MixtureSettings())
    t = np.linspace(-200.0, 200.0, 400_001)
    assert np.trapezoid(np.exp(mixture.log_pdf(t[:, None])), t) == pytest.approx(1.0, abs=1e-3)
    draws = mixture.sample(20_000, rng)
    assert np.median(draws) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("sd", [0.05, 0.5, 2.0])
def test_unknown_noise_is_estimated(sd):
    rng = np.random.default_rng(3)
    u = rng.normal(size=(120, 2))
    noise = sd * rng.normal(size=120)
    data = observe(u, -2.0 * (u * u).sum(axis=1) + noise, np.nan)
    log_measure = -0.5 * (u * u).sum(axis=1)
    reference = Chart.first(u, data.log_values + log_measure, SETTINGS.chart)
    model = None
    for _ in range(2):  # as after two batches
        model = LogModel.fit(data, log_measure, reference, model, SETTINGS)
    assert model.noise == pytest.approx(noise.std(), rel=0.15)
    grid = rng.normal(size=(200, 2))
    error = model.predict(grid)[0] + 2.0 * (grid * grid).sum(axis=1)
    assert np.sqrt(np.mean(error**2)) < 0.6 * sd + 0.02


def test_exact_values_have_no_estimated_noise():
    u = np.random.default_rng(0).normal(size=(40, 2))
    assert fit_to(lambda x: -(x * x).sum(axis=1), u)[0].noise is None


def test_unknown_noise_of_exact_values_is_small_and_grows_at_once_when_the_model_is_rescued():
    rng = np.random.default_rng(3)
    u = rng.normal(size=(60, 2))
    noise, log_measure = np.zeros(60), -0.5 * (u * u).sum(axis=1)
    reference = Chart.first(u, log_measure - 2.0 * (u * u).sum(axis=1), SETTINGS.chart)

    def learn(previous, **options):
        data = observe(u, -2.0 * (u * u).sum(axis=1) + noise, np.nan)
        return LogModel.fit(data, log_measure, reference, previous, SETTINGS, **options)

    model = None
    for _ in range(3):
        model = learn(model)
    assert model.noise < 0.01
    noise = rng.normal(size=60)
    assert learn(model, rescue=True).noise == pytest.approx(noise.std(), rel=0.25)


@pytest.fixture(scope="module")
def learned():
    return fit_to(gaussian, np.random.default_rng(0).normal(size=(30, 3)))[0]


@pytest.mark.parametrize("sd", [0.05, 0.7, 1.9])
@pytest.mark.parametrize("below", [8.0, 1.0, 0.0, -3.0])
def test_expected_likelihood_is_that_of_a_normal_below_the_ceiling(learned, below, sd):
    factor, ceiling = learned.scale.factor, learned.ceiling / learned.scale.factor
    mean = ceiling - below
    scaled = np.array([mean * factor])
    got = learned._tamed(scaled) + learned._bonus(scaled, np.array([sd * factor]))
    log_total = norm.logcdf(ceiling, mean, sd)
    low, points = ceiling - max(below, 0.0) - 12.0 * sd, [max(ceiling - sd**2 / 3.0, ceiling - sd)]
    mass = quad(
        lambda f: np.exp(f - ceiling + norm.logpdf(f, mean, sd) - log_total), low, ceiling, points=points, epsrel=1e-10
    )[0]
    truth = ceiling + np.log(mass)
    rise = np.log1p(max(-below * factor, 0.0)) / factor  # above the ceiling a slope is left for the sampler to climb
    assert got[0] == pytest.approx(truth + rise, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "n_dim", "factor"), [(200, 10, 200 / 134), (400, 10, 400 / 334), (40, 10, 2.0), (90, 2, 90 / 84)]
)
def test_variances_are_widened_by_the_degrees_of_freedom_of_a_quadratic(n, n_dim, factor):
    assert VALUES.overfit(n, n_dim, 0.0) == pytest.approx(factor)


def test_bends_count_as_coefficients():
    assert VALUES.overfit(200, 4, 12.0) == pytest.approx(200 / (200 - 15 - 12))


def test_squared_errors_of_a_regression_are_too_small_by_the_same_factor():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 60, 4)), rng.normal(size=(400, 60, 1))
    x[:, :, 0] = 1.0
    i, j = np.triu_indices(4)
    quadratic = x[:, :, i] * x[:, :, j]
    residual = y - quadratic @ (np.linalg.pinv(quadratic) @ y)
    assert VALUES.overfit(60, 3, 0.0) * np.mean(residual**2) == pytest.approx(1.0, abs=0.03)


def test_far_below_the_ceiling_uncertainty_adds_half_the_variance(learned):
    mean, sd = np.array([learned.ceiling - 40.0]), np.array([0.5 * learned.scale.factor])
    assert learned._bonus(mean, sd)[0] == pytest.approx(0.125, abs=1e-9)


def test_the_integrand_is_what_is_sampled_with_a_widened_variance(learned):
    u = np.random.default_rng(1).normal(size=(50, 3))
    found = learned.integrand(u)
    correction, sd = learned.correction(u)
    np.testing.assert_allclose(sd, learned.predict(u)[1], rtol=1e-9)
    both = learned.mean(u) + correction
    plain = found.plug_in + learned._bonus(found.prediction.mean, sd * learned.scale.factor)
    np.testing.assert_allclose(both, plain, rtol=1e-9, atol=1e-7)
    low = (sd < 1.0) & (found.mean < learned.ceiling / learned.scale.factor - 10.0)
    assert low.any()
    more = 0.5 * (VALUES.overfit(30, 3, 0.0) - 1.0) * np.maximum(sd, 1e-3) ** 2
    np.testing.assert_allclose((found.expected - both)[low], more[low], atol=1e-6)


def test_a_search_that_has_lost_its_way_starts_afresh():
    """A parabola is learned exactly, its departures from the trend vanish; then another hill is seen."""
    rng = np.random.default_rng(0)
    near = 0.2 * rng.normal(size=(60, 3))
    hill = [2.0, 0.0, 0.0] + 0.3 * rng.normal(size=(8, 3))
    measure = GaussianMixture.standard(3)

    def two_hills(u):
        one = -0.5 * (u**2).sum(axis=1) / 0.05**2
        return np.logaddexp(one, -20.0 - 0.5 * ((u - [2.0, 0.0, 0.0]) ** 2).sum(axis=1) / 0.2**2)

    model = None
    for u in (near[:40], near, np.concatenate([near, hill])):
        data = observe(u, two_hills(u))
        reference = Chart(np.zeros(3), 0.05 * np.eye(3))
        model = LogModel.fit(data, measure.log_pdf(u), reference, model, SETTINGS)
        assert model.gp.misfit < 3.0
    high = near[two_hills(near) > -15.0]
    np.testing.assert_allclose(model.predict(high)[0], two_hills(high), atol=0.1)
