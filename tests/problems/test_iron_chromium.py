"""The free energy of the alloy against the printed series, differences and limits."""

import numpy as np
import pytest

from basq.problems.cases.iron_chromium import IronChromium, magnetic_factor


def printed_factor(tau):
    """f(τ) as Hillert and Jarl print it, for body-centred cubic metals."""
    p = 0.4
    norm = 518 / 1125 + 11692 / 15975 * (1 / p - 1)
    if tau < 1:
        series = tau**3 / 6 + tau**9 / 135 + tau**15 / 600
        return 1 - (79 / (140 * p * tau) + 474 / 497 * (1 / p - 1) * series) / norm
    return -(tau**-5 / 10 + tau**-15 / 315 + tau**-25 / 1500) / norm


def test_magnetic_factor_is_the_printed_series():
    tau = np.linspace(0.3, 3.0, 50)
    np.testing.assert_allclose(magnetic_factor(1.0 / tau)[0], [printed_factor(t) for t in tau], rtol=1e-12)


def test_magnetic_factor_and_slope_are_continuous_at_the_curie_temperature():
    at = np.array([np.nextafter(1.0, 0.0), 1.0, np.nextafter(1.0, 2.0)])
    value, slope, bend = magnetic_factor(at)
    assert np.ptp(value) < 1e-14
    assert np.ptp(slope) < 1e-14
    assert abs(bend[0] - bend[1]) > 0.5  # the jump of the heat capacity


@pytest.mark.parametrize("temperature", [620.0, 673.0, 1200.0])
def test_potential_and_curvature_are_derivatives(temperature):
    alloy = IronChromium(temperature, 20500.0, 2.22)
    c = np.linspace(0.02, 0.98, 97)
    y = alloy.curie_ratio(c)[0]
    h = 1e-3
    # the curvature jumps at the Curie temperature; there a difference is only of first order
    away = np.abs(y - 1.0) > 0.05

    def difference(function):
        """Central difference of sixth order."""
        steps = [(45, 1), (-9, 2), (1, 3)]
        return sum(w * (function(c + k * h) - function(c - k * h)) for w, k in steps) / (60.0 * h)

    potential, curvature = alloy.potential(c), alloy.curvature(c)
    wide = (c > 0.05) & (c < 0.95) & away
    np.testing.assert_allclose(difference(alloy.energy)[wide], potential[wide], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(difference(alloy.potential)[wide], curvature[wide], rtol=1e-6, atol=1e-7)
    assert (~away).sum() < 20


def test_nothing_is_lost_near_the_pure_metals():
    alloy = IronChromium(673.0, 20500.0, 2.22)
    assert np.isfinite(alloy.energy(np.array([0.0, 1.0]))).all()
    # without ln c the potential tends to a limit, linearly in c
    c = np.array([1e-15, 1e-6])
    rest = alloy.potential(c) - np.log(c)
    assert rest[1] - rest[0] == pytest.approx(1e-6 * (alloy.curvature(c[1:]) - 1e6)[0], rel=1e-4)
