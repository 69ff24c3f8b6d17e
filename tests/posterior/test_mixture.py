"""The closed-form posterior against grids: density, moments, marginals, conditionals, samples."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from basq.errors import InputError
from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.gp.kernels.stationary import RBF
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.metropolis import metropolis
from basq.paper.evidence import closed_form_evidence
from basq.paper.models import Bbq, Surrogate, Vanilla, Wsabi
from basq.paper.models.bbq import log_difference
from basq.paper.posterior import closed_form_posterior
from basq.paper.warps import ShiftedLog, SquareRoot
from basq.posterior.mixture import MIN_ACCEPTANCE, Group, SignedMixture
from helpers import integrands
from helpers.integrands import design, likelihood

MEASURES = integrands.MEASURES | {
    "space": GaussianMixture(
        np.array([0.4, 0.6]),
        np.array([[-0.5, 0.2, 0.1], [0.4, -0.3, 0.2]]),
        np.array([np.eye(3), [[1.0, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 0.7]]]),
    ),
}
LINES, PLANES = ["line", "line-mixture"], ["plane", "plane-mixture"]
MODELS = list(product(["vanilla", "wsabi-l", "wsabi-m", "bbq"], [0.0, 0.6]))
SHIFT = 0.05


def rbf(d, variance=1.4, stretch=1.0):
    return RBF(variance, stretch * np.array([1.1, 0.8, 1.3])[:d])


def surrogate(name, d, c=0.0, noise=1e-3):
    x = design(d)
    values = likelihood(x)
    if name == "vanilla":
        return Vanilla(GP.condition(x, values, rbf(d), mean=c, noise=noise))
    if name == "bbq":
        linear = GP.condition(x, values, rbf(d), mean=c, noise=noise)
        log_gp = GP.condition(x, ShiftedLog(SHIFT).forward(values), rbf(d, 2.0, 1.3), mean=c, noise=noise)
        between = np.concatenate([x, design(d, 10, seed=2)])
        difference = log_difference(log_gp, linear, SHIFT, between)
        return Bbq(log_gp, linear, GP.condition(between, difference, rbf(d, 0.7, 0.9), noise=noise), SHIFT)
    warp = SquareRoot.below(values)
    gp = GP.condition(x, warp.forward(values), rbf(d), mean=c, noise=noise)
    return Wsabi(gp, warp.offset, matched=name == "wsabi-m")


def axes_of(measure, step=0.2, reach=9.0):
    sd = np.sqrt(np.einsum("kii->ki", measure.covs))
    low, high = (measure.means - reach * sd).min(axis=0), (measure.means + reach * sd).max(axis=0)
    return [np.arange(a, b + step, step) for a, b in zip(low, high, strict=True)]


def mesh(axes):
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


class Truth:
    """The posterior by the trapezoidal rule: surrogate's mean times the measure's density."""

    def __init__(self, model, measure, step=0.2):
        self.model, self.measure = model, measure
        self.axes = axes_of(measure, step)
        self.volume = step**measure.n_dim
        self.step, self.total = step, 1.0
        self.grid = mesh(self.axes)
        self.total = float(self.pdf(self.grid).sum()) * self.volume

    def pdf(self, x):
        prior = sum(
            w * stats.multivariate_normal(m, s).pdf(x).reshape(len(x))
            for w, m, s in zip(self.measure.weights, self.measure.means, self.measure.covs, strict=True)
        )
        return self.model.mean(self.model.gp.predict(x)) * prior / self.total

    def marginal(self, dims, points):
        """Integrate the other coordinates out, at points in the order of dims."""
        others = [i for i in range(self.measure.n_dim) if i not in dims]
        inner = mesh([self.axes[i] for i in others]) if others else np.zeros((1, 0))
        x = np.empty((len(points), len(inner), self.measure.n_dim))
        x[:, :, dims] = points[:, None]
        x[:, :, others] = inner
        values = self.pdf(x.reshape(-1, self.measure.n_dim)).reshape(len(points), len(inner))
        return self.step ** len(others) * values.sum(axis=1)

    def moments(self):
        p = self.volume * self.pdf(self.grid)
        offset = self.grid - p @ self.grid
        return p @ self.grid, (p[:, None] * offset).T @ offset


def close(found, expected, rel=1e-9):
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=rel, atol=1e-2 * rel * np.abs(expected).max())


def each(places):
    """Every model with its closed form and its truth, on the given measures."""
    for place in places:
        measure = MEASURES[place]
        for name, c in MODELS:
            model = surrogate(name, measure.n_dim, c)
            yield closed_form_posterior(model, measure), Truth(model, measure)


def scattered(d, n=12, seed=3):
    return 1.5 * np.random.default_rng(seed).standard_normal((n, d))


@pytest.fixture(scope="module", params=[*LINES, *PLANES])
def pairs(request):
    return list(each([request.param]))


@pytest.fixture(scope="module", params=LINES)
def line_pairs(request):
    return list(each([request.param]))


@pytest.fixture(scope="module", params=PLANES)
def plane_pairs(request):
    return list(each([request.param]))


# --- against grids -----------------------------------------------------------------------------------------------


def test_density(pairs):
    for posterior, truth in pairs:
        x = scattered(posterior.n_dim)
        x.flags.writeable = False
        close(posterior.pdf(x), truth.pdf(x))
        values = posterior.pdf(x)
        close(np.exp(posterior.log_pdf(x))[values > 0.0], values[values > 0.0], 1e-12)
        assert (posterior.log_pdf(x)[values <= 0.0] == -np.inf).all()


def test_normalisation(pairs):
    for posterior, truth in pairs:
        assert truth.volume * posterior.pdf(truth.grid).sum() == pytest.approx(1.0, abs=1e-11)
        assert truth.total == pytest.approx(closed_form_evidence(truth.model, truth.measure).scaled_mean, rel=1e-10)


def test_moments(pairs):
    for posterior, truth in pairs:
        mean, cov = posterior.moments()
        expected_mean, expected_cov = truth.moments()
        close(mean, expected_mean)
        close(cov, expected_cov)


def test_distribution_function(line_pairs):
    nodes, weights = np.polynomial.legendre.leggauss(200)
    for posterior, truth in line_pairs:
        low = truth.axes[0][0]
        t = np.linspace(-3.0, 3.0, 9)
        half = 0.5 * (t - low)
        x = low + half[:, None] * (nodes + 1.0)
        expected = half * (truth.pdf(x.reshape(-1, 1)).reshape(x.shape) @ weights)
        close(posterior.cdf(t), np.clip(expected, 0.0, 1.0))  # a vanilla process can pass one
        assert posterior.cdf([-1e3])[0] == 0.0
        assert posterior.cdf([1e3])[0] == pytest.approx(1.0, abs=1e-12)
        assert posterior.cdf(0.5).shape == (1,)


def test_quantiles(line_pairs):
    levels = np.array([0.5, 1e-6, 0.01, 0.3, 0.99, 1.0 - 1e-6])
    for posterior, truth in line_pairs:
        if posterior.pdf(truth.grid).min() < -1e-12:
            continue  # a vanilla process below zero has no quantile function
        t = posterior.ppf(levels)
        np.testing.assert_allclose(posterior.cdf(t), levels, atol=1e-9)
        assert (np.diff(t[np.argsort(levels)]) > 0.0).all()
        np.testing.assert_array_equal(posterior.ppf([0.0, 1.0]), [-np.inf, np.inf])


def test_marginals_of_the_plane(plane_pairs):
    for posterior, truth in plane_pairs:
        for dims in ([0], [1], [0, 1], [1, 0]):
            found, points = posterior.marginal(dims), scattered(len(dims))
            assert found.n_dim == len(dims)
            close(found.pdf(points), truth.marginal(dims, points))
            mean, cov = posterior.moments()
            close(found.moments()[0], mean[dims], 1e-12)
            close(found.moments()[1], cov[np.ix_(dims, dims)], 1e-12)


def test_the_sum_over_pairs_is_the_product_of_mean_and_measure(pairs):
    for posterior, _ in pairs:
        x = scattered(posterior.n_dim)
        close(replace(posterior, density=None).pdf(x), posterior.pdf(x))


def test_marginals_of_space():
    measure = MEASURES["space"]
    for name, c in MODELS[1::3]:
        model = surrogate(name, 3, c)
        posterior, truth = closed_form_posterior(model, measure), Truth(model, measure, step=0.3)
        for size in (1, 2, 3):
            for dims in permutations(range(3), size):
                points = 0.8 * scattered(size, 2)
                close(posterior.marginal(list(dims)).pdf(points), truth.marginal(list(dims), points))


def test_conditionals_of_the_plane(plane_pairs):
    for posterior, truth in plane_pairs:
        for fixed, at in ((0, 0.7), (1, -0.4)):
            free = 1 - fixed
            found = posterior.conditional([fixed], [at])
            t = scattered(1)
            x = np.empty((len(t), 2))
            x[:, [free]], x[:, fixed] = t, at
            close(found.pdf(t), truth.pdf(x) / truth.marginal([fixed], np.array([[at]])))
            assert found.cdf([1e3])[0] == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("fixed", [[0], [2], [0, 2], [2, 0], [1, 2]])
def test_conditionals_of_space(fixed):
    measure = MEASURES["space"]
    model = surrogate("wsabi-m", 3, 0.6)
    posterior, truth = closed_form_posterior(model, measure), Truth(model, measure)
    at = np.array([0.4, -0.3])[: len(fixed)]
    free = [i for i in range(3) if i not in fixed]
    found, points = posterior.conditional(fixed, at), scattered(len(free), 5)
    x = np.empty((5, 3))
    x[:, fixed], x[:, free] = at, points
    close(found.pdf(points), truth.pdf(x) / truth.marginal(fixed, at[None]))


def test_conditional_of_a_conditional():
    posterior = closed_form_posterior(surrogate("bbq", 3, 0.6), MEASURES["space"])
    at_once, in_turn = posterior.conditional([0, 1], [0.4, -0.3]), posterior.conditional([0], [0.4])
    points = scattered(1)
    close(in_turn.conditional([0], [-0.3]).pdf(points), at_once.pdf(points), 1e-10)


def test_affine(pairs):
    for posterior, truth in pairs:
        d = posterior.n_dim
        a, b = np.array([[2.0, 0.5], [-0.3, 0.7]])[:d, :d], np.array([3.0, -1.0])[:d]
        pushed = posterior.affine(a, b)
        x = scattered(d)
        close(pushed.pdf(x @ a.T + b), truth.pdf(x) / abs(np.linalg.det(a)))
        mean, cov = truth.moments()
        close(pushed.moments()[0], a @ mean + b)
        close(pushed.moments()[1], a @ cov @ a.T)


def test_affine_to_fewer_dimensions():
    posterior = closed_form_posterior(surrogate("wsabi-l", 2, 0.6), MEASURES["plane-mixture"])
    total = posterior.affine(np.array([[1.0, 1.0]]), np.zeros(1))
    difference = posterior.affine(np.array([[1.0, 1.0], [1.0, -1.0]]), np.zeros(2))
    points = scattered(1)
    close(total.pdf(points), difference.marginal([0]).pdf(points), 1e-12)


# --- where exponents are large -----------------------------------------------------------------------------------


def narrow(name, scale, c=0.0, n=25):
    """A likelihood that is narrow against the prior, with a process of short lengthscale."""
    x = np.linspace(-3.0, 3.0, n)[:, None]
    values = np.exp(-0.5 * ((x[:, 0] - 2.0) / 0.3) ** 2)
    kernel = RBF(1.0, np.array([scale]))
    if name == "vanilla":
        return Vanilla(GP.condition(x, values, kernel, mean=c, noise=1e-6))
    if name == "bbq":
        log_gp = GP.condition(x, ShiftedLog(SHIFT).forward(values), kernel, noise=1e-6)
        linear = GP.condition(x, values, kernel, mean=c, noise=1e-6)
        wide = RBF(1.0, np.array([1.0]))
        difference = log_difference(log_gp, linear, SHIFT, x)
        return Bbq(log_gp, linear, GP.condition(x, difference, wide, noise=1e-3), SHIFT)
    gp = GP.condition(x, np.sqrt(2.0 * values), kernel, mean=c, noise=1e-6)
    return Wsabi(gp, 0.0, matched=name == "wsabi-m")


@pytest.mark.parametrize("scale", [0.2, 0.05, 0.01])
@pytest.mark.parametrize(("name", "c"), MODELS)
def test_short_lengthscales(name, c, scale):
    model, measure = narrow(name, scale, c), GaussianMixture.standard(1)
    posterior, truth = closed_form_posterior(model, measure), Truth(model, measure, step=0.1 * scale)
    x = np.concatenate([model.gp.x[::3], scattered(1)])
    close(posterior.pdf(x), truth.pdf(x))
    mean, cov = truth.moments()
    close(posterior.moments()[0], mean)
    close(posterior.moments()[1], cov)


@pytest.mark.parametrize("offset", [10.0, 1e3, 1e6])
@pytest.mark.parametrize("name", ["vanilla", "wsabi-l", "wsabi-m", "bbq"])
def test_pushing_far_away(name, offset):
    posterior = closed_form_posterior(narrow(name, 0.2, 0.1), GaussianMixture.standard(1))
    pushed = posterior.affine(np.eye(1), np.array([offset]))
    x = np.linspace(1.0, 3.0, 9)[:, None]
    close(pushed.pdf(x + offset), posterior.pdf(x), 1e-6)
    close(pushed.cdf(x[:, 0] + offset), posterior.cdf(x[:, 0]), 1e-6)
    close(pushed.moments()[0] - offset, posterior.moments()[0], 1e-8)
    close(pushed.moments()[1], posterior.moments()[1], 1e-6)


def check_finite(found):
    mean, cov = found.moments()
    assert np.isfinite(mean).all()
    assert cov[0, 0] > 0.0
    assert np.isfinite(found.pdf(mean[:, None])).all()
    assert found.cdf(mean)[0] == pytest.approx(0.5, abs=0.1)
    assert np.isfinite(found.sample(10, np.random.default_rng(0))).all()


@pytest.mark.parametrize("at", [50.0, -50.0])
@pytest.mark.parametrize(("name", "c"), [(name, c) for name, c in MODELS if name.startswith("wsabi") or c > 0.0])
def test_conditioning_far_out_leaves_the_prior(name, c, at):
    measure = MEASURES["plane"]
    found = closed_form_posterior(surrogate(name, 2, c), measure).conditional([0], [at])
    check_finite(found)
    mean, cov = found.moments()
    mu, sigma = measure.means[0], measure.covs[0]
    close(mean, [mu[1] + sigma[0, 1] / sigma[0, 0] * (at - mu[0])])
    close(cov, [[sigma[1, 1] - sigma[0, 1] ** 2 / sigma[0, 0]]])


@pytest.mark.parametrize("at", [50.0, -50.0])
@pytest.mark.parametrize("place", PLANES)
def test_conditioning_far_out_without_a_constant_part(place, at):
    gp = surrogate("wsabi-l", 2).gp
    check_finite(closed_form_posterior(Wsabi(gp, 0.0, matched=False), MEASURES[place]).conditional([0], [at]))


def test_far_points_have_no_density_and_no_warning():
    for posterior, _ in each(PLANES):
        assert (np.abs(posterior.pdf(np.array([[1e3, 0.0], [-1e3, 1e3]]))) < 1e-300).all()
        assert posterior.log_pdf(np.array([[1e4, 0.0]]))[0] == -np.inf


def cancelling():
    """A smooth posterior whose signed weights are large and cancel."""
    x = np.linspace(-4.0, 4.0, 30)[:, None]
    kernel = RBF(1.0, np.array([2.0]))
    y = kernel(x, np.array([[-0.5], [1.0]])) @ np.array([1.0, 0.7]) + 1e-3 * np.cos(5.0 * x[:, 0])
    return Wsabi(GP.condition(x, y, kernel, noise=1e-6), 0.0, matched=False)


def test_quantiles_of_cancelling_weights():
    model, measure = cancelling(), GaussianMixture.standard(1)
    posterior, truth = closed_form_posterior(model, measure), Truth(model, measure, step=0.05)
    assert posterior.acceptance < 1e-4
    levels = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    grid = np.linspace(-9.0, 9.0, 9001)
    cdf = np.cumsum(truth.pdf(grid[:, None])) * (grid[1] - grid[0])
    np.testing.assert_allclose(posterior.ppf(levels), np.interp(levels, cdf, grid), atol=2e-3)


def test_quantiles_of_narrow_modes():
    x = np.array([[-2.0], [1.9]])
    gp = GP.condition(x, np.array([1.0, 1.0]), RBF(1.0, np.array([0.005])), noise=1e-6)
    posterior = closed_form_posterior(Wsabi(gp, 0.0, matched=False), GaussianMixture.standard(1))
    levels = np.array([0.05, 0.2, 0.6, 0.95])
    t = posterior.ppf(levels)
    np.testing.assert_allclose(posterior.cdf(t), levels, atol=1e-8)


# --- samples -----------------------------------------------------------------------------------------------------


def apart(d):
    """Few points, far apart: rejection works."""
    x = np.array([[-1.6, 0.4], [0.3, -1.5], [1.7, 1.2]])[:, :d]
    gp = GP.condition(x, np.array([1.2, 0.9, 0.6]), RBF(1.0, np.full(d, 0.8)), mean=0.3, noise=1e-3)
    return Wsabi(gp, 0.1, matched=False)


def dense(d):
    """Many points for the lengthscale: the weights cancel and rejection would take too long."""
    rng = np.random.default_rng(4)
    x = np.linspace(-3.0, 3.0, 20)[:, None] if d == 1 else 1.3 * rng.standard_normal((40, 2))
    kernel = RBF(1.0, np.full(d, 1.5))
    return Wsabi(GP.condition(x, np.sqrt(2.0 * likelihood(x)), kernel, noise=1e-4), 0.0, matched=True)


PATHS = {"rejection": apart, "moves": dense}


def target(path, d):
    measure = MEASURES["line-mixture" if d == 1 else "plane"]
    model = PATHS[path](d)
    posterior = closed_form_posterior(model, measure)
    assert (posterior.acceptance >= MIN_ACCEPTANCE) == (path == "rejection")
    return posterior, Truth(model, measure)


@pytest.mark.parametrize("path", PATHS)
def test_samples_of_the_line(path):
    posterior, truth = target(path, 1)
    assert posterior.pdf(truth.grid).min() > -1e-12
    x = posterior.sample(4000, np.random.default_rng(5))
    assert x.shape == (4000, 1)
    assert stats.kstest(x[:, 0], posterior.cdf).pvalue > 1e-3


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("d", [1, 2])
def test_samples_have_the_moments(path, d):
    posterior, _ = target(path, d)
    n = 8000
    x = posterior.sample(n, np.random.default_rng(6))
    mean, cov = posterior.moments()
    spread = 4.5 if path == "rejection" else 6.0  # resampled points are not independent
    assert (np.abs(x.mean(axis=0) - mean) < spread * np.sqrt(np.diag(cov) / n)).all()
    products = np.einsum("ni,nj->nij", x - mean, x - mean)
    assert (np.abs(products.mean(axis=0) - cov) < spread * products.std(axis=0) / np.sqrt(n)).all()


@pytest.mark.parametrize("path", PATHS)
def test_samples_follow_every_marginal(path):
    posterior, _ = target(path, 2)
    x = posterior.sample(3000, np.random.default_rng(7))
    for i in range(2):
        assert stats.kstest(x[:, i], posterior.marginal([i]).cdf).pvalue > 1e-3


@pytest.mark.parametrize("path", PATHS)
def test_samples_repeat_with_the_seed(path):
    posterior, _ = target(path, 2)
    first, second, other = (posterior.sample(50, np.random.default_rng(s)) for s in (8, 8, 9))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_few_samples(path, n):
    posterior, _ = target(path, 2)
    x = posterior.sample(n, np.random.default_rng(10))
    assert x.shape == (n, 2)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("n", [2, 40])
def test_moves_leave_the_density_alone(n):
    # members that move at the same time, by each other's differences, would contract a small population
    rng, repeats = np.random.default_rng(0), 4000 // n

    def log_density(x):
        return -0.5 * (x * x).sum(axis=1)

    x = np.concatenate([metropolis(log_density, rng.standard_normal((n, 1)), np.eye(1), rng) for _ in range(repeats)])
    assert x.var() == pytest.approx(1.0, abs=4.0 * np.sqrt(2.0 / len(x)))
    assert stats.kstest(x[:, 0], stats.norm.cdf).pvalue > 1e-3


def test_acceptance_is_what_rejection_has():
    posterior, truth = target("rejection", 1)
    bound = sum(g.pdf(truth.grid, absolute=True) for g in posterior.groups)
    assert (bound >= posterior.pdf(truth.grid) - 1e-14).all()
    assert truth.volume * bound.sum() == pytest.approx(1.0 / posterior.acceptance, rel=1e-10)


def test_samples_of_a_density_with_a_negative_part():
    x = np.array([[-1.0], [0.0], [1.0]])
    gp = GP.condition(x, np.array([1.0, -0.2, 1.0]), RBF(1.0, np.array([0.6])), noise=1e-4)
    posterior = closed_form_posterior(Vanilla(gp), GaussianMixture.standard(1))
    grid = np.linspace(-9.0, 9.0, 18001)
    positive = np.maximum(posterior.pdf(grid), 0.0)
    cdf = np.cumsum(positive) / positive.sum()
    assert posterior.pdf(grid).min() < -0.01
    drawn = posterior.sample(4000, np.random.default_rng(11))
    assert (posterior.pdf(drawn) > 0.0).all()
    assert stats.kstest(drawn[:, 0], lambda t: np.interp(t, grid, cdf)).pvalue > 1e-3


# --- wrong input -------------------------------------------------------------------------------------------------


def test_distribution_function_needs_one_dimension():
    posterior, _ = target("rejection", 2)
    for method in (posterior.cdf, posterior.ppf):
        with pytest.raises(InputError, match="one parameter, this density has 2; take a marginal"):
            method([0.5])


def test_points_of_the_wrong_shape():
    posterior, _ = target("rejection", 2)
    for x in (np.zeros(3), np.zeros((4, 3)), np.zeros((4, 1)), 0.5):
        with pytest.raises(InputError, match=r"\(k, 2\)"):
            posterior.pdf(x)
    np.testing.assert_allclose(posterior.pdf([0.1, 0.2]), posterior.pdf([[0.1, 0.2]]))


def test_a_line_takes_plain_numbers():
    posterior, _ = target("rejection", 1)
    expected = posterior.pdf(np.array([[0.1], [0.2]]))
    np.testing.assert_array_equal(posterior.pdf([0.1, 0.2]), expected)
    np.testing.assert_array_equal(posterior.pdf(0.1), expected[:1])


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, [0.5, 2.0]])
def test_levels_outside_the_unit_interval(q):
    posterior, _ = target("rejection", 1)
    with pytest.raises(InputError, match=r"lie in \[0, 1\]"):
        posterior.ppf(q)


@pytest.mark.parametrize("level", [0.0, -1.0])
def test_no_positive_evidence_no_posterior(level):
    x = design(2)
    for model in (
        Vanilla(GP.condition(x, np.full(len(x), level), rbf(2), noise=1e-3)),
        Wsabi(GP.condition(x, np.zeros(len(x)), rbf(2), noise=1e-3), level, matched=False),
    ):
        with pytest.raises(InputError, match="evidence is not positive"):
            closed_form_posterior(model, MEASURES["plane"])


def test_conditioning_where_there_is_no_density():
    x = np.array([[0.0, 0.0], [1.0, 1.0]])
    gp = GP.condition(x, np.array([-0.2, 1.0]), RBF(1.0, np.full(2, 0.3)), noise=1e-4)
    posterior = closed_form_posterior(Vanilla(gp), GaussianMixture.standard(2))
    with pytest.raises(InputError, match="nothing can be conditioned on it"):
        posterior.conditional([0], [-0.5])


def test_only_known_models_have_a_closed_form():
    class Unknown(Surrogate):
        mean = var = cov = None

    gp = GP.condition(design(2), np.ones(8), make_kernel("matern32", 2), noise=1e-3)
    with pytest.raises(TypeError, match="no closed form for Unknown"):
        closed_form_posterior(Unknown(gp), MEASURES["plane"])
    with pytest.raises(TypeError, match="RBF"):
        closed_form_posterior(Vanilla(gp), MEASURES["plane"])


def test_quantiles_of_a_density_that_goes_negative_are_finite():
    d = np.zeros((1, 1))
    narrow = Group(np.array([[-0.6]]), d, np.array([[4.0]]), d, np.array([[1e-4]]))
    other = Group(np.array([[-0.6]]), d, np.array([[-4.0]]), d, np.array([[1e-4]]))
    centre = Group(np.array([[2.2]]), d, np.array([[0.0]]), d, np.array([[1e-2]]))
    mixture = SignedMixture((centre, narrow, other))
    assert mixture.moments()[1][0, 0] < 0.0
    assert np.isfinite(mixture.ppf([0.1, 0.5, 0.9])).all()
