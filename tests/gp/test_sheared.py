import numpy as np
import pytest

from basq.auto.chart import Chart
from basq.gp.fit import fit
from basq.gp.kernels.sheared import Shear, ShearedKernel, places, sheared
from basq.gp.kernels.trend import TrendPrior
from basq.testing import check_kernel


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def random_shear(rng, d, size=0.1):
    none = Shear.none(rotation(rng, d))
    return Shear(none.frame, size * rng.normal(size=len(none.bends)))


def random_kernel(rng, d):
    base = TrendPrior().start(np.eye(d)).with_theta(0.7 * rng.normal(size=d + 5))
    return ShearedKernel(base, random_shear(rng, d), 0.05)


@pytest.mark.parametrize("d", [1, 2, 4])
class TestShear:
    def test_each_direction_moves_by_products_of_those_before_it(self, d):
        rng = np.random.default_rng(0)
        shear, z = random_shear(rng, d), rng.normal(size=(5, d))
        y = z @ shear.frame.T
        t, s = y.copy(), y / np.sqrt(1.0 + y**2 / 1e4)
        i, j = np.triu_indices(d)
        for b, pair, k in zip(shear.bends, *places(d), strict=True):
            assert i[pair] <= j[pair] < k
            t[:, k] += b * s[:, i[pair]] * s[:, j[pair]]
        np.testing.assert_allclose(shear(z), t @ shear.frame, rtol=1e-12)

    def test_back_is_the_inverse(self, d):
        rng = np.random.default_rng(1)
        shear, z = random_shear(rng, d, 1.0), 3.0 * rng.normal(size=(20, d))
        np.testing.assert_allclose(shear.back(shear(z)), z, atol=1e-8)

    def test_volumes_stay(self, d):
        rng = np.random.default_rng(2)
        shear, z, h = random_shear(rng, d), rng.normal(size=d), 1e-5
        jacobian = (shear(z + h * np.eye(d)) - shear(z - h * np.eye(d))) / (2 * h)
        assert abs(np.linalg.det(jacobian)) == pytest.approx(1.0, rel=1e-8)

    def test_slope_by_the_bends(self, d):
        rng = np.random.default_rng(3)
        shear, z, slope = random_shear(rng, d), rng.normal(size=(6, d)), rng.normal(size=(6, d))
        for k, b in enumerate(shear.bends):
            steps = [Shear(shear.frame, np.where(np.arange(len(shear.bends)) == k, b + h, shear.bends))
                     for h in (1e-5, -1e-5)]  # fmt: skip
            found = np.vdot(slope, steps[0](z) - steps[1](z)) / 2e-5
            assert shear.pulled(z, slope)[k] == pytest.approx(found, rel=1e-6, abs=1e-9)


def test_a_shear_is_the_same_when_its_chart_has_moved_along_it():
    """Widths that change and directions that stay: what was a shear is one."""
    rng = np.random.default_rng(4)
    frame = np.eye(3)
    shear = Shear(frame, rng.normal(size=len(places(3)[0])))
    widths = np.array([1.5, 0.7, 0.4])
    seen = shear.seen_from(frame, np.diag(widths))
    z = 0.01 * rng.normal(size=(8, 3))
    np.testing.assert_allclose(seen(z) * widths, shear(z * widths), rtol=1e-4, atol=1e-8)


def test_turning_the_frame_there_and_back_changes_nothing():
    rng = np.random.default_rng(5)
    shear, turn = random_shear(rng, 4), rotation(rng, 4)
    there = Shear(shear.frame @ turn, shear.bends)
    np.testing.assert_allclose(shear.seen_from(there.frame, turn).bends, shear.bends, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_kernel_keeps_the_contract(d):
    check_kernel(random_kernel(np.random.default_rng(6), d))


@pytest.mark.parametrize("k", [0, 3])
def test_slope_by_the_points(k, block):
    rng = np.random.default_rng(7)
    base = TrendPrior().start(np.eye(3)[:k]).with_theta(0.7 * rng.normal(size=8))
    x, g = rng.normal(size=(9, 3)), np.triu(rng.normal(size=(9, 9)))
    found = base.by_points(x, g)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        slope = np.vdot(g, base(x + step, x + step) - base(x - step, x - step)) / 2e-5
        assert found[place] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def ridge(x):
    """Curved: narrow across, and bent by less than it is long."""
    return -0.5 * (x[:, 0] ** 2 + ((x[:, 1] - 0.3 * x[:, 0] ** 2) / 0.1) ** 2)


def learned(x, y, *, shear):
    chart = Chart.of(x)
    kernel, prior = sheared(TrendPrior(), chart.axes, chart.frame, 0.5, learned=shear)
    return chart, fit(chart.whiten(x), y, kernel, noise=1e-8, known_noise=1e-4, hyperprior=prior, max_steps=60)


def test_a_curved_ridge_is_straightened_and_needs_few_points():
    rng = np.random.default_rng(8)

    def draw(n):
        first = rng.normal(size=n)
        return np.stack([first, 0.3 * first**2 + 0.1 * rng.normal(size=n)], axis=1)

    x, new = draw(60), draw(500)
    errors = []
    for shear in (False, True):
        chart, gp = learned(x, ridge(x), shear=shear)
        errors.append(np.sqrt(np.mean((gp.predict_mean(chart.whiten(new)) - ridge(new)) ** 2)))
    assert errors[1] < 0.2 * errors[0]
    assert np.abs(gp.kernel.shear.bends).max() > 0.1


def test_bends_that_are_not_learned_stay_zero():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(30, 2))
    assert not learned(x, ridge(x), shear=False)[1].kernel.shear.bends.any()


def test_the_frame_of_a_chart_has_its_widest_direction_first():
    rng = np.random.default_rng(10)
    root = np.linalg.cholesky(np.diag([1.0, 9.0, 4.0]) + 0.5)
    chart = Chart(np.zeros(3), root)
    np.testing.assert_allclose(chart.frame @ chart.frame.T, np.eye(3), atol=1e-12)
    along = (chart.root @ chart.frame.T).T
    widths = np.linalg.norm(along, axis=1)
    assert (np.diff(widths) < 0.0).all()
    np.testing.assert_allclose(along @ along.T, np.diag(widths**2), atol=1e-12)
    other = Chart(rng.normal(size=3), np.linalg.cholesky(np.eye(3) + 0.3))
    u = rng.normal(size=(4, 3))
    moved = (other.whiten(u) - other.whiten(u[:1])) @ chart.seen_from(other).T
    np.testing.assert_allclose(moved, chart.whiten(u) - chart.whiten(u[:1]), atol=1e-12)
