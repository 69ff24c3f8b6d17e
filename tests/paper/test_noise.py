"""Known noise of a likelihood, as the processes of the paper's models see it."""

import numpy as np
import pytest

from basq import Paper
from basq.observations import Observations
from basq.prior import Prior

SHIFT = 0.01


@pytest.mark.parametrize("model", ["vanilla", "wsabi-l", "bbq"])
def test_noise_passes_through_a_warp_by_its_slope(model):
    rng = np.random.default_rng(0)
    u = rng.standard_normal((20, 1))
    log_values, sd = -0.5 * u[:, 0] ** 2 - 300.0, rng.uniform(1e-4, 1e-3, 20)
    seen = Observations.empty(1).append(u, u, log_values, np.zeros(20), noise=sd)
    gp = Paper(model=model, noise=0.0).fit(seen, Prior([(0.0, 1.0)]), None, rng).surrogate.gp

    def data(logarithms):
        values = np.exp(logarithms - log_values.max())
        if model == "vanilla":
            return values
        offset = 0.8 * np.exp(log_values.min() - log_values.max())
        return np.log(values / SHIFT + 1.0) if model == "bbq" else np.sqrt(2.0 * (values - offset))

    # far smaller than the value, so a difference over it is its slope
    spread = 0.5 * (data(log_values + sd) - data(log_values - sd))
    np.testing.assert_allclose(gp.noise, spread**2, rtol=1e-3, atol=1e-9)
