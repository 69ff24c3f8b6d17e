"""Priors: maps to and from standard space, densities, sampling, and every refusal."""

import pickle
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from basq.errors import InputError, NumericsWarning
from basq.numerics.gaussians import GaussianMixture
from basq.prior import Prior, as_prior
from basq.prior.density import Density, fit_mixture

pytestmark = pytest.mark.filterwarnings("error")

MARGINALS = {
    "norm": stats.norm(3.0, 0.2),
    "lognorm": stats.lognorm(0.5, scale=2.0),
    "uniform": stats.uniform(-1.0, 4.0),
    "pair": (0.0, 1.0),
    "beta": stats.beta(2.0, 5.0),
    "arcsine": stats.beta(0.5, 0.5),
    "gamma": stats.gamma(2.5, scale=0.1),
    "spiky_gamma": stats.gamma(0.3),
    "invgamma": stats.invgamma(3.0),
    "t": stats.t(3.0, loc=1.0, scale=2.0),
    "cauchy": stats.cauchy(1.0, 0.5),
    "halfcauchy": stats.halfcauchy(scale=2.0),
    "expon": stats.expon(scale=3.0),
    "halfnorm": stats.halfnorm(scale=0.3),
    "truncnorm": stats.truncnorm(-1.0, 2.0, loc=0.5, scale=0.7),
    "loguniform": stats.loguniform(1e-5, 1e2),
    "laplace": stats.laplace(0.0, 2.0),
    "gumbel": stats.gumbel_r(1.0, 2.0),
    "weibull": stats.weibull_min(1.5),
    "invgauss": stats.invgauss(1.0),
    "betaprime": stats.betaprime(2.0, 3.0),
    "rice": stats.rice(1.0),
}
HEAVY = ("t", "cauchy", "halfcauchy", "invgamma", "lognorm", "laplace", "norm")
MEAN = np.array([1.0, -2.0, 100.0])
SCALE = np.array([1.0, 0.05, 20.0])
COV = np.array([[1.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 1.0]]) * np.outer(SCALE, SCALE)
WORKHORSE = {"rate": stats.lognorm(0.5), "shift": stats.norm(0, 2), "phase": (0, 1)}


def cube_to_x(cube):
    """Separable: uniform, falling exponential, normal; overwrites its input as a hostile user would."""
    x = np.array([10 * cube[0] - 5, -2.0 * np.log(cube[1]), 3 + special.ndtri(cube[2])])
    cube[:] = np.nan
    return x


def joint_transform(cube):
    """Conditional prior: the second parameter is uniform below the first."""
    return np.array([cube[0], cube[0] * cube[1]])


TWO_MODES = GaussianMixture(
    np.array([0.3, 0.7]),
    np.array([[-4.0, 0.0], [3.0, 20.0]]),
    np.array([[[1.0, 0.0], [0.0, 4.0]], [[0.5, 0.6], [0.6, 2.0]]]),
)


def two_modes_log_pdf(x):
    return TWO_MODES.log_pdf(x)


def skewed_log_pdf(x):
    """One point at a time: gamma(3) times a normal whose mean bends with the first parameter."""
    if x[0] <= 0:
        return -np.inf
    gamma = 2 * np.log(x[0]) - x[0] - np.log(2)
    return gamma - 2 * (x[1] - 0.2 * x[0] ** 2) ** 2 - 0.5 * np.log(0.5 * np.pi)


def skewed_samples(n):
    rng = np.random.default_rng(3)
    a = rng.gamma(3.0, size=n)
    return np.column_stack([a, 0.2 * a**2 + 0.5 * rng.standard_normal(n)])


@pytest.fixture(scope="module")
def two_modes():
    return Prior.from_density(two_modes_log_pdf, TWO_MODES.sample(1000, np.random.default_rng(1)), ["a", "b"])


@pytest.fixture(scope="module")
def skewed():
    return Prior.from_density(skewed_log_pdf, skewed_samples(1000))


@pytest.fixture(scope="module")
def cube_prior():
    return Prior.from_transform(cube_to_x, names=["a", "b", "c"])


class TestMarginals:
    @pytest.mark.parametrize("name", MARGINALS)
    def test_round_trip(self, name):
        prior = Prior({"x": MARGINALS[name]})
        u = np.linspace(-6, 6, 241)[:, None]
        x = prior.from_standard(u)
        back = prior.to_standard(x)
        # near a bound x has few digits left: one ulp of x is this much of u
        ulp = np.zeros(len(u)) if name in HEAVY else 4 * np.spacing(np.abs(x[:, 0])) * np.exp(-prior.log_jacobian(u))
        assert (np.diff(x[:, 0]) >= 0).all()
        # where scipy has no survival function of its own, 1 - cdf keeps 7 digits of the upper tail
        tolerance = 1e-8 if name in HEAVY else 5e-8
        assert (np.abs(back - u)[:, 0] <= tolerance + ulp).all()

    @pytest.mark.parametrize("name", MARGINALS)
    def test_jacobian_matches_differences(self, name):
        prior = Prior([MARGINALS[name]])
        u, h = np.linspace(-4, 4, 32)[:, None], 1e-3  # an even number: the Laplace density has a kink at 0
        far = prior.from_standard(u + 2 * h) - prior.from_standard(u - 2 * h)
        slope = (8 * (prior.from_standard(u + h) - prior.from_standard(u - h)) - far) / (12 * h)
        np.testing.assert_allclose(prior.log_jacobian(u), np.log(slope[:, 0]), atol=2e-6)

    @pytest.mark.parametrize("name", MARGINALS)
    def test_density_is_that_of_the_map(self, name):
        prior = Prior([MARGINALS[name]])
        u = np.linspace(-5, 5, 51)[:, None]
        x = prior.from_standard(u)
        np.testing.assert_allclose(
            prior.log_pdf(x), prior.measure.log_pdf(u) - prior.log_jacobian(u), rtol=1e-9, atol=1e-9
        )

    @pytest.mark.parametrize("name", MARGINALS)
    def test_density_integrates_to_one(self, name):
        prior = Prior([MARGINALS[name]])
        knots = prior.from_standard(np.linspace(-4, 4, 17)[:, None])[:, 0]
        total = sum(
            integrate.quad(lambda t: np.exp(prior.log_pdf(np.array([t]))), a, b, limit=200)[0]
            for a, b in pairwise(knots)
        )
        assert total == pytest.approx(special.ndtr(4) - special.ndtr(-4), abs=1e-7)

    @pytest.mark.parametrize("name", MARGINALS)
    def test_extreme_points_stay_finite_and_in_support(self, name):
        prior = Prior([MARGINALS[name]])
        u = np.array([-1e3, -40, -20, -8.3, -8, 0, 8, 8.3, 20, 40, 1e3])[:, None]
        x = prior.from_standard(u)
        assert np.isfinite(x).all()
        assert prior.in_support(x).all()
        assert np.isfinite(prior.to_standard(x)).all()
        assert np.isfinite(prior.log_jacobian(u[3:8])).all()
        assert not np.isnan(prior.log_pdf(x)).any()

    @pytest.mark.parametrize("name", MARGINALS)
    def test_sampling(self, name):
        spec = MARGINALS[name]
        x = Prior([spec]).sample(4000, np.random.default_rng(11))
        dist = stats.uniform(*spec) if isinstance(spec, tuple) else spec
        assert stats.kstest(x[:, 0], dist.cdf).pvalue > 1e-3

    def test_edges_of_a_bounded_support(self):
        prior = Prior({"p": (2, 5), "q": stats.beta(2, 2)})
        edges = np.array([[2.0, 0.0], [5.0, 1.0]])
        u = prior.to_standard(edges)
        assert np.isfinite(u).all()
        np.testing.assert_allclose(prior.from_standard(u), edges, atol=1e-40)
        np.testing.assert_array_equal(prior.bounds, [[2, 5], [0, 1]])

    def test_density_outside_is_zero(self):
        prior = Prior(WORKHORSE)
        x = np.array([[1.0, 0.0, 0.5], [-1.0, 0.0, 0.5], [1.0, 0.0, 1.5]])
        np.testing.assert_array_equal(np.isfinite(prior.log_pdf(x)), [True, False, False])
        np.testing.assert_array_equal(prior.in_support(x), [True, False, False])

    def test_zero_times_infinite_density_is_zero(self):
        prior = Prior([stats.beta(0.5, 0.5), stats.beta(2, 2)])
        assert prior.log_pdf(np.zeros(2)) == -np.inf

    def test_far_tail_of_a_normal_is_exact(self):
        assert Prior([stats.norm(1, 2)]).to_standard(np.array([1 + 2 * 1e5])) == 1e5

    def test_histogram_is_a_distribution(self):
        draws = np.random.default_rng(0).gamma(2.0, size=500)
        prior = Prior({"h": stats.rv_histogram(np.histogram(draws, bins=40), density=False)()})
        u = np.linspace(-2, 2, 9)[:, None]
        np.testing.assert_allclose(prior.to_standard(prior.from_standard(u)), u, atol=1e-8)

    @settings(max_examples=60, deadline=None)
    @given(
        u=st.lists(st.floats(-6, 6), min_size=3, max_size=3),
        scale=st.floats(1e-6, 1e6),
        loc=st.floats(-1e3, 1e3),
        df=st.floats(0.7, 30),
    )
    def test_round_trip_for_any_parameters(self, u, scale, loc, df):
        prior = Prior([stats.norm(loc, scale), stats.t(df, scale=scale), (loc, loc + scale)])
        u = np.array(u)
        x = prior.from_standard(u)
        resolution = 8 * np.spacing(np.abs(x) + np.array([abs(loc), 0, abs(loc) + scale]))
        slope = [np.exp(prior.coordinate_log_jacobian(i, u[i : i + 1]))[0] for i in range(3)]
        assert (np.abs(prior.to_standard(x) - u) <= 1e-8 + resolution / np.array(slope)).all()


class TestPrior:
    def test_shapes(self):
        prior = Prior(WORKHORSE)
        u = np.random.default_rng(0).standard_normal((5, 3))
        x = prior.from_standard(u)
        assert x.shape == prior.to_standard(x).shape == (5, 3)
        assert prior.log_pdf(x).shape == prior.log_jacobian(u).shape == prior.log_weight(u).shape == (5,)
        assert prior.from_standard(u[0]).shape == prior.to_standard(x[0]).shape == (3,)
        assert np.ndim(prior.log_pdf(x[0])) == np.ndim(prior.log_weight(u[0])) == np.ndim(prior.in_support(x[0])) == 0
        assert prior.log_pdf(x[0]) == prior.log_pdf(x)[0]
        assert prior.sample(0, np.random.default_rng(0)).shape == prior.from_standard(np.empty((0, 3))).shape == (0, 3)
        assert prior.to_standard(np.empty((0, 3))).shape == (0, 3)
        assert prior.log_pdf(np.empty((0, 3))).shape == (0,)

    def test_forms_of_the_spec(self):
        assert Prior(WORKHORSE).names == ("rate", "shift", "phase")
        assert Prior(list(WORKHORSE.values())).names == ("x1", "x2", "x3")
        assert Prior([(0, 1), (2, 3)], names=["a", "b"]).names == ("a", "b")
        assert Prior(np.array([[0.0, 1.0], [2.0, 5.0]])).bounds.tolist() == [[0, 1], [2, 5]]
        assert Prior((0, 1)).n_dim == Prior(stats.norm()).n_dim == 1
        assert Prior(stats.norm(), names="mass").names == ("mass",)

    def test_as_prior(self):
        prior = Prior(WORKHORSE)
        assert as_prior(prior) is prior
        assert as_prior(prior, names=["a", "b", "c"]).names == ("a", "b", "c")
        assert as_prior(WORKHORSE).names == prior.names
        assert Prior(prior).names == prior.names

    def test_measure_and_weight_of_an_exact_map(self):
        prior = Prior(WORKHORSE)
        assert prior.measure.n_dim == 3
        assert prior.is_separable
        assert prior.affine is None
        np.testing.assert_array_equal(prior.log_weight(np.ones((4, 3))), np.zeros(4))

    def test_coordinates_agree_with_the_whole(self):
        prior = Prior(WORKHORSE)
        u = np.random.default_rng(0).standard_normal((7, 3))
        x = prior.from_standard(u)
        for i in range(3):
            np.testing.assert_array_equal(prior.coordinate_from_standard(i, u[:, i]), x[:, i])
            np.testing.assert_array_equal(prior.coordinate_to_standard(i, x[:, i]), prior.to_standard(x)[:, i])
        total = sum(prior.coordinate_log_jacobian(i, u[:, i]) for i in range(3))
        np.testing.assert_allclose(total, prior.log_jacobian(u))

    def test_flat_parameters(self, two_modes):
        laws = [(0, 1), stats.loguniform(1e-3, 10.0), stats.norm(), stats.lognorm(0.5), stats.beta(2, 2), (1.0, 8.0)]
        assert Prior(laws).flat.tolist() == [True, True, False, False, False, True]
        cube = Prior.from_transform(lambda c: np.array([10.0 * c[0] - 5.0, special.ndtri(c[1])]), 2)
        assert cube.flat.tolist() == [True, False]
        assert not Prior.from_transform(lambda c: np.array([c[0], c[0] + c[1]]), 2).flat.any()  # not separable
        assert not Prior(stats.multivariate_normal(MEAN, COV)).flat.any()
        assert not two_modes.flat.any()

    def test_index(self):
        prior = Prior(WORKHORSE)
        assert prior.index(["phase", "rate"]) == [2, 0]
        assert prior.index("shift") == [1]
        with pytest.raises(InputError, match=r"'speed'.*'rate', 'shift', 'phase'"):
            prior.index(["rate", "speed"])

    def test_repr(self, two_modes, cube_prior):
        assert repr(Prior(WORKHORSE)) == "Prior(rate ~ lognorm(0.5), shift ~ norm(0, 2), phase ~ uniform(0, 1))"
        assert repr(Prior([stats.t(df=3)])) == "Prior(x1 ~ t(df=3))"
        assert "multivariate normal" in repr(Prior(stats.multivariate_normal(MEAN, COV)))
        assert "density" in repr(two_modes)
        assert "separable unit-cube transform" in repr(cube_prior)

    def test_read_only_inputs(self, two_modes, cube_prior):
        for prior in (Prior(WORKHORSE), Prior(stats.multivariate_normal(MEAN, COV)), cube_prior, two_modes):
            u = np.random.default_rng(0).standard_normal((4, prior.n_dim))
            u.setflags(write=False)
            x = prior.from_standard(u)
            x.setflags(write=False)
            (
                prior.to_standard(x),
                prior.log_pdf(x),
                prior.log_jacobian(u),
                prior.log_weight(u),
                prior.in_support(x),
            )

    def test_pickle(self, two_modes, cube_prior):
        for prior in (Prior(WORKHORSE), Prior(stats.multivariate_normal(MEAN, COV)), cube_prior, two_modes):
            again = pickle.loads(pickle.dumps(prior))
            assert again.names == prior.names
            rngs = np.random.default_rng(5), np.random.default_rng(5)
            np.testing.assert_array_equal(again.sample(5, rngs[0]), prior.sample(5, rngs[1]))

    def test_what_is_handed_out_is_a_copy(self, cube_prior):
        normal = Prior(stats.multivariate_normal(MEAN, COV))
        normal.affine[1][:] = 0
        cube_prior.bounds[:] = 0
        np.testing.assert_array_equal(normal.affine[1], MEAN)
        assert cube_prior.bounds.any()

    def test_same_seed_same_sample(self, two_modes):
        for prior in (Prior(WORKHORSE), two_modes):
            first, second = (prior.sample(20, np.random.default_rng(2)) for _ in range(2))
            np.testing.assert_array_equal(first, second)


class TestMultivariateNormal:
    def test_matches_scipy(self):
        dist = stats.multivariate_normal(MEAN, COV)
        prior = Prior(dist)
        u = np.random.default_rng(0).standard_normal((50, 3))
        x = prior.from_standard(u)
        np.testing.assert_allclose(prior.log_pdf(x), dist.logpdf(x), rtol=1e-9)
        np.testing.assert_allclose(prior.log_pdf(x), prior.measure.log_pdf(u) - prior.log_jacobian(u), rtol=1e-9)
        np.testing.assert_allclose(prior.to_standard(x), u, atol=1e-9)
        factor, offset = prior.affine
        np.testing.assert_allclose(factor @ factor.T, COV, rtol=1e-12)
        np.testing.assert_array_equal(offset, MEAN)
        assert not prior.is_separable

    def test_sampling(self):
        x = Prior(stats.multivariate_normal(MEAN, COV)).sample(20_000, np.random.default_rng(0))
        np.testing.assert_allclose(np.cov((x / SCALE).T), COV / np.outer(SCALE, SCALE), atol=0.05)
        np.testing.assert_allclose((x.mean(axis=0) - MEAN) / SCALE, 0, atol=0.03)

    def test_tiny_units_are_not_singular(self):
        cov = np.diag([1e-20, 1e20])
        assert Prior(stats.multivariate_normal([0, 0], cov, allow_singular=True)).n_dim == 2

    def test_covariance_object(self):
        prior = Prior(stats.multivariate_normal([0, 1], stats.Covariance.from_diagonal([4.0, 9.0])))
        np.testing.assert_allclose(prior.from_standard(np.ones(2)), [2, 4])

    def test_one_dimension(self):
        prior = Prior(stats.multivariate_normal(1.0, 4.0), names=["m"])
        assert prior.to_standard(np.array([5.0])) == pytest.approx(2.0)


class TestTransform:
    def test_separable(self, cube_prior):
        same = Prior({"a": (-5, 5), "b": stats.expon(scale=2), "c": stats.norm(3, 1)})
        u = np.linspace(-5, 5, 21)[:, None] * np.array([1, -1, 0.7])
        x = cube_prior.from_standard(u)
        assert cube_prior.is_separable
        np.testing.assert_allclose(x, same.from_standard(u * [1, -1, 1]), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(cube_prior.to_standard(x), u, atol=1e-8)
        np.testing.assert_allclose(cube_prior.log_jacobian(u), same.log_jacobian(u * [1, -1, 1]), atol=1e-5)
        np.testing.assert_allclose(cube_prior.log_pdf(x), same.log_pdf(x), atol=1e-5)

    def test_coordinates(self, cube_prior):
        u = np.random.default_rng(0).standard_normal((6, 3))
        x = cube_prior.from_standard(u)
        total = np.zeros(6)
        for i in range(3):
            np.testing.assert_array_equal(cube_prior.coordinate_from_standard(i, u[:, i]), x[:, i])
            np.testing.assert_allclose(cube_prior.coordinate_to_standard(i, x[:, i]), u[:, i], atol=1e-12)
            total += cube_prior.coordinate_log_jacobian(i, u[:, i])
        np.testing.assert_allclose(total, cube_prior.log_jacobian(u))

    def test_bounds_and_outside(self, cube_prior):
        np.testing.assert_allclose(cube_prior.bounds[0], [-5, 5], rtol=1e-15)
        assert cube_prior.bounds[1, 0] == 0
        x = np.array([[5.0, 1.0, 3.0], [5.1, 1.0, 3.0], [0.0, -0.1, 3.0]])
        np.testing.assert_array_equal(cube_prior.in_support(x), [True, False, False])
        expected = -np.log(10) + stats.expon.logpdf(1, scale=2) + stats.norm.logpdf(0)
        np.testing.assert_allclose(cube_prior.log_pdf(x)[0], expected, atol=0.3)
        assert np.isneginf(cube_prior.log_pdf(x)[1:]).all()

    def test_extreme_points(self, cube_prior):
        u = np.array([-1e3, -40, -8, 8, 40, 1e3])[:, None] * np.ones(3)
        x = cube_prior.from_standard(u)
        assert np.isfinite(x).all()
        assert np.isfinite(cube_prior.to_standard(x)).all()
        assert not np.isnan(cube_prior.log_jacobian(u)).any()
        assert not np.isnan(cube_prior.log_pdf(x)).any()

    def test_sampling(self, cube_prior):
        x = cube_prior.sample(3000, np.random.default_rng(0))
        for column, dist in zip(x.T, (stats.uniform(-5, 10), stats.expon(scale=2), stats.norm(3)), strict=True):
            assert stats.kstest(column, dist.cdf).pvalue > 1e-3

    @pytest.mark.parametrize(
        "transform",
        [
            joint_transform,
            np.sort,
            lambda cube: np.array([cube[0], 1.0]),
            lambda cube: np.floor(cube * 100),
            lambda cube: (cube + 0.3) % 1.0,
            lambda cube: np.array([cube[1], cube[0]]),
        ],
        ids=["conditional", "sorted", "constant", "integers", "wrapped", "exchanged"],
    )
    def test_not_separable(self, transform):
        prior = Prior.from_transform(transform, n_dim=2)
        assert not prior.is_separable
        x = prior.sample(10, np.random.default_rng(0))
        for call in (
            lambda: prior.to_standard(x),
            lambda: prior.log_pdf(x),
            lambda: prior.log_jacobian(x),
            lambda: prior.in_support(x),
        ):
            with pytest.raises(InputError, match=r"inverse of the prior transform.*Prior\.from_density"):
                call()
        with pytest.raises(InputError, match="coordinate by coordinate"):
            prior.coordinate_from_standard(0, np.zeros(1))

    def test_transform_that_returns_its_own_buffer(self):
        buffer = np.empty(2)

        def transform(cube):
            buffer[:] = cube
            return buffer

        x = Prior.from_transform(transform, n_dim=2).sample(5, np.random.default_rng(0))
        assert len(np.unique(x, axis=0)) == 5

    def test_corner_that_raises(self):
        def transform(cube):
            if cube[0] in (0.0, 1.0):
                raise ZeroDivisionError
            return np.log(cube / (1 - cube))

        assert np.isfinite(Prior.from_transform(transform, 1).bounds).all()


def weighted_mean(prior, function, n=40_000):
    """Integrate a function against the prior through measure and weight; mean and its standard error."""
    u = prior.measure.sample(n, np.random.default_rng(8))
    values = np.exp(prior.log_weight(u)) * function(prior.from_standard(u))
    return values.mean(), values.std() / np.sqrt(n)


class TestDensity:
    def test_weights_integrate_to_one(self, two_modes, skewed):
        for prior, n in ((two_modes, 40_000), (skewed, 4_000)):
            mean, error = weighted_mean(prior, lambda x: 1.0, n)
            assert abs(mean - 1) < 4 * error
            assert error < 2.5 / np.sqrt(n)

    def test_moments(self, two_modes, skewed):
        mean, error = weighted_mean(two_modes, lambda x: x[:, 0] * x[:, 1])
        expected = 0.7 * (3.0 * 20.0 + 0.6)
        assert abs(mean - expected) < 4 * error
        assert error < 0.02 * expected
        mean, error = weighted_mean(skewed, lambda x: x[:, 1], 4_000)
        assert abs(mean - 0.2 * 12.0) < 4 * error

    def test_identity_with_density(self, two_modes):
        u = two_modes.measure.sample(50, np.random.default_rng(0))
        x = two_modes.from_standard(u)
        np.testing.assert_allclose(two_modes.log_pdf(x), TWO_MODES.log_pdf(x))
        expected = two_modes.measure.log_pdf(u) + two_modes.log_weight(u) - two_modes.log_jacobian(u)
        np.testing.assert_allclose(two_modes.log_pdf(x), expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(two_modes.to_standard(x), u, atol=1e-10)
        factor, offset = two_modes.affine
        np.testing.assert_allclose(offset + u @ factor.T, x)

    def test_tails_are_heavier_than_the_prior(self, two_modes):
        direction = np.array([[1.0, 0.3], [-0.5, 1.0], [-1.0, -1.0]])
        log_w = two_modes.log_weight(np.concatenate([r * direction for r in (5.0, 8.0, 12.0)]))
        assert (log_w < 1).all()

    def test_sampling(self, two_modes, skewed):
        x = two_modes.sample(4000, np.random.default_rng(0))
        cdf = lambda t: 0.3 * stats.norm.cdf(t, -4, 1) + 0.7 * stats.norm.cdf(t, 3, np.sqrt(0.5))  # noqa: E731
        assert stats.kstest(x[:, 0], cdf).pvalue > 1e-3
        assert len(np.unique(x, axis=0)) == len(x)
        x = skewed.sample(500, np.random.default_rng(0))
        assert x.shape == (500, 2)
        assert skewed.in_support(x).all()
        assert stats.kstest(x[:, 0], stats.gamma(3).cdf).pvalue > 1e-3
        assert skewed.sample(0, np.random.default_rng(0)).shape == (0, 2)

    def test_support(self, skewed):
        x = np.array([[1.0, 0.0], [-1.0, 0.0]])
        np.testing.assert_array_equal(skewed.in_support(x), [True, False])
        assert skewed.log_pdf(x)[1] == -np.inf

    def test_unnormalised(self):
        samples = TWO_MODES.sample(1000, np.random.default_rng(1))
        prior = Prior.from_density(lambda x: TWO_MODES.log_pdf(x) + 7.0, samples, normalised=False)
        assert prior.log_pdf(samples[0]) == pytest.approx(TWO_MODES.log_pdf(samples[:1])[0], abs=0.1)
        with pytest.raises(InputError, match=r"integrates to exp\((6\.9|7\.)\S* .*normalised=False"):
            Prior.from_density(lambda x: TWO_MODES.log_pdf(x) + 7.0, samples)

    @pytest.mark.parametrize("d", [1, 2, 3, 6])
    def test_vectorised_is_found_out(self, d):
        samples = np.random.default_rng(0).standard_normal((300, d)) * 3 + 1

        def terms(x):
            return -0.5 * ((x - 1) / 3) ** 2 - np.log(3 * np.sqrt(2 * np.pi))

        forms = (
            lambda x: terms(x).sum(axis=-1),
            lambda x: sum(terms(x[i]) for i in range(d)),
            lambda x: float(terms(x).sum()),
            lambda x: np.array([terms(row).sum() for row in x.reshape(-1, d)]),
        )
        densities = [Density.detect(f, samples) for f in forms]
        assert [density.vectorized for density in densities] == [True, False, False, True]
        for density in densities:
            np.testing.assert_allclose(density(samples[:7]), terms(samples[:7]).sum(axis=1))

    def test_told_to_be_vectorised(self):
        samples = np.random.default_rng(0).standard_normal((100, 2))
        log_pdf = lambda x: stats.norm.logpdf(x).sum(axis=1)  # noqa: E731
        prior = Prior.from_density(log_pdf, samples, vectorized=True)
        assert prior.log_pdf(np.zeros(2)) == pytest.approx(-np.log(2 * np.pi))

    def test_samples_are_not_modified_or_kept(self):
        samples = TWO_MODES.sample(500, np.random.default_rng(1))
        before = samples.copy()

        def hostile(x):
            value = TWO_MODES.log_pdf(x)
            x[:] = np.nan
            return value

        prior = Prior.from_density(hostile, samples)
        np.testing.assert_array_equal(samples, before)
        value = prior.log_pdf(samples[0])
        samples[:] = 0
        assert prior.log_pdf(before[0]) == value

    def test_box_in_six_dimensions(self):
        d = 6
        log_pdf = lambda x: np.where(((x > 0) & (x < 1)).all(axis=-1), 0.0, -np.inf)  # noqa: E731
        prior = Prior.from_density(log_pdf, np.random.default_rng(0).uniform(size=(800, d)))
        mean, error = weighted_mean(prior, lambda x: x.prod(axis=1))
        assert abs(mean - 0.5**d) < 4 * error

    def test_heavy_tails(self):
        dist = stats.t(4)
        samples = dist.rvs((2000, 2), random_state=np.random.default_rng(0))
        prior = Prior.from_density(lambda x: dist.logpdf(x).sum(axis=-1), samples)
        mean, error = weighted_mean(prior, lambda x: (np.abs(x) < 1).all(axis=1))
        assert abs(mean - (dist.cdf(1) - dist.cdf(-1)) ** 2) < 4 * error

    def test_mixture_fit_finds_the_modes(self):
        truth = GaussianMixture(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]) * 0.99, np.full((2, 1, 1), 0.02))
        fitted = fit_mixture(truth.sample(2000, np.random.default_rng(0)))
        assert len(fitted.weights) == 2
        np.testing.assert_allclose(np.sort(fitted.means[:, 0]), [-0.99, 0.99], atol=0.03)
        assert fitted.weights.sum() == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize("normalised", [True, False])
    def test_samples_of_another_law_are_noticed(self, normalised):
        samples = np.random.default_rng(0).standard_normal((200, 2))
        log_pdf = lambda x: stats.norm.logpdf(x, 4.5, 0.02).sum(axis=-1)  # noqa: E731
        with pytest.warns(NumericsWarning, match="poor stand-in"):
            prior = Prior.from_density(log_pdf, samples, normalised=normalised)
        assert prior.sample(3, np.random.default_rng(0)).shape == (3, 2)


class Unnormalised(stats.rv_continuous):
    """A user's distribution whose pdf integrates to two."""

    def _pdf(self, x):
        return 2 * np.exp(-x)


class WrongPdf(stats.rv_continuous):
    """A user's distribution whose pdf and CDF contradict each other."""

    def _pdf(self, x):
        return 5 * np.exp(-x)

    def _cdf(self, x):
        return -np.expm1(-x)


BAD_SPECS = [
    ({}, "empty"),
    ([], "empty"),
    ({"a": (1.0, 1.0)}, r"'a'.*\(1, 1\).*less than"),
    ({"a": (2.0, 1.0)}, "less than"),
    ({"a": (0.0, np.inf)}, r"'a'.*improper.*finite bounds or a proper"),
    ({"a": (0.0, np.nan)}, "improper"),
    ({"a": (-1e308, 1e308)}, "improper"),
    ({"a": stats.poisson(3.0)}, "'a' is discrete.*poisson"),
    ({"a": stats.norm}, "'norm' without its parameters"),
    ({"a": stats.poisson}, "'poisson' without its parameters"),
    ({"a": stats.norm(0, -1)}, "'a', norm.*not a proper.*scale must be positive"),
    ({"a": stats.norm(0, 0)}, "not a proper"),
    ({"a": stats.norm(np.nan, 1)}, "not a proper"),
    ({"a": stats.uniform(3, 0)}, "not a proper"),
    ({"a": stats.norm(1.0, 1e-30)}, "point mass"),
    ({"a": stats.norm([0, 1], 1)}, "arrays"),
    ({"a": Unnormalised(a=0.0, name="twice")()}, "twice.*not a proper"),
    ({"a": stats.vonmises(2.0)}, "vonmises.*does not integrate to one"),
    ({"a": WrongPdf(a=0.0, name="wrong")()}, "not the derivative"),
    ({"a": "normal"}, "'normal' of type str"),
    ({"a": 3.0}, "3.0 of type float"),
    ({"a": ("x", "y")}, "of type tuple"),
    ({"a": (1, 2, 3)}, "of type tuple"),
    ([stats.multivariate_normal([0, 0])], "has to be the whole prior"),
    (stats.dirichlet([1.0, 2.0]), "Prior.from_transform"),
    (None, "None of type NoneType"),
    ({1: (0, 1)}, "non-empty strings"),
    ({"": (0, 1)}, "non-empty strings"),
    (stats.multivariate_normal([0, 0], [[1, 1], [1, 1]], allow_singular=True), "singular"),
    (stats.multivariate_normal([0, 0], [[1, 0], [0, 0]], allow_singular=True), "singular"),
]


class TestErrors:
    @pytest.mark.parametrize(("spec", "message"), BAD_SPECS, ids=[m for _, m in BAD_SPECS])
    def test_bad_spec(self, spec, message):
        with pytest.raises(InputError, match=message):
            Prior(spec)

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["a"], r"1 names \['a'\] for 2"),
            (["a", "a"], "unique; repeated: 'a'"),
            (["a", 2], "non-empty strings"),
            ("ab", "1 names"),
        ],
    )
    def test_bad_names(self, names, message):
        for spec in ([(0, 1), (0, 1)], stats.multivariate_normal([0, 0])):
            with pytest.raises(InputError, match=message):
                Prior(spec, names=names)
        with pytest.raises(InputError, match=message):
            Prior.from_transform(lambda cube: cube, 2, names)

    def test_names_next_to_a_dict(self):
        with pytest.raises(InputError, match="next to a dict"):
            Prior({"a": (0, 1)}, names=["b"])

    @pytest.mark.parametrize("shape", [(), (2,), (4, 2), (2, 3, 3)])
    def test_bad_shape(self, shape):
        prior = Prior(WORKHORSE)
        for method in (
            prior.log_pdf,
            prior.to_standard,
            prior.from_standard,
            prior.in_support,
            prior.log_weight,
        ):
            with pytest.raises(InputError, match=re.escape(f"{shape}; expected (n, 3), or (3,)")):
                method(np.zeros(shape))

    def test_not_finite(self):
        prior = Prior(WORKHORSE)
        x = np.full((3, 3), 0.5)
        x[2, 1] = np.nan
        with pytest.raises(InputError, match=r"x\[2, 1\] \('shift'\) is nan"):
            prior.log_pdf(x)
        with pytest.raises(InputError, match=r"u\[0, 0\] \('rate'\) is inf"):
            prior.from_standard(np.full(3, np.inf))

    def test_outside_the_support(self, cube_prior):
        prior = Prior(WORKHORSE)
        x = np.array([[1.0, 0.0, 0.5], [1.0, 0.0, 1.5]])
        with pytest.raises(InputError, match=r"Row 1: 'phase' is 1\.5, outside .*\[0, 1\]"):
            prior.to_standard(x)
        with pytest.raises(InputError, match="Row 1: 'phase'"):
            prior.coordinate_to_standard(2, x[:, 2])
        with pytest.raises(InputError, match="Row 0: 'a' is 6"):
            cube_prior.to_standard(np.array([6.0, 1.0, 3.0]))

    @pytest.mark.parametrize(
        ("transform", "n_dim", "message"),
        [
            (3, 2, "must be a function"),
            (lambda cube: cube, None, "give n_dim or names"),
            (lambda cube: cube, 0, "positive integer"),
            (lambda cube: cube, 1.5, "positive integer"),
            (lambda cube: cube[:1], 2, r"shape \(1,\).*must return shape \(2,\)"),
            (lambda cube: None, 2, "returned None"),
            (lambda cube: None, 1, "returned None"),
            (lambda cube: cube * np.nan, 2, "finite"),
            (lambda cube: cube[5], 2, "failed at cube=.*IndexError"),
        ],
    )
    def test_bad_transform(self, transform, n_dim, message):
        with pytest.raises(InputError, match=message):
            Prior.from_transform(transform, n_dim)

    def test_transform_that_fails_in_the_tail(self):
        prior = Prior.from_transform(lambda cube: np.where(cube < 1e-9, np.nan, cube), 1)
        with pytest.raises(InputError, match="finite on"):
            prior.from_standard(np.array([-7.0]))

    @pytest.mark.parametrize(
        ("samples", "message"),
        [
            (np.zeros(30), r"shape \(30,\); expected \(n, d\)"),
            (np.zeros((30, 0)), "expected"),
            (np.zeros((19, 2)), "19 samples of 2 .* at least 20"),
            (np.where(np.eye(30, 2) > 0, np.nan, 1.0), r"samples\[0, 0\] is nan"),
            (np.ones((30, 2)), "set of samples has a singular covariance"),
            (np.linspace(0, 1, 30)[:, None] * [1, 2], "singular"),
        ],
    )
    def test_bad_samples(self, samples, message):
        with pytest.raises(InputError, match=message):
            Prior.from_density(lambda x: -0.5 * (x**2).sum(axis=-1), samples)

    @pytest.mark.parametrize(
        ("log_pdf", "message"),
        [
            (None, "must be a function"),
            (lambda x: np.full(len(x), -np.inf), "-inf at all 200 samples"),
            (lambda x: -np.inf, "-inf at all 200 samples"),
            (lambda x: np.nan, r"returned nan at x=.*row 0"),
            (lambda x: np.inf, "returned inf"),
            (lambda x: np.zeros(5), r"shape \(5,\) for one point"),
        ],
    )
    def test_bad_density(self, log_pdf, message):
        samples = np.random.default_rng(0).standard_normal((200, 3))
        with pytest.raises(InputError, match=message):
            Prior.from_density(log_pdf, samples)

    def test_vectorised_density_of_wrong_shape(self):
        samples = np.random.default_rng(0).standard_normal((200, 3))
        with pytest.raises(InputError, match=r"shape \(1,\) for x of shape \(200, 3\)"):
            Prior.from_density(lambda x: np.zeros(1), samples, vectorized=True)

    def test_density_zero_around_the_samples(self):
        samples = np.random.default_rng(0).standard_normal((200, 3))
        first = samples[0].copy()
        log_pdf = lambda x: np.where((x == first).all(axis=-1), 0.0, -np.inf)  # noqa: E731
        with pytest.raises(InputError, match="nearly everywhere"):
            Prior.from_density(log_pdf, samples)


def test_distributions_of_scipys_newer_kind():
    new = {
        "a": stats.Normal(mu=0.5, sigma=2.0),
        "b": stats.Uniform(a=0.0, b=3.0),
        "c": stats.truncate(stats.Normal(mu=0.0, sigma=1.0), lb=0.0),
        "d": stats.make_distribution(stats.halfcauchy)(),
    }
    old = Prior({"a": stats.norm(0.5, 2.0), "b": (0.0, 3.0), "c": stats.halfnorm(), "d": stats.halfcauchy()})
    u = 2.0 * np.random.default_rng(0).standard_normal((50, 4))
    x = old.from_standard(u)
    np.testing.assert_allclose(Prior(new).from_standard(u), x, rtol=1e-9)
    np.testing.assert_allclose(Prior(new).to_standard(x), u, atol=1e-8)
    np.testing.assert_allclose(Prior(new).log_pdf(x), old.log_pdf(x), rtol=1e-9)
    assert "a ~ norm(0.5, 2)" in repr(Prior(new))


@pytest.mark.parametrize(
    ("given", "said"),
    [(stats.Normal(mu=[0.0, 1.0], sigma=1.0), "are arrays"), (stats.Normal, "without its parameters")],
)
def test_wrong_distributions_of_scipys_newer_kind(given, said):
    with pytest.raises(InputError, match=said):
        Prior({"a": given})
