"""What a user of ``infer`` may rely on."""

import operator
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

import basq
from basq.auto.engine import Auto
from basq.errors import EvaluationError, InputError
from basq.run.stopping import Stopping

METHOD = basq.Paper(model="wsabi-m", mean="constant", n_candidates=2000, n_nystrom=100)
MIXTURE = basq.problems.mixture(2)
BOX = {"a": (-3.0, 3.0), "b": (-2.0, 4.0)}
CENTRE, WIDTH = np.array([0.4, 1.1]), np.array([0.7, 0.9])


def infer(log_likelihood, prior=None, **options):
    settings = {"method": METHOD, "batch_size": 8, "max_evals": 40, "dlogz": 0.0, "seed": 1, "progress": False}
    return basq.infer(log_likelihood, prior, **{**settings, **options})


def gauss(x):
    """An unnormalised Gaussian over the box."""
    return float(-0.5 * np.sum(((np.asarray(x) - CENTRE) / WIDTH) ** 2))


def gauss_truth():
    truth = 0.0
    for centre, width, (low, high) in zip(CENTRE, WIDTH, BOX.values(), strict=True):
        law = stats.norm(centre, width)
        truth += np.log((law.cdf(high) - law.cdf(low)) * width * np.sqrt(2.0 * np.pi) / (high - low))
    return truth


class Counted:
    """A likelihood that keeps a copy of every point that it was called with."""

    def __init__(self, function=gauss):
        self.function, self.points = function, []

    def __call__(self, x):
        self.points.append(np.array(x))
        return self.function(x)


# --- the answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "calls"), [(2, 64), (3, 96)])
def test_evidence_of_the_mixture(d, calls):
    problem = basq.problems.mixture(d)
    result = infer(problem.log_likelihood, problem.prior, batch_size=16, max_evals=calls, vectorized=True)
    assert result.log_evidence == pytest.approx(problem.log_evidence, abs=0.05)
    assert 0.0 < result.log_evidence_std < 0.2


def test_evidence_of_a_gaussian_in_a_box():
    result = infer(gauss, BOX, max_evals=56)
    assert result.log_evidence == pytest.approx(gauss_truth(), abs=0.03)
    assert result.n_evals == 56
    assert result.names == ("a", "b")


def test_one_parameter():
    result = infer(lambda x: -0.5 * float(x[0]) ** 2, {"a": stats.norm(0, 1)}, max_evals=24)
    assert result.log_evidence == pytest.approx(-0.5 * np.log(2.0), abs=0.01)
    assert result.mean.shape == (1,)
    assert result.cov[0, 0] == pytest.approx(0.5, abs=0.03)
    assert result.sample(10, seed=0).shape == (10, 1)
    np.testing.assert_allclose(result.marginal("a").ppf([0.5]), 0.0, atol=0.03)


def transform(cube):
    return np.array([-3.0 + 6.0 * cube[0], -2.0 + 6.0 * cube[1]])


def coupled(cube):
    """The same box, but a parameter depends on both cube coordinates: it wraps round."""
    return np.array([-3.0 + 6.0 * ((cube[0] + 0.3 * cube[1]) % 1.0), -2.0 + 6.0 * cube[1]])


def box_density(x):
    inside = ((x >= [-3.0, -2.0]) & (x <= [3.0, 4.0])).all(axis=-1)
    return np.where(inside, -np.log(36.0), -np.inf)


@pytest.mark.parametrize(
    "prior",
    [
        {"prior": BOX},
        {"prior": list(BOX.values())},
        {"prior": [stats.uniform(-3.0, 6.0), stats.uniform(-2.0, 6.0)]},
        {"prior": basq.Prior(BOX)},
        {"prior_transform": transform, "n_dim": 2},
    ],
    ids=["dict", "list", "scipy", "Prior", "transform"],
)
def test_all_forms_of_one_prior_agree(prior):
    result = infer(gauss, **prior)
    assert result.log_evidence == pytest.approx(gauss_truth(), abs=0.06)


def test_coupled_transform():
    result = infer(gauss, prior_transform=coupled, n_dim=2, max_evals=120, batch_size=20)
    assert result.log_evidence == pytest.approx(gauss_truth(), abs=0.15)
    samples = result.sample(2000, seed=1)
    np.testing.assert_allclose(samples.mean(axis=0), CENTRE, atol=0.2)


def test_prior_known_by_its_density():
    law = stats.t(df=4, loc=0.2, scale=0.8)
    samples = law.rvs((2000, 2), random_state=3)
    prior = basq.Prior.from_density(lambda x: law.logpdf(x).sum(axis=-1), samples)
    result = infer(lambda x: -0.5 * float(np.sum(x**2)), prior, max_evals=96, batch_size=16)
    grid = np.linspace(-30.0, 30.0, 60_001)
    truth = 2.0 * np.log(np.trapezoid(law.pdf(grid) * np.exp(-0.5 * grid**2), grid))
    assert result.log_evidence == pytest.approx(truth, abs=0.05)


def test_multivariate_normal_prior():
    cov = np.array([[1.0, 0.6], [0.6, 2.0]])
    result = infer(lambda x: stats.norm(0.5, 1.0).logpdf(x).sum(), stats.multivariate_normal([0.0, 1.0], cov))
    truth = stats.multivariate_normal([0.0, 1.0], cov + np.eye(2)).logpdf([0.5, 0.5])
    assert result.log_evidence == pytest.approx(truth, abs=0.02)
    precision = np.linalg.inv(cov) + np.eye(2)
    mean = np.linalg.solve(precision, np.linalg.solve(cov, [0.0, 1.0]) + 0.5)
    np.testing.assert_allclose(result.mean, mean, atol=0.05)
    np.testing.assert_allclose(result.cov, np.linalg.inv(precision), atol=0.06)


@pytest.mark.parametrize("batch_size", [1, 8, 100])
def test_batch_sizes(batch_size):
    calls = 40 if batch_size == 1 else 150
    result = infer(gauss, BOX, batch_size=batch_size, max_evals=calls)
    assert result.n_evals == calls
    # the initial design has at least 2 (d + 1) points, whatever the batch
    sizes = np.bincount(result.observations.batch)
    assert sizes[0] == max(batch_size, 6)
    assert (sizes[1:-1] == batch_size).all()
    assert result.log_evidence == pytest.approx(gauss_truth(), abs=0.3 if batch_size == 1 else 0.02)


# --- invariances ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [-1e5, 1e4])
def test_a_constant_factor_shifts_the_log_evidence(shift):
    # values on a grid of 2⁻³⁰ survive the addition exactly
    def rounded(x):
        return round(gauss(x) * 2**30) / 2**30

    plain, shifted = infer(rounded, BOX), infer(lambda x: rounded(x) + shift, BOX)
    assert shifted.log_evidence - shift == pytest.approx(plain.log_evidence, abs=1e-9)
    assert shifted.log_evidence_std == pytest.approx(plain.log_evidence_std, rel=1e-9)
    np.testing.assert_array_equal(shifted.observations.x, plain.observations.x)


@pytest.mark.parametrize("factor", [1000.0, 1e-6])
def test_units_of_the_parameters_change_nothing(factor):
    wide = {name: (factor * low, factor * high) for name, (low, high) in BOX.items()}
    for calls, tolerance in ((8, 1e-8), (40, 0.05)):  # later batches amplify the rounding of x / factor
        plain = infer(gauss, BOX, max_evals=calls)
        scaled = infer(lambda x: gauss(x / factor), wide, max_evals=calls)
        assert scaled.log_evidence == pytest.approx(plain.log_evidence, abs=tolerance)
        np.testing.assert_allclose(scaled.observations.x[:8] / factor, plain.observations.x[:8], rtol=1e-9)


def test_units_by_a_power_of_two_change_nothing_at_all():
    wide = {name: (1024.0 * low, 1024.0 * high) for name, (low, high) in BOX.items()}
    plain, scaled = infer(gauss, BOX), infer(lambda x: gauss(x / 1024.0), wide)
    np.testing.assert_array_equal(scaled.observations.x / 1024.0, plain.observations.x)
    assert scaled.log_evidence == plain.log_evidence


def test_same_seed_same_run():
    one, two, other = infer(gauss, BOX, seed=5), infer(gauss, BOX, seed=5), infer(gauss, BOX, seed=6)
    np.testing.assert_array_equal(one.observations.x, two.observations.x)
    np.testing.assert_array_equal(one.observations.log_likelihood, two.observations.log_likelihood)
    assert (one.log_evidence, one.log_evidence_std) == (two.log_evidence, two.log_evidence_std)
    np.testing.assert_array_equal(one.sample(50, seed=3), two.sample(50, seed=3))
    assert not np.array_equal(one.observations.x, other.observations.x)


def test_global_random_state_is_neither_used_nor_changed():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    infer(gauss, BOX, max_evals=16)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# --- how the likelihood is called -----------------------------------------------------------------------------------


def by_name(p):
    return gauss([p["a"], p["b"]])


def by_name_many(p):
    return np.array([gauss(x) for x in np.column_stack([p["a"], p["b"]])])


def overwriting(x):
    value = gauss(x)
    x[:] = np.nan
    return value


@pytest.fixture(scope="module")
def plain():
    return infer(gauss, BOX)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda x: np.array([gauss(row) for row in x]), {"vectorized": True}),
        (lambda x: [[gauss(row)] for row in x], {"vectorized": True}),
        (by_name, {"pass_dict": True}),
        (by_name_many, {"pass_dict": True, "vectorized": True}),
        (overwriting, {}),
        (lambda x: np.array([[gauss(x)]]), {}),
        (lambda x: np.float32(gauss(x)).astype(float) * 0.0 + gauss(x), {}),
    ],
    ids=["vectorized", "column", "dict", "dict-vectorized", "overwriting", "array-of-one", "numpy-scalar"],
)
def test_every_way_of_calling_gives_the_same_run(plain, function, options):
    result = infer(function, BOX, **options)
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)
    assert result.log_evidence == plain.log_evidence


def test_worker_processes_give_the_same_run(plain):
    result = infer(lambda x: gauss(x) + 0.0, BOX, pool=2)
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)
    assert result.log_evidence == plain.log_evidence


def test_an_executor_gives_the_same_run_and_is_left_running(plain):
    with ThreadPoolExecutor(3) as executor:
        result = infer(gauss, BOX, pool=executor)
        assert executor.submit(int, "7").result() == 7
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)


def test_inputs_are_not_modified():
    bounds = dict(BOX)
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (10, 2))
    values = np.array([gauss(row) for row in x])
    copies = x.copy(), values.copy()
    x.flags.writeable = values.flags.writeable = False
    infer(overwriting, bounds, evaluations=(x, values), max_evals=24)
    assert bounds == BOX
    np.testing.assert_array_equal(x, copies[0])
    np.testing.assert_array_equal(values, copies[1])


# --- awkward likelihoods --------------------------------------------------------------------------------------------


def test_zero_likelihood_in_a_region():
    result = infer(lambda x: gauss(x) if x[0] > -1.0 else -np.inf, BOX, max_evals=64, batch_size=16)
    low = stats.norm(CENTRE[0], WIDTH[0])
    inside = (low.cdf(3.0) - low.cdf(-1.0)) / (low.cdf(3.0) - low.cdf(-3.0))
    assert np.isneginf(result.observations.log_likelihood).any()
    assert result.log_evidence == pytest.approx(gauss_truth() + np.log(inside), abs=0.1)


def test_first_batch_of_zeros_only_is_survived():
    seen = []

    def late(x):
        seen.append(x)
        return -np.inf if len(seen) <= 8 else gauss(x)

    result = infer(late, BOX, max_evals=48)
    assert np.isneginf(result.observations.log_likelihood[:8]).all()
    assert result.history[0].log_evidence == -np.inf
    assert np.isfinite(result.log_evidence)


@pytest.mark.parametrize("model", ["vanilla", "wsabi-l", "wsabi-m", "bbq"])
def test_likelihood_of_zero_everywhere(model):
    method = basq.Paper(model=model, n_candidates=1000, n_nystrom=50)
    result = infer(lambda x: -np.inf, BOX, method=method, max_evals=24, dlogz=0.1)
    assert not result.converged
    assert result.log_evidence == -np.inf
    assert "every likelihood value so far is zero" in result.message
    assert result.n_evals == 24
    assert "no posterior" in str(result)
    with pytest.raises(InputError, match="no posterior"):
        result.sample(5)
    with pytest.raises(InputError, match="no posterior"):
        _ = result.mean


@pytest.mark.parametrize("model", ["vanilla", "wsabi-l", "wsabi-m", "bbq"])
def test_constant_likelihood(model):
    method = basq.Paper(model=model, n_candidates=1000, n_nystrom=50)
    result = infer(lambda x: -7.0, BOX, method=method, max_evals=24)
    assert result.log_evidence == pytest.approx(-7.0, abs=1e-3)
    np.testing.assert_allclose(result.mean, [0.0, 1.0], atol=0.02)
    np.testing.assert_allclose(np.diag(result.cov), 3.0, atol=0.05)


# --- stopping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_evals", [1, 5, 8, 13, 24, 29])
def test_budget_is_met_exactly(max_evals):
    counted = Counted()
    result = infer(counted, BOX, max_evals=max_evals)
    assert len(counted.points) == result.n_evals == max_evals
    assert not result.converged
    assert f"max_evals = {max_evals}" in result.message


def test_default_budget_grows_with_the_dimension():
    assert infer(lambda x: 0.0, {"a": (0, 1)}, max_evals=None, batch_size=75).n_evals == 150


def test_target_accuracy_stops_the_run():
    result = infer(gauss, BOX, dlogz=0.3, max_evals=200)
    assert result.converged
    assert result.log_evidence_std <= 0.3
    assert result.n_evals < 200
    assert result.message.startswith("Converged")
    assert "dlogz = 0.3" in result.message


def test_time_limit_stops_the_run():
    result = infer(gauss, BOX, max_time=1e-9, max_evals=400)
    assert not result.converged
    assert "max_time = 1e-09 s" in result.message
    assert result.n_evals == 8


def test_a_callback_stops_the_run_by_returning_true(tmp_path):
    path = tmp_path / "run.sqlite"
    short = infer(gauss, BOX, store=path, seed=3, max_evals=80, callback=lambda s: s.history[-1].n_evals >= 48)
    assert short.status is basq.Status.INTERRUPTED
    assert short.n_evals == 48
    assert short.settings["pending"] == 0
    longer = infer(gauss, BOX, store=path, seed=3, dlogz=0.0, max_evals=80)
    whole = infer(gauss, BOX, seed=3, dlogz=0.0, max_evals=80)
    assert longer.log_evidence == whole.log_evidence


def test_a_callback_whose_answer_is_no_truth_value_stops_nothing():
    assert infer(gauss, BOX, seed=3, dlogz=0.0, max_evals=64, callback=lambda state: len(state.history)).n_evals == 64


def test_callback_sees_every_batch():
    states = []
    result = infer(gauss, BOX, callback=states.append)
    assert [len(s.observations) for s in states] == [8, 16, 24, 32, 40]
    assert [s.verdict.stop for s in states] == [False] * 4 + [True]
    assert [s.verdict.status for s in states] == [basq.Status.RUNNING] * 4 + [result.status]
    assert len(states) == result.n_batches
    assert [r.n_evals for r in result.history] == [8, 16, 24, 32, 40]
    assert states[-1].fitted.log_evidence == result.log_evidence
    assert {"evaluate", "fit", "integrate"} <= set(result.history[0].seconds)


# --- values known beforehand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_known", [3, 20])
def test_known_values_are_used_counted_and_not_repeated(n_known):
    x = basq.Prior(BOX).sample(n_known, np.random.default_rng(2))
    counted = Counted()
    result = infer(counted, BOX, evaluations=(x, [gauss(row) for row in x]), max_evals=36)
    assert result.n_evals == 36
    assert len(counted.points) == 36 - n_known
    np.testing.assert_array_equal(result.observations.x[:n_known], x)
    known = {tuple(row) for row in x}
    assert not any(tuple(point) in known for point in counted.points)
    assert result.log_evidence == pytest.approx(gauss_truth(), abs=0.15)


def test_known_values_may_be_zero_likelihoods():
    x = basq.Prior(BOX).sample(4, np.random.default_rng(2))
    result = infer(gauss, BOX, evaluations=[x.tolist(), [-np.inf, -1.0, -2.0, -np.inf]], max_evals=16)
    assert result.n_evals == 16


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.nan, "nan"),
        (np.inf, "inf"),
        (None, "None"),
        ("high", "'high'"),
        ([1.0, 2.0], r"shape \(2,\)"),
        (np.zeros(0), r"shape \(0,\)"),
        ({"a": 1}, "'a'"),
        (1j, "1j"),
    ],
    ids=repr,
)
def test_a_value_that_is_no_log_likelihood_names_its_point(value, text):
    seen = []

    def faulty(x):
        seen.append(x)
        return gauss(x) if len(seen) <= 10 else value

    with pytest.raises(EvaluationError, match=f"log_likelihood returned .*{text}") as caught:
        infer(faulty, BOX, on_error="raise")
    assert f" at a = {seen[-1][0]:.4g}, b = {seen[-1][1]:.4g}; " in str(caught.value)
    assert len(caught.value.observations) == 10  # the two of the failing batch, too
    assert "observations" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: np.zeros(3), r"given 8 points and returned shape \(3,\)"),
        (lambda x: np.zeros((len(x), 2)), r"given 8 points and returned shape \(8, 2\)"),
        (lambda x: 0.0, r"returned shape \(\)"),
        (lambda x: ["a"] * len(x), "not numbers"),
        (lambda x: np.where(np.arange(len(x)) == 5, np.nan, 0.0), "nan at a = "),
    ],
    ids=["short", "matrix", "scalar", "text", "nan"],
)
def test_vectorised_likelihood_of_the_wrong_form(function, text):
    with pytest.raises(EvaluationError, match=text):
        infer(function, BOX, vectorized=True, on_error="raise")


class BreakdownError(Exception):
    def __init__(self, code, detail):  # two arguments: cannot be unpickled by default
        super().__init__(f"{code}: {detail}")


def breaking(x):
    if x[0] > 0.0:
        raise BreakdownError(7, "no convergence")
    return gauss(x)


@pytest.mark.parametrize("pool", [None, 2])
def test_an_exception_of_the_likelihood_comes_with_its_point(pool):
    with pytest.raises(
        EvaluationError, match=r"BreakdownError: 7: no convergence \(test_inference.py, line \d+\) at a = \d"
    ) as caught:
        infer(breaking, BOX, pool=pool, on_error="raise")
    assert (caught.value.observations.x[:, 0] <= 0.0).all()
    assert 'raise BreakdownError(7, "no convergence")' in caught.value.__notes__[0]


def test_an_exception_is_placed_in_the_file_of_the_function_not_in_what_it_calls():
    def calls_others(x):
        return np.linalg.cholesky(-np.eye(2))

    here = calls_others.__code__.co_firstlineno + 1
    with pytest.raises(EvaluationError, match=rf"LinAlgError: .* \(test_inference.py, line {here}\) at a = ") as caught:
        infer(calls_others, BOX, on_error="raise")
    assert not any("observations" in note for note in caught.value.__notes__)  # there are none


def test_a_function_without_python_code_has_no_line():
    with pytest.raises(EvaluationError, match=r"raised \w+: [^(]* at a = "):
        infer(operator.itemgetter(5), BOX, on_error="raise")


def test_arguments_in_the_wrong_order_are_named():
    with pytest.raises(
        InputError, match=r"callable, got dict; prior is a function: did you mean infer\(log_likelihood"
    ):
        basq.infer({"a": (0, 1)}, gauss)
    with pytest.raises(InputError, match=r"callable, got dict\.$"):
        basq.infer({"a": (0, 1)}, {"a": (0, 1)})


def test_an_exception_late_in_a_run_carries_what_was_paid_for():
    counted = Counted()

    def failing(x):
        if len(counted.points) == 20:
            raise OSError("disk full")
        return counted(x)

    with pytest.raises(EvaluationError, match="OSError: disk full") as caught:
        infer(failing, BOX, on_error="raise")
    np.testing.assert_array_equal(caught.value.observations.x, np.array(counted.points))
    # and they can be used to go on
    observations = caught.value.observations
    again = infer(gauss, BOX, evaluations=(observations.x, observations.log_likelihood))
    assert again.n_evals == 40


def test_vectorised_exceptions_say_at_which_point():
    with pytest.raises(EvaluationError, match=r"ZeroDivisionError: division by zero \(.*\) at a = .*, b = "):
        infer(lambda x: 1 / 0, BOX, vectorized=True, on_error="raise")


def test_interrupts_are_not_swallowed():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        infer(interrupted, BOX)


# --- wrong input ----------------------------------------------------------------------------------------------------

POINTS = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": -4}, "batch_size=-4"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
        ({"batch_size": True}, "batch_size=True"),
        ({"batch_size": None}, "batch_size=None"),
        ({"batch_size": 5000}, "n_candidates=2000"),
        ({"max_evals": 0}, "max_evals=0"),
        ({"max_evals": 10.5}, "max_evals=10.5"),
        ({"max_evals": 100.0}, "max_evals=100.0"),
        ({"max_evals": float("inf")}, "max_evals=inf"),
        ({"max_evals": "many"}, "max_evals='many'"),
        ({"max_time": 0}, "max_time=0"),
        ({"max_time": float("nan")}, "max_time=nan"),
        ({"max_time": "1h"}, "max_time='1h'"),
        ({"dlogz": -0.1}, "dlogz=-0.1"),
        ({"dlogz": float("nan")}, "dlogz=nan"),
        ({"dlogz": None}, "dlogz=None"),
        ({"method": "nested"}, "method='nested'.*'auto', 'paper'"),
        ({"method": 3}, "method=3"),
        ({"method": basq.Paper}, "method=.*Paper"),
        ({"pool": 0}, "pool=0"),
        ({"pool": "all"}, "pool='all'"),
        ({"pool": True}, "pool=True"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": "long"}, "timeout='long'"),
        ({"retries": -1}, "retries=-1"),
        ({"retries": 0.5}, "retries=0.5"),
        ({"on_error": "ignore"}, "on_error='ignore': allowed are 'record', 'zero', 'raise'"),
        ({"store": "no/such/directory/run.sqlite"}, "directory no/such/directory does not exist"),
        ({"seed": "lucky"}, "seed='lucky'"),
        ({"seed": -1}, "seed=-1"),
        ({"callback": 3}, "callback=3"),
        ({"n_dim": 3}, "n_dim=3.*2 parameters: a, b"),
        ({"evaluations": 3}, "pair"),
        ({"evaluations": (POINTS,)}, "pair"),
        ({"evaluations": (POINTS, np.zeros(2))}, r"\(3, 2\) and \(2,\)"),
        ({"evaluations": (np.zeros((3, 4)), np.zeros(3))}, r"\(3, 4\).*\(n, 2\)"),
        ({"evaluations": (np.zeros(2), 0.0)}, r"\(n, 2\)"),
        ({"evaluations": ([["a", "b"]], [0.0])}, "evaluations must be numbers"),
        ({"evaluations": (POINTS, [0.0, True, 0.0])}, "evaluations must be numbers"),
        ({"evaluations": (POINTS, np.ma.array([0.0, 1.0, 2.0], mask=[0, 1, 0]))}, "must be numbers.*masked"),
        ({"evaluations": (np.ma.array(POINTS, mask=True), np.zeros(3))}, "must be numbers.*masked"),
        ({"evaluations": (POINTS, np.array(["2020-01-01"] * 3, "datetime64[D]"))}, "evaluations must be numbers"),
        ({"evaluations": (POINTS, [0.0, np.nan, 0.0])}, "NaN"),
        ({"evaluations": (POINTS, [0.0, np.inf, 0.0])}, "inf"),
        ({"evaluations": (np.full((3, 2), [0.0, 9.0]), np.zeros(3))}, "'b' is 9, outside"),
        ({"evaluations": ([[np.nan, 0.0]], [0.0])}, "'a'.*nan"),
        ({"evaluations": (POINTS, np.zeros(3)), "max_evals": 3}, "max_evals=3 leaves no call after the 3 given"),
        ({"prior_transform": transform}, "either prior or prior_transform"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_wrong_arguments_cost_no_call_and_no_file(options, text, tmp_path):
    counted = Counted()
    with pytest.raises(InputError, match=text):
        infer(counted, BOX, **{"store": tmp_path / "run.sqlite", **options})
    assert not counted.points
    assert not list(tmp_path.iterdir())


def test_numbers_may_be_of_numpy():
    options = {"batch_size": 8, "max_evals": 40, "seed": 7, "retries": 1}
    plain = infer(lambda x: -x @ x, BOX, **options)
    numpy = infer(lambda x: -x @ x, BOX, **{key: np.int64(value) for key, value in options.items()})
    assert numpy.log_evidence == plain.log_evidence


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "either prior or prior_transform"),
        ({"prior_transform": transform}, "n_dim"),
        ({"prior_transform": transform, "n_dim": 0}, "n_dim is 0"),
        ({"prior_transform": transform, "n_dim": 3}, "n_dim"),
        ({"prior": {}}, "empty"),
        ({"prior": {"a": (1.0, 0.0)}}, "a"),
        ({"prior": {"a": (0.0, np.inf)}}, "a"),
        ({"prior": {"a": "wide"}}, "a"),
        ({"prior": 3}, "3"),
    ],
)
def test_wrong_priors_cost_no_call(options, text):
    counted = Counted()
    with pytest.raises(InputError, match=text):
        infer(counted, **options)
    assert not counted.points


@pytest.mark.parametrize(("function", "text"), [(3.0, "callable, got float"), (lambda x, y: 0.0, "one argument")])
def test_wrong_likelihoods_are_refused(function, text):
    with pytest.raises(InputError, match=text):
        infer(function, BOX)


# --- what is printed ------------------------------------------------------------------------------------------------


def test_silence(capfd):
    infer(gauss, BOX, max_evals=16, progress=False)
    assert capfd.readouterr() == ("", "")


def test_progress_goes_to_standard_error_only(capfd):
    infer(gauss, BOX, max_evals=16, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "log Z" in err
    assert "16 of at most 16 calls" in err


def test_slow_calls_are_timed():
    def slow(x):
        time.sleep(0.002)
        return gauss(x)

    seconds = infer(slow, BOX, max_evals=16).history[-1].seconds
    assert seconds["evaluate"] > 0.01
    assert seconds["select"] > 0.0


class Booking(Auto):
    """A method that books its own time."""

    def fit(self, *args):
        fitted = super().fit(*args)
        object.__setattr__(fitted, "seconds", {"fit": 3.0, "integrate": 4.0})
        return fitted


def test_the_method_says_where_its_time_went_and_else_all_of_it_is_fitting():
    booked = infer(gauss, BOX, method=Booking(), max_evals=16).history[-1].seconds
    assert (booked["fit"], booked["integrate"]) == (3.0, 4.0)
    assert set(booked) == {"select", "evaluate", "fit", "integrate"}
    whole = infer(gauss, BOX, method=METHOD, max_evals=16).history[-1].seconds
    assert set(whole) == {"select", "evaluate", "fit", "integrate"}
    assert whole["fit"] > 0.0


@pytest.mark.parametrize("vectorized", [False, True])
def test_noise_of_unknown_size_is_estimated(vectorized, tmp_path):
    rng = np.random.default_rng(5)

    def log_likelihood(x):
        values = -0.5 * np.sum(np.square(x), axis=-1) / 0.1
        return values + 0.5 * rng.standard_normal(np.shape(values)), None

    result = basq.infer(
        log_likelihood,
        {"a": (-3, 3), "b": (-3, 3)},
        vectorized=vectorized,
        store=tmp_path / "run.sqlite",
        seed=1,
        progress=False,
    )
    assert np.isnan(result.observations.noise).all()
    truth = np.log(2.0 * np.pi * 0.1 / 36.0)
    assert abs(result.log_evidence - truth) < 3.0 * result.log_evidence_std
    assert 0.02 < result.log_evidence_std < 0.3
    again = basq.Sampler.open(tmp_path / "run.sqlite").result()
    assert again.log_evidence == result.log_evidence


@pytest.mark.parametrize("method", ["auto", METHOD])
def test_one_blas_thread_for_all_that_a_batch_takes(method, monkeypatch):
    """Two are several times slower on the small matrices of a run, which the user should not have to know."""
    threads = []

    def note(cls, name):
        original = getattr(cls, name)

        def noted(self, *args, **options):
            threads.extend(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
            return original(self, *args, **options)

        monkeypatch.setattr(cls, name, noted)

    engine = Auto if method == "auto" else basq.Paper
    for cls, name in ((engine, "fit"), (engine, "select"), (Stopping, "judge")):
        note(cls, name)
    with threadpool_limits(2, user_api="blas"):
        infer(gauss, BOX, method=method)
    assert len(threads) > 6
    assert set(threads) == {1}
