"""Cells: surrogate, samples and evidence of one part of standard space."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from basq.auto.cells import Plan, Total, allocate
from basq.auto.chart import Chart
from basq.auto.gates import labels
from basq.auto.partition import plan_cells
from helpers.cells import SETTINGS, learn, two_modes
from helpers.observations import observe

FLAT = np.ones(2, dtype=bool)


def test_two_modes_get_a_cell_each_and_their_evidence_adds_up():
    rng = np.random.default_rng(10)
    u = np.concatenate([1.5 + 0.3 * rng.normal(size=(25, 2)), -1.5 + 0.5 * rng.normal(size=(25, 2))])
    data = observe(u, two_modes(u))
    gates = Chart(np.full(2, 1.5), 0.2 * np.eye(2)), Chart(np.full(2, -1.5), 0.4 * np.eye(2))
    plans = [Plan(g, (g,), None, None, True) for g in gates]
    cells = [learn(data, rng, plans=plans, k=k) for k in range(2)]
    total = Total.of(cells)
    truth = sum(
        s2 / (1 + s2) * np.exp(-0.5 * 2 * 1.5**2 / (1 + s2)) for s2 in (0.2**2, 0.4**2)
    )  # amplitude one, not normalised
    assert total.log_mean == pytest.approx(np.log(truth), abs=0.05)
    assert total.shares.sum() == pytest.approx(1.0)
    for k, cell in enumerate(cells):
        assert (labels(gates, cell.population.u) == k).all()
    again = plan_cells(cells, data, None, SETTINGS, rescue=False)
    assert len(again) == 2
    assert len(plan_cells(cells[:1], data, np.full(2, -1.5), SETTINGS, rescue=False)) == 2
    assert sum(allocate(cells, total.shares, 12, SETTINGS.cells)) == 12


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
    cell = learn(observe(u, function(u)), rng, kinds=(None, FLAT))
    assert cell.n_compared == 60
    assert (cell.model.chart.flat is not None) == (flat is not None)
    # and keep them until there are some more observations, or the next fit has to start afresh
    data = observe(u, function(u))
    (kept,) = plan_cells([cell], data, None, SETTINGS, rescue=False, kinds=(None, FLAT))
    assert [r.flat is None for r in kept.charts] == [flat is None]
    (afresh,) = plan_cells([cell], data, None, SETTINGS, rescue=True, kinds=(None, FLAT))
    assert len(afresh.charts) == 2
