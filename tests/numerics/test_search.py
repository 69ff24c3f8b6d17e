"""The search for hyperparameters, against SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from basq.numerics import search
from basq.numerics.search import descend

WIDE = np.full(4, 50.0)


def bowl(seed, p=4):
    """A random quadratic function, its matrix and its lowest point."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((p, p)) + 2.0 * np.eye(p)
    matrix, centre = root @ root.T, rng.standard_normal(p)
    return (lambda t: (0.5 * (t - centre) @ matrix @ (t - centre), matrix @ (t - centre))), matrix, centre


def banana(t):
    """Rosenbrock's function in pairs of coordinates."""
    a, b = t[::2], t[1::2]
    gradient = np.empty_like(t)
    gradient[::2] = -2.0 * (1.0 - a) - 40.0 * a * (b - a * a)
    gradient[1::2] = 20.0 * (b - a * a)
    return float(((1.0 - a) ** 2 + 10.0 * (b - a * a) ** 2).sum()), gradient


def counted(objective):
    calls = []

    def function(t):
        calls.append(t.copy())
        return objective(t)

    return function, calls


@pytest.fixture
def to_the_end(monkeypatch):
    monkeypatch.setattr(search, "ENOUGH", 1e-12)
    monkeypatch.setattr(search, "LEFT", 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_bowl_and_its_curvature(seed, to_the_end):
    objective, matrix, centre = bowl(seed)
    found = descend(objective, np.zeros(4), -WIDE, WIDE, 100)
    np.testing.assert_allclose(found.theta, centre, atol=1e-4)
    assert found.value == objective(found.theta)[0]
    # along what it has seen last, the curvature is the true one
    step = found.spread @ matrix @ found.spread
    np.testing.assert_allclose(found.spread, found.spread.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(found.spread).min() > 0.0
    assert np.trace(step) == pytest.approx(np.trace(found.spread), rel=0.5)


@pytest.mark.parametrize("upper", [50.0, 0.5, -0.2])
@pytest.mark.parametrize("start", [-1.2, 0.1, 5.0])
def test_the_optimum_within_bounds_is_scipys(upper, start, to_the_end):
    lower, upper = np.full(4, -3.0), np.array([upper, 50.0, 50.0, 50.0])
    found = descend(banana, np.full(4, start), lower, upper, 500)
    bounds = list(zip(lower, upper, strict=True))
    oracle = minimize(banana, np.clip(np.full(4, start), lower, upper), jac=True, method="L-BFGS-B", bounds=bounds)
    assert found.value == pytest.approx(oracle.fun, abs=1e-5)
    np.testing.assert_allclose(found.theta, oracle.x, atol=1e-2)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_never_worse_than_the_start_nor_outside_the_bounds(seed, max_steps):
    rng = np.random.default_rng(seed)
    lower = rng.uniform(-2.0, 0.0, 4)
    upper, start = lower + rng.uniform(0.1, 3.0, 4), rng.uniform(-3.0, 3.0, 4)
    objective, calls = counted(banana)
    found = descend(objective, start, lower, upper, max_steps)
    assert found.value <= banana(np.clip(start, lower, upper))[0]
    assert all(((t >= lower) & (t <= upper)).all() for t in [*calls, found.theta])


def test_a_remembered_curvature_saves_steps():
    objective, _, centre = bowl(1)
    far = 3.0 * np.ones(4)
    spread = descend(objective, far, -WIDE, WIDE, 100).spread
    cold, calls_cold = counted(objective)
    warm, calls_warm = counted(objective)
    values = [
        descend(cold, centre + 0.3, -WIDE, WIDE, 100).value,
        descend(warm, centre + 0.3, -WIDE, WIDE, 100, spread).value,
    ]
    assert max(values) < 0.2
    assert len(calls_warm) <= 4 < len(calls_cold)


def test_a_remembered_curvature_that_is_wrong_does_no_harm(to_the_end):
    objective, _, centre = bowl(2)
    for wrong in (1e-4, 1e4):
        found = descend(objective, np.zeros(4), -WIDE, WIDE, 200, wrong * np.eye(4))
        np.testing.assert_allclose(found.theta, centre, atol=1e-3)


def test_where_the_function_fails_steps_become_shorter(to_the_end):
    objective, _, centre = bowl(3)

    def fails(t):
        return (1e25, np.zeros(4)) if np.abs(t - centre).max() > 2.0 else objective(t)

    found = descend(fails, centre + 1.9, -WIDE, WIDE, 200)
    np.testing.assert_allclose(found.theta, centre, atol=1e-3)


def test_a_function_that_fails_everywhere_leaves_the_start():
    found = descend(lambda t: (1e25, np.zeros(4)), np.ones(4), -WIDE, WIDE, 20)
    np.testing.assert_array_equal(found.theta, np.ones(4))
    assert np.isfinite(found.spread).all()
