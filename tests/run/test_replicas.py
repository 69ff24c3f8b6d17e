"""Replicas: independent runs whose calls make one answer, and whose disagreement enters its error."""

from dataclasses import replace

import numpy as np
import pytest

import basq
from basq.errors import EvaluationError, InputError, StoreError
from basq.run.agreement import agreed, disagreement
from helpers import models

PROBLEM = basq.problems.bimodal(2)
OPTIONS = {"replicas": 3, "max_evals": 240, "seed": 1, "progress": False}


def infer(**changes):
    return basq.infer(PROBLEM.log_likelihood, PROBLEM.prior, **(OPTIONS | changes))


@pytest.fixture(scope="module")
def whole():
    return infer(vectorized=True)


def test_the_answer_is_of_all_calls(whole):
    assert whole.converged
    assert abs(whole.log_evidence - PROBLEM.log_evidence) < 3.0 * whole.log_evidence_std
    assert 3 * 48 < whole.n_evals <= 240
    assert len(np.unique(whole.observations.x, axis=0)) == whole.n_evals
    assert whole.notes[-1].startswith("3 replicas gave log Z = -3.")
    assert whole.notes[-1] in str(whole)


def test_the_same_seed_gives_the_same_answer_whoever_evaluates(whole):
    again = infer(pool=2)
    assert again.log_evidence == pytest.approx(whole.log_evidence, abs=1e-9)
    assert infer(vectorized=True, seed=2).log_evidence != whole.log_evidence


def test_without_a_budget_each_has_that_of_a_run():
    result = basq.infer(lambda x: -0.5 * float(x @ x), {"a": (-3, 3)}, replicas=2, seed=0, progress=False)
    assert result.n_evals <= 2 * 150 + 16
    assert result.converged


def test_the_callback_sees_every_batch_of_all():
    seen = []
    infer(vectorized=True, callback=lambda state: seen.append(len(state.observations)))
    assert seen.count(32) >= 3


def test_stores_of_replicas_are_taken_up(tmp_path, whole):
    path, calls = tmp_path / "run.sqlite", []

    def function(x):
        calls.append(x)
        if len(calls) == 100:
            raise KeyboardInterrupt
        return PROBLEM.log_likelihood(x)

    options = OPTIONS | {"store": path}
    try:
        result = basq.infer(function, PROBLEM.prior, **options)
    except KeyboardInterrupt:
        result = None
    assert not path.exists()
    assert result is None or result.status is basq.Status.INTERRUPTED
    assert sorted(p.name for p in tmp_path.glob("*.sqlite")) == [f"run-replica{k}.sqlite" for k in (1, 2, 3)]
    result = basq.infer(function, PROBLEM.prior, **options)
    assert result.log_evidence == pytest.approx(whole.log_evidence, abs=1e-9)
    assert len(calls) <= whole.n_evals + 1
    n = len(calls)
    assert basq.infer(function, PROBLEM.prior, **options).n_evals == whole.n_evals
    assert len(calls) == n
    assert basq.Sampler.open(path).result().notes == result.notes


def test_a_certificate_of_all_of_them():
    result = infer(vectorized=True, certify=40)
    assert result.certified
    assert abs(result.log_evidence - PROBLEM.log_evidence) < 4.0 * result.log_evidence_std


def test_of_a_model_with_cheap_parameters():
    result = basq.infer(models.model(), replicas=2, max_evals=160, seed=0, progress=False)
    one = basq.infer(models.model(), seed=0, progress=False)
    assert result.names == one.names
    assert abs(result.log_evidence - one.log_evidence) < 3.0 * np.hypot(result.log_evidence_std, one.log_evidence_std)
    assert result.outputs is not None


def test_what_is_lost_in_an_error_is_with_it():
    def fails(x):
        if len(seen) == 60:
            raise ValueError("out of memory")
        seen.append(x)
        return -0.5 * float(x @ x)

    seen: list[np.ndarray] = []
    with pytest.raises(EvaluationError, match="out of memory") as error:
        basq.infer(fails, {"a": (-3, 3), "b": (-3, 3)}, on_error="raise", **OPTIONS)
    assert sum(map(len, error.value.observations)) == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replicas": 1}, "at least 2"),
        ({"replicas": "three"}, "whole number"),
        ({"max_evals": 100}, "100 is too few for 3 replicas.* 160 calls"),
        ({"asynchronous": True}, "exclude each other"),
        ({"evaluations": ([[0.0, 0.0]], [0.0])}, "exclude each other"),
    ],
)
def test_bad_input_costs_no_call(changes, message):
    with pytest.raises(InputError, match=message):
        basq.infer(lambda x: pytest.fail("a call was spent"), PROBLEM.prior, **(OPTIONS | changes))


def test_the_store_of_another_run_is_refused(tmp_path):
    basq.Sampler(PROBLEM.prior, store=tmp_path / "run.sqlite").store.close()
    with pytest.raises(StoreError, match="holds a run without replicas"):
        basq.infer(lambda x: pytest.fail("a call was spent"), PROBLEM.prior, store=tmp_path / "run.sqlite", **OPTIONS)


def test_disagreement_is_what_claims_do_not_explain():
    assert disagreement([(0.0, 0.1), (0.05, 0.1), (-0.1, 0.1)], 0.0) == 0.0
    # one of three has missed half of the mass, and claims 0.01
    missed = disagreement([(0.0, 0.01), (0.0, 0.01), (-np.log(2.0), 0.01)], 0.0)
    assert missed == pytest.approx(np.log(2.0) / np.sqrt(6.0), rel=1e-3)
    assert disagreement([(0.0, 0.01), (0.0, 0.01), (-5.0, 6.0)], 0.0) == 0.0


def test_replicas_that_disagree_have_not_converged(whole):
    same = agreed(whole, [(whole.log_evidence, 0.1)] * 3, 0.1)
    assert same.converged
    assert same.log_evidence_std == whole.log_evidence_std
    apart = agreed(whole, [(whole.log_evidence, 0.01), (whole.log_evidence - 0.7, 0.01)], 0.1)
    assert not apart.converged
    assert "replicas disagree" in apart.message
    assert apart.log_evidence_std > 0.45
    worse = agreed(replace(whole, sound=True), [(whole.log_evidence, 0.01), (whole.log_evidence - 3.0, 0.01)], 0.1)
    assert not worse.sound
