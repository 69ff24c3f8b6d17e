import numpy as np
import pytest

from basq.diagnostics import Audit, audit, calibration
from basq.gaussians import GaussianMixture
from basq.observations import Observations
from basq.selection.exploration import Explorer, explore, open_searches, outside, spread_points
from basq.surrogate.log_model import LogModel
from basq.surrogate.reference import Reference

MEASURE = GaussianMixture.standard(2)


def observe(u, values):
    return Observations.empty(2).append(u, u, values, np.zeros(len(u)))


def parabola(u):
    return -2.0 * (u * u).sum(axis=1)


@pytest.fixture(scope="module")
def model():
    u = np.random.default_rng(0).normal(size=(30, 2))
    data = observe(u, parabola(u))
    log_measure = MEASURE.log_pdf(u)
    return LogModel.fit(data, log_measure, Reference.first(u, data.log_values + log_measure), None)


@pytest.fixture(scope="module")
def population():
    return np.random.default_rng(1).normal(size=(1000, 2)) / np.sqrt(5.0)


def test_a_right_prediction_is_no_surprise(model, population):
    u = population[:16]
    found = audit(model, MEASURE, population, 30, observe(u, parabola(u)))
    assert found.n_evals == 30
    assert found.n_inside >= 14
    assert found.rms < 0.1
    assert abs(found.log_ratio) < 0.1
    assert not found.surprise


def test_a_point_far_above_its_prediction_is_a_surprise(model, population):
    u = np.array([[2.5, 2.5]])
    found = audit(model, MEASURE, population, 30, observe(u, np.array([6.0])))
    assert found.surprise
    assert found.n_inside == 1
    assert found.z2 > 8.0


def test_points_that_do_not_matter_are_not_counted(model, population):
    u = np.array([[4.0, 4.0], [3.0, -4.0]])
    found = audit(model, MEASURE, population, 30, observe(u, np.array([-200.0, -np.inf])))
    assert found.n_inside == 0
    assert np.isnan(found.z2)
    assert not found.surprise


def test_calibration_pools_the_last_batches():
    def entry(z2, n=10):
        return Audit(0, n, z2, 1.0, 0.0, False)

    assert np.isnan(calibration([]))
    assert calibration([entry(2.0)]) == 2.0
    assert calibration([entry(100.0), entry(1.0), entry(1.0), entry(1.0)]) == 1.0
    assert calibration([entry(4.0), entry(1.0)]) == pytest.approx((0.7 * 4 + 1) / 1.7)
    assert calibration([entry(4.0), entry(np.nan, n=0)]) == 4.0


def two_modes(u):
    near = -0.5 * ((u - 1.5) ** 2).sum(axis=1) / 0.2**2
    far = -0.5 * ((u + 1.5) ** 2).sum(axis=1) / 0.4**2
    return np.logaddexp(near, far)


def test_searches_find_a_mode_that_the_population_misses():
    rng = np.random.default_rng(2)
    u = rng.normal(size=(60, 2))
    log_posterior = two_modes(u) + MEASURE.log_pdf(u)
    explorer = Explorer.fit(u, log_posterior, None)
    population = 1.5 + 0.2 * rng.normal(size=(500, 2))
    reference = Reference.of(population)
    searches = open_searches(explorer, reference, population, rng)
    assert len(searches)
    assert np.linalg.norm(searches + 1.5, axis=1).min() < 1.0
    assert outside(searches, reference, population, rng).all()


def test_explore_gives_what_is_asked():
    rng = np.random.default_rng(3)
    u = rng.normal(size=(40, 2))
    explorer = Explorer.fit(u, np.append(parabola(u)[:-1], -np.inf) + MEASURE.log_pdf(u), None)
    population = 0.4 * rng.normal(size=(500, 2))
    for n in (0, 1, 4, 25):
        points, n_open = explore(explorer, Reference.of(population), population, u[:3], n, rng)
        assert points.shape == (n, 2)
        assert n_open >= 0
        assert len(np.unique(points, axis=0)) == n


def test_spread_points_keep_their_distance():
    rng = np.random.default_rng(4)
    seen = rng.normal(size=(50, 2))
    points = spread_points(seen, 8, rng)
    together = np.concatenate([seen, points])
    distance = np.linalg.norm(together[:, None] - together, axis=2) + 10.0 * np.eye(len(together))
    assert distance[50:].min() > 0.3
