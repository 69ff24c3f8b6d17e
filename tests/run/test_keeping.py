"""What a run has learned is in its store: nothing is learned again, and the run goes on as if it had never stopped."""

from contextlib import contextmanager

import numpy as np
import pytest
from scipy import stats

import basq
from basq import Sampler
from basq.auto import Auto
from basq.evaluation.store import Store
from basq.paper import Paper
from basq.plain import pack, unpack
from helpers.models import model
from helpers.small import PRIOR, gauss, rotate

OPTIONS = {"seed": 1, "batch_size": 8, "dlogz": 0.0, "progress": False}
TURN = 2.0 * np.pi


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


@pytest.fixture
def fits(monkeypatch):
    """Numbers of observations of every fit of the default engine."""
    made, fit = [], Auto.fit

    def counting(self, observations, *args):
        made.append(len(observations))
        return fit(self, observations, *args)

    monkeypatch.setattr(Auto, "fit", counting)
    return made


def run(path=None, function=gauss, prior=PRIOR, **options):
    return basq.infer(function, prior, store=path, **{**OPTIONS, **options})


def test_a_reader_learns_nothing_again(path, fits):
    result = run(path, max_evals=48)
    fits.clear()
    found = Sampler.open(path).result()
    assert not fits
    assert str(found) == str(result)
    assert found.audits == result.audits
    assert found.history == result.history
    for n in (10, 5000):
        assert np.array_equal(found.sample(n, seed=2), result.sample(n, seed=2))
    x = result.sample(9, seed=0)
    assert np.array_equal(found.log_pdf(x), result.log_pdf(x))
    assert np.array_equal(found.surrogate.band(x), result.surrogate.band(x))


def test_nor_are_its_samples_drawn_again(path, monkeypatch):
    result = run(path, max_evals=48)

    def never(*_, **__):
        raise AssertionError("drawn again")

    monkeypatch.setattr("basq.posterior.sampled.metropolis", never)
    found = Sampler.open(path).result()
    assert np.array_equal(found.mean, result.mean)
    assert found.summary() == result.summary()


def test_a_run_goes_on_to_the_bit_and_learns_only_what_is_new(path, fits):
    whole = run(max_evals=64)
    run(path, max_evals=40)
    for n, new in (48, [48]), (64, [56, 64]):
        fits.clear()
        found = run(path, max_evals=n)
        assert fits == new
    assert np.array_equal(found.observations.x, whole.observations.x)
    assert found.log_evidence == whole.log_evidence
    assert [h.log_evidence_std for h in found.history] == [h.log_evidence_std for h in whole.history]


def test_a_converged_run_goes_on_by_another_target(path, fits):
    first = run(path, max_evals=160, dlogz=0.3)
    assert first.converged
    again = run(path, max_evals=160, dlogz=0.3)
    assert (again.status, again.log_evidence_std) == (first.status, first.log_evidence_std)
    fits.clear()
    further = run(path, max_evals=first.n_evals + 8, dlogz=0.0)
    assert fits == [first.n_evals + 8]
    assert not further.converged


def banana(x):
    return -0.5 * (x[0] ** 2 / 0.5 + (x[1] - x[0] ** 2) ** 2 / 0.05)


def angles(x):
    return 4.0 * np.cos(x[0] - 0.1) + 4.0 * np.cos(x[1] - 3.0)


def exchangeable(x):
    return float(np.logaddexp(-30.0 * np.sum((x - [1.0, -1.0]) ** 2), -30.0 * np.sum((x - [-1.0, 1.0]) ** 2)))


def noise_scale(x):
    data = np.array([0.3, -0.2, 0.5, 0.1, 0.4, -0.1])
    return float(-0.5 * np.sum((data - x[0]) ** 2) / x[1] ** 2 - 6.0 * np.log(x[1]))


def walled(x):
    return gauss(x) if x[0] > -0.5 else -np.inf


SAMPLES = np.random.default_rng(0).standard_normal((300, 2))
NOISY = (gauss(np.zeros(2)), None)
CASES = {
    "box": {},
    "curved": {"function": banana},
    "walled": {"function": walled},
    "two modes": {"function": exchangeable},
    "angles": {"function": angles, "prior": {k: basq.periodic(0, TURN) for k in "ab"}},
    "noise scale": {"function": noise_scale, "prior": {"m": (-3, 3), "s": stats.halfcauchy()}, "max_evals": 64},
    "noisy": {"function": lambda x: (gauss(x) + 0.05 * np.sin(1e4 * x[0]), None)},
    "zero": {"function": lambda x: -np.inf, "max_evals": 24},
    "normal": {"prior": stats.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]])},
    "density": {"prior": basq.Prior.from_density(lambda x: -0.5 * x @ x - np.log(TURN), SAMPLES)},
    "transform": {"prior": basq.Prior.from_transform(rotate, 2)},
    "separable transform": {"prior": basq.Prior.from_transform(lambda cube: 6.0 * cube - 3.0, 2)},
    "one": {"prior": {"a": (-3, 3)}},
    "model": {"function": model(), "prior": None},
} | {
    f"paper {name}": {"method": Paper(n_candidates=500, n_nystrom=40, **options), "max_evals": 24}
    for name, options in {
        "wsabi-l": {}, "wsabi-m": {"model": "wsabi-m", "mean": "constant"}, "vanilla": {"model": "vanilla"},
        "bbq": {"model": "bbq"}, "matern": {"kernel": "matern32"}, "rq": {"kernel": "rq", "noise": "fit"},
        "polynomial": {"kernel": "polynomial", "model": "vanilla"},
    }.items()
}  # fmt: skip


@contextmanager
def no_fit(method):
    """Nothing can be learned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(method), "fit", lambda *_: pytest.fail("learned again"))
        yield


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_fit_is_kept(name, path):
    case = {"max_evals": 40, **CASES[name]}
    result = run(path, **case)
    with no_fit(case.get("method", Auto())):
        found = Sampler.open(path).result()
    assert str(found) == str(result)
    assert np.array_equal(found.observations.x, result.observations.x)
    if name != "zero" and not found.prior.absent:
        assert np.array_equal(found.sample(20, seed=1), result.sample(20, seed=1))
        assert np.array_equal(found.surrogate.band(SAMPLES[:5, : found.prior.n_dim]),
                              result.surrogate.band(SAMPLES[:5, : found.prior.n_dim])) or name == "model"  # fmt: skip
    more = case["max_evals"] + 8
    whole = run(**{**case, "max_evals": more})
    assert np.array_equal(run(path, **{**case, "max_evals": more}).observations.x, whole.observations.x)


def test_another_meaning_of_failures_is_learned_anew(path, fits):
    def half(x):
        return gauss(x) if x[0] > -1.0 else np.nan

    run(path, half, max_evals=40, on_error="record")
    fits.clear()
    found = run(path, half, max_evals=40, on_error="zero")
    assert len(fits) > 1
    assert found.log_evidence == run(None, half, max_evals=40, on_error="zero").log_evidence or found.n_evals == 40


def test_what_another_version_has_kept_is_learned_anew(path, fits, monkeypatch):
    result = run(path, max_evals=40)
    monkeypatch.setattr("basq.run.kept.__version__", "another")
    fits.clear()
    assert Sampler.open(path).result().log_evidence == result.log_evidence
    assert len(fits) > 1
    fits.clear()
    assert Sampler.open(path).result().log_evidence == result.log_evidence  # kept by the reader
    assert not fits


def test_a_reader_does_not_write_where_somebody_drives(path, fits):
    run(path, max_evals=40)
    with Store(path) as store:
        store._connection.execute("DELETE FROM kept")
        with store.driving():
            assert Sampler.open(path).result().n_evals == 40
        assert store.kept() is None


def test_keeping_costs_a_small_share_of_the_time(path, monkeypatch):
    """A run whose state is large is kept more rarely; and always in the end."""
    steps = []
    keep = Store.keep
    monkeypatch.setattr(Store, "keep", lambda self, n, blob: (steps.append(n), keep(self, n, blob)))
    monkeypatch.setattr("basq.run.kept.PATIENCE", 1e9)
    result = run(path, max_evals=64)
    assert steps == [1, result.n_batches]


def test_nothing_is_kept_in_memory(monkeypatch):
    monkeypatch.setattr(Store, "keep", lambda *_: pytest.fail("kept"))
    run(max_evals=24)


def test_a_state_with_its_prior_given_is_the_same_state(path):
    sampler = Sampler(PRIOR, **{k: v for k, v in OPTIONS.items() if k != "progress"})
    batch = sampler.ask()
    sampler.tell(batch, [gauss(x) for x in batch.x])
    sampler.learn()
    prior, state = sampler.recipe.prior, sampler.known
    again = unpack(pack(state, [prior, *prior.parts]), [prior, *prior.parts])
    assert again.fitted.knowledge.prior is prior
    assert pack(again, [prior, *prior.parts]) == pack(state, [prior, *prior.parts])
