"""Audits: hand-made batches against a surrogate that is known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from basq.auto.audit import audit, calibration
from basq.auto.chart import Chart
from basq.method import Audit
from helpers.cells import MEASURE, SETTINGS, learned_parabola, parabola
from helpers.observations import observe


@pytest.fixture(scope="module")
def cells():
    return [learned_parabola()]


def check(cells, u, values):
    return audit(cells, np.ones(1), MEASURE, 30, observe(u, values), SETTINGS.audit)


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
    assert audit(cells, np.zeros(1), MEASURE, 30, observe(u, parabola(u) + 1.0), SETTINGS.audit).n_inside == 0


def test_calibration_pools_the_last_batches():
    def entry(z2, n=10):
        return Audit(0, n, z2, 1.0, 0.0, False)

    assert np.isnan(calibration([], SETTINGS.audit))
    assert calibration([entry(2.0)], SETTINGS.audit) == 2.0
    assert calibration([entry(100.0), entry(1.0), entry(1.0), entry(1.0)], SETTINGS.audit) == 1.0
    assert calibration([entry(4.0), entry(1.0)], SETTINGS.audit) == pytest.approx((0.7 * 4 + 1) / 1.7)
    assert calibration([entry(4.0), entry(np.nan, n=0)], SETTINGS.audit) == 4.0


def test_declared_noise_is_no_surprise_and_no_error(cells):
    u = np.array([[0.1, 0.2], [0.0, -0.1], [0.3, 0.0], [-0.2, 0.1]])
    off = 4.0 * np.array([1.0, -1.0, 1.0, -1.0])
    exact = observe(u, parabola(u) + off)
    noisy = replace(exact, noise=np.full(4, 4.0))
    for news, surprising, rms in ((exact, True, 4.0), (noisy, False, 0.0)):
        found = audit(cells, np.ones(1), MEASURE, 30, news, SETTINGS.audit)
        assert found.surprise == surprising
        assert found.rms == pytest.approx(rms, abs=0.5)


class Told:
    """A model that predicts log ℓ = 0 ± 0.5 everywhere."""

    noise = None

    def predict(self, u):
        return np.zeros(len(u)), np.full(len(u), 0.5)


def test_every_number_by_hand():
    settings = SETTINGS.changed({"audit.floor": 0.0}).audit
    u = np.zeros((4, 2))
    cell = SimpleNamespace(gate=Chart.standard(2), model=Told(), population=SimpleNamespace(u=u + 3.0))
    values = np.array([0.5, -1.0, 1.5, -np.inf])
    found = audit([cell], np.ones(1), MEASURE, 48, observe(u, values), settings)
    z = np.array([1.0, -2.0, 3.0])
    assert (found.n_evals, found.n_inside, found.surprise) == (48, 3, False)
    assert found.z == pytest.approx(z)
    assert found.z2 == pytest.approx(14.0 / 3.0)
    assert found.rms == pytest.approx(np.sqrt(np.mean(values[:3] ** 2)))
    assert found.log_ratio == pytest.approx(np.log(np.mean(np.exp(values[:3]))))
    far = audit([cell], np.ones(1), MEASURE, 48, observe(u[:1], np.array([3.5])), settings)
    assert far.surprise
    assert far.z == (5.0,)  # seven, but for the cap
    nothing = audit([cell], np.zeros(1), MEASURE, 48, observe(u, values), settings)
    assert nothing.n_inside == 0
    assert np.isnan(nothing.z2)


def test_without_audits_nothing_is_calibrated():
    assert calibration((), SETTINGS.changed({"audit.counts": False}).audit) == 1.0
