import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

from basq.auto.exploration import Bulk, Explorer
from basq.auto.scouts import Scout, destinations, from_usual, unexplained, valleys
from basq.auto.seen import Seen
from basq.numerics.gaussians import GaussianMixture
from helpers.cells import SETTINGS, learn
from helpers.observations import observe

D = 3
MEASURE = GaussianMixture(np.ones(1), np.zeros((1, D)), np.eye(D)[None])
NEAR, FAR = np.full(D, 0.8), np.full(D, -1.1)


def parabola(u, centre, sd):
    return -0.5 * (((u - centre) / sd) ** 2).sum(axis=1)


def two_modes(u):
    return np.logaddexp(parabola(u, NEAR, 0.2), parabola(u, FAR, 0.1))


def one_mode(u):
    return parabola(u, NEAR, 0.2)


def heavy_tail(u):
    return -4.0 * np.log1p(((u - NEAR) ** 2).sum(axis=1) / 0.04)


def scene(function, n=60):
    """Prior points and a cloud about the near mode, and a cell that has seen only the near half of them."""
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.normal(size=(n, D)), NEAR + 0.3 * rng.normal(size=(40, D))])
    observations = observe(u, function(u))
    near = u.sum(axis=1) > 0.0
    cell = learn(observations.where(near), rng)
    explorer = Explorer.fit(u, observations.log_values + MEASURE.log_pdf(u), None, SETTINGS)
    return observations, cell, explorer


def basin(u):
    """Observations that the far mode explains better than the near one."""
    return parabola(u, FAR, 0.1) > parabola(u, NEAR, 0.2)


def test_the_basin_of_another_mode_stands_out():
    observations, cell, explorer = scene(two_modes)
    _, outlying = unexplained([cell], observations.u, explorer.log_posterior, SETTINGS)
    assert outlying.sum() >= 3
    assert basin(observations.u)[outlying].all()


def test_even_the_rim_of_another_basin_stands_out():
    """The known mode is a Gaussian, so its tail is known to a few per cent: points only nats above it are strange."""
    observations, cell, explorer = scene(two_modes)
    _, outlying = unexplained([cell], observations.u, explorer.log_posterior, SETTINGS)
    u = observations.u
    clearly = parabola(u, FAR, 0.1) > 0.9 * parabola(u, NEAR, 0.2)
    assert outlying[clearly & (parabola(u, NEAR, 0.2) < -40.0)].all()


@pytest.mark.parametrize("function", [one_mode, heavy_tail])
def test_a_tail_does_not_stand_out(function):
    observations, cell, explorer = scene(function)
    _, outlying = unexplained([cell], observations.u, explorer.log_posterior, SETTINGS)
    assert outlying.sum() <= 2


@pytest.mark.parametrize("middle", [0.5, 0.9])
def test_what_is_a_gaussian_in_a_box_does_not_stand_out(middle):
    """The likelihood is Gaussian in a uniform prior's parameters, narrow across a diagonal."""

    def in_a_box(u):
        x = ndtr(u) - middle
        along = x.mean(axis=1)
        return -0.5 * ((x - along[:, None]) ** 2).sum(axis=1) / 0.01**2 - 0.5 * along**2 / 0.05**2

    shares, strange = [], 0
    for seed in range(1, 9):
        rng = np.random.default_rng(seed)
        along = np.clip(middle + 0.05 * rng.normal(size=(80, 1)) + 0.01 * rng.normal(size=(80, D)), 0.01, 0.99)
        u = np.concatenate([rng.normal(size=(60, D)), ndtri(along)])
        observations = observe(u, in_a_box(u))
        cell = learn(observations, rng)
        odd, outlying = unexplained([cell], u, observations.log_values + MEASURE.log_pdf(u), SETTINGS)
        strange += outlying.sum()
        shares.append(odd.mean())
    assert strange <= 2  # of 1,120
    assert np.mean(shares) < 0.2


@pytest.mark.parametrize("d", [1, 3])
def test_a_heavy_tail_off_the_centre_does_not_stand_out(d):
    rng = np.random.default_rng(2)
    u = np.concatenate([rng.normal(size=(60, d)), 2.5 + 0.2 * rng.standard_t(4, size=(60, d))])
    observations = observe(u, -0.5 * (4.0 + d) * np.log1p(((u - 2.5) ** 2).sum(axis=1) / (4.0 * 0.2**2)))
    measure = GaussianMixture.standard(d)
    cell = learn(observations, rng)
    _, outlying = unexplained([cell], u, observations.log_values + measure.log_pdf(u), SETTINGS)
    assert outlying.sum() <= 2


def test_a_heavy_tail_is_not_explained_by_a_gaussian():
    observations, cell, explorer = scene(heavy_tail)
    odd, _ = unexplained([cell], observations.u, explorer.log_posterior, SETTINGS)
    assert odd.sum() > 20


def test_usual_is_the_line_of_least_absolute_residuals():
    rng = np.random.default_rng(1)
    x = rng.uniform(1.0, 6.0, 41)
    y = 0.3 + 0.8 * x + 0.1 * rng.standard_normal(41)
    y[:6] -= 3.0
    ones = np.ones(41)
    rows = np.stack([ones, x], axis=1)
    upper = np.block([[rows, -np.eye(41)], [-rows, -np.eye(41)]])
    best = linprog(np.r_[0.0, 0.0, ones], A_ub=upper, b_ub=np.r_[y, -y], bounds=[(None, None)] * 2 + [(0, None)] * 41)
    residual = from_usual(np.stack([x, y]), SETTINGS.scouts)
    assert abs(np.median(residual)) < 1e-12
    assert np.abs(residual).sum() < 1.01 * best.fun
    assert (residual[:6] < -2.0).all()


def test_a_valley_lies_between_two_modes():
    observations, cell, explorer = scene(two_modes)
    hidden = np.flatnonzero(basin(observations.u))
    best = hidden[np.argsort(-observations.log_values[hidden])[:1]]
    dips, depths = valleys([cell], explorer, observations.u[best], np.random.default_rng(2), SETTINGS.scouts)
    assert dips.shape == (1, D)
    assert depths.shape == (1,)
    empty_dips, empty_depths = valleys([cell], explorer, np.empty((0, D)), np.random.default_rng(2), SETTINGS.scouts)
    assert empty_dips.shape == (0, D)
    assert empty_depths.shape == (0,)
    way = NEAR - observations.u[best[0]]
    along = (dips[0] - observations.u[best[0]]) @ way / (way @ way)
    assert 0.0 < along < 1.0


def test_scouts_head_for_the_hidden_mode():
    observations, cell, explorer = scene(two_modes)
    known = [Bulk.of(cell.model.chart, cell.population.u, SETTINGS.exploration)]
    seen = Seen.of(observations, MEASURE, np.inf)
    scout = Scout.send([cell], explorer, seen, np.random.default_rng(3), SETTINGS, known=known, tested=frozenset())
    assert scout.n_outlying >= 3
    assert len(scout.index) == len(scout.probes) == 2
    distances = np.linalg.norm(observations.u[basin(observations.u)] - FAR, axis=1)
    assert np.median(np.linalg.norm(scout.u - FAR, axis=1)) < np.median(distances)
    everything = frozenset(range(len(observations)))
    nothing = Scout.send([cell], explorer, seen, np.random.default_rng(3), SETTINGS, known=known, tested=everything)
    assert nothing.n_outlying == 0
    assert not len(nothing.u)
    assert not len(nothing.probes)


def test_destinations_of_few_points_are_a_cloud():
    observations, _, _ = scene(two_modes)
    seen, rng = Seen.of(observations, MEASURE, np.inf), np.random.default_rng(4)
    assert destinations(seen, np.empty(0, dtype=int), rng, SETTINGS).shape == (0, D)
    best = np.flatnonzero(basin(observations.u))[:1]
    cloud = destinations(seen, best, rng, SETTINGS)
    assert cloud.shape == (SETTINGS.scouts.particles, D)
    others = np.delete(observations.u, best, axis=0)
    nearest = np.linalg.norm(others - observations.u[best[0]], axis=1).min()
    assert np.linalg.norm(cloud - observations.u[best[0]], axis=1).mean() == pytest.approx(0.5 * nearest, rel=0.2)
