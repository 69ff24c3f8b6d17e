"""Where a certificate's calls go: whatever the surrogate believes, they estimate without bias."""

import numpy as np
import pytest

from basq.numerics.gaussians import GaussianMixture
from helpers.surrogates import (
    CENTRE,
    LOG_Z,
    MEAN,
    PRIOR,
    SD,
    WIDTH,
    believed,
    cheap_designs,
    drawn,
    judged,
    log_likelihood,
)

N = 48
SURROGATES = {
    "right": (believed(), 0.0),
    "shifted": (believed(shift=0.7), 0.1),
    "too narrow": (believed(width=0.6), -0.2),
    "too wide": (believed(width=2.0), 0.3),
}


@pytest.fixture(scope="module", params=SURROGATES)
def many(request):
    """Certificates of one surrogate, from many designs."""
    posterior, off = SURROGATES[request.param]
    rng = np.random.default_rng(7)
    with cheap_designs():
        return [judged(drawn(N, rng, posterior, off), off=off) for _ in range(500)]


def standard_errors(values, truth):
    """By how many of its standard errors a mean is off."""
    return (np.mean(values, axis=0) - truth) / (np.std(values, axis=0) / np.sqrt(len(values)))


def test_the_truth_is_the_truth():
    """By quadrature on a grid."""
    side = np.linspace(-6.0, 6.0, 601)
    u = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    joint = np.exp(log_likelihood(u) + PRIOR.measure.log_pdf(u)) * (side[1] - side[0]) ** 2
    assert np.log(joint.sum()) == pytest.approx(LOG_Z, abs=1e-6)
    mean = joint @ u / joint.sum()
    np.testing.assert_allclose(mean, MEAN, atol=1e-6)
    np.testing.assert_allclose(joint @ (u - mean) ** 2 / joint.sum(), SD**2, atol=1e-6)


def test_the_estimate_has_no_bias_whatever_the_surrogate(many):
    z = np.exp([each.log_evidence - LOG_Z for each in many])
    assert abs(standard_errors(z, 1.0)) < 4.0


def test_nor_without_the_surrogate_as_control_variate(many):
    z = [np.exp(each.log_weights - LOG_Z).mean() for each in many]
    assert abs(standard_errors(z, 1.0)) < 4.0


def test_the_error_is_what_it_is_said_to_be(many):
    """Or larger: few weights may make up the estimate."""
    off = np.array([each.log_evidence - LOG_Z for each in many])
    sd = np.array([each.log_evidence_std for each in many])
    assert (np.abs(off) < 1.96 * sd).mean() > 0.9
    assert np.median(sd) < 2.5 * np.std(off)


def test_reweighted_means_are_those_of_the_posterior(many):
    """Within twice the error that the weights have, at the nominal rate."""
    off = np.array([each.weights @ each.x - MEAN for each in many])
    error = np.sqrt([each.weights**2 @ (each.x - each.weights @ each.x) ** 2 for each in many])
    assert (np.abs(off) < 2.0 * error).mean() > 0.88
    assert (np.abs(off.mean(axis=0)) < 0.1 * SD).all()


def test_expectations_come_with_their_errors(many):
    found = [each.expectation(each.x) for each in many]
    off, error = np.array([mean for mean, _ in found]) - MEAN, np.array([sd for _, sd in found])
    assert (np.abs(off) < 2.0 * error).mean() > 0.9
    assert np.median(error) < 2.0 * off.std()


def test_a_right_surrogate_lowers_the_variance():
    rng = np.random.default_rng(1)
    with cheap_designs():
        found = [judged(drawn(N, rng)) for _ in range(100)]
    with_it = np.std([each.log_evidence for each in found])
    without = np.std([np.log(np.exp(each.log_weights).mean()) for each in found])
    assert with_it < 0.5 * without


def test_a_mode_that_the_surrogate_does_not_know_is_in_the_mean():
    """Seldom found, but then at its full weight."""
    mode = GaussianMixture(np.ones(1), np.array([[-1.2, 1.0]]), np.diag((0.6 * SD) ** 2)[None])
    rng, z = np.random.default_rng(2), []
    with cheap_designs():
        for _ in range(500):
            plan = drawn(N, rng)
            joint = np.exp(log_likelihood(plan.u) + plan.log_prior) + 0.5 * np.exp(LOG_Z + mode.log_pdf(plan.u))
            found = judged(plan, np.log(joint) - plan.log_prior)
            z.append(np.exp(found.log_evidence - LOG_Z))
    assert abs(standard_errors(z, 1.5)) < 4.0


# --- the density ------------------------------------------------------------------------------------------------------

KNOWN = {
    "the posterior": believed(),
    "beside it": believed(shift=0.8, width=0.7),
    "broad": believed(width=2.0),
}


@pytest.mark.parametrize("surrogate", ["right", "shifted", "too narrow"])
def test_the_density_of_the_points_is_the_one_that_is_stated(surrogate):
    """The mean of f over the density is the integral of f."""
    posterior, off = SURROGATES[surrogate]
    rng, found = np.random.default_rng(3), {name: [] for name in KNOWN}
    with cheap_designs():
        for _ in range(200):
            plan = drawn(N, rng, posterior, off)
            for name, known in KNOWN.items():
                ratio = np.exp(known.log_pdf(plan.u) - plan.log_drawn)
                found[name].append([ratio.mean(), *(ratio[:, None] * plan.u).mean(axis=0)])
    for name, known in KNOWN.items():
        assert (np.abs(standard_errors(found[name], [1.0, *known.means[0]])) < 4.0).all()


def test_the_prior_and_the_surrogate_at_the_points_are_right():
    plan = drawn(N, np.random.default_rng(4), believed(shift=0.5), 0.3)
    np.testing.assert_allclose(plan.log_prior, PRIOR.measure.log_pdf(plan.u))
    some = np.isfinite(plan.log_expected)
    assert some.mean() > 0.5
    np.testing.assert_allclose(plan.log_expected[some], believed(shift=0.5).log_pdf(plan.u[some]) + LOG_Z + 0.3)
    assert np.exp(plan.log_pool - LOG_Z - 0.3) == pytest.approx(1.0, abs=5.0 * plan.pool_error)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_no_point_weighs_too_much(surrogate):
    """The prior is part of what is drawn from: a point weighs at most so many times what its likelihood does."""
    posterior, off = SURROGATES[surrogate]
    plan = drawn(1000, np.random.default_rng(5), posterior, off)
    assert np.exp(plan.log_prior - plan.log_drawn).max() < 100.0
    inside = (np.abs((plan.u - MEAN) / SD) < 3.0).all(axis=1)
    truth = np.exp(believed().log_pdf(plan.u[inside]) - plan.log_drawn[inside])
    assert truth.max() < 15.0


def test_a_surrogate_in_the_wrong_place_leaves_the_truth_within_reach():
    posterior = believed(shift=-4.0, width=0.5)
    plan = drawn(1000, np.random.default_rng(6), posterior)
    inside = (np.abs((plan.u - CENTRE) / WIDTH) < 2.0).all(axis=1)
    assert inside.sum() > 10


def test_the_order_of_the_points_is_random():
    """So that the first of them are a design, too."""
    rng, first = np.random.default_rng(8), []
    with cheap_designs():
        for _ in range(300):
            plan = drawn(N, rng)
            first.append(np.exp(believed().log_pdf(plan.u[:8]) - plan.log_drawn[:8]).mean())
    assert abs(standard_errors(first, 1.0)) < 4.0


def test_some_of_the_points_are_a_design():
    plan = drawn(N, np.random.default_rng(9))
    rows = np.arange(20)
    part = plan.at(rows)
    assert (len(plan), len(part)) == (N, 20)
    assert plan.u.shape == (N, 2)
    for name in ("u", "log_prior", "log_expected", "log_drawn"):
        np.testing.assert_array_equal(getattr(part, name), getattr(plan, name)[rows])
    assert part.log_pool == plan.log_pool


def test_the_same_numbers_draw_the_same_points():
    one, other, third = (drawn(N, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.u, other.u)
    np.testing.assert_array_equal(one.log_drawn, other.log_drawn)
    assert not np.isclose(one.u, third.u).any()
    assert len(np.unique(one.u, axis=0)) == N
