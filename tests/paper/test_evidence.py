"""Moments of the evidence against brute quadrature, sample paths and each other."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from basq.gp.fit import fit
from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.gp.kernels.stationary import RBF
from basq.paper.blocks import Blocks
from basq.paper.evidence import Evidence, closed_form_evidence, empirical_evidence
from basq.paper.models import Bbq, Surrogate, Vanilla, Wsabi
from basq.paper.models.bbq import log_difference
from basq.paper.warps import ShiftedLog, SquareRoot
from helpers.integrands import MEASURES, design, likelihood

MODELS = ["vanilla", "wsabi-l", "wsabi-m", "bbq"]
SHIFT = 0.05


def rbf(d, variance, stretch=1.0):
    return RBF(variance, stretch * np.array([1.1, 0.8])[:d])


def surrogate(model, d, c=0.0, kernel=None, noise=1e-3):
    """A surrogate of the test likelihood whose processes have the constant mean c."""
    x = design(d)
    values = likelihood(x)
    kernel = kernel or rbf(d, 1.4)
    if model == "vanilla":
        return Vanilla(GP.condition(x, values, kernel, mean=c, noise=noise))
    if model == "bbq":
        warp = ShiftedLog(SHIFT)
        linear = GP.condition(x, values, kernel, mean=c, noise=noise)
        log_gp = GP.condition(x, warp.forward(values), rbf(d, 2.0, 1.3), mean=c, noise=noise)
        between = np.concatenate([x, design(d, 10, seed=2)])
        difference = log_difference(log_gp, linear, SHIFT, between)
        return Bbq(log_gp, linear, GP.condition(between, difference, rbf(d, 0.7, 0.9), noise=noise), SHIFT)
    warp = SquareRoot.below(values)
    gp = GP.condition(x, warp.forward(values), kernel, mean=c, noise=noise)
    return Wsabi(gp, warp.offset, matched=model == "wsabi-m")


def nodes(measure, step=0.27, reach=8.7):
    """Trapezoidal nodes and the measure's weights on them."""
    sd = np.sqrt(np.einsum("kii->ki", measure.covs))
    low, high = (measure.means - reach * sd).min(axis=0), (measure.means + reach * sd).max(axis=0)
    axes = [np.arange(a, b + step, step) for a, b in zip(low, high, strict=True)]
    x = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    w = step ** x.shape[1] * sum(
        rho * stats.multivariate_normal(m, s).pdf(x).reshape(len(x))
        for rho, m, s in zip(measure.weights, measure.means, measure.covs, strict=True)
    )
    keep = w > 1e-17 * w.max()
    return x[keep], w[keep]


def brute(model, x, w, rows=1500):
    """Mean and variance of Σ w ℓ(x)."""
    p = model.gp.predict(x)
    var = sum(w[i] @ model.cov(p[i], p) @ w for i in np.array_split(np.arange(len(w)), 1 + len(w) // rows))
    return float(w @ model.mean(p)), float(var)


def quasi(measure, n, seed=0):
    """Evenly spread points of a single Gaussian."""
    d = measure.n_dim
    cube = stats.qmc.Sobol(d, rng=np.random.default_rng(seed)).random(n)
    return measure.means[0] + ndtri(cube) @ np.linalg.cholesky(measure.covs[0]).T


# --- the surrogates themselves, from dense formulas ---------------------------------------------------------


@pytest.mark.parametrize("c", [0.0, 0.6])
@pytest.mark.parametrize("name", MODELS)
def test_surrogate_moments(name, c):
    model = surrogate(name, 2, c)
    x = design(2, 12, seed=3)

    def posterior(gp):
        omega = np.linalg.inv(gp.kernel(gp.x, gp.x) + 1e-3 * np.eye(len(gp.x)))
        k = gp.kernel(x, gp.x)
        return gp.mean + k @ omega @ (gp.y - gp.mean), gp.kernel(x, x) - k @ omega @ k.T

    m, cov = posterior(model.gp)
    if name == "bbq":
        first, delta = posterior(model.linear)[0], posterior(model.delta)[0]
        mean, cov = first + (first + SHIFT) * delta, np.outer(first + SHIFT, first + SHIFT) * cov
    elif name == "vanilla":
        mean = m
    elif name == "wsabi-l":
        mean, cov = model.offset + 0.5 * m**2, np.outer(m, m) * cov
    else:
        mean, cov = model.offset + 0.5 * (m**2 + np.diag(cov)), np.outer(m, m) * cov + 0.5 * cov**2
    p = model.gp.predict(x)
    np.testing.assert_allclose(model.mean(p), mean, rtol=1e-9)
    np.testing.assert_allclose(model.cov(p, p), cov, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.var(p), np.diag(cov), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.cov(p[:5], p[5:]), cov[:5, 5:], rtol=1e-8, atol=1e-10)


def test_log_difference():
    model = surrogate("bbq", 2)
    x = design(2, 30, seed=4)
    first = model.linear.predict_mean(x)
    found = log_difference(model.gp, model.linear, SHIFT, x)
    expected = model.gp.predict_mean(x) - np.log(np.maximum(first, -0.5 * SHIFT) / SHIFT + 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    low = GP.condition(x[:1], np.array([-10.0]), rbf(2, 1.0))
    assert np.isfinite(log_difference(model.gp, low, SHIFT, x[:1])).all()


# --- closed forms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", MEASURES)
def test_closed_form_against_quadrature(place):
    measure = MEASURES[place]
    x, w = nodes(measure)
    for name, c in product(MODELS, [0.0, 0.6]):
        model = surrogate(name, measure.n_dim, c)
        found = closed_form_evidence(model, measure)
        mean, var = brute(model, x, w)
        assert found.scaled_mean == pytest.approx(mean, rel=1e-9), (name, c)
        assert found.scaled_var == pytest.approx(var, rel=1e-8), (name, c)
        assert found.log_scale == 0.0


@pytest.mark.parametrize("c", [0.0, 0.6])
def test_matched_moments_against_sample_paths(c):
    measure = MEASURES["line"]
    model = surrogate("wsabi-m", 1, c)
    x, w = nodes(measure, step=0.15)
    p = model.gp.predict(x)
    values, vectors = np.linalg.eigh(model.gp.cov(p, p))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    paths = p.mean + np.random.default_rng(5).standard_normal((40_000, len(x))) @ root.T
    z = model.offset + 0.5 * paths**2 @ w
    found = closed_form_evidence(model, measure)
    assert found.scaled_mean == pytest.approx(z.mean(), abs=4.0 * z.std() / 200.0)
    assert found.scaled_var == pytest.approx(z.var(), rel=0.05)


@pytest.mark.parametrize("name", ["vanilla", "wsabi-l", "wsabi-m"])
@pytest.mark.parametrize("c", [0.0, 0.6])
def test_scaling_the_likelihood_scales_the_moments(name, c):
    measure, s = MEASURES["plane-mixture"], 37.0
    model = surrogate(name, 2, c)
    root = s if name == "vanilla" else np.sqrt(s)
    gp = model.gp
    kernel = replace(gp.kernel, variance=root**2 * gp.kernel.variance)
    scaled_gp = GP.condition(gp.x, root * gp.y, kernel, mean=root * c, noise=root**2 * gp.noise)
    scaled = Vanilla(scaled_gp) if name == "vanilla" else Wsabi(scaled_gp, s * model.offset, model.matched)
    a, b = closed_form_evidence(model, measure), closed_form_evidence(scaled, measure)
    assert b.scaled_mean == pytest.approx(s * a.scaled_mean, rel=1e-11)
    assert b.scaled_var == pytest.approx(s**2 * a.scaled_var, rel=1e-9)
    assert b.log_std == pytest.approx(a.log_std, rel=1e-9)


@pytest.mark.parametrize("place", MEASURES)
def test_linearisation_misses_half_the_mean_variance(place):
    measure = MEASURES[place]
    linear, matched = (surrogate(name, measure.n_dim, 0.3) for name in ("wsabi-l", "wsabi-m"))
    gp = linear.gp
    low, high = (closed_form_evidence(m, measure).scaled_mean for m in (linear, matched))
    gap = 0.5 * (gp.kernel.variance - np.sum(gp.precision * Blocks(gp, measure).q))
    assert gap > 0.0
    assert high - low == pytest.approx(gap, rel=1e-9)


def test_more_data_leave_less_variance():
    measure, gp = MEASURES["plane"], surrogate("vanilla", 2).gp
    parts = [Vanilla(GP.condition(gp.x[:n], gp.y[:n], gp.kernel, noise=1e-3)) for n in range(1, 9)]
    assert np.all(np.diff([closed_form_evidence(part, measure).scaled_var for part in parts]) < 0.0)


@pytest.mark.parametrize("place", ["line", "plane"])
@pytest.mark.parametrize("constant_mean", [False, True])
def test_fitted_process_with_little_noise(place, constant_mean):
    measure = MEASURES[place]
    x = measure.sample(60, np.random.default_rng(0))
    warp = SquareRoot.below(likelihood(x))
    start = make_kernel("rbf", measure.n_dim)
    gp = fit(x, warp.forward(likelihood(x)), start, noise=1e-6, constant_mean=constant_mean)
    grid, w = nodes(measure)
    for matched in (False, True):
        model = Wsabi(gp, warp.offset, matched=matched)
        found, (mean, var) = closed_form_evidence(model, measure), brute(model, grid, w)
        assert found.scaled_mean == pytest.approx(mean, rel=1e-8)
        assert found.scaled_var == pytest.approx(var, rel=1e-2)
        assert found.scaled_mean == pytest.approx(w @ likelihood(grid), rel=1e-2)


@pytest.mark.parametrize("name", MODELS)
def test_variance_is_not_negative_when_the_design_is_singular(name):
    measure, kernel = MEASURES["line"], RBF(1.0, np.array([2.0]))
    x = np.linspace(-5.0, 5.0, 40)[:, None]
    gp = GP.condition(x, kernel(x, np.array([[-0.5], [1.0]])) @ np.array([1.0, 0.7]), kernel, noise=1e-10)
    model = {
        "vanilla": Vanilla(gp),
        "wsabi-l": Wsabi(gp, 0.0, matched=False),
        "wsabi-m": Wsabi(gp, 0.0, matched=True),
        "bbq": Bbq(gp, gp, gp, SHIFT),
    }[name]
    found, (mean, _) = closed_form_evidence(model, measure), brute(model, *nodes(measure, step=0.1))
    assert 0.0 <= found.scaled_var < 1e-5
    assert found.scaled_mean == pytest.approx(mean, rel=1e-5)


class Without(Surrogate):
    """A model that does not know its integrals."""

    def mean(self, p):
        return np.exp(p.mean)

    def var(self, p):
        return p.var

    def cov(self, p, q):
        return self.gp.cov(p, q)


def test_only_rbf_surrogates_have_a_closed_form():
    assert surrogate("wsabi-l", 2).has_closed_form
    other = surrogate("wsabi-l", 2, kernel=make_kernel("matern32", 2))
    assert not other.has_closed_form
    with pytest.raises(TypeError, match="RBF"):
        closed_form_evidence(other, MEASURES["plane"])
    without = Without(surrogate("vanilla", 2).gp)
    assert not without.has_closed_form
    with pytest.raises(TypeError, match="no closed form for Without"):
        closed_form_evidence(without, MEASURES["plane"])


# --- the record ---------------------------------------------------------------------------------------------


def test_log_moments():
    e = Evidence(2.0, 0.5, 3.0)
    assert e.log_mean == pytest.approx(np.log(2.0) + 3.0)
    assert e.log_std == pytest.approx(np.sqrt(np.log1p(0.125)))
    law = stats.lognorm(e.log_std, scale=np.exp(np.log(2.0) - 0.5 * e.log_std**2))
    assert law.mean() == pytest.approx(2.0)
    assert law.var() == pytest.approx(0.5)


def test_log_moments_far_from_one():
    e = Evidence(2.0, 0.5, -5000.0)
    assert e.log_mean == pytest.approx(np.log(2.0) - 5000.0)
    assert e.log_std == Evidence(2.0, 0.5).log_std


@pytest.mark.parametrize("mean", [0.0, -1.0])
def test_evidence_that_is_not_positive_has_no_logarithm(mean):
    e = Evidence(mean, 0.5, 3.0)
    assert np.isnan(e.log_mean)
    assert e.log_std == np.inf


def test_certain_evidence():
    assert Evidence(2.0, 0.0).log_std == 0.0
    assert Evidence(2.0, -1e-18).log_std == 0.0


@pytest.mark.parametrize("name", MODELS)
def test_log_scale_shifts_the_logarithm_only(name):
    model, measure = surrogate(name, 2), MEASURES["plane"]
    base, moved = closed_form_evidence(model, measure), closed_form_evidence(model, measure, -700.0)
    assert moved.log_mean == pytest.approx(base.log_mean - 700.0, rel=1e-14)
    assert moved.log_std == base.log_std
    p = model.gp.predict(design(2, 50, seed=6))
    base, moved = (empirical_evidence(model, p, np.ones(50), s) for s in (0.0, 1000.0))
    assert moved.log_mean == pytest.approx(base.log_mean + 1000.0, rel=1e-14)
    assert moved.log_std == base.log_std


# --- empirical measures -------------------------------------------------------------------------------------


def without_sampling(found, model, p, w):
    """Variance of the evidence given the point set, and the point set's own."""
    w, values = w / w.sum(), model.mean(p)
    sampling = float(w**2 @ (values - w @ values) ** 2)
    return found.scaled_var - sampling, sampling


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("c", [0.0, 0.6])
def test_empirical_against_closed_form(name, c):
    model, measure = surrogate(name, 2, c), MEASURES["plane"]
    p, w = model.gp.predict(quasi(measure, 4096)), np.full(4096, 3.0)
    found, expected = empirical_evidence(model, p, w), closed_form_evidence(model, measure)
    var, sampling = without_sampling(found, model, p, w)
    assert found.scaled_mean == pytest.approx(expected.scaled_mean, rel=1e-3)
    assert var == pytest.approx(expected.scaled_var, rel=0.02)
    assert sampling > 0.0


@pytest.mark.parametrize("name", MODELS)
def test_empirical_with_importance_weights(name):
    model, measure = surrogate(name, 2), MEASURES["plane"]
    wide = replace(measure, covs=2.0 * measure.covs)
    x = quasi(wide, 4096, seed=1)
    w = np.exp(measure.log_pdf(x) - wide.log_pdf(x))
    p = model.gp.predict(x)
    found, expected = empirical_evidence(model, p, w), closed_form_evidence(model, measure)
    assert found.scaled_mean == pytest.approx(expected.scaled_mean, rel=3e-3)
    assert without_sampling(found, model, p, w)[0] == pytest.approx(expected.scaled_var, rel=0.03)


@pytest.mark.parametrize("n", [2**12, 2**13, 2**14])
@pytest.mark.parametrize("place", ["line", "plane", "plane-mixture"])
def test_empirical_variance_uses_points_from_everywhere(place, n):
    # thinned by a power of two, a Sobol sequence loses half of the space
    measure = MEASURES[place]
    model = surrogate("wsabi-l", measure.n_dim)
    points = measure.sample_quasi(n, np.random.default_rng(2))
    p, w = model.gp.predict(points), np.ones(n)
    found, expected = empirical_evidence(model, p, w, max_pairs=2048), closed_form_evidence(model, measure)
    assert found.scaled_mean == pytest.approx(expected.scaled_mean, rel=5e-3)
    assert without_sampling(found, model, p, w)[0] == pytest.approx(expected.scaled_var, rel=0.1)


@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52", "rq", "polynomial"])
@pytest.mark.parametrize("name", ["vanilla", "wsabi-l", "wsabi-m"])
def test_empirical_for_other_kernels_against_quadrature(name, kernel):
    measure = MEASURES["line"]
    scale = 4.0 if kernel == "polynomial" else 1.2
    start = make_kernel(kernel, 1, lengthscale=scale, variance=0.8)
    model = surrogate(name, 1, 0.4, kernel=start, noise=1e-2)
    x, w = nodes(measure, step=0.015)
    mean, var = brute(model, x, w)
    n = 2000
    points = measure.means[0] + np.sqrt(measure.covs[0, 0, 0]) * ndtri((np.arange(n) + 0.5) / n)[:, None]
    p = model.gp.predict(points)
    found = empirical_evidence(model, p, np.ones(n))
    assert found.scaled_mean == pytest.approx(mean, rel=1e-3)
    assert without_sampling(found, model, p, np.ones(n))[0] == pytest.approx(var, rel=0.03)


def test_empirical_is_unbiased_for_few_points():
    # with the diagonal of the double sum left in, the average would be far above
    model, measure = surrogate("vanilla", 2), MEASURES["plane"]
    rng = np.random.default_rng(7)
    found = []
    for _ in range(400):
        p = model.gp.predict(measure.sample(20, rng))
        c = model.cov(p, p)
        found.append((c.sum() - np.trace(c)) / (20 * 19))
        e = empirical_evidence(model, p, np.ones(20))
        assert without_sampling(e, model, p, np.ones(20))[0] == pytest.approx(max(found[-1], 0.0), abs=1e-12)
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(closed_form_evidence(model, measure).scaled_var, abs=4.0 * error)


@pytest.mark.parametrize("n", [1, 2])
def test_empirical_of_very_few_points(n):
    model = surrogate("wsabi-m", 2)
    p = model.gp.predict(design(2, n, seed=8))
    found = empirical_evidence(model, p, np.ones(n))
    assert found.scaled_mean == pytest.approx(model.mean(p).mean(), rel=1e-13)
    assert np.isfinite(found.scaled_var)


@pytest.mark.parametrize("name", MODELS)
def test_recombined_points_have_the_mean_of_all(name):
    recombination = pytest.importorskip("basq.selection.recombination")
    model, measure = surrogate(name, 2), MEASURES["plane-mixture"]
    rng = np.random.default_rng(9)
    x = measure.sample(3000, rng)
    w = rng.random(3000)
    p = model.gp.predict(x)
    features = np.column_stack([model.mean(p), x, x**2, np.prod(x, axis=1)])
    rule = recombination.recombine(features, w)
    assert len(rule.index) <= features.shape[1] + 1
    whole, few = empirical_evidence(model, p, w), empirical_evidence(model, p[rule.index], rule.weights)
    assert few.scaled_mean == pytest.approx(whole.scaled_mean, rel=1e-11)
