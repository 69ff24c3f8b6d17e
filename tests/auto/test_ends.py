"""The ends of ridges are looked at, as far out as the surrogate is sure that nothing more comes."""

import numpy as np
import pytest
from scipy import stats

from basq.auto.cells import Cell
from basq.auto.ends import unseen_ends
from basq.auto.partition import first_plan
from basq.auto.seen import Seen
from basq.auto.settings import Settings
from basq.observations import Observations
from basq.prior import Prior

SETTINGS = Settings()
PRIOR = Prior({"a": stats.norm(0, 1), "b": stats.norm(0, 1)})


def cell_of(log_likelihood, n=60):
    u = np.random.default_rng(0).normal(size=(n, 2)) * [1.0, 0.5]
    zeros = np.zeros(n)
    seen = Observations(u, u, log_likelihood(u), zeros, zeros, np.ones(n, dtype=bool), np.zeros(n, dtype=np.intp))
    known = Seen.of(seen, PRIOR.measure, SETTINGS.start.abyss)
    return Cell.learn(first_plan(2), 0, seen=known, rng=np.random.default_rng(1), settings=SETTINGS)


def narrow(u):
    return -0.5 * (u[:, 0] / 0.5) ** 2 - 0.5 * (u[:, 1] / 0.1) ** 2


def test_ends_lie_on_both_sides_of_every_direction_where_little_is_left():
    cell = cell_of(narrow)
    ends = unseen_ends(cell, np.empty((0, 2)), SETTINGS.exploration)
    assert len(ends) == 4
    # sd of the posterior: prior and likelihood together
    scaled = ends * np.sqrt(1.0 + 1.0 / np.array([0.5, 0.1]) ** 2)
    far = np.sort(np.abs(scaled), axis=1)
    assert far[:, 1] == pytest.approx(np.full(4, 4.2), abs=0.4)  # 8 nats below samples that are one nat down
    assert (far[:, 0] < 1.2).all()
    assert np.abs(scaled[:2]).argmax(axis=1).tolist() == [0, 0]


def test_ends_that_were_seen_are_not_asked_for_again():
    cell = cell_of(narrow)
    ends = unseen_ends(cell, np.empty((0, 2)), SETTINGS.exploration)
    left = unseen_ends(cell, ends[:3] + 0.01, SETTINGS.exploration)
    np.testing.assert_allclose(left, ends[3:])
