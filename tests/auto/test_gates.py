"""Gates: how samples show that a cell is two."""

from dataclasses import replace

import numpy as np
import pytest

from basq.auto.chart import Chart
from basq.auto.gates import gate_scores, halves, labels
from helpers.cells import SETTINGS, learned_parabola


@pytest.fixture(scope="module")
def cells():
    return [learned_parabola()]


def split(u, border=SETTINGS.cells.empty_border):
    return next((h.parts for h in halves(u, SETTINGS.cells) if h.border > border), None)


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
        cell = replace(cells[0], halves=tuple(halves(u, SETTINGS.cells)))
        assert cell.n_modes(SETTINGS.cells.thin_border) == n_modes


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
    gates = [Chart(np.zeros(2), np.eye(2)), Chart(np.array([10.0, 0.0]), 0.5 * np.eye(2))]
    u = np.array([[1.0, 0.0], [9.5, 0.0], [0.0, 50.0]])
    np.testing.assert_array_equal(labels(gates, u), [0, 1, 0])
    assert gate_scores(gates, u).shape == (3, 2)
