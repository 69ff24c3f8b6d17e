"""One parameter's density at the hard edges of its prior, against quadrature."""

import numpy as np
import pytest
from scipy import stats

import basq
from basq.posterior.edges import hold_at_edges, smooth_to_edges
from basq.posterior.sampled import GridDensity

N = 4000
UNIFORM = (0.0, 1.0)
FALLING = basq.Prior.from_transform(lambda cube: 1.0 - cube, names=["a"])


class Exact:
    """A posterior of one parameter, from its prior and its log-likelihood, on a fine grid of the prior's share."""

    def __init__(self, prior, log_likelihood):
        self.prior = prior if isinstance(prior, basq.Prior) else basq.Prior({"a": prior})
        near = np.logspace(-9, -2, 6000)
        share = np.sort(np.concatenate([near, np.linspace(0.0, 1.0, 20_002)[1:-1], 1.0 - near]))
        self.u = stats.norm.ppf(share)
        x = self.prior.coordinate_from_standard(0, self.u)
        ratio = np.exp(np.maximum(log_likelihood(x), -500.0))
        ratio = ratio / np.trapezoid(ratio, share)
        order = np.argsort(x)
        pdf = ratio * np.exp(stats.norm.logpdf(self.u) - self.prior.coordinate_log_jacobian(0, self.u))
        self.x, self.pdf = x[order], pdf[order]
        mass = np.concatenate([[0.0], 0.5 * (ratio[1:] + ratio[:-1]) * np.diff(share)])
        self.below = np.cumsum(mass)  # in the order of u
        self.standard = GridDensity.from_log(self.u, np.log(ratio) + stats.norm.logpdf(self.u))

    def sample(self, seed):
        return np.interp(np.random.default_rng(seed).random(N), self.below, self.u)


CASES = {
    "half normal": (UNIFORM, lambda x: -0.5 * (x / 0.1) ** 2),
    "very narrow": (UNIFORM, lambda x: -0.5 * (x / 1e-4) ** 2),
    "upper edge": (UNIFORM, lambda x: -0.5 * ((1.0 - x) / 0.05) ** 2),
    "two sd away": (UNIFORM, lambda x: -0.5 * ((x - 0.2) / 0.1) ** 2),
    "far off": (UNIFORM, lambda x: -0.5 * ((x - 0.5) / 0.1414) ** 2),
    "flat": (UNIFORM, lambda x: 0.0 * x),
    "both edges": (UNIFORM, lambda x: 8.0 * (x - 0.5) ** 2),
    "exponential": (stats.expon(), lambda x: -0.5 * (x / 2.0) ** 2),
    "falling": (FALLING, lambda x: -0.5 * (x / 0.2) ** 2),
}


@pytest.mark.parametrize("name", CASES)
def test_smoothed_up_to_the_edges(name):
    exact = Exact(*CASES[name])
    density = smooth_to_edges(exact.prior, 0, exact.sample(0))
    assert density is not None
    error = np.abs(density.pdf(exact.x) - exact.pdf)
    assert error.max() < 0.12 * exact.pdf.max()  # no spikes
    assert 0.5 * np.trapezoid(error, exact.x) < 0.02
    low, high = exact.prior.bounds[0]
    assert density.grid[0] >= low
    assert density.grid[-1] <= high
    if exact.pdf[0] > 0.1 * exact.pdf.max():
        assert density.grid[0] == low
        assert density.pdf([low])[0] == pytest.approx(exact.pdf[0], rel=0.15)


@pytest.mark.parametrize("name", ["half normal", "upper edge", "flat", "both edges", "exponential", "falling"])
def test_a_known_density_is_held_at_the_edges(name):
    exact = Exact(*CASES[name])
    # what a surrogate may believe beyond its last points
    wrong = exact.standard.values * np.where(np.abs(exact.u) > 3.8, np.exp(2.0 * (np.abs(exact.u) - 3.8)), 1.0)
    density = hold_at_edges(exact.prior, 0, GridDensity.from_log(exact.u, np.log(wrong)))
    assert density is not None
    inner = exact.pdf > 0.1 * exact.pdf.max()
    np.testing.assert_allclose(density.pdf(exact.x[inner]), exact.pdf[inner], rtol=0.02)


@pytest.mark.parametrize(
    ("prior", "log_likelihood"),
    [
        (UNIFORM, lambda x: -0.5 * ((x - 0.4) / 0.05) ** 2),
        (stats.lognorm(1.0), lambda x: 0.0 * x),
        (stats.gamma(2.0), lambda x: -0.3 * x),
        (stats.norm(), lambda x: -0.5 * (x - 1.0) ** 2),
        (stats.cauchy(), lambda x: -0.5 * x**2),
    ],
    ids=["inside", "lognormal", "gamma", "normal", "Cauchy"],
)
def test_without_mass_at_a_hard_edge_there_is_nothing_to_do(prior, log_likelihood):
    exact = Exact(prior, log_likelihood)
    assert smooth_to_edges(exact.prior, 0, exact.sample(0)) is None
    assert hold_at_edges(exact.prior, 0, exact.standard) is None
