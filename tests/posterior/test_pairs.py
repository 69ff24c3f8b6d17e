"""The density of two parameters, smoothed from samples, against laws whose density is known."""

import pickle

import numpy as np
import pytest
from scipy import stats

from basq.errors import InputError
from basq.posterior.pairs import LeaningGrid, PairDensity

ANYWHERE = np.tile([-np.inf, np.inf], (2, 1))
UNIT = np.tile([0.0, 1.0], (2, 1))
N = 4000


def distance(density, law_pdf, nodes, area):
    """Total variation between a density and a law, over nodes that hold the law's mass."""
    found = density.pdf(nodes)
    return 0.5 * (np.abs(found - law_pdf(nodes)).sum() * area + max(0.0, 1.0 - found.sum() * area))


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.8, 0.99, 0.999, 0.9999, -0.9999])
def test_a_ridge_however_narrow(correlation):
    law = stats.multivariate_normal([3.0, -1.0], [[1.0, 20.0 * correlation], [20.0 * correlation, 400.0]])
    density = PairDensity(law.rvs(N, random_state=0), ANYWHERE)
    root, z = np.linalg.cholesky(law.cov), np.linspace(-4.5, 4.5, 181)
    white = np.stack(np.meshgrid(z, z), axis=-1).reshape(-1, 2)
    area = (z[1] - z[0]) ** 2 * np.linalg.det(root)
    assert distance(density, law.pdf, law.mean + white @ root.T, area) < 0.035


@pytest.mark.parametrize(
    ("modes", "sds", "limit"),
    [
        ([(2, 2), (-2, -2)], [0.1, 0.1], 0.06),
        ([(2, -2), (-2, 2)], [0.1, 0.4], 0.12),
        ([(2, 2), (-2, -2), (2, -2), (-2, 2)], [0.1, 0.1, 0.1, 0.1], 0.06),
    ],
)
def test_modes_far_apart(modes, sds, limit):
    laws = [stats.multivariate_normal(m, s**2 * np.eye(2)) for m, s in zip(modes, sds, strict=True)]
    rng = np.random.default_rng(1)
    density = PairDensity(np.concatenate([law.rvs(N // len(laws), random_state=rng) for law in laws]), ANYWHERE)
    z = np.linspace(-5.0, 5.0, 101)
    white = np.stack(np.meshgrid(z, z), axis=-1).reshape(-1, 2)
    total = 0.0
    for law, mode, sd in zip(laws, modes, sds, strict=True):
        area, nodes = (sd * (z[1] - z[0])) ** 2, mode + sd * white
        found = density.pdf(nodes)
        assert found.sum() * area == pytest.approx(1.0 / len(laws), abs=0.5 * limit)
        total += 0.5 * np.abs(found - law.pdf(nodes) / len(laws)).sum() * area
    assert total < limit


def quadratic(centre, cov):
    precision = np.linalg.inv(cov)
    return lambda x: -0.5 * np.einsum("ij,jk,ik->i", x - centre, precision, x - centre)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    "log_density",
    [
        lambda x: 0.0 * x[:, 0],
        quadratic([0.0, 0.5], np.diag([0.01, 0.02])),
        quadratic([0.1, 0.1], 0.09 * np.array([[1.0, 0.8], [0.8, 1.0]])),
        quadratic([0.5, 0.4], 0.25 * np.array([[1.0, -0.95], [-0.95, 1.0]])),
        quadratic([0.3, 0.3], 0.25 * np.array([[1.0, 0.99], [0.99, 1.0]])),
    ],
    ids=["flat", "half normal", "corner", "across", "ridge"],
)
def test_mass_at_the_edges_of_a_box(log_density, swapped):
    n = 500
    t = (np.arange(n) + 0.5) / n
    nodes = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    mass = np.exp(log_density(nodes))
    rng = np.random.default_rng(2)
    points = nodes[rng.choice(len(nodes), N, p=mass / mass.sum())] + (rng.random((N, 2)) - 0.5) / n
    order = [1, 0] if swapped else [0, 1]
    density = PairDensity(points[:, order], UNIT)
    truth = mass / mass.sum() * n**2
    assert distance(density, lambda _: truth, nodes[:, order], n**-2.0) < 0.045
    edge = nodes[np.minimum(nodes, 1.0 - nodes).min(axis=1) < 0.02]
    share = truth[np.minimum(nodes, 1.0 - nodes).min(axis=1) < 0.02].sum() / n**2
    assert density.pdf(edge[:, order]).sum() / n**2 == pytest.approx(share, abs=0.3 * share)
    np.testing.assert_array_equal(density.pdf([[-0.01, 0.5], [0.5, 1.01]]), 0.0)


def test_it_is_a_density_like_any_other():
    points = stats.multivariate_normal([0.0, 1.0], np.eye(2)).rvs(N, random_state=3)
    density = pickle.loads(pickle.dumps(PairDensity(points, ANYWHERE)))
    assert density.n_dim == 2
    assert density.pdf([0.0, 1.0]).shape == (1,)
    np.testing.assert_allclose(np.exp(density.log_pdf(points[:20])), density.pdf(points[:20]))
    assert density.log_pdf([[50.0, 0.0]])[0] == -np.inf
    np.testing.assert_allclose(density.moments()[0], [0.0, 1.0], atol=0.06)
    rows = {tuple(row) for row in points}
    assert all(tuple(row) in rows for row in density.sample(50, np.random.default_rng(0)))
    for method in (density.cdf, density.ppf):
        with pytest.raises(InputError, match="2; take a marginal first"):
            method([0.5])


@pytest.mark.parametrize(
    "points", [np.full((40, 2), 3.0), np.column_stack([np.linspace(0.0, 1e-200, 40), np.ones(40)])]
)
def test_equal_samples(points):
    assert np.isfinite(PairDensity(points, ANYWHERE).values).all()


def test_the_grid_reaches_the_bounds_with_its_rim():
    points = np.random.default_rng(4).random((N, 2))
    whole = LeaningGrid.around(points, UNIT).whole
    x, y = whole.mesh
    for t in (x, y):
        assert t.min() == pytest.approx(0.0, abs=1e-12)
        assert t.max() == pytest.approx(1.0, abs=1e-12)
