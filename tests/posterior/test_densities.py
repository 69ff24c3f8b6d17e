"""What a user sees of a posterior, end to end, against the exact one: modes, ridges, and mass at the prior's edges."""

import numpy as np
import pytest
from matplotlib.path import Path
from scipy import stats

import basq

BOX = {"a": (-4.0, 4.0), "b": (-4.0, 4.0)}


def infer(function, prior, max_evals):
    return basq.infer(function, prior, seed=1, progress=False, max_evals=max_evals)


def two_modes(x):
    return float(np.logaddexp(*(-50.0 * np.sum((x[:2] - m) ** 2) for m in (2.0, -2.0))) - 0.5 * np.sum(x[2:] ** 2))


def ridge(correlation):
    law = stats.multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]])
    return law, lambda x: float(law.logpdf(x[:2]) - 0.5 * np.sum(x[2:] ** 2))


def edge(x):
    return float(-0.5 * (x[0] ** 2 / 0.01 + (x[1] - 0.5) ** 2 / 0.02))


@pytest.fixture(scope="module")
def bimodal():
    return infer(two_modes, BOX, 200)


@pytest.fixture(scope="module")
def bimodal_of_three():
    return infer(two_modes, BOX | {"c": (-4.0, 4.0)}, 250)


@pytest.fixture(scope="module")
def box():
    return infer(edge, {"a": (0.0, 1.0), "b": (0.0, 1.0)}, 100)


def contours(result, pair=("a", "b")):
    """What is drawn of a pair: the band from 95 % to 68 % of the mass, and what lies within it."""
    figure = result.plot_corner(names=list(pair), points=False)
    panel = next(a for a in figure.axes if a.get_ylabel() == pair[1])
    filled = next(c for c in panel.collections if len(c.get_paths()) == 2)
    return dict(zip((0.27, 0.68), filled.get_paths(), strict=True))


def share_inside(path: Path, points):
    """Of the points, those inside an outline: in an odd number of its rings."""
    rings = [Path(ring) for ring in path.to_polygons(closed_only=False)]
    return float(np.mean(np.sum([ring.contains_points(points) for ring in rings], axis=0) % 2))


def test_of_all_parameters_it_is_the_posterior_itself(bimodal):
    x = bimodal.sample(200, seed=3)
    density = np.exp(bimodal.log_pdf(x))
    np.testing.assert_allclose(bimodal.marginal(["a", "b"]).pdf(x), density, rtol=1e-9)
    np.testing.assert_allclose(bimodal.marginal(["b", "a"]).pdf(x[:, ::-1]), density, rtol=1e-9)
    assert bimodal.marginal(["a", "b"]).pdf([[2.0, 2.0]])[0] == pytest.approx(0.5 / (2 * np.pi * 0.01), rel=0.1)
    assert bimodal.marginal(["b", "a"]).sample(50, seed=1).shape == (50, 2)


@pytest.mark.parametrize("name", ["bimodal", "bimodal_of_three"])
def test_both_modes_are_drawn(name, request):
    outlines = contours(request.getfixturevalue(name))
    rng = np.random.default_rng(0)
    for mode in (2.0, -2.0):
        points = rng.normal(mode, 0.1, (4000, 2))
        for mass, path in outlines.items():
            assert share_inside(path, points) == pytest.approx(mass, abs=0.06)


def test_both_modes_have_their_mass_in_a_pair_of_three(bimodal_of_three):
    pair = bimodal_of_three.marginal(["a", "b"])
    law = [stats.multivariate_normal([m, m], 0.01 * np.eye(2)) for m in (2.0, -2.0)]
    t = np.linspace(-0.6, 0.6, 121)
    near = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    total = 0.0
    for m, one in zip((2.0, -2.0), law, strict=True):
        total += 0.5 * np.abs(pair.pdf(near + m) - 0.5 * one.pdf(near + m)).sum() * (t[1] - t[0]) ** 2
    assert total < 0.1  # a kernel estimate of Scott's width has 0.6


@pytest.mark.parametrize("n_dim", [2, 3])
def test_a_narrow_ridge_is_drawn_where_it_is(n_dim):
    law, function = ridge(0.999)
    result = infer(function, {name: (-5.0, 5.0) for name in "abc"[:n_dim]}, 200)
    points = law.rvs(4000, random_state=0)
    for mass, path in contours(result).items():
        assert share_inside(path, points) == pytest.approx(mass, abs=0.05)


def test_a_half_normal_posterior_ends_at_its_bound():
    result = infer(lambda x: -0.5 * float(x[0] / 0.5) ** 2, {"a": (0.0, 2.0)}, 32)
    density, law = result.marginal("a"), stats.halfnorm(0.0, 0.5)
    t = np.linspace(0.0, 1.2, 200)
    np.testing.assert_allclose(density.pdf(t), law.pdf(t), rtol=0.03)
    np.testing.assert_allclose(density.cdf(t), law.cdf(t), atol=5e-3)
    np.testing.assert_array_equal(density.pdf([-0.1, 2.1]), 0.0)
    np.testing.assert_allclose(density.cdf(density.ppf([0.0, 0.1, 0.9])), [0.0, 0.1, 0.9], atol=1e-6)


def test_marginals_have_no_spikes_at_hard_bounds(box):
    laws = {"a": stats.halfnorm(0.0, 0.1), "b": stats.truncnorm(-0.5 / 0.02**0.5, 0.5 / 0.02**0.5, 0.5, 0.02**0.5)}
    for name, law in laws.items():
        density, top = box.marginal(name), law.pdf(law.ppf(np.linspace(0.01, 0.99, 99))).max()
        t = np.concatenate([[0.0], np.logspace(-6, -2, 50), np.linspace(0.01, 0.99, 99), 1.0 - np.logspace(-6, -2, 50)])
        np.testing.assert_allclose(density.pdf(t), law.pdf(t), atol=0.06 * top)
        np.testing.assert_allclose(density.cdf(t), law.cdf(t), atol=0.02)
        assert (np.diff(density.ppf(np.linspace(0.0, 1.0, 101))) > 0.0).all()
