"""Rivals that share a simulator share its calls."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import basq
from basq import Status
from basq.evaluation.store import SHARED, Store
from helpers.models import CHEAP, DATA, T, line, model

OPTIONS = {"seed": 1, "progress": False, "batch_size": 8}


def laplace(output, sigma):
    """Laplacian noise."""
    return -np.abs(DATA - output).sum() / sigma - len(DATA) * np.log(2.0 * sigma)


def normal(output, sigma):
    """Normal noise, with all its constants."""
    return -0.5 * np.sum((DATA - output) ** 2) / sigma**2 - 0.5 * len(DATA) * np.log(2.0 * np.pi * sigma**2)


class Counted:
    """The line, counting its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, x):
        self.calls.append(tuple(x))
        return line(x)


def constant(x):
    return x[0] + 0.0 * T


def rivals(simulate):
    first = model(simulate, normal)
    other = basq.Model(constant, normal, {"a": (-3.0, 3.0)}, CHEAP)
    return {"normal": first, "laplace": first.with_likelihood(laplace, cheap=CHEAP), "constant": other}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_one_simulation_serves_all_rivals_that_share_the_simulator(asynchronous, tmp_path):
    simulate = Counted()
    found = basq.compare(rivals(simulate), store=tmp_path, asynchronous=asynchronous, **OPTIONS)
    assert found.status is Status.CONVERGED
    one, two, other = (found.results[name] for name in ("normal", "laplace", "constant"))
    assert len(set(simulate.calls)) == len(simulate.calls) == one.n_evals == two.n_evals
    assert {tuple(x) for x in one.observations.x[:, :2]} == {tuple(x) for x in two.observations.x[:, :2]}
    assert found.n_shared == one.n_evals
    assert found.n_evals == one.n_evals + other.n_evals
    assert found.message.startswith(f"{found.n_evals} calls: ")
    assert f"{found.n_shared} values came from simulations that a rival had paid for." in str(found)
    for name in ("normal", "laplace"):
        with Store(tmp_path / f"{name}.sqlite") as store:
            assert len(store.with_outputs()) == one.n_evals
    n = len(simulate.calls)
    again = basq.compare(rivals(simulate), store=tmp_path, asynchronous=asynchronous, **OPTIONS)
    assert again.n_evals == found.n_evals
    assert len(simulate.calls) == n


def test_the_answers_are_those_of_runs_alone():
    models = {name: given for name, given in rivals(line).items() if name != "constant"}
    found = basq.compare(models, **OPTIONS)
    for name, result in found.results.items():
        alone = basq.infer(models[name], **OPTIONS)
        error = 3.0 * np.hypot(alone.log_evidence_std, result.log_evidence_std) + 0.01
        assert abs(result.log_evidence - alone.log_evidence) < error


def test_a_budget_is_spent_once():
    simulate = Counted()
    models = {name: given for name, given in rivals(simulate).items() if name != "constant"}
    found = basq.compare(models, max_evals=40, dlogz=1e-6, **OPTIONS)
    assert len(simulate.calls) == found.n_evals == 40
    assert [result.n_evals for result in found.results.values()] == [40, 40]
    assert found.message.startswith("All 40 calls are spent")


def test_the_first_look_of_one_is_that_of_all():
    with pytest.raises(basq.InputError, match="max_evals=47: a first look at all models takes 48 calls"):
        basq.compare(rivals(line), max_evals=47, **OPTIONS)
    found = basq.compare(rivals(line), max_evals=48, **OPTIONS)
    assert [result.n_evals for result in found.results.values()] == [32, 32, 16]


def test_shared_calls_say_where_they_come_from(tmp_path):
    found = basq.compare(rivals(line), store=tmp_path, max_evals=48, **OPTIONS)
    with Store(tmp_path / "laplace.sqlite") as store:
        workers = [row["worker"] for row in store.rows()]
    assert workers.count(SHARED) == found.results["laplace"].settings["shared"] > 0
    found.results["laplace"].report(tmp_path / "page.html")
    assert "calls simulated for a rival" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_another_simulator_prior_or_reduction_shares_nothing():
    first = model(line, normal)
    others = {
        "simulator": model(lambda x: line(2.0 * x), normal),
        "prior": basq.Model(line, normal, {"a": (-3.0, 3.0), "b": (-2.0, 3.0)}, CHEAP),
        "names": basq.Model(line, normal, {"a": (-3.0, 3.0), "c": (-3.0, 3.0)}, CHEAP),
        "keep": model(line, normal, keep=lambda output: output),
        "plain": (lambda x: normal(line(x), 0.2), {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}),
    }
    for given in others.values():
        assert basq.compare({"first": first, "other": given}, max_evals=64, **OPTIONS).n_shared == 0


def test_a_likelihood_that_fails_for_one_does_not_for_the_other():
    def picky(output, sigma):
        if output[0] > 2.0:
            raise RuntimeError("no such curve")
        return normal(output, sigma)

    first = model(line, picky)
    found = basq.compare({"picky": first, "laplace": first.with_likelihood(laplace, CHEAP)}, max_evals=40, **OPTIONS)
    assert found.results["picky"].n_failed > 0
    assert found.results["laplace"].n_failed == 0
    assert found.results["laplace"].n_evals > found.results["picky"].n_evals


def test_other_cheap_parameters_may_come_with_another_likelihood():
    def student(output, sigma, nu):
        square = ((DATA[:, None] - output[:, None]) / sigma) ** 2
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi) - np.log(sigma)
        return (constant - 0.5 * (nu + 1.0) * np.log1p(square / nu)).sum(axis=0)

    first = model(line, normal)
    cheap = {**CHEAP, "nu": stats.uniform(1.0, 30.0)}
    found = basq.compare({"normal": first, "student": first.with_likelihood(student, cheap)}, max_evals=32, **OPTIONS)
    assert found.results["student"].names == ("a", "b", "sigma", "nu")
    assert found.results["student"].n_evals == found.results["normal"].n_evals == 32
