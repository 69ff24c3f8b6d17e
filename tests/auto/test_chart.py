"""Gaussians that samples and their log-density tell of."""

import numpy as np
import pytest
from scipy import stats

from basq.auto.chart import Chart, StraightMeasure, bent, straightened
from basq.auto.gates import CellMeasure
from basq.auto.settings import Charts
from basq.numerics.gaussians import NARROWEST, GaussianMixture

RNG = np.random.default_rng(0)
ROOT = np.array([[0.3, 0.0, 0.0], [0.2, 0.01, 0.0], [-1.0, 0.5, 2.0]])
MEAN = np.array([1.0, -2.0, 0.5])


def samples(n):
    return MEAN + RNG.standard_normal((n, 3)) @ ROOT.T


def log_density(u):
    z = np.linalg.solve(ROOT, (u - MEAN).T)
    return 7.0 - 0.5 * (z * z).sum(axis=0)


@pytest.mark.parametrize("n", [30, 1000])
def test_beneath_a_gaussian_it_is_exact(n):
    u = samples(n)
    found, peak = Chart.beneath(u, log_density(u), Charts())
    assert peak == pytest.approx(7.0)
    np.testing.assert_allclose(found.mean, MEAN, rtol=1e-6)
    np.testing.assert_allclose(found.root @ found.root.T, ROOT @ ROOT.T, rtol=1e-6, atol=1e-9)
    far = samples(5) + 30.0 * ROOT[:, 0]
    np.testing.assert_allclose(-0.5 * (found.whiten(far) ** 2).sum(axis=1), log_density(far) - 7.0, rtol=1e-6)


def test_beneath_what_is_no_gaussian_or_too_few_samples_it_is_that_of_the_samples():
    u, few = samples(500), samples(29)
    found, peak = Chart.beneath(few, log_density(few), Charts())
    np.testing.assert_array_equal(found.root, Chart.of(few).root)
    assert peak == pytest.approx(7.0, abs=1.0)
    np.testing.assert_array_equal(Chart.beneath(u, 0.5 * u[:, 0] ** 2, Charts())[0].root, Chart.of(u).root)


FLAT = np.array([False, True, True])


def test_flat_parameters_are_seen_by_their_probability():
    u = RNG.standard_normal((500, 3))
    found = Chart.of(u, FLAT)
    v = np.column_stack([u[:, 0], stats.norm.cdf(u[:, 1:])])
    np.testing.assert_allclose(found.mean, v.mean(axis=0))
    np.testing.assert_allclose(found.root @ found.root.T, np.cov(v.T), rtol=1e-6)
    np.testing.assert_allclose(found.whiten(u) @ found.root.T + found.mean, v)


def test_a_narrow_gaussian_looks_the_same_in_both_kinds_of_coordinates():
    gate = Chart(np.array([0.3, -1.0, 0.5]), 1e-3 * ROOT)
    plain, straight = gate.in_all((None, FLAT))
    u = gate.mean + RNG.standard_normal((20, 3)) @ gate.root.T
    np.testing.assert_allclose(plain.whiten(u), gate.whiten(u))
    np.testing.assert_allclose(straight.whiten(u), gate.whiten(u), atol=0.05)


@pytest.mark.parametrize("sd", [0.0, 1e-13])
def test_samples_that_have_collapsed_have_a_chart_of_some_width(sd):
    found = Chart.of(0.7 + sd * RNG.standard_normal((10, 3)))
    np.testing.assert_allclose(found.root @ found.root.T, NARROWEST**2 * np.eye(3), rtol=1e-6, atol=1e-18)


def test_a_gate_in_the_far_tail_of_a_box():
    (straight,) = Chart(np.full(3, 9.0), 0.1 * np.eye(3)).in_all((FLAT,))
    assert np.diag(straight.root).min() == pytest.approx(NARROWEST)


def test_straightened_points_come_back():
    u = RNG.standard_normal((50, 3))
    np.testing.assert_allclose(bent(straightened(u, FLAT), FLAT), u, atol=1e-12)
    assert straightened(u, None) is u
    assert bent(u, None) is u
    # what a step has carried over an edge is folded back
    np.testing.assert_allclose(stats.norm.cdf(bent(np.array([[9.0, -0.2, 1.3]]), FLAT)), [[1.0, 0.2, 0.7]])
    assert np.isfinite(bent(np.array([[0.0, 0.0, 1.0]]), FLAT)).all()


def test_a_measure_over_straightened_points():
    measure = StraightMeasure(GaussianMixture.standard(3), FLAT)
    v = np.column_stack([RNG.normal(size=20), RNG.uniform(size=(20, 2))])
    # flat between the edges of a box, normal elsewhere
    np.testing.assert_allclose(measure.log_pdf(v), stats.norm.logpdf(v[:, 0]), atol=1e-9)
    assert (measure.log_pdf(np.array([[0.0, -0.1, 0.5], [0.0, 0.5, 1.0]])) == -np.inf).all()
    gates = Chart(np.full(3, 0.5), np.eye(3)), Chart(np.full(3, -0.5), np.eye(3))
    cell = CellMeasure(GaussianMixture.standard(3), gates, 0, np.empty((0, 3)), 100)
    inside = cell.inside(bent(v, FLAT))
    expected = np.where(inside, measure.log_pdf(v), -np.inf)
    np.testing.assert_allclose(StraightMeasure(cell, FLAT).log_pdf(v), expected, atol=1e-9)
    drawn = measure.sample(4000, np.random.default_rng(0))
    assert stats.kstest(drawn[:, 1], "uniform").pvalue > 0.01
    assert stats.kstest(drawn[:, 0], "norm").pvalue > 0.01
