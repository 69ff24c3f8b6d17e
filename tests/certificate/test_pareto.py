"""How heavy weights are: against laws whose tails are known, and against ArviZ."""

import numpy as np
import pytest

from basq.certificate import pareto


def log_pareto(k, n, rng):
    """Logs of n draws from the generalised Pareto law of shape k and scale 1, by its quantiles."""
    return np.log(((1.0 - rng.random(n)) ** -k - 1.0) / k)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_the_shape_of_known_tails(k):
    rng = np.random.default_rng(1)
    found = [pareto.shape(log_pareto(k, 20_000, rng)) for _ in range(20)]
    assert np.mean(found) == pytest.approx(k, abs=4.0 * np.std(found) / np.sqrt(20) + 0.03)  # little data: towards 1/2
    assert np.std(found) < 0.15


def test_bounded_weights_have_a_tail_that_ends():
    rng = np.random.default_rng(1)
    assert np.mean([pareto.shape(np.log(rng.random(5000))) for _ in range(10)]) < -0.5  # of the uniform law: −1
    assert pareto.shape(np.log(1.0 + 1e-3 * rng.random(100))) < pareto.LARGEST


def test_the_tail_of_a_normal_log_weight_grows_with_its_spread():
    rng = np.random.default_rng(1)
    z = rng.standard_normal(500)
    shapes = [pareto.shape(s * z) for s in (0.1, 0.5, 1.0, 2.0, 4.0)]
    assert shapes == sorted(shapes)
    assert shapes[0] < pareto.LARGEST < shapes[-1]


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_arviz_finds_the_same(k):
    arviz = pytest.importorskip("arviz")
    if "psislw" not in vars(arviz):
        pytest.skip("ArviZ 1.x has it elsewhere")
    rng = np.random.default_rng(2)
    for n in (50, 100, 225):  # where both take the same number of weights for the tail
        log_weights = log_pareto(k, n, rng)
        log_smoothed, shape = arviz.psislw(log_weights.copy())
        assert pareto.shape(log_weights) == pytest.approx(float(shape), rel=1e-9)
        np.testing.assert_allclose(pareto.smoothed(log_weights), np.exp(log_smoothed), rtol=1e-8, atol=1e-12)


def test_equal_weights_stay_equal():
    np.testing.assert_allclose(pareto.smoothed(np.full(64, -7.0)), np.full(64, 1.0 / 64))


@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_weights_say_nothing_about_a_tail_and_stay_as_they_are(n):
    log_weights = np.random.default_rng(3).standard_normal(n)
    assert pareto.shape(log_weights) == np.inf
    np.testing.assert_allclose(pareto.smoothed(log_weights), np.exp(log_weights) / np.exp(log_weights).sum())


def test_smoothing_keeps_order_and_sum_and_tames_the_largest():
    rng = np.random.default_rng(4)
    log_weights = log_pareto(0.9, 400, rng)
    log_weights.flags.writeable = False
    plain, smooth = np.exp(log_weights) / np.exp(log_weights).sum(), pareto.smoothed(log_weights)
    assert smooth.sum() == pytest.approx(1.0, abs=1e-12)
    assert (smooth >= 0.0).all()
    order = np.argsort(log_weights)
    assert (np.diff(smooth[order]) >= -1e-15).all()
    body = order[:300]  # below the tail nothing changes but the sum
    np.testing.assert_allclose(smooth[body] / smooth[order[0]], plain[body] / plain[order[0]])
    assert smooth.max() <= smooth[order[0]] / plain[order[0]] * plain.max() * (1.0 + 1e-12)


def test_smoothed_means_vary_less():
    """Of heavy weights, whose plain mean is made by a few of them."""
    rng = np.random.default_rng(5)
    shares = []
    for _ in range(200):
        log_weights = log_pareto(0.8, 100, rng)
        shares.append([np.exp(log_weights).max() / np.exp(log_weights).sum(), pareto.smoothed(log_weights).max()])
    plain, smooth = np.array(shares).T
    assert smooth.std() < plain.std()
    assert smooth.mean() < plain.mean()


def test_the_unit_of_the_weights_does_not_matter():
    log_weights = log_pareto(0.5, 200, np.random.default_rng(6))
    for shift in (-2000.0, 0.0, 900.0):  # whose exponentials under- and overflow
        assert pareto.shape(log_weights + shift) == pytest.approx(pareto.shape(log_weights), rel=1e-6)
        np.testing.assert_allclose(pareto.smoothed(log_weights + shift), pareto.smoothed(log_weights), rtol=1e-8)
