"""The partition into cells: hand-made populations, and what is planned for them."""

from dataclasses import replace

import numpy as np
import pytest

from basq.auto.cells import allocate
from basq.auto.chart import Chart
from basq.auto.gates import CellMeasure, Halves, labels
from basq.auto.partition import first_plan, plan_cells
from basq.numerics.gaussians import GaussianMixture
from helpers.cells import SETTINGS, learned_parabola, parabola
from helpers.observations import observe

U = np.array([[-2.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
SEEN = observe(U, parabola(U))


@pytest.fixture(scope="module")
def cell():
    return learned_parabola()


def at(cell, x, spread=0.3, **changes):
    """The cell with its gate and samples moved to (x, 0)."""
    u = np.random.default_rng(0).normal(size=(200, 2)) * spread + [x, 0.0]
    gate = Chart(np.array([x, 0.0]), spread * np.eye(2))
    return replace(cell, gate=gate, population=replace(cell.population, u=u, beta=1.0), halves=(), **changes)


def plans(cells, *, foothold=None, rescue=False, **settings):
    return plan_cells(cells, SEEN, foothold, SETTINGS.changed(settings), rescue=rescue)


def centres(found):
    return [round(float(p.gate.mean[0]), 1) for p in found]


def test_at_first_there_is_one_cell_without_a_chart():
    (plan,) = first_plan(3)
    assert plan.charts == ()
    np.testing.assert_array_equal(plan.gate.root, np.eye(3))


def test_a_cell_follows_its_samples(cell):
    (plan,) = plans([at(cell, 1.0)])
    assert plan.gate.mean == pytest.approx([1.0, 0.0], abs=0.1)
    assert plan.warm is cell.model
    assert not plan.rescue


def test_a_cell_that_is_not_resolved_keeps_its_gate(cell):
    moved = at(cell, 1.0)
    tempered = replace(moved, population=replace(moved.population, beta=0.5), gate=Chart.standard(2))
    assert centres(plans([tempered])) == [0.0]


def test_separated_cells_stay_and_touching_ones_merge_into_the_older(cell):
    assert centres(plans([at(cell, -1.5), at(cell, 1.5)])) == [-1.5, 1.5]
    assert centres(plans([at(cell, -0.3), at(cell, 0.3)])) == [-0.3]


def test_a_cell_splits_where_its_samples_do(cell):
    parts = Chart(np.array([-1.5, 0.0]), 0.1 * np.eye(2)), Chart(np.array([1.5, 0.0]), 0.1 * np.eye(2))
    split = replace(cell, halves=(Halves(parts, 3.5),))
    assert centres(plans([split])) == [-1.5, 1.5]
    assert all(plan.rescue for plan in plans([split]))  # one process has to become two
    assert len(plans([replace(cell, halves=(Halves(parts, 2.5),))])) == 1  # the border is not empty enough
    assert len(plans([split], **{"cells.most": 1})) == 1


def test_a_point_behind_a_valley_starts_a_cell(cell):
    found = plans([at(cell, -1.5)], foothold=np.array([2.0, 0.0]))
    assert centres(found) == [-1.5, 2.0]
    np.testing.assert_array_equal(found[1].gate.root, found[0].gate.root)
    assert found[1].population is None


def test_a_cell_in_which_nothing_was_seen_is_dropped(cell):
    assert centres(plans([at(cell, -1.5), at(cell, 40.0)])) == [-1.5]


def test_a_collapsed_cell_starts_afresh_and_an_unhealthy_one_looks_around(cell):
    def with_draws(n):
        (plan,) = plans([at(cell, 0.0, estimate=replace(cell.estimate, effective=n, bulk_var=0.1))])
        return plan

    assert with_draws(9.0).warm is None
    assert with_draws(9.0).charts == ()
    assert with_draws(99.0).warm is cell.model
    assert with_draws(99.0).rescue
    assert not with_draws(101.0).rescue
    (plan,) = plans([at(cell, 0.0, estimate=replace(cell.estimate, effective=1e3, bulk_var=0.8))])
    assert plan.rescue
    (plan,) = plans([at(cell, 0.0)], rescue=True)
    assert plan.rescue


def test_points_are_divided_by_share_times_uncertainty(cell):
    def uncertain(sd, beta=1.0):
        found = replace(cell.estimate, surrogate_var=sd**2)
        return replace(cell, estimate=found, population=replace(cell.population, beta=beta))

    cells = [uncertain(0.1), uncertain(0.1)]
    assert allocate(cells, np.array([0.75, 0.25]), 8, SETTINGS.cells) == [6, 2]
    assert allocate([uncertain(0.3), uncertain(0.1)], np.array([0.5, 0.5]), 8, SETTINGS.cells) == [6, 2]
    # an sd below 0.03 counts as 0.03, a share below 0.02 as 0.02, an unresolved cell fully
    assert allocate([uncertain(0.0), uncertain(0.03)], np.array([0.5, 0.5]), 8, SETTINGS.cells) == [4, 4]
    assert allocate([uncertain(1.0), uncertain(1.0)], np.array([0.98, 0.0]), 50, SETTINGS.cells) == [49, 1]
    assert allocate([uncertain(1.0), uncertain(1.0, 0.5)], np.array([1.0, 0.0]), 8, SETTINGS.cells) == [4, 4]


def test_the_prior_of_a_cell_ends_at_its_border():
    gates = Chart(np.array([-1.0, 0.0]), np.eye(2)), Chart(np.array([1.0, 0.0]), np.eye(2))
    prior = GaussianMixture.standard(2)
    left = CellMeasure(prior, gates, 0, U[:2], 100)
    np.testing.assert_array_equal(labels(gates, U), [0, 0, 1, 1])
    np.testing.assert_array_equal(left.log_pdf(U)[:2], prior.log_pdf(U)[:2])
    np.testing.assert_array_equal(left.log_pdf(U)[2:], -np.inf)
    assert (left.sample(50, np.random.default_rng(0))[:, 0] < 0.0).all()
