from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from basq.auto.audit import audit, calibration
from basq.auto.cells import (
    EMPTY_BORDER,
    Cell,
    Plan,
    Total,
    allocate,
    first_plan,
    gate_scores,
    halves,
    labels,
    plan_cells,
)
from basq.auto.chart import Reference
from basq.auto.exploration import Bulk, Explorer, outside, searches, spread_points
from basq.auto.modes import bulks, explore, find_suspect, still_climbing
from basq.auto.scouts import Scout, unexplained
from basq.method import Audit
from basq.numerics.gaussians import GaussianMixture
from helpers.observations import observe

MEASURE = GaussianMixture.standard(2)


def parabola(u):
    return -2.0 * (u * u).sum(axis=1)


def two_modes(u):
    near = -0.5 * ((u - 1.5) ** 2).sum(axis=1) / 0.2**2
    far = -0.5 * ((u + 1.5) ** 2).sum(axis=1) / 0.4**2
    return np.logaddexp(near, far)


@pytest.fixture(scope="module")
def cells():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(30, 2))
    return [Cell.learn(first_plan(2), 0, observe(u, parabola(u)), MEASURE, rng)]


def check(cells, u, values):
    return audit(cells, np.ones(1), MEASURE, 30, observe(u, values))


def test_a_right_prediction_is_no_surprise(cells):
    u = cells[0].population.u[:16]
    found = check(cells, u, parabola(u))
    assert found.n_evals == 30
    assert found.n_inside >= 14
    assert found.rms < 0.1
    assert abs(found.log_ratio) < 0.1
    assert not found.surprise


def test_a_point_far_above_its_prediction_is_a_surprise(cells):
    found = check(cells, np.array([[2.5, 2.5]]), np.array([6.0]))
    assert found.surprise
    assert found.n_inside == 1
    assert found.z2 > 8.0


def test_points_that_do_not_matter_are_not_counted(cells):
    found = check(cells, np.array([[4.0, 4.0], [3.0, -4.0]]), np.array([-200.0, -np.inf]))
    assert found.n_inside == 0
    assert np.isnan(found.z2)
    assert not found.surprise


def test_cells_without_evidence_are_not_audited(cells):
    u = cells[0].population.u[:4]
    assert audit(cells, np.zeros(1), MEASURE, 30, observe(u, parabola(u) + 1.0)).n_inside == 0


def test_calibration_pools_the_last_batches():
    def entry(z2, n=10):
        return Audit(0, n, z2, 1.0, 0.0, False)

    assert np.isnan(calibration([]))
    assert calibration([entry(2.0)]) == 2.0
    assert calibration([entry(100.0), entry(1.0), entry(1.0), entry(1.0)]) == 1.0
    assert calibration([entry(4.0), entry(1.0)]) == pytest.approx((0.7 * 4 + 1) / 1.7)
    assert calibration([entry(4.0), entry(np.nan, n=0)]) == 4.0


def known_half(rng, n=60):
    """Observations of two modes, and a cell that knows only the near one."""
    u = np.concatenate([rng.normal(size=(n, 2)), 1.5 + 0.2 * rng.normal(size=(20, 2))])
    near = u[:, 0] + u[:, 1] > 0
    cell = Cell.learn(first_plan(2), 0, observe(u[near], two_modes(u[near])), MEASURE, rng)
    return u, two_modes(u) + MEASURE.log_pdf(u), cell


def test_searches_find_a_mode_that_the_population_misses():
    rng = np.random.default_rng(2)
    u, log_posterior, cell = known_half(rng)
    explorer = Explorer.fit(u, log_posterior, None)
    known = bulks([cell])
    found = searches(explorer, u, known, rng)
    assert len(found)
    assert np.linalg.norm(found + 1.5, axis=1).min() < 1.0
    assert outside(known, found).all()
    assert not outside(known, cell.population.u[:50]).any()


def test_a_suspect_lies_across_a_valley():
    rng = np.random.default_rng(3)
    u, log_posterior, cell = known_half(rng)
    explorer = Explorer.fit(u, log_posterior, None)
    suspect = find_suspect([cell], explorer, frozenset(), bulks([cell]))
    assert suspect is not None
    assert log_posterior[suspect.index] == explorer.log_posterior[suspect.index]
    assert two_modes(suspect.midpoint[None])[0] < two_modes(u[suspect.index][None])[0] - 3.0
    other = find_suspect([cell], explorer, frozenset({suspect.index}), bulks([cell]))
    assert other is None or other.index != suspect.index


def test_what_a_cell_does_not_explain():
    rng = np.random.default_rng(4)
    u, log_posterior, cell = known_half(rng)
    strange, _ = unexplained([cell], u, log_posterior)
    far, near = np.linalg.norm(u + 1.5, axis=1) < 0.8, np.linalg.norm(u - 1.5, axis=1) < 0.6
    assert strange[far].all()
    assert not strange[near].any()


def test_climbing_searches_are_counted():
    rng = np.random.default_rng(5)
    u, log_posterior, cell = known_half(rng)
    explorer = Explorer.fit(u, log_posterior, None)
    end = explorer.ascents[int(np.linalg.norm(u + 1.5, axis=1).argmin())][None]
    assert still_climbing([cell], explorer, end, np.array([log_posterior.max() + 5.0])) == 1
    assert still_climbing([cell], explorer, end, np.array([-np.inf])) == 0
    assert still_climbing([cell], explorer, np.empty((0, 2)), np.empty(0)) == 0


def test_explore_gives_what_is_asked(cells):
    rng = np.random.default_rng(6)
    u = rng.normal(size=(40, 2))
    explorer = Explorer.fit(u, np.append(parabola(u)[:-1], -np.inf) + MEASURE.log_pdf(u), None)
    for n in (0, 1, 4, 25):
        known = bulks(cells)
        suspect = find_suspect(cells, explorer, frozenset(), known)
        scout = Scout(np.zeros(40, dtype=bool), 0, np.empty((0, 2)), np.empty(0, dtype=int), np.empty((0, 2)))
        points = explore(explorer, u[:3], n, rng, known=known, suspect=suspect, scout=scout)
        assert points.shape == (n, 2)
        assert len(np.unique(points, axis=0)) == n


def test_spread_points_keep_their_distance():
    rng = np.random.default_rng(7)
    seen = rng.normal(size=(50, 2))
    points = spread_points(seen, 8, rng)
    together = np.concatenate([seen, points])
    distance = np.linalg.norm(together[:, None] - together, axis=2) + 10.0 * np.eye(len(together))
    assert distance[50:].min() > 0.3


def test_bulk_contains_its_own_points():
    points = np.random.default_rng(8).normal(size=(500, 2)) * [1e-3, 10.0]
    bulk = Bulk.of(Reference.of(points), points)
    assert bulk.contains(points).mean() > 0.95
    assert not bulk.contains(points.mean(axis=0) + [[0.1, 0.0]]).any()


def split(u, border=EMPTY_BORDER):
    return next((h.parts for h in halves(u) if h.border > border), None)


def clouds(rng, gap, n=1000):
    return np.concatenate([rng.normal(size=(n // 2, 2)), rng.normal(size=(n // 2, 2)) * 0.3 + [gap, 0.0]])


def test_split_only_what_is_separated():
    rng = np.random.default_rng(9)
    parts = split(clouds(rng, 12.0))
    assert parts is not None
    np.testing.assert_allclose(sorted(p.mean[0] for p in parts), [0.0, 12.0], atol=0.3)
    assert split(clouds(rng, 3.0)) is None
    assert split(rng.normal(size=(1000, 2))) is None
    angle = rng.uniform(0.0, 2.0 * np.pi, 1000)
    assert split(np.stack([np.cos(angle), np.sin(angle)], axis=1)) is None


def test_two_modes_that_one_surrogate_describes_count_as_two(cells):
    rng = np.random.default_rng(3)
    for gap, apart, n_modes in ((8.0, True, 2), (5.5, False, 2), (3.0, False, 1)):
        u = rng.normal(size=(1000, 2)) + np.repeat([[0.0, 0.0], [gap, 0.0]], 500, axis=0)
        assert (split(u) is not None) == apart
        assert replace(cells[0], population=replace(cells[0].population, u=u)).n_modes == n_modes


def test_split_finds_the_direction_among_many():
    # across five directions in which nothing is divided, the extreme samples say nothing about the sixth
    rng = np.random.default_rng(10)
    u = rng.normal(size=(1000, 6)) * [0.2, 1.0, 1.0, 1.0, 1.0, 1.0]
    u[:, 0] += np.repeat([-1.5, 1.5], 500)[rng.permutation(1000)]
    parts = split(u)
    assert parts is not None
    np.testing.assert_allclose(sorted(p.mean[0] for p in parts), [-1.5, 1.5], atol=0.1)
    small = np.concatenate([rng.normal(size=(950, 4)), [6.0, 6.0, 0.0, 0.0] + 0.3 * rng.normal(size=(50, 4))])
    assert split(small[rng.permutation(1000)]) is not None
    assert split(rng.normal(size=(1000, 6))) is None


def test_gates_divide_space():
    gates = [Reference(np.zeros(2), np.eye(2)), Reference(np.array([10.0, 0.0]), 0.5 * np.eye(2))]
    u = np.array([[1.0, 0.0], [9.5, 0.0], [0.0, 50.0]])
    np.testing.assert_array_equal(labels(gates, u), [0, 1, 0])
    assert gate_scores(gates, u).shape == (3, 2)


def test_two_modes_get_a_cell_each_and_their_evidence_adds_up():
    rng = np.random.default_rng(10)
    u = np.concatenate([1.5 + 0.3 * rng.normal(size=(25, 2)), -1.5 + 0.5 * rng.normal(size=(25, 2))])
    data = observe(u, two_modes(u))
    gates = Reference(np.full(2, 1.5), 0.2 * np.eye(2)), Reference(np.full(2, -1.5), 0.4 * np.eye(2))
    plans = [Plan(g, (g,), None, None, True) for g in gates]
    cells = [Cell.learn(plans, k, data, MEASURE, rng) for k in range(2)]
    total = Total.of(cells)
    truth = sum(
        s2 / (1 + s2) * np.exp(-0.5 * 2 * 1.5**2 / (1 + s2)) for s2 in (0.2**2, 0.4**2)
    )  # amplitude one, not normalised
    assert total.log_mean == pytest.approx(np.log(truth), abs=0.05)
    assert total.shares.sum() == pytest.approx(1.0)
    for k, cell in enumerate(cells):
        assert (labels(gates, cell.population.u) == k).all()
    again = plan_cells(cells, data, None, rescue=False)
    assert len(again) == 2
    assert len(plan_cells(cells[:1], data, np.full(2, -1.5), rescue=False)) == 2
    assert sum(allocate(cells, total.shares, 12)) == 12


def test_declared_noise_is_no_surprise_and_no_error(cells):
    u = np.array([[0.1, 0.2], [0.0, -0.1], [0.3, 0.0], [-0.2, 0.1]])
    off = 4.0 * np.array([1.0, -1.0, 1.0, -1.0])
    exact = observe(u, parabola(u) + off)
    noisy = replace(exact, noise=np.full(4, 4.0))
    for news, surprising, rms in ((exact, True, 4.0), (noisy, False, 0.0)):
        found = audit(cells, np.ones(1), MEASURE, 30, news)
        assert found.surprise == surprising
        assert found.rms == pytest.approx(rms, abs=0.5)


# --- coordinates ----------------------------------------------------------------------------------------------------

FLAT = np.ones(2, dtype=bool)


def between_edges(u):
    """A narrow, tilted Gaussian in the probabilities of a box, where it is a thin banana in standard space."""
    p = ndtr(u) - [0.5, 0.4]
    along, across = p @ [0.8, 0.6], p @ [-0.6, 0.8]
    return -0.5 * (along**2 / 0.15**2 + across**2 / 0.003**2)


def tilted(u):
    """The same in standard space."""
    along, across = u @ [0.8, 0.6], u @ [-0.6, 0.8]
    return -0.5 * (along**2 + across**2 / 0.005**2)


@pytest.mark.parametrize(("function", "flat"), [(between_edges, FLAT), (tilted, None)])
def test_the_data_choose_the_coordinates(function, flat):
    rng = np.random.default_rng(0)
    line = np.outer(rng.uniform(-1.5, 1.5, 40), [0.8, 0.6]) + 0.02 * rng.normal(size=(40, 2))
    u = np.concatenate([rng.normal(size=(20, 2)), line + (ndtri([0.5, 0.4]) if flat is not None else 0.0)])
    cell = Cell.learn(first_plan(2), 0, observe(u, function(u)), MEASURE, rng, (None, FLAT))
    assert cell.n_compared == 60
    assert (cell.model.reference.flat is not None) == (flat is not None)
    # and keep them until there are some more observations, or the next fit has to start afresh
    data = observe(u, function(u))
    (kept,) = plan_cells([cell], data, None, rescue=False, kinds=(None, FLAT))
    assert [r.flat is None for r in kept.references] == [flat is None]
    (afresh,) = plan_cells([cell], data, None, rescue=True, kinds=(None, FLAT))
    assert len(afresh.references) == 2
