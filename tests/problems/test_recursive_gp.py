"""The recursive Gaussian process of battery health, against dense Gaussian processes that share no code with it."""

import pickle
from importlib import import_module

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from basq import problems
from basq.errors import InputError
from basq.problems.cases.recursive_gp import (
    NAMES,
    TRUTH,
    RecursiveGP,
    Segments,
    farthest_points,
    inducing_features,
    initial_state,
    operating_conditions,
    predict,
    simulate,
    update,
    wiener_velocity,
)

# the package's attribute of this name is the function
MODULE = import_module("basq.problems.cases.recursive_gp")
MEDIAN = tuple(np.exp([3.96, 1.94, 2.79, 2.26, 0.34]))
REDUCED = {"n_segments": 60, "n_readings": 8, "n_inducing": 32}
# from almost independent operating points to a kernel matrix that has rank 20 in floating point
HYPERPARAMETERS = [
    TRUTH,
    MEDIAN,
    (3.0, 0.5, 2.0, 8.0, 0.5),
    (200.0, 30.0, 60.0, 80.0, 5.0),
    (10.0, 2.0, 400.0, 0.05, 30.0),
    (25.0, 4.0, 9.0, 900.0, 1e-3),
]


def make_segments(n_segments: int, n_readings: int, seed: int) -> Segments:
    """Segments of a random walk of resistance that no model has drawn."""
    rng = np.random.default_rng(seed)
    times, conditions = operating_conditions(n_segments, n_readings, rng)
    resistance = (
        5.0 * rng.standard_normal((n_segments, n_readings)) + np.cumsum(rng.standard_normal((n_segments, 1)))[:, None]
    )
    return Segments(times, conditions, resistance, rng.uniform(0.3, 1.0, (n_segments, n_readings)))


def revisits(n_segments: int, n_readings: int, seed: int) -> Segments:
    """Segments whose operating points come from eight places, repeated within and between them."""
    rng = np.random.default_rng(seed)
    segments = make_segments(n_segments, n_readings, seed)
    places = segments.conditions.reshape(-1, 3)[:8]
    return Segments(
        segments.times, places[rng.integers(8, size=(n_segments, n_readings))], segments.resistance, segments.noise_sd
    )


def static_kernel(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    return x[3] ** 2 * np.exp(-0.5 * cdist(a / x[:3], b / x[:3], "sqeuclidean"))


def ageing_kernel(s: np.ndarray, t: np.ndarray, sd: float) -> np.ndarray:
    first = np.minimum.outer(s, t)
    return sd**2 * (first**3 / 3.0 + np.abs(np.subtract.outer(s, t)) * first**2 / 2.0)


def dense_covariance(segments: Segments, x: np.ndarray, inducing: np.ndarray | None = None) -> np.ndarray:
    """Covariance of all readings; with inducing locations, independent between segments given their values."""
    n_segments, n_readings = segments.resistance.shape
    z = segments.conditions.reshape(-1, 3)
    times = np.repeat(segments.times, n_readings)
    cov = static_kernel(z, z, x)
    if inducing is not None:
        cross = static_kernel(z, inducing, x)
        induced = cross @ np.linalg.solve(static_kernel(inducing, inducing, x), cross.T)
        same = np.kron(np.eye(n_segments), np.ones((n_readings, n_readings))) > 0.0
        cov = np.where(same, cov, induced)
    return cov + ageing_kernel(times, times, x[4]) + np.diag(segments.noise_sd.ravel() ** 2)


def log_normal(y: np.ndarray, cov: np.ndarray) -> float:
    factor = np.linalg.cholesky(cov)
    white = np.linalg.solve(factor, y)
    return float(-0.5 * white @ white - np.log(np.diag(factor)).sum() - 0.5 * len(y) * np.log(2.0 * np.pi))


def tolerance(x: tuple[float, ...]) -> float:
    """1e-8, and as many digits less as the variance of the signal takes from those of the noise."""
    return 1e-8 * max(1.0, (x[3] / 12.0) ** 2)


@pytest.mark.parametrize("make", [make_segments, revisits])
@pytest.mark.parametrize("x", HYPERPARAMETERS)
def test_filter_is_the_dense_process_if_the_inducing_locations_hold_all_operating_points(make, x):
    segments = make(9, 5, seed=3)
    inducing = np.unique(segments.conditions.reshape(-1, 3), axis=0)
    expected = log_normal(segments.resistance.ravel(), dense_covariance(segments, np.array(x)))
    assert RecursiveGP(segments, inducing)(x) == pytest.approx(expected, rel=0.0, abs=tolerance(x))


def test_those_cases_drop_directions_and_keep_them():
    z = make_segments(9, 5, seed=3).conditions.reshape(-1, 3)
    ranks = [inducing_features(z, z, np.array(x[:3])).shape[1] for x in HYPERPARAMETERS]
    assert max(ranks) == len(z)
    assert min(ranks) < 30


@pytest.mark.parametrize("x", [TRUTH, (3.0, 0.5, 2.0, 8.0, 0.5), (25.0, 4.0, 9.0, 900.0, 1e-3)])
def test_with_few_inducing_locations_it_is_the_partially_independent_process(x):
    segments = make_segments(9, 5, seed=4)
    inducing = farthest_points(segments.conditions.reshape(-1, 3), 7)
    y = segments.resistance.ravel()
    expected = log_normal(y, dense_covariance(segments, np.array(x), inducing))
    model = RecursiveGP(segments, inducing)
    assert model(x) == pytest.approx(expected, rel=0.0, abs=tolerance(x))
    assert abs(model(x) - log_normal(y, dense_covariance(segments, np.array(x)))) > 1e-3


def test_a_long_filter_stays_with_the_dense_process():
    case = problems.battery_health(n_segments=120, n_readings=6, n_inducing=40)
    model = case.log_likelihood
    for x in (case.truth, np.array([60.0, 9.0, 20.0, 300.0, 2.0])):
        # the oracle solves with the kernel matrix, so it takes the same nearly singular directions less exactly
        expected = log_normal(model.segments.resistance.ravel(), dense_covariance(model.segments, x, model.inducing))
        assert model(x) == pytest.approx(expected, rel=1e-7)


def test_segments_at_one_time_are_one_segment():
    segments = make_segments(6, 8, seed=5)
    halves = Segments(
        np.repeat(segments.times, 2),
        segments.conditions.reshape(12, 4, 3),
        segments.resistance.reshape(12, 4),
        segments.noise_sd.reshape(12, 4),
    )
    inducing = segments.conditions.reshape(-1, 3)
    assert RecursiveGP(halves, inducing)(TRUTH) == pytest.approx(RecursiveGP(segments, inducing)(TRUTH), abs=1e-8)


def test_wiener_velocity_has_its_covariance():
    times, sd = np.array([0.2, 0.5, 0.5, 1.7, 4.0]), 1.3
    joint, cov = np.zeros((5, 5)), np.zeros((2, 2))
    for i, step in enumerate(np.diff(times, prepend=0.0)):
        transition, root = wiener_velocity(step, sd)
        np.testing.assert_allclose(
            root @ root.T, sd**2 * np.array([[step**3 / 3, step**2 / 2], [step**2 / 2, step]]), rtol=1e-14, atol=1e-300
        )
        cov = transition @ cov @ transition.T + root @ root.T
        for j in range(i, 5):
            joint[i, j] = joint[j, i] = (wiener_velocity(times[j] - times[i], sd)[0] @ cov)[0, 0]
    np.testing.assert_allclose(joint, ageing_kernel(times, times, sd), rtol=1e-13)


def test_two_steps_make_one():
    state = initial_state(5)
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((5, 5))
    state = state._replace(mean=rng.standard_normal(5), cov=factor @ factor.T)
    once = predict(state, 0.9, 1.7)
    twice = predict(predict(state, 0.25, 1.7), 0.65, 1.7)
    np.testing.assert_allclose(twice.mean, once.mean, rtol=1e-13)
    np.testing.assert_allclose(twice.cov, once.cov, rtol=1e-12)
    np.testing.assert_array_equal(once.mean[:3], state.mean[:3])
    np.testing.assert_array_equal(once.cov[:3, :3], state.cov[:3, :3])


@pytest.mark.parametrize("n_segments", [10, 20, 40])
def test_each_segment_costs_one_update_of_a_state_of_fixed_size(n_segments, monkeypatch):
    sizes = []

    def counted(state, loadings, y, noise):
        sizes.append((len(state.mean), *loadings.shape, *noise.shape))
        return update(state, loadings, y, noise)

    monkeypatch.setattr(MODULE, "update", counted)
    problems.battery_health(n_segments, 4, 12).log_likelihood(TRUTH)
    assert sizes == [(14, 4, 14, 4, 4)] * n_segments


def test_simulated_resistances_have_the_covariance_of_the_model():
    segments = make_segments(10, 4, seed=6)
    model = RecursiveGP(segments, farthest_points(segments.conditions.reshape(-1, 3), 12))
    factor = np.linalg.cholesky(dense_covariance(segments, np.array(TRUTH), model.inducing))
    rng = np.random.default_rng(7)
    white = np.array([np.linalg.solve(factor, simulate(model, TRUTH, rng).ravel()) for _ in range(4000)])
    # each entry of the sample covariance has a standard deviation of 1 / √4000, on the diagonal √2 of it
    assert np.abs(white.T @ white / 4000 - np.eye(40)).max() < 5.0 * np.sqrt(2.0 / 4000)


def test_the_truth_beats_hyperparameters_three_times_larger_or_smaller():
    case = problems.battery_health(200, 8, 64)
    best = case.log_likelihood(case.truth)
    for j, name in enumerate(NAMES):
        for factor in (3.0, 1.0 / 3.0):
            x = case.truth.copy()
            x[j] *= factor
            # the amplitude of the ageing is one number learnt from one path
            assert best - case.log_likelihood(x) > (2.0 if name == "sigma_1" else 20.0), (name, factor)


def test_case_has_the_prior_of_the_paper():
    case = problems.battery_health(**REDUCED)
    assert case.name == "battery-health-60"
    assert case.n_dim == 5
    assert case.prior.names == NAMES
    x = np.array([[10.0, 2.0, 5.0, 3.0, 0.7], MEDIAN])
    expected = stats.norm.logpdf(np.log(x), np.log(MEDIAN)).sum(axis=1) - np.log(x).sum(axis=1)
    np.testing.assert_allclose(case.prior.log_pdf(x), expected, rtol=1e-12)
    np.testing.assert_array_equal(case.truth, TRUTH)


def test_data_are_plausible():
    case = problems.battery_health(400, 8, 16)
    segments = case.log_likelihood.segments
    temperature, current, acid = np.moveaxis(segments.conditions, 2, 0)
    assert segments.times[0] > 0.0
    assert segments.times[-1] == pytest.approx(3.0)
    assert 8.0 < temperature.min() < temperature.max() < 48.0
    assert 0.2 < current.min() < current.max() < 8.0
    assert 18.0 < acid.min() < acid.max() < 38.0
    assert (np.diff(acid, axis=1) > 0.0).all()
    season = np.cos(2.0 * np.pi * (segments.times - 0.1))
    assert np.corrcoef(temperature.mean(axis=1), season)[0, 1] > 0.8
    np.testing.assert_allclose(segments.noise_sd * current, 2.0)


def test_a_seed_gives_one_case():
    first, again, other = (problems.battery_health(**REDUCED, seed=seed) for seed in (5, 5, 6))
    assert first.log_likelihood(TRUTH) == again.log_likelihood(TRUTH)
    assert first.log_likelihood(TRUTH) != other.log_likelihood(TRUTH)


def test_likelihood_survives_pickling_and_leaves_its_input_alone():
    case = problems.battery_health(**REDUCED)
    x = np.array(MEDIAN)
    x.flags.writeable = False
    value = case.log_likelihood(x)
    assert isinstance(value, float)
    assert pickle.loads(pickle.dumps(case.log_likelihood))(x) == value
    assert pickle.loads(pickle.dumps(case)).prior.log_pdf(x) == case.prior.log_pdf(x)


def test_likelihood_is_finite_far_into_the_prior():
    case = problems.battery_health(**REDUCED)
    x = case.prior.from_standard(5.0 * np.sign(np.random.default_rng(0).standard_normal((32, 5))))
    assert np.isfinite([case.log_likelihood(row) for row in x]).all()


def test_farthest_points_are_distinct_and_spread():
    grid = np.stack(np.meshgrid([0.0, 1.0, 2.0], [0.0, 100.0, 200.0], [0.0, 0.1, 0.2]), axis=-1).reshape(-1, 3)
    twice = np.concatenate([grid, grid])
    assert len(np.unique(farthest_points(twice, 27), axis=0)) == 27
    assert len(farthest_points(twice, 40)) == 27
    middle, *corners = farthest_points(twice, 9)
    np.testing.assert_array_equal(middle, [1.0, 100.0, 0.1])
    assert {tuple(c) for c in corners} == {(a, b, c) for a in (0.0, 2.0) for b in (0.0, 200.0) for c in (0.0, 0.2)}


@pytest.mark.parametrize(
    "arguments",
    [{"n_segments": 0}, {"n_segments": 2.5}, {"n_readings": -1}, {"n_inducing": 0}, {"n_inducing": True}],
)
def test_bad_sizes_are_refused(arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        problems.battery_health(**{**REDUCED, **arguments})


@pytest.mark.parametrize("x", [TRUTH[:4], [TRUTH], (0.0, *TRUTH[1:]), (-1.0, *TRUTH[1:]), (np.nan, *TRUTH[1:])])
def test_bad_hyperparameters_are_refused(x):
    with pytest.raises(InputError, match="x "):
        problems.battery_health(**REDUCED).log_likelihood(x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": np.array([0.5, 0.4])}, "decrease"),
        ({"times": np.array([-0.5, 0.4])}, "before 0"),
        ({"times": np.array([0.5])}, "match"),
        ({"conditions": np.zeros((2, 3, 2))}, "match"),
        ({"resistance": np.full((2, 3), np.nan)}, "finite"),
        ({"noise_sd": np.zeros((2, 3))}, "positive"),
    ],
)
def test_bad_segments_are_refused(change, message):
    good = {
        "times": np.array([0.4, 0.5]),
        "conditions": np.ones((2, 3, 3)),
        "resistance": np.ones((2, 3)),
        "noise_sd": np.ones((2, 3)),
    }
    Segments(**good)
    with pytest.raises(InputError, match=message):
        Segments(**{**good, **change})


def test_bad_inducing_locations_are_refused():
    segments = make_segments(2, 3, seed=0)
    with pytest.raises(InputError, match="inducing"):
        RecursiveGP(segments, np.zeros((4, 2)))
    with pytest.raises(InputError, match="inducing"):
        RecursiveGP(segments, np.zeros((0, 3)))


def test_a_filter_that_loses_positive_definiteness_fails_loudly():
    state = initial_state(4)
    with pytest.raises(ArithmeticError, match="positive definite"):
        update(state._replace(cov=-state.cov), np.ones((2, 4)), np.zeros(2), 0.1 * np.eye(2))
    with pytest.raises(ArithmeticError, match=r"positive definite|overflows"):
        problems.battery_health(**REDUCED).log_likelihood((25.0, 4.0, 9.0, 1e200, 2.0))
