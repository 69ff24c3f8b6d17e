"""Ways between two points, and whether they cross a valley."""

import numpy as np

from basq.ways import N_BENDS, N_STEPS, VALLEY, best_way, straight_ways


def ring(u):
    """A ridge along the unit circle."""
    return -50.0 * (np.linalg.norm(u, axis=1) - 1.0) ** 2


def two_hills(u):
    return np.logaddexp(*(-20.0 * ((u - centre) ** 2).sum(axis=1) for centre in ([1.0, 0.0], [-1.0, 0.0])))


START, END = np.array([1.0, 0.0]), np.array([-1.0, 0.0])
ANYWHERE = np.random.default_rng(0).uniform(-1.5, 1.5, (600, 2))


def test_a_way_follows_a_curved_ridge():
    straight = straight_ways(START, END[None])[0]
    assert ring(straight).min() < -20.0
    way = best_way(ring, START, END, ANYWHERE)
    assert len(way) == (N_BENDS + 1) * (N_STEPS - 1)
    assert ring(way).min() > -VALLEY


def test_no_way_leads_around_a_valley():
    assert two_hills(best_way(two_hills, START, END, ANYWHERE)).min() < -VALLEY


def test_a_straight_ridge_needs_no_bend():
    way = best_way(lambda u: -(u[:, 1] ** 2), START, END, ANYWHERE)
    np.testing.assert_allclose(way, straight_ways(START, END[None])[0])


def test_points_come_in_order():
    way = best_way(ring, START, END, ANYWHERE)
    steps = np.linalg.norm(np.diff(np.vstack([START, way, END]), axis=0), axis=1)
    assert steps.max() < 0.5
