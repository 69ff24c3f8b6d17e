"""What comes of a certificate: runs that are contradicted, calls that fail, a likelihood that has changed, samples."""

import shutil

import numpy as np
import pytest
from scipy import stats

import basq
from basq.errors import EvaluationError, InputError
from basq.status import Finding, Status
from helpers import models
from helpers.certified import LOG_Z, OPTIONS, WRONG, Counted, Hasty, counts, infer, opened, quick_stores, same
from helpers.small import PRIOR, gauss

MODEL = models.model()


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with quick_stores():
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.sqlite"
    infer(Counted(), store=path)
    return path


@pytest.fixture
def store(kept, tmp_path):
    """A copy of a store to spoil."""
    return shutil.copy(kept, tmp_path / "run.sqlite")


@pytest.fixture
def function():
    return Counted()


@pytest.fixture(scope="module")
def certified():
    return infer(gauss, certify=64)


def certify(store, function, n=32, **options):
    return opened(store).certify(function, n, store=store, progress=False, **options)


# --- contradicted -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """The store of a run that has converged to a wrong answer."""
    path = tmp_path_factory.mktemp("hasty") / "run.sqlite"
    result = infer(Counted(), method=Hasty(), max_evals=200, store=path)
    assert result.converged
    assert result.n_evals == 32
    assert result.log_evidence - LOG_Z == pytest.approx(WRONG, abs=0.1)
    return path


def test_a_wrong_answer_is_contradicted_and_replaced(hasty, function):
    result = opened(hasty, Hasty()).certify(function, progress=False)
    assert result.certificate.finding is Finding.CONTRADICTED
    assert result.certificate.z < -3.0
    assert abs(result.log_evidence - LOG_Z) < 3.0 * result.log_evidence_std < WRONG
    assert result.status is Status.NOT_CONVERGED
    assert not result.sound
    assert result.message == f"Not converged: contradicted, {result.certificate.why}."
    again = result.certify(function, progress=False)
    assert again.certificate.finding is Finding.CONTRADICTED
    assert again.certificate.surrogate == result.certificate.surrogate


def test_infer_goes_on_from_there_and_is_right_in_the_end(function, tmp_path):
    path, states = tmp_path / "run.sqlite", []
    result = infer(function, method=Hasty(), max_evals=200, certify=64, store=path, callback=states.append)
    assert result.certificate.certified
    assert result.converged
    assert abs(result.log_evidence - LOG_Z) < 4.0 * result.log_evidence_std < 0.1
    assert 32 + 64 <= result.n_evals <= 200
    assert function.n == result.n_evals + 64 == counts(path)[0]
    assert set(function.points[32:96]) <= {tuple(x) for x in result.observations.x}  # it has learned from the first
    assert not set(function.points[96:]) <= {tuple(x) for x in result.observations.x}  # and not from the second
    assert len(states) == result.n_batches
    assert same(opened(path, Hasty()), result)


def test_infer_ends_where_no_call_is_left(function):
    result = infer(function, method=Hasty(), max_evals=32, certify=64)
    assert function.n == 96
    assert result.certificate.finding is Finding.CONTRADICTED
    assert abs(result.log_evidence - LOG_Z) < 4.0 * result.log_evidence_std
    assert not result.converged


def test_a_contradicted_run_is_taken_up_with_a_fresh_certificate(hasty, function, tmp_path):
    path = shutil.copy(hasty, tmp_path / "run.sqlite")
    first = opened(path, Hasty()).certify(function, store=path, progress=False)
    assert first.certificate.finding is Finding.CONTRADICTED
    assert same(opened(path, Hasty()), first)
    spent = set(function.points)
    result = infer(function, method=Hasty(), max_evals=200, certify=64, store=path)
    assert result.certificate.certified
    assert spent <= {tuple(x) for x in result.observations.x}
    assert not spent & {tuple(x) for x in result.certificate.x}
    assert len(set(function.points)) == function.n - 1  # its best point is asked for twice


def test_a_contradicted_run_goes_on_without_a_certificate_too(hasty, function, tmp_path):
    path = shutil.copy(hasty, tmp_path / "run.sqlite")
    opened(path, Hasty()).certify(function, store=path, progress=False)
    result = infer(function, method=Hasty(), max_evals=200, store=path)
    assert result.n_evals >= 96
    assert result.converged


def test_what_is_not_sound_is_not_certified(function):
    result = infer(function, dlogz=1e-6, certify=32)
    assert not result.converged
    assert not result.certificate.certified


# --- ask and tell -----------------------------------------------------------------------------------------------------


@pytest.fixture
def sampler(store):
    """A sampler of the run, which can still ask."""
    return basq.Sampler(
        PRIOR, store=store, **{k: v for k, v in OPTIONS.items() if k != "progress"} | {"max_evals": 200}
    )


def told(sampler, points):
    sampler.tell(points, [gauss(x) for x in points.x])


def test_ask_and_tell_make_the_same_certificate(sampler, store, function, kept, tmp_path):
    points = sampler.certify(32)
    assert (len(points), points.names) == (32, ("a", "b"))
    assert sampler.result().certificate.finding is Finding.UNDECIDED
    told(sampler, points)
    result = sampler.result()
    assert result.certificate.certified
    assert result.n_evals == 64
    other = shutil.copy(kept, tmp_path / "other.sqlite")
    assert same(certify(other, function), result)


def test_points_can_be_told_in_parts_and_are_handed_out_again(sampler):
    points = sampler.certify(32)
    np.testing.assert_array_equal(sampler.certify(32).ids, points.ids)
    np.testing.assert_array_equal(sampler.pending().ids, points.ids)
    half = points.ids[::2]
    sampler.tell(half, [gauss(x) for x in points.x[::2]])
    assert sampler.result().certificate.n_pending == 16
    rest = sampler.certify(32)
    assert set(rest.ids) == set(points.ids) - set(half)
    told(sampler, rest)
    assert sampler.result().certificate.certified
    assert len(sampler.certify(32)) == 0


def test_a_sampler_that_asks_on_learns_from_them(sampler):
    told(sampler, sampler.certify(32))
    told(sampler, sampler.ask(8))
    result = sampler.result()
    assert result.certificate is None
    assert result.n_evals == 64 + 32 + 8
    assert abs(result.log_evidence - LOG_Z) < 4.0 * result.log_evidence_std
    told(sampler, sampler.certify(40))
    assert sampler.result().certificate.n_evals == 39


def test_and_does_so_before_it_chooses(sampler):
    told(sampler, sampler.certify(32))
    sampler.ask(8)
    assert len(sampler.known.observations) == 96


def test_a_value_that_differs_from_the_run_decides_nothing(sampler):
    points = sampler.certify(32)
    sampler.tell(points, [gauss(x) + 0.01 for x in points.x])
    found = sampler.result().certificate
    assert found.finding is Finding.UNDECIDED
    assert "it is not the function of the run any more" in found.message


# --- the likelihood has changed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_error", ["record", "zero", "raise"])
def test_a_changed_likelihood_is_noticed_and_nothing_of_it_is_kept(on_error, function, tmp_path):
    path = tmp_path / "run.sqlite"
    before = infer(function, store=path, on_error=on_error)
    function.world.off = 0.01
    with pytest.raises(EvaluationError, match=r"log_likelihood is \S+ where it was \S+ in the run.*1 call was spent"):
        certify(path, function)
    assert function.n == 65
    result = opened(path)
    assert result.certificate is None
    assert same(result, before)
    assert (counts(path)[0], counts(path)[2]) == (64, 0)
    function.world.off = 0.0
    on = infer(function, store=path, on_error=on_error, max_evals=80, dlogz=0.0)
    assert np.isfinite(on.observations.log_likelihood).all()
    assert abs(on.log_evidence - LOG_Z) < 4.0 * on.log_evidence_std


def test_so_it_is_without_a_store_and_in_infer(certified, function, tmp_path):
    function.world.off = -0.5
    with pytest.raises(EvaluationError, match="it is not the function of the run any more"):
        certified.certify(function, progress=False)
    assert function.n == 1

    def drifts(x):
        calls.append(x)
        return gauss(x) + (0.1 if len(calls) > 64 else 0.0)

    calls = []
    with pytest.raises(EvaluationError, match="it is not the function of the run any more") as caught:
        infer(drifts, certify=64, store=tmp_path / "run.sqlite")
    assert len(caught.value.observations) == 64


def test_noise_is_no_change(tmp_path):
    values = np.random.default_rng(0)

    def noisy(x):
        return gauss(x) + 0.3 * values.standard_normal(), 0.3

    assert infer(noisy, certify=32).certificate.n_evals == 31


# --- failed calls -----------------------------------------------------------------------------------------------------


def test_failed_calls_are_counted_and_nothing_known_there(store, function):
    function.world.fails = lambda x: x[0] > 0.5
    found = certify(store, function, 64).certificate
    assert found.n_failed > 3
    assert f"{found.n_failed} more failed" in found.message
    assert found.n_evals + found.n_failed == 63
    assert abs(found.log_evidence - LOG_Z) < 4.0 * found.log_evidence_std
    whole = infer(gauss).certify(gauss, 64, progress=False).certificate
    assert found.log_evidence_std > 2.0 * whole.log_evidence_std
    assert opened(store).n_failed == found.n_failed


def test_failed_calls_are_zeros_if_the_user_says_so(tmp_path, function):
    path = tmp_path / "run.sqlite"
    infer(function, store=path, on_error="zero")
    function.world.fails = lambda x: x[0] > 2.0
    found = certify(path, function).certificate
    assert np.isneginf(found.log_likelihood).any()
    assert (found.n_evals, found.n_failed) == (31, 0)
    assert found.certified


def test_failed_calls_end_it_if_the_user_says_so(tmp_path, function):
    path = tmp_path / "run.sqlite"
    before = infer(function, store=path, on_error="raise")
    function.world.fails = lambda x: x[0] > 0.9
    with pytest.raises(EvaluationError, match="no convergence"):
        certify(path, function)
    result = opened(path)
    assert not result.certificate.certified
    assert result.log_evidence == before.log_evidence


@pytest.mark.parametrize("on_error", ["record", "zero", "raise"])
def test_a_likelihood_that_always_fails_spends_one_call(on_error, function):
    result = infer(function, on_error=on_error)
    function.world.fails = lambda x: True
    with pytest.raises(EvaluationError, match=r"no convergence|is not the function of the run"):
        result.certify(function, progress=False)
    assert function.n == 65


# --- simulators -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modelled():
    return models.infer(MODEL, max_evals=200, certify=32)


def test_a_model_with_cheap_parameters(modelled):
    found = modelled.certificate
    assert found.certified
    assert (modelled.names, modelled.cheap) == (("a", "b", "sigma"), ("sigma",))
    assert found.x.shape == (31, 2)
    assert modelled.log_evidence == found.log_evidence
    np.testing.assert_allclose(found.weights @ found.x, modelled.mean[:2], atol=4.0 * np.sqrt(modelled.cov[0, 0] / 8))
    with pytest.raises(InputError, match=r"exact=True gives the parameters that calls are made with; .*sigma"):
        modelled.sample(5, exact=True)


def test_a_result_of_this_session_knows_its_model(modelled):
    assert same(modelled.certify(n=32, progress=False), modelled.certify(MODEL, 32, progress=False))
    with pytest.raises(InputError, match=r"give certify\(model\), the model of the run"):
        modelled.certify(gauss, progress=False)


def test_again_after_a_certificate_has_none_and_can_be_given_one(modelled):
    again = modelled.again(cheap={"sigma": stats.halfnorm(scale=0.5)})
    assert again.certificate is None
    assert again.n_evals == modelled.n_evals
    found = again.certify(n=32, progress=False)
    assert found.certificate.surrogate[0] == again.log_evidence
    assert found.certificate.n_evals == 31
    assert abs(found.certificate.z) < 2.5
    assert found.log_evidence != modelled.log_evidence


def test_outputs_can_be_told(modelled):
    sampler = basq.Sampler(MODEL, seed=1, batch_size=8, max_evals=200)
    while not sampler.verdict.stop:
        batch = sampler.ask()
        sampler.tell(batch, outputs=[models.line(x) for x in batch.x])
        sampler.learn()
    points = sampler.certify(32)
    sampler.tell(points, outputs=[models.line(x) for x in points.x])
    assert same(sampler.result().certificate, modelled.certificate)


# --- samples ----------------------------------------------------------------------------------------------------------


def test_exact_samples_are_calls_by_their_weights(certified):
    found = certified.certificate
    x = certified.sample(4000, seed=1, exact=True)
    assert x.shape == (4000, 2)
    assert {tuple(row) for row in x} <= {tuple(row) for row in found.x}
    np.testing.assert_allclose(x.mean(axis=0), found.weights @ found.x, atol=0.05)
    np.testing.assert_allclose(x.mean(axis=0), [0.3, 0.3], atol=4.0 * np.sqrt(0.1 / found.effective))
    np.testing.assert_array_equal(x, certified.sample(4000, seed=1, exact=True))
    assert certified.sample(10).shape == (10, 2)


def test_exact_weighted_samples(certified):
    draws, found = certified.weighted_samples(exact=True), certified.certificate
    assert draws.weights.sum() == pytest.approx(1.0)
    assert draws.n_effective == pytest.approx(found.effective)
    np.testing.assert_allclose(draws.log_likelihood, [gauss(x) for x in draws.x])
    np.testing.assert_allclose(draws.log_prior, np.log(1.0 / 36.0))
    assert len(certified.weighted_samples()) > len(draws)


def test_exact_exports_carry_the_weights(certified):
    draws, mean = certified.weighted_samples(exact=True), certified.certificate.weights @ certified.certificate.x
    getdist = certified.to_getdist(exact=True)
    np.testing.assert_allclose(getdist.getMeans()[:2], mean)
    assert getdist.weights.max() / getdist.weights.sum() == pytest.approx(draws.weights.max())
    frame = certified.to_anesthetic(exact=True)
    np.testing.assert_allclose(frame[["a", "b"]].mean().to_numpy(), mean)
    np.testing.assert_allclose(frame["logL"].to_numpy(), draws.log_likelihood)
    assert frame.attrs["log_evidence"] == certified.log_evidence


@pytest.mark.parametrize("export", ["sample", "weighted_samples", "to_getdist", "to_anesthetic"])
def test_what_is_exact_needs_a_certificate(kept, export):
    result = opened(kept)
    arguments = (10,) if export == "sample" else ()
    with pytest.raises(InputError, match="exact=True needs a certificate"):
        getattr(result, export)(*arguments, exact=True)


def test_more_calls_than_an_undecided_certificate_had_are_others(store, function):
    first = opened(store).certify(function, 26, error=1e-9, store=store, progress=False).certificate
    assert first.finding is Finding.UNDECIDED
    more = opened(store).certify(function, 40, store=store, progress=False)
    assert len(more.certificate.design) == 39
    assert not np.isin(more.certificate.x, first.x).any()
    assert more.n_evals == 64 + 26
    assert opened(store).certificate.finding is more.certificate.finding
