import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult

from basq.errors import InputError, NumericsWarning
from basq.selection import recombination
from basq.selection.recombination import recombine

METHODS = ("tree", "lp")
TROUBLES = ("scales", "offset", "duplicates", "rank", "constant", "outlier")


def moment_error(features, weights, rule):
    """Error of total and moments, relative to the sum of absolute terms; computed apart from the package."""
    columns = np.column_stack([np.ones(len(weights)), features])
    scale = weights @ np.abs(columns)
    error = np.abs(rule.weights @ columns[rule.index] - weights @ columns)
    return np.max(error / np.where(scale > 0, scale, 1.0))


def assert_valid(features, weights, rule, tolerance=1e-11):
    assert rule.index.dtype.kind == "i"
    assert rule.index.shape == rule.weights.shape
    assert (np.diff(rule.index) > 0).all()
    assert (rule.weights > 0).all()
    assert (weights[rule.index] > 0).all()
    assert len(rule.index) <= features.shape[1] + 1
    assert moment_error(features, weights, rule) <= tolerance
    assert rule.moment_error <= tolerance


@st.composite
def candidates(draw):
    """Features and weights of many shapes, with any mixture of the troubles that real ones have."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 400))
    m = draw(st.integers(0, 12))
    features = rng.normal(size=(n, m))
    troubles = draw(st.sets(st.sampled_from(TROUBLES)))
    if "rank" in troubles and m > 2:
        features = features[:, : m // 2] @ rng.normal(size=(m // 2, m))
    if "scales" in troubles:
        features = features * 10.0 ** rng.integers(-150, 150, size=m)
    if "outlier" in troubles and m:
        features[rng.integers(n)] *= 1e6
    if "offset" in troubles:
        features = features + np.abs(features).max(axis=0, initial=0.0) * 10.0 ** rng.integers(0, 6, size=m)
    if "constant" in troubles and m:
        features[:, rng.integers(m)] = rng.normal()
    if "duplicates" in troubles:
        features = features[rng.integers(0, max(1, n // 4), size=n)]
    spread = draw(st.sampled_from([0.0, 1.0, 10.0, 100.0]))
    weights = 10.0 ** draw(st.integers(-100, 100)) * np.exp(-spread * rng.exponential(size=n))
    if draw(st.booleans()):
        weights[rng.random(n) < 0.5] = 0.0
        weights[rng.integers(n)] = 1.0
    return features, weights


def smooth(n=2000, m=12, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    powers = [(i, j) for i in range(6) for j in range(6 - i) if i + j > 0][:m]
    features = np.stack([np.sin((i + 1) * x[:, 0] / 2 + j) * np.cos(j * x[:, 1]) for i, j in powers], axis=1)
    return features, rng.exponential(size=n), rng.random(n)


@settings(deadline=None, max_examples=300)
@given(candidates())
def test_tree_keeps_total_and_moments(data):
    features, weights = data
    assert_valid(features, weights, recombine(features, weights))


@settings(deadline=None, max_examples=200)
@given(candidates(), st.integers(0, 2**32 - 1))
def test_proper_tree_keeps_moments_and_does_not_raise_the_objective(data, seed):
    features, weights = data
    objective = np.random.default_rng(seed).random(len(weights))
    rule = recombine(features, weights, objective=objective)
    assert_valid(features, weights, rule)
    assert rule.weights @ objective[rule.index] <= (1 + 1e-9) * (weights @ objective)


@settings(deadline=None, max_examples=60)
@given(candidates(), st.booleans())
def test_lp_is_valid_and_proper_or_says_that_it_fell_back(data, proper):
    features, weights = data
    objective = np.random.default_rng(0).random(len(weights)) if proper else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rule = recombine(features, weights, objective=objective, method="lp")
    assert_valid(features, weights, rule, tolerance=1e-10)
    assert (rule.method == "tree") == (rule.fallback is not None) == (len(caught) == 1)
    if objective is not None:
        assert rule.weights @ objective[rule.index] <= (1 + 1e-9) * (weights @ objective)


def test_large_problem_to_rounding():
    rng = np.random.default_rng(3)
    features = np.cumsum(rng.normal(size=(20_000, 99)), axis=1)
    weights = rng.exponential(size=20_000) ** 3
    rule = recombine(features, weights)
    assert_valid(features, weights, rule, tolerance=1e-12)
    assert len(rule.index) == 100


def test_nearly_dependent_features():
    x = np.linspace(0, 1, 5000)
    features = np.stack([x**k for k in range(1, 40)], axis=1)
    weights = np.exp(-x)
    assert_valid(features, weights, recombine(features, weights), tolerance=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_given_weights_are_used(method):
    features, _, _ = smooth()
    weights = np.where(np.arange(len(features)) < 1000, 1.0, 50.0)
    rule = recombine(features, weights, method=method)
    assert_valid(features, weights, rule, tolerance=1e-10)
    uniform = np.full(len(weights), weights.mean())
    assert moment_error(features, uniform, rule) > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_zero_weights_are_never_chosen(method):
    features, weights, objective = smooth()
    weights[::3] = 0.0
    objective[::3] = 0.0
    rule = recombine(features, weights, objective=objective, method=method)
    assert_valid(features, weights, rule, tolerance=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_few_candidates_come_back_as_they_are(method):
    features, weights, _ = smooth(n=12, m=12)
    weights[4] = 0.0
    rule = recombine(features, weights, method=method)
    np.testing.assert_array_equal(rule.index, np.flatnonzero(weights))
    np.testing.assert_array_equal(rule.weights, weights[rule.index])
    assert rule.moment_error == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_dependent_features_give_fewer_points(method):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, 20))
    weights = rng.random(3000)
    rule = recombine(features, weights, method=method)
    assert_valid(features, weights, rule, tolerance=1e-10)
    assert len(rule.index) <= 4


def test_duplicated_points_give_no_more_points_than_there_are():
    rng = np.random.default_rng(2)
    features = np.repeat(rng.normal(size=(5, 30)), 100, axis=0)
    weights = rng.random(500)
    rule = recombine(features, weights)
    assert_valid(features, weights, rule)
    assert len(rule.index) == 5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("features", [np.zeros((50, 3)), np.full((50, 3), 1 / 3), np.empty((50, 0))])
def test_constant_features_need_one_point(method, features):
    weights = np.arange(50.0)
    rule = recombine(features, weights, method=method)
    assert len(rule.index) == 1
    assert rule.weights.sum() == pytest.approx(weights.sum(), rel=1e-14)


def test_n_points_keeps_the_leading_features():
    features, weights, _ = smooth()
    rule = recombine(features, weights, n_points=6)
    assert_valid(features[:, :5], weights, rule)
    assert moment_error(features, weights, rule) > 1e-3
    everything = recombine(features, weights, n_points=1000)
    np.testing.assert_array_equal(everything.index, recombine(features, weights).index)
    assert len(recombine(features, weights, n_points=1).index) == 1


def test_the_lp_finds_the_lower_objective():
    features, weights, objective = smooth()
    bound = weights @ objective
    tree, lp = (recombine(features, weights, objective=objective, method=method) for method in METHODS)
    for rule in (tree, lp):
        assert_valid(features, weights, rule, tolerance=1e-10)
    values = [rule.weights @ objective[rule.index] for rule in (lp, tree)]
    assert values[0] < values[1] < bound
    assert lp.fallback is None


def test_objective_that_is_a_moment_stays():
    features, weights, _ = smooth()
    objective = 2.0 + features @ np.ones(features.shape[1])
    for method in METHODS:
        rule = recombine(features, weights, objective=objective, method=method)
        assert rule.weights @ objective[rule.index] == pytest.approx(weights @ objective, rel=1e-12)


def test_objective_may_be_negative():
    features, weights, objective = smooth()
    rule = recombine(features, weights, objective=-objective)
    assert rule.weights @ objective[rule.index] > weights @ objective


def failed(*args, **kwargs):
    return OptimizeResult(x=None, status=1, message="Time limit reached.")


def too_many(cost, **kwargs):
    return OptimizeResult(x=np.ones(len(cost)), status=0, message="")


def wrong_moments(cost, **kwargs):
    return OptimizeResult(x=np.eye(1, len(cost))[0], status=0, message="")


@pytest.mark.parametrize(
    ("solver", "reason"),
    [(failed, "Time limit"), (too_many, "2000 points"), (wrong_moments, "moments are off")],
)
def test_lp_that_fails_gives_the_tree_and_a_warning(monkeypatch, solver, reason):
    features, weights, objective = smooth()
    monkeypatch.setattr(recombination.optimize, "linprog", solver)
    with pytest.warns(NumericsWarning, match=reason):
        rule = recombine(features, weights, objective=objective, method="lp")
    assert rule.method == "tree"
    assert rule.fallback is not None
    assert reason in rule.fallback
    tree = recombine(features, weights, objective=objective)
    np.testing.assert_array_equal(rule.index, tree.index)
    np.testing.assert_array_equal(rule.weights, tree.weights)


@pytest.mark.parametrize("exponents", [(0, -260), (300, -300), (-290, -305), (0, -5000)])
def test_weights_of_very_different_size(exponents):
    features, _, objective = smooth()
    weights = 10.0 ** np.linspace(*exponents, len(features))
    for cost in (None, objective):
        assert_valid(features, weights, recombine(features, weights, objective=cost))


def test_integrates_a_smooth_kernel_far_better_than_random_points():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3000, 2))
    weights = rng.exponential(size=3000)
    weights /= weights.sum()
    kernel = np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=-1) / 2.0)
    vectors = np.linalg.eigh(kernel[:100, :100])[1][:, :-20:-1]
    embedding = kernel @ weights

    def worst_case_error(index, w):
        quadratic = w @ kernel[np.ix_(index, index)] @ w
        return np.sqrt(max(weights @ embedding - 2 * w @ embedding[index] + quadratic, 0.0))

    rule = recombine(kernel[:, :100] @ vectors, weights)
    at_random = []
    for _ in range(20):
        index = rng.choice(3000, size=len(rule.index), replace=False, p=weights)
        at_random.append(worst_case_error(index, np.full(len(index), 1 / len(index))))
    assert len(rule.index) <= 20
    assert worst_case_error(rule.index, rule.weights) < 0.2 * min(at_random)


@pytest.mark.parametrize("method", METHODS)
def test_same_input_same_answer_and_inputs_untouched(method):
    features, weights, objective = smooth()
    copies = [a.copy() for a in (features, weights, objective)]
    for a in (features, weights, objective):
        a.flags.writeable = False
    first = recombine(features, weights, objective=objective, method=method)
    second = recombine(np.asfortranarray(features), list(weights), objective=objective, method=method)
    np.testing.assert_array_equal(first.index, second.index)
    np.testing.assert_array_equal(first.weights, second.weights)
    for a, b in zip((features, weights, objective), copies, strict=True):
        np.testing.assert_array_equal(a, b)


def test_answer_does_not_share_memory_with_the_input():
    features, weights = np.ones((3, 4)), np.ones(3)
    recombine(features, weights).weights[0] = 7.0
    assert weights[0] == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0, -0.5, 1.0]}, r"weights\[1\] is -0.5"),
        ({"weights": [1.0, 1.0, np.nan]}, r"weights\[2\] is nan"),
        ({"weights": [np.inf, 1.0, 1.0]}, r"weights\[0\] is inf"),
        ({"weights": np.zeros(3)}, "sum to 0.0"),
        ({"weights": np.full(3, 1e308)}, "sum to inf"),
        ({"weights": np.ones(2)}, r"\(3, 1\) and weights \(2,\)"),
        ({"weights": np.ones((3, 1))}, "one weight per candidate"),
        ({"features": np.ones(3)}, r"needed are \(N, m\)"),
        ({"features": [[0.0], [np.inf], [0.0]]}, r"features\[1, 0\] is inf"),
        ({"objective": np.ones(4)}, "3 finite numbers"),
        ({"objective": [0.0, np.nan, 0.0]}, "1 non-finite"),
        ({"n_points": 0}, "at least 1"),
        ({"n_points": 2.5}, "whole number"),
        ({"method": "simplex"}, "'tree', 'lp'"),
    ],
)
def test_wrong_input_is_named(change, message):
    arguments = {"features": np.arange(3.0)[:, None], "weights": np.ones(3)} | change
    with pytest.raises(InputError, match=message):
        recombine(**arguments)
