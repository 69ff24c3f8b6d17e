import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basq.errors import InputError
from basq.selection.herding import herd


def fourier(n=1500, m=200, seed=0):
    """Random Fourier features of an RBF kernel on the plane: unit diagonal, as herding likes it."""
    rng = np.random.default_rng(seed)
    angle = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m))
    return np.hstack([np.cos(angle), np.sin(angle)]) / np.sqrt(m), rng.exponential(size=n)


def discrepancy(features, weights, index):
    return np.linalg.norm(weights @ features / weights.sum() - features[index].mean(axis=0))


@pytest.mark.parametrize("n_points", [5, 20, 80])
def test_discrepancy_is_below_every_random_subset(n_points):
    features, weights = fourier()
    rng = np.random.default_rng(1)
    shares = weights / weights.sum()
    subsets = [rng.choice(len(shares), n_points, replace=False, p=shares) for _ in range(50)]
    at_random = [discrepancy(features, weights, index) for index in subsets]
    assert discrepancy(features, weights, herd(features, weights, n_points)) < 0.75 * min(at_random)


def test_first_points_are_the_greedy_ones():
    features, weights = fourier(n=60)
    mean = weights @ features / weights.sum()
    chosen: list[int] = []
    for t in range(10):
        score = features @ (mean - features[chosen].sum(axis=0) / (t + 1))
        score[chosen] = -np.inf
        chosen.append(int(np.argmax(score)))
    assert herd(features, weights, 10).tolist() == chosen
    assert herd(features, weights, 4).tolist() == chosen[:4]


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(0, 6), st.integers(1, 80))
def test_distinct_and_never_of_zero_weight(seed, n, m, n_points):
    rng = np.random.default_rng(seed)
    weights = rng.random(n) * (rng.random(n) < 0.5)
    weights[rng.integers(n)] = 1.0
    index = herd(rng.normal(size=(n, m)), weights, n_points)
    assert len(index) == len(set(index.tolist())) == min(n_points, np.count_nonzero(weights))
    assert (weights[index] > 0).all()


def test_weights_matter_and_their_total_does_not():
    features, weights = fourier()
    np.testing.assert_array_equal(herd(features, weights, 10), herd(features, 2.0**40 * weights, 10))
    skewed = np.where(np.arange(len(weights)) < 100, 1.0, 1e-6)
    index = herd(features, skewed, 20)
    assert discrepancy(features, skewed, index) < discrepancy(features, skewed, herd(features, weights, 20))


def test_inputs_are_not_modified():
    features, weights = fourier(n=50)
    for a in (features, weights):
        a.flags.writeable = False
    np.testing.assert_array_equal(herd(features, weights, 10), herd(features, weights, 10))


@pytest.mark.parametrize(
    ("features", "weights", "n_points", "message"),
    [
        (np.ones((3, 2)), np.ones(3), 0, "at least 1"),
        (np.ones((3, 2)), -np.ones(3), 2, "not negative"),
        (np.ones((3, 2)), np.zeros(3), 2, "positive, finite total"),
        (np.ones(3), np.ones(3), 2, "needed are"),
    ],
)
def test_wrong_input_is_named(features, weights, n_points, message):
    with pytest.raises(InputError, match=message):
        herd(features, weights, n_points)
