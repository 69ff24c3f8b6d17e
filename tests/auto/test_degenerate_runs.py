"""Runs of which little can be learned: they end, say so, and can be sampled."""

import numpy as np
import pytest
from scipy import stats

import basq

NORMAL = {f"x{i + 1}": stats.norm(0, 1) for i in range(3)}
T = np.linspace(0.1, 0.9, 40)
GIVEN = {
    "a line": np.stack([T, T, T], axis=1),
    "a line along an axis": np.stack([T, 0 * T + 0.3, 0 * T + 0.3], axis=1),
    "nearly one point": 0.3 + 1e-12 * np.random.default_rng(0).standard_normal((40, 3)),
    "one point": np.full((40, 3), 0.3),
}


def gauss(x):
    return float(-50.0 * ((x - 0.3) ** 2).sum())


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("max_evals", [41, 80])
def test_values_given_on_a_ridge(given, max_evals):
    x = GIVEN[given]
    result = basq.infer(
        gauss, NORMAL, evaluations=(x, [gauss(row) for row in x]), max_evals=max_evals, seed=0, progress=False
    )
    assert np.isfinite(result.sample(5000, seed=0)).all()
    assert np.isfinite(result.log_evidence)


@pytest.mark.parametrize("max_evals", [1, 2, 5, 33])
@pytest.mark.parametrize(
    "log_likelihood", [gauss, lambda x: 1.5, lambda x: 1e300 * x[0], lambda x: 1e15 * gauss(x), lambda x: 1e12]
)
def test_runs_cut_off_early_can_be_sampled(log_likelihood, max_evals):
    result = basq.infer(log_likelihood, NORMAL, max_evals=max_evals, seed=0, progress=False)
    assert np.isfinite(result.sample(5000, seed=0)).all()
    assert str(result)


def test_one_value_above_zero():
    calls = []

    def log_likelihood(x):
        calls.append(x)
        return 0.0 if len(calls) == 1 else -np.inf

    result = basq.infer(log_likelihood, NORMAL, max_evals=33, seed=0, progress=False)
    assert np.isfinite(result.sample(5000, seed=0)).all()
