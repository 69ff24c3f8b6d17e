"""What every test problem has to keep."""

import numpy as np
import pytest


def check_points_and_rows(problem, x):
    """Points (n, d) give what their rows give one by one, and stay as they were."""
    before = x.copy()
    x.flags.writeable = False
    values = problem.log_likelihood(x)
    assert values.shape == (len(x),)
    assert values.dtype == float
    assert not np.isnan(values).any()
    for row, value in zip(x, values, strict=True):
        single = problem.log_likelihood(row)
        assert isinstance(single, float)
        assert single == pytest.approx(value, rel=1e-12)
    assert problem.log_likelihood(x[0].tolist()) == pytest.approx(values[0], rel=1e-12)
    assert problem.log_likelihood(x[:0]).shape == (0,)
    np.testing.assert_array_equal(x, before)


def check_moments(problem, x):
    """Posterior draws (n, d) have the stated moments, within five standard errors."""
    offset = x - problem.posterior_mean
    products = offset[:, :, None] * offset[:, None, :]
    for draws, truth in ((offset, 0.0), (products, problem.posterior_cov)):
        error = draws.std(axis=0) / np.sqrt(len(x))
        assert (np.abs(draws.mean(axis=0) - truth) < 5.0 * error).all()
