"""The points of a batch that integrate a cell's posterior."""

from dataclasses import replace

import numpy as np
import pytest

from basq.auto.batch import cell_batch, selection_measure, summit, tail_batch, typical_level
from basq.auto.cells import Cell
from basq.auto.partition import first_plan
from basq.auto.seen import Seen
from basq.auto.settings import Settings
from basq.numerics.gaussians import GaussianMixture
from basq.observations import Observations

BATCH = Settings().batch


@pytest.fixture(scope="module")
def cell():
    """A rippled Gaussian of width 0.3 about 0.5 in three dimensions, seen at 40 points."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(40, 3))
    log_l = -0.5 * ((u - 0.5) ** 2).sum(axis=1) / 0.3**2 + np.sin(4.0 * u).sum(axis=1)
    seen = Observations.empty(3).append(u, u, log_l, np.zeros(40))
    return Cell.learn(
        first_plan(3), 0, seen=Seen.of(seen, GaussianMixture.standard(3), np.inf), rng=rng, settings=Settings()
    )


@pytest.mark.parametrize("n", [1, 2, 3, 16, 100])
def test_a_batch_has_as_many_points_as_asked_for_and_none_twice(cell, n):
    points = cell_batch(cell, n, 1, np.random.default_rng(1), BATCH)
    assert points.shape == (n, 3)
    assert len(np.unique(points, axis=0)) == n


def test_no_points(cell):
    assert cell_batch(cell, 0, 1, np.random.default_rng(1), BATCH).shape == (0, 3)


def test_tails_are_unsure_and_may_belong_to_the_posterior(cell):
    tails = tail_batch(cell, 8, BATCH.optimism)
    mean, sd = cell.model.predict(tails)
    # the most uncertain first, and each of the others where those before leave something to learn
    assert sd[:3].mean() > np.median(cell.model.predict(cell.population.u)[1])
    assert (mean + 1.5 * sd + cell.measure.log_pdf(tails) > typical_level(cell) - 12.0).all()


def test_a_heavy_draw_that_the_samples_have_missed_is_evaluated(cell):
    """Of many points far out, that which would be worth most; the samples hold none that is worth as much."""
    far = 0.5 + np.random.default_rng(2).normal(size=(5000, 3))
    order = np.argsort(-worth(cell, np.concatenate([far, cell.population.warmer])))
    missed, few = far[[order[order < len(far)][0]]], cell.population.warmer[order[order >= len(far)][100:] - len(far)]
    near = replace(cell, population=replace(cell.population, warmer=few))
    known = replace(near, estimate=replace(cell.estimate, heavy=missed[:0]))
    assert not (tail_batch(known, 8, BATCH.optimism) == missed).all(axis=1).any()
    aware = replace(near, estimate=replace(cell.estimate, heavy=missed))
    assert (tail_batch(aware, 8, BATCH.optimism) == missed).all(axis=1).any()


def worth(cell, u):
    """Standard deviation, in nats, times how far an optimist takes a point for one of the posterior."""
    mean, sd = cell.model.predict(u)
    return np.exp(np.minimum(mean + 1.5 * sd + cell.measure.log_pdf(u) - typical_level(cell), 0.0)) * sd


def test_tails_keep_apart(cell):
    tails = tail_batch(cell, 8, BATCH.optimism)
    gaps = np.linalg.norm(tails[:, None] - tails, axis=2)[np.triu_indices(8, 1)]
    assert gaps.min() > 0.05


def test_the_summit_is_where_the_surrogate_is_highest(cell):
    (top,) = summit(cell, np.random.default_rng(1), BATCH)
    u = np.random.default_rng(2).normal(size=(20_000, 3))
    levels = cell.model.mean(u) + cell.measure.log_pdf(u)
    highest = cell.model.mean(top[None]) + cell.measure.log_pdf(top[None])
    assert highest[0] > levels.max()
    points = cell_batch(cell, 16, 1, np.random.default_rng(1), BATCH)
    nearest = np.abs(points - top).max(axis=1).min()
    assert nearest < 0.05


def test_a_summit_that_was_seen_is_not_looked_at_again(cell):
    top = summit(cell, np.random.default_rng(1), BATCH)
    assert summit(cell.expecting(top), np.random.default_rng(2), BATCH).shape == (0, 3)


def test_samples_that_have_collapsed_onto_a_known_point(cell):
    known = cell.model.chart.mean + cell.model.gp.x[3] @ cell.model.chart.root.T
    lost = replace(cell, population=replace(cell.population, u=np.tile(known, (1000, 1))))
    points, weights = selection_measure(lost, np.random.default_rng(1), BATCH)
    assert len(points) > 100

    class Rare:
        """A prior that has no draw in the cell but what is known of it."""

        log_pdf = staticmethod(cell.measure.log_pdf)

        def sample(self, n, rng):
            return np.tile(known, (n, 1))

    points, weights = selection_measure(replace(lost, measure=Rare()), np.random.default_rng(1), BATCH)
    assert len(points) > 100
    assert weights.sum() == pytest.approx(1.0)
    assert cell_batch(lost, 16, 1, np.random.default_rng(1), BATCH).shape == (16, 3)
