"""Candidates: whatever the proposal, the weighted points stand for the measure of interest."""

import numpy as np
import pytest

from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.gp.kernels.stationary import RBF
from basq.numerics.gaussians import GaussianMixture
from basq.paper.models import Bbq, Vanilla, Wsabi
from basq.paper.positive_mixture import PositiveMixture
from basq.paper.proposals import propose, race, resample
from basq.paper.target import Target

PROPOSALS = ["ivr", "ub", "igb", "prior", "optimal"]
MEASURES = {
    "single": GaussianMixture(np.ones(1), np.array([[0.2, -0.1]]), np.array([[[1.0, 0.3], [0.3, 0.8]]])),
    "mixture": GaussianMixture(
        np.array([0.6, 0.4]), np.array([[-0.5, 0.0], [1.0, 0.5]]), np.array([np.eye(2), 0.5 * np.eye(2)])
    ),
}


def process(d=2, n=12, scale=0.8, kernel="rbf", seed=0):
    """A process on the root of a Gaussian likelihood, narrower than the prior and off its centre."""
    x = 1.2 * np.random.default_rng(seed).standard_normal((n, d))
    y = np.sqrt(2.0 * np.exp(-((x - 0.8) ** 2).sum(axis=1)))
    return GP.condition(x, y, make_kernel(kernel, d, lengthscale=scale), noise=1e-6)


def wsabi(gp, matched=False):
    return Wsabi(gp, 0.0, matched)


def moments(x, weights):
    """E[x], E[x²] and E[x₁x₂ + cos x₁]."""
    functions = np.column_stack([x, x**2, x.prod(axis=1) + np.cos(x[:, 0])])
    return weights @ functions / weights.sum()


def grid(reach=7.0, n=281):
    t = np.linspace(-reach, reach, n)
    return np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)


# --- target ---------------------------------------------------------------------------------------------------------


def test_factorised_target_of_wsabi_is_the_process_over_the_absolute_mean():
    gp = process()
    p, q = gp.predict(grid(2.0, 5)), gp.predict(grid(1.5, 4))
    assert (p.mean < 0).any()
    assert (p.mean > 0).any()
    target = Target(wsabi(gp), factorised=True)
    assert target.uses_process
    assert target.follows_mean
    np.testing.assert_array_equal(target.interest(p.mean), np.abs(p.mean))
    np.testing.assert_array_equal(target.var(p), p.var)
    expected = np.outer(np.sign(p.mean), np.sign(q.mean)) * gp.cov(p, q)
    np.testing.assert_allclose(target.cov(p, q), expected, rtol=1e-13)


@pytest.mark.parametrize("matched", [False, True])
def test_unfactorised_target_of_wsabi_is_the_likelihood_over_the_prior(matched):
    surrogate = wsabi(process(), matched)
    p, q = surrogate.gp.predict(grid(2.0, 5)), surrogate.gp.predict(grid(1.5, 4))
    target = Target(surrogate, factorised=False)
    assert not target.uses_process
    assert not target.follows_mean
    np.testing.assert_array_equal(target.interest(p.mean), np.ones(len(p.x)))
    np.testing.assert_array_equal(target.var(p), surrogate.var(p))
    np.testing.assert_array_equal(target.cov(p, q), surrogate.cov(p, q))


@pytest.mark.parametrize("factorised", [True, False])
@pytest.mark.parametrize("model", ["vanilla", "bbq"])
def test_target_of_other_models_is_their_process_over_the_prior(model, factorised):
    gp = process()
    surrogate = Vanilla(gp) if model == "vanilla" else Bbq(gp, gp, gp, 0.01)
    p = gp.predict(grid(2.0, 5))
    target = Target(surrogate, factorised)
    assert target.uses_process
    assert not target.follows_mean
    np.testing.assert_array_equal(target.interest(p.mean), np.ones(len(p.x)))
    np.testing.assert_array_equal(target.cov(p, p), gp.cov(p, p))


@pytest.mark.parametrize("factorised", [True, False])
def test_diagonal_of_the_target_is_its_variance(factorised):
    target = Target(wsabi(process(), matched=True), factorised)
    p = target.surrogate.gp.predict(grid(2.0, 5))
    np.testing.assert_allclose(np.diag(target.cov(p, p)), target.var(p), atol=1e-10)


# --- proposals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factorised", [True, False])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", PROPOSALS)
def test_weighted_candidates_integrate_like_the_measure_of_interest(name, measure, factorised):
    target, g = Target(wsabi(process()), factorised), MEASURES[measure]
    runs = [propose(target, g, name, 0.5, 2000, np.random.default_rng(seed)) for seed in range(12)]
    for found in runs:
        assert found.prediction.x.shape == (2000, 2)
        assert (found.weights >= 0.0).all()
        assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert len(np.unique(found.prediction.x, axis=0)) == 2000
    x = grid()
    exact = moments(x, target.interest(target.surrogate.gp.predict_mean(x)) * np.exp(g.log_pdf(x)))
    estimates = np.array([moments(found.prediction.x, found.weights) for found in runs])
    error, spread = estimates.mean(axis=0) - exact, estimates.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(error) < 4.5 * spread + 1e-3).all(), (error, spread)
    # the spread itself must be that of a useful sample, or the line above shows nothing
    assert (spread < 0.06).all()


@pytest.mark.parametrize("model", ["vanilla", "matern"])
def test_candidates_of_other_surrogates_stand_for_the_prior(model):
    gp = process() if model == "vanilla" else process(kernel="matern32")
    target = Target(Vanilla(gp), factorised=True)
    g = MEASURES["single"]
    found = propose(target, g, "ivr", 0.5, 20_000, np.random.default_rng(1))
    exact = np.concatenate([g.means[0], np.diag(g.covs[0]) + g.means[0] ** 2])
    np.testing.assert_allclose(moments(found.prediction.x, found.weights)[:4], exact, atol=0.05)
    assert found.sampler == "resampling"
    assert np.isnan(found.acceptance) == (model == "matern")


@pytest.mark.parametrize("factorised", [True, False])
def test_ivr_without_an_uncertain_part_samples_f_itself(factorised):
    target = Target(wsabi(process()), factorised)
    g = MEASURES["single"]
    found = propose(target, g, "ivr", 0.0, 5000, np.random.default_rng(1))
    assert found.sampler == "none"
    x = grid()
    exact = moments(x, target.interest(target.surrogate.gp.predict_mean(x)) * np.exp(g.log_pdf(x)))
    np.testing.assert_allclose(moments(found.prediction.x, found.weights), exact, atol=0.1)
    if not factorised:  # f is the prior, so nothing is left to weight
        np.testing.assert_allclose(found.weights, 1 / 5000, rtol=1e-12)


def test_ivr_goes_where_the_surrogate_is_unsure():
    target = Target(wsabi(process()), factorised=True)
    g = MEASURES["single"]
    mean_var = [
        propose(target, g, "ivr", r, 4000, np.random.default_rng(2)).prediction.var.mean() for r in (0.0, 0.5, 1.0)
    ]
    assert mean_var[0] < mean_var[1] < mean_var[2]


@pytest.mark.parametrize("name", ["ivr", "ub"])
def test_mixed_proposals_have_bounded_weights(name):
    target = Target(wsabi(process()), factorised=False)
    found = propose(target, MEASURES["single"], name, 0.5, 4000, np.random.default_rng(3))
    bound = 2.0 if name == "ivr" else 100.0
    # at most 1/(1 − r), relative to a mean of one up to sampling error
    assert found.weights.max() * 4000 < 1.1 * bound


@pytest.mark.parametrize("name", PROPOSALS)
def test_a_surrogate_that_is_zero_everywhere_falls_back_to_the_prior(name):
    gp = process()
    flat = Wsabi(GP.condition(gp.x, np.zeros(len(gp.x)), gp.kernel, noise=1e-6), 0.0, False)
    for factorised in (True, False):
        found = propose(Target(flat, factorised), MEASURES["single"], name, 0.5, 500, np.random.default_rng(1))
        assert np.isfinite(found.weights).all()
        assert found.weights.sum() == pytest.approx(1.0)


# --- the positive components ----------------------------------------------------------------------------------------


def sparse_process(d):
    """Few points, far apart in units of the lengthscale: the positive mixture is efficient."""
    x = np.random.default_rng(4).standard_normal((5, d))
    return GP.condition(x, np.ones(5), RBF(1.7, np.full(d, 0.6)), noise=1e-6)


@pytest.mark.parametrize("d", [1, 2])
def test_positive_mixture_dominates_the_uncertainty(d):
    gp, g = sparse_process(d), GaussianMixture.standard(d)
    x = np.linspace(-5.0, 5.0, 400)[:, None] if d == 1 else grid(5.0, 61)
    pi = np.exp(g.log_pdf(x))
    for n in (10**9, 1000, 3):  # all components, and thinned
        mixture = PositiveMixture.of(gp, g, n)
        bound = mixture.prior_mass * pi + mixture.pairs.pdf(x)
        assert (bound >= gp.predict(x).var * pi - 1e-15).all()


@pytest.mark.parametrize("d", [1, 2])
def test_positive_mixture_totals_and_acceptance_agree_with_quadrature(d):
    gp, g = sparse_process(d), GaussianMixture.standard(d)
    t = np.linspace(-8.0, 8.0, 641)
    x = t[:, None] if d == 1 else np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    cell = (t[1] - t[0]) ** d
    mixture = PositiveMixture.of(gp, g, 10**9)
    pi = np.exp(g.log_pdf(x))
    assert mixture.total == pytest.approx((gp.predict(x).var * pi).sum() * cell, rel=1e-8)
    positive = (mixture.prior_mass * pi + mixture.pairs.pdf(x)).sum() * cell
    assert mixture.positive == pytest.approx(positive, rel=1e-8)
    assert mixture.acceptance == pytest.approx(mixture.total / positive, rel=1e-8)


@pytest.mark.parametrize("d", [1, 2])
def test_positive_mixture_draws_the_uncertainty(d):
    gp, g = sparse_process(d), GaussianMixture.standard(d)
    t = np.linspace(-8.0, 8.0, 321)
    x = t[:, None] if d == 1 else np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    density = gp.predict(x).var * np.exp(g.log_pdf(x))
    functions = [
        lambda z: z[:, 0],
        lambda z: (z**2).sum(axis=1),
        lambda z: np.cos(3.0 * z[:, 0]),
        lambda z: z[:, 0] > 0,
    ]
    n = 20_000
    drawn = PositiveMixture.of(gp, g, n).sample(gp, g, n, np.random.default_rng(5))
    assert drawn.shape == (n, d)
    for function in functions:
        values = function(drawn)
        exact = density @ function(x) / density.sum()
        assert abs(values.mean() - exact) < 4.5 * values.std() / np.sqrt(n) + 2e-3


def test_efficient_mixture_is_used_and_reported():
    gp = sparse_process(2)
    found = propose(Target(Vanilla(gp), True), GaussianMixture.standard(2), "ivr", 0.5, 2000, np.random.default_rng(1))
    assert found.sampler == "mixture"
    assert found.acceptance == pytest.approx(PositiveMixture.of(gp, GaussianMixture.standard(2), 1000).acceptance)
    assert found.acceptance > 0.2


def test_weights_with_the_mixture_sampler_still_stand_for_f():
    gp, g = sparse_process(2), GaussianMixture.standard(2)
    target = Target(wsabi(gp), factorised=True)
    runs = [propose(target, g, "ivr", 0.5, 2000, np.random.default_rng(seed)) for seed in range(12)]
    assert {found.sampler for found in runs} == {"mixture"}
    x = grid()
    exact = moments(x, target.interest(gp.predict_mean(x)) * np.exp(g.log_pdf(x)))
    estimates = np.array([moments(found.prediction.x, found.weights) for found in runs])
    spread = estimates.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(estimates.mean(axis=0) - exact) < 4.5 * spread + 1e-3).all()


def test_collapsed_mixture_gives_way_to_resampling_and_says_so():
    gp = process(n=40, scale=1.2)
    found = propose(Target(wsabi(gp), True), GaussianMixture.standard(2), "ivr", 0.5, 1000, np.random.default_rng(1))
    assert found.sampler == "resampling"
    assert found.acceptance < 1e-3
    assert np.isfinite(found.weights).all()


def test_mixture_measures_have_no_positive_mixture():
    assert PositiveMixture.of(sparse_process(2), MEASURES["mixture"], 100) is None


# --- resampling -----------------------------------------------------------------------------------------------------


def test_resampling_frequency_is_proportional_to_small_weights():
    weights = np.array([0.0, 1.0, 2.0, 4.0] * 100)
    rng = np.random.default_rng(6)
    counts = np.zeros(4)
    for _ in range(400):
        chosen = resample(weights, 10, rng)
        assert len(set(chosen.tolist())) == 10
        counts += np.bincount(chosen % 4, minlength=4)
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:] / counts[1:].sum(), np.array([1, 2, 4]) / 7, atol=0.03)


def test_resampling_more_than_there_is_returns_everything():
    np.testing.assert_array_equal(resample(np.array([0.0, 1.0, 5.0]), 7, np.random.default_rng(0)), [0, 1, 2])
    assert len(resample(np.ones(5), 0, np.random.default_rng(0))) == 0


def test_resampling_takes_zero_weights_only_as_a_last_resort():
    weights = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    chosen = resample(weights, 3, np.random.default_rng(0))
    assert set(chosen.tolist()) == {0, 2, 4}
    assert len(resample(weights, 4, np.random.default_rng(0))) == 4


def test_race_knows_the_chance_of_every_point():
    rng = np.random.default_rng(7)
    weights = rng.exponential(size=60) ** 2  # so uneven that half of the draws cannot be proportional to it
    hits, predicted, total = np.zeros(60), np.zeros(60), []
    for _ in range(3000):
        chosen, chance = race(weights, 30, rng)
        hits[chosen] += 1.0
        predicted += chance(weights)
        total.append((weights[chosen] / chance(weights[chosen])).sum())
    np.testing.assert_allclose(hits / 3000, predicted / 3000, atol=0.05)
    assert np.mean(total) == pytest.approx(weights.sum(), rel=0.02)


def test_local_candidates_about_a_point_far_outside_the_prior_weigh_nothing():
    gp = GP.condition(
        np.array([[0.0, 0.0], [39.0, 0.0]]), np.array([1.0, 2.0]), make_kernel("rbf", 2, lengthscale=0.5), noise=1e-6
    )
    found = propose(Target(wsabi(gp), factorised=True), MEASURES["single"], "igb", 0.5, 200, np.random.default_rng(0))
    far = found.prediction.x[:, 0] > 20.0
    assert far.any()
    assert (found.weights[far] < 1e-200).all()
    assert np.isfinite(found.weights).all()
