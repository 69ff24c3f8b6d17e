"""Certificates of runs: their calls, their stores, what is learned from them, and what may go wrong."""

import math
import shutil

import numpy as np
import pytest

import basq
from basq.errors import EvaluationError, InputError, StoreError
from basq.status import Finding, Status
from helpers.certified import LOG_Z, Counted, counts, infer, opened, quick_stores, same
from helpers.small import PRIOR, gauss


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with quick_stores():
        yield


@pytest.fixture(scope="module")
def run():
    """A converged run."""
    result = infer(gauss)
    assert result.converged
    return result


@pytest.fixture(scope="module")
def certified(run):
    return run.certify(gauss, progress=False)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The store of such a run, and its function."""
    path, function = tmp_path_factory.mktemp("run") / "run.sqlite", Counted()
    infer(function, store=path)
    return path


@pytest.fixture
def function():
    return Counted()


@pytest.fixture
def store(kept, tmp_path):
    """A copy to spoil."""
    return shutil.copy(kept, tmp_path / "run.sqlite")


# --- without a store --------------------------------------------------------------------------------------------------


def test_a_result_with_its_certificate(run, function):
    result = run.certify(function, 40, progress=False)
    found = result.certificate
    assert function.n == 40
    assert (found.finding, found.n_evals, found.n_pending) == (Finding.CERTIFIED, 39, 0)
    assert (result.log_evidence, result.log_evidence_std) == (found.log_evidence, found.log_evidence_std)
    assert abs(result.log_evidence - LOG_Z) < 4.0 * result.log_evidence_std
    assert found.surrogate == (run.log_evidence, run.log_evidence_std)
    assert result.converged
    assert result.n_evals == run.n_evals
    assert found.message in str(result)
    assert "39 more for the certificate" in str(result)
    assert run.certificate is None


def test_the_first_call_is_one_of_the_run_and_the_others_are_new(run, function):
    run.certify(function, 32, progress=False)
    known = {tuple(x) for x in run.observations.x}
    assert function.points[0] == tuple(run.observations.x[np.argmax(run.observations.log_likelihood)])
    assert not known & set(function.points[1:])


def test_the_same_run_has_the_same_certificate(certified, run):
    other = run.certify(gauss, progress=False)
    assert same(other.certificate, certified.certificate)
    np.testing.assert_array_equal(other.certificate.x, certified.certificate.x)
    assert same(infer(gauss).certify(gauss, progress=False), certified)
    seed = infer(gauss, seed=2).certify(gauss, progress=False)
    assert not np.isclose(seed.certificate.x, certified.certificate.x).any()


@pytest.mark.parametrize(
    ("form", "options"),
    [
        (lambda x: -0.5 * ((x - 0.3) ** 2).sum(axis=1) / 0.1, {"vectorized": True}),
        (lambda p: gauss([p["a"], p["b"]]), {"pass_dict": True}),
        (gauss, {"pool": 2}),
    ],
    ids=["vectorized", "pass_dict", "pool"],
)
def test_calls_are_made_as_in_a_run(run, certified, form, options):
    found = run.certify(form, progress=False, **options).certificate
    np.testing.assert_array_equal(found.x, certified.certificate.x)
    assert found.log_evidence == pytest.approx(certified.certificate.log_evidence, abs=1e-9)


def test_it_stops_once_the_error_is_small_enough(run, function):
    found = run.certify(function, 200, error=0.05, progress=False).certificate
    assert found.certified
    assert found.log_evidence_std < 0.05
    assert function.n == found.n_evals + 1 < 200
    function.points.clear()
    assert run.certify(function, 64, error=1e-9, progress=False).certificate.n_evals == 63


def test_certifying_once_more_compares_fresh_points_with_the_surrogate(run, certified):
    again = certified.certify(gauss, progress=False)
    assert again.certificate.surrogate == (run.log_evidence, run.log_evidence_std)
    assert not np.isin(again.certificate.x, certified.certificate.x).any()


def test_values_of_noise_that_is_stated(function):
    def noisy(x):
        rng = np.random.default_rng(abs(hash(tuple(x))) % 2**32)
        return gauss(x) + 0.1 * rng.standard_normal(), 0.1

    result = infer(noisy, max_evals=120).certify(noisy, progress=False)
    assert result.certificate.n_evals == 63
    assert (result.certificate.noise == 0.1).all()
    assert abs(result.certificate.log_evidence - LOG_Z) < 4.0 * result.certificate.log_evidence_std


# --- bad inputs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 3}, "A certificate of 3 calls: give a whole number"),
        ({"n": "a"}, "A certificate of 'a' calls: give a whole number"),
        ({"n": 40.0}, "A certificate of 40.0 calls"),
        ({"n": True}, "A certificate of True calls"),
        ({"error": -1}, "error=-1: give the standard deviation"),
        ({"error": "small"}, "error='small'"),
        ({"error": math.nan}, "error=nan"),
        ({"store": "nothing.sqlite"}, "there is no such file"),
        ({"pool": 0}, "pool=0"),
        ({"retries": -1}, "retries=-1"),
    ],
)
def test_bad_inputs_spend_no_call(run, function, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        run.certify(function, progress=False, **options)
    assert function.n == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n", [3, "a", 0, 1.5])
def test_nor_do_they_where_a_run_would_follow(function, n):
    with pytest.raises(InputError, match="A certificate of"):
        infer(function, certify=n)
    assert function.n == 0


@pytest.mark.parametrize("given", [None, 3, "gauss"])
def test_what_cannot_be_called_is_refused(run, given):
    with pytest.raises(InputError, match=r"give log_likelihood, the function that has been run"):
        run.certify(given, progress=False)


def test_the_store_of_another_run_is_refused(store, function):
    other = infer(gauss, seed=2)
    with pytest.raises(InputError, match="not the store of this result"):
        other.certify(function, store=store, progress=False)
    with pytest.raises(StoreError, match=r"is of another problem.*They differ in a"):
        opened(store).again(prior={"a": (-2, 2)}).certify(function, store=store, progress=False)
    assert function.n == 0
    assert counts(store) == (64, 0, 0)


def test_another_function_is_refused_by_a_store(store):
    with pytest.raises(StoreError, match="holds values of another log-likelihood"):
        opened(store).certify(gauss, store=store, progress=False)
    assert counts(store) == (64, 0, 0)


def test_a_result_without_calls_or_posterior_cannot_be_certified():
    nothing = basq.Result.nothing(basq.Prior(PRIOR), Status.FAILED, "", ())
    with pytest.raises(InputError, match="no calls that it could be certified with"):
        nothing.certify(gauss)
    with pytest.raises(EvaluationError, match="No call has succeeded yet"):
        basq.Sampler(PRIOR).certify()


# --- with a store -----------------------------------------------------------------------------------------------------


def test_a_store_keeps_the_certificate(store, function):
    plain = opened(store)
    result = plain.certify(function, store=store, progress=False)
    assert (function.n, counts(store)) == (64, (128, 0, 0))
    assert result.certificate.certified
    again = opened(store)
    assert same(again, result)
    assert same(again.certificate, result.certificate)
    assert again.n_evals == plain.n_evals  # the surrogate has not learned from them
    np.testing.assert_array_equal(again.mean, plain.mean)


def test_workers_write_into_the_store(store, kept, tmp_path):
    result = opened(store).certify(Counted(), 32, pool=2, store=store, progress=False)
    assert counts(store) == (96, 0, 0)
    other = shutil.copy(kept, tmp_path / "other.sqlite")
    assert same(result, opened(other).certify(Counted(), 32, store=other, progress=False))


def test_a_certificate_that_is_complete_costs_no_more_calls(store, function):
    first = opened(store).certify(function, store=store, progress=False)
    function.points.clear()
    assert same(opened(store).certify(function, store=store, progress=False), first)
    assert same(infer(function, store=store, certify=64), first)
    assert function.n == 0


def test_infer_does_it_all(run, kept, function, tmp_path):
    path = tmp_path / "run.sqlite"
    result = infer(function, certify=64, store=path)
    assert function.n == 128
    assert result.certificate.certified
    assert same(result, opened(path))
    assert same(result, opened(kept).certify(Counted(), store=shutil.copy(kept, tmp_path / "b"), progress=False))
    alone = infer(gauss, certify=64)
    assert same(alone, result)


def test_an_early_end_is_kept(store, function):
    result = opened(store).certify(function, 200, error=0.05, store=store, progress=False)
    assert counts(store) == (64 + function.n, 0, 0)
    assert function.n < 200
    assert same(opened(store).certificate, result.certificate)


def test_a_run_that_goes_on_learns_from_its_certificate(store, function):
    opened(store).certify(function, 32, store=store, progress=False)
    spent = set(function.points)
    function.points.clear()
    result = infer(function, store=store, max_evals=120, dlogz=0.0)
    assert result.certificate is None
    assert result.n_evals == 120 == counts(store)[0]
    assert function.n == 120 - 96
    assert spent <= {tuple(x) for x in result.observations.x}
    fresh = result.certify(function, 32, store=store, progress=False)
    assert fresh.certificate.n_evals == 31
    assert fresh.n_evals == 120
    assert len({*map(tuple, fresh.certificate.x)} & spent) == 0


def test_a_run_goes_on_with_fewer_calls_left_than_its_certificate_had(store, function):
    opened(store).certify(function, 64, store=store, progress=False)
    assert infer(function, store=store, max_evals=100, dlogz=0.0).n_evals == 128


def test_save_and_load_keep_the_certificate(certified, tmp_path):
    certified.save(tmp_path / "result")
    loaded = basq.Result.load(tmp_path / "result")
    assert same(loaded, certified)
    assert same(loaded.certificate, certified.certificate)
    np.testing.assert_array_equal(loaded.certificate.weights, certified.certificate.weights)
    np.testing.assert_array_equal(loaded.sample(9, 1, exact=True), certified.sample(9, 1, exact=True))
    assert same(loaded.certify(gauss, progress=False), certified.certify(gauss, progress=False))


# --- interrupted ------------------------------------------------------------------------------------------------------


def test_an_interrupted_certificate_goes_on_without_repeating_a_call(store, function, capsys):
    function.world.interrupts = 20
    result = opened(store).certify(function, store=store, progress=False)
    found = result.certificate
    assert (function.n, counts(store)) == (20, (84, 0, 44))
    assert (found.finding, found.n_pending, found.n_evals) == (Finding.UNDECIDED, 44, 19)
    assert "44 of " in found.message
    assert "have no value yet" in found.message
    assert result.log_evidence == opened(store).history[-1].log_evidence
    whole = opened(store).certify(function, store=store, progress=False)
    assert function.n == len(set(function.points)) == 64
    assert whole.certificate.certified
    assert "interrupted" in capsys.readouterr().err


def test_so_does_one_of_infer(function, tmp_path, capsys):
    path = tmp_path / "run.sqlite"
    function.world.interrupts = 80
    assert infer(function, store=path, certify=64).certificate.n_pending == 48
    result = infer(function, store=path, certify=64)
    assert function.n == 128
    assert result.certificate.certified
    assert same(result, infer(gauss, certify=64))


def test_an_interrupt_before_the_certificate_makes_none(function, capsys):
    function.world.interrupts = 40
    result = infer(function, certify=64)
    assert function.n == 40
    assert result.certificate is None
    assert result.status is Status.INTERRUPTED
