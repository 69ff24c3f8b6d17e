"""The search for modes that the cells do not know yet."""

import numpy as np
import pytest

from basq.auto.chart import Chart
from basq.auto.exploration import Bulk, Explorer, outside, searches, spread_points
from basq.auto.modes import Leads, explore, find_suspect, still_climbing
from basq.auto.scouts import Scout, unexplained
from helpers.cells import MEASURE, SETTINGS, learn, learned_parabola, parabola, two_modes
from helpers.observations import observe


@pytest.fixture(scope="module")
def cells():
    return [learned_parabola()]


def known_of(cells):
    return tuple(Bulk.of(c.model.chart, c.population.u, SETTINGS.exploration) for c in cells)


def known_half(rng, n=60):
    """Observations of two modes, and a cell that knows only the near one."""
    u = np.concatenate([rng.normal(size=(n, 2)), 1.5 + 0.2 * rng.normal(size=(20, 2))])
    near = u[:, 0] + u[:, 1] > 0
    cell = learn(observe(u[near], two_modes(u[near])), rng)
    return u, two_modes(u) + MEASURE.log_pdf(u), cell


def test_searches_find_a_mode_that_the_population_misses():
    rng = np.random.default_rng(2)
    u, log_posterior, cell = known_half(rng)
    explorer = Explorer.fit(u, log_posterior, None, SETTINGS)
    known = known_of([cell])
    found = searches(explorer, u, known, rng)
    assert len(found)
    assert np.linalg.norm(found + 1.5, axis=1).min() < 1.0
    assert outside(known, found).all()
    assert not outside(known, cell.population.u[:50]).any()


def test_a_suspect_lies_across_a_valley():
    rng = np.random.default_rng(3)
    u, log_posterior, cell = known_half(rng)
    explorer = Explorer.fit(u, log_posterior, None, SETTINGS)
    suspect = find_suspect([cell], explorer, frozenset(), known_of([cell]))
    assert suspect is not None
    assert log_posterior[suspect.index] == explorer.log_posterior[suspect.index]
    assert two_modes(suspect.midpoint[None])[0] < two_modes(u[suspect.index][None])[0] - 3.0
    other = find_suspect([cell], explorer, frozenset({suspect.index}), known_of([cell]))
    assert other is None or other.index != suspect.index


def test_what_a_cell_does_not_explain():
    rng = np.random.default_rng(4)
    u, log_posterior, cell = known_half(rng)
    strange, _ = unexplained([cell], u, log_posterior, SETTINGS)
    far, near = np.linalg.norm(u + 1.5, axis=1) < 0.8, np.linalg.norm(u - 1.5, axis=1) < 0.6
    assert strange[far].all()
    assert not strange[near].any()


def test_climbing_searches_are_counted():
    rng = np.random.default_rng(5)
    u, log_posterior, cell = known_half(rng)
    explorer = Explorer.fit(u, log_posterior, None, SETTINGS)
    end = explorer.ascents[int(np.linalg.norm(u + 1.5, axis=1).argmin())][None]
    assert still_climbing([cell], explorer, end, np.array([log_posterior.max() + 5.0]), SETTINGS) == 1
    assert still_climbing([cell], explorer, end, np.array([-np.inf]), SETTINGS) == 0
    assert still_climbing([cell], explorer, np.empty((0, 2)), np.empty(0), SETTINGS) == 0


def test_explore_gives_what_is_asked(cells):
    rng = np.random.default_rng(6)
    u = rng.normal(size=(40, 2))
    explorer = Explorer.fit(u, np.append(parabola(u)[:-1], -np.inf) + MEASURE.log_pdf(u), None, SETTINGS)
    for n in (0, 1, 4, 25):
        known = known_of(cells)
        suspect = find_suspect(cells, explorer, frozenset(), known)
        scout = Scout(np.zeros(40, dtype=bool), 0, np.empty((0, 2)), np.empty(0, dtype=int), np.empty((0, 2)))
        points = explore(explorer, u[:3], n, rng, Leads(known, suspect, scout, (), u[:0], u[:0]), SETTINGS)
        assert points.shape == (n, 2)
        assert len(np.unique(points, axis=0)) == n


def test_spread_points_keep_their_distance():
    rng = np.random.default_rng(7)
    seen = rng.normal(size=(50, 2))
    points = spread_points(seen, 8, rng, SETTINGS.exploration)
    together = np.concatenate([seen, points])
    distance = np.linalg.norm(together[:, None] - together, axis=2) + 10.0 * np.eye(len(together))
    assert distance[50:].min() > 0.3


def test_bulk_contains_its_own_points():
    points = np.random.default_rng(8).normal(size=(500, 2)) * [1e-3, 10.0]
    bulk = Bulk.of(Chart.of(points), points, SETTINGS.exploration)
    assert bulk.contains(points).mean() > 0.95
    assert not bulk.contains(points.mean(axis=0) + [[0.1, 0.0]]).any()
