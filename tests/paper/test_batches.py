"""What the paper's method says about its batches: the first one, their weights, their sizes."""

import numpy as np
import pytest

import basq
from basq.gp.gp import GP
from basq.gp.kernels.stationary import RBF
from basq.numerics.gaussians import GaussianMixture
from basq.paper.models import Vanilla, Wsabi
from basq.paper.proposals import over_prior, propose
from basq.paper.target import Target

PROBLEM = basq.problems.mixture(2)
SMALL = {"n_candidates": 2000, "n_nystrom": 100}


def run(problem=PROBLEM, max_evals=96, batch_size=32, **options):
    return basq.infer(
        problem.log_likelihood, problem.prior, method=basq.Paper(**(SMALL | options)), batch_size=batch_size,
        max_evals=max_evals, dlogz=0.0, vectorized=True, seed=1, progress=False,
    )  # fmt: skip


def estimates(result):
    """The paper's estimate Σ w ℓ of every batch that has weights."""
    seen = result.observations
    return {
        record.info["batch"]: np.array(record.info["weights"])
        @ np.exp(seen.log_likelihood[seen.batch == record.info["batch"]])
        for record in result.history
        if "weights" in record.info
    }


@pytest.mark.parametrize("factorised", [False, True])
@pytest.mark.parametrize("model", ["wsabi-l", "wsabi-m", "vanilla"])
def test_weights_of_a_batch_integrate_the_likelihood(model, factorised):
    # a batch's own rule is a much poorer estimate than the surrogate's integral, but an estimate of Z it is
    found = estimates(run(model=model, mean="constant", factorised=factorised))
    assert list(found) == [1, 2]
    for z in found.values():
        assert z == pytest.approx(1.0, abs=0.3)


def test_equal_weights_of_samples_are_over_the_measure_of_interest():
    found = estimates(run(selection="samples"))
    assert np.mean(list(found.values())) == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize("proposal", ["ivr", "ub", "igb", "prior", "optimal"])
@pytest.mark.parametrize("factorised", [False, True])
def test_weighted_candidates_know_the_integral_of_interest(proposal, factorised):
    x = 1.2 * np.random.default_rng(0).standard_normal((12, 2))
    gp = GP.condition(x, np.exp(-0.5 * (x**2).sum(axis=1)), RBF(1.0, np.full(2, 0.8)), noise=1e-6)
    target, measure = Target(Wsabi(gp, 0.0, False), factorised), GaussianMixture.standard(2)
    many = gp.predict_mean(measure.sample_quasi(2**14, np.random.default_rng(1)))
    candidates = propose(target, measure, proposal, 0.5, 6_000, np.random.default_rng(2), supersamples=5)
    assert candidates.mass == pytest.approx(target.interest(many).mean(), rel=0.05)
    weights = over_prior(target, candidates, np.arange(6_000), candidates.weights)
    p = candidates.prediction
    assert weights @ p.mean**2 == pytest.approx((many**2).mean(), rel=0.1)


def test_a_store_keeps_the_weights(tmp_path):
    options = {"batch_size": 16, "dlogz": 0.0, "vectorized": True, "seed": 1, "progress": False}
    options |= {"method": basq.Paper(**SMALL), "store": tmp_path / "run.sqlite"}
    first = basq.infer(PROBLEM.log_likelihood, PROBLEM.prior, max_evals=32, **options)
    again = basq.infer(PROBLEM.log_likelihood, PROBLEM.prior, max_evals=48, **options)
    assert again.history[1].info == first.history[1].info
    assert len(again.history[2].info["weights"]) == 16


def test_the_first_batch_can_recombine_the_prior():
    result = run(initial="recombination", max_evals=32)
    u = result.observations.u
    np.testing.assert_allclose(u[0], 0.0, atol=1e-12)  # the initial guess
    assert len(np.unique(u, axis=0)) == 32
    # its rule integrates smooth functions over the prior far better than as many random points would
    weights = np.array(result.history[0].info["weights"])
    assert weights[0] == 0.0
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights @ u, 0.0, atol=0.1)
    np.testing.assert_allclose(weights @ u**2, 1.0, atol=0.2)
    assert run(initial="recombination", max_evals=32).log_evidence == result.log_evidence


def test_an_initial_batch_asked_for_in_parts_avoids_what_it_has():
    method, nearest = basq.Paper(initial="recombination", **SMALL), []
    for seed in range(4):
        sampler = basq.Sampler(PROBLEM.prior, method=method, batch_size=12, seed=seed)
        parts = [sampler.ask(1), sampler.ask(5), sampler.ask(6)]
        u = PROBLEM.prior.to_standard(np.concatenate([p.x for p in parts]))
        assert u.shape == (12, 2)
        nearest.append((np.linalg.norm(u[:, None] - u, axis=2) + 10.0 * np.eye(12)).min())
    assert np.median(nearest) > 0.1  # now and then a point that says nothing makes up the weights


def test_nystrom_points_can_follow_the_candidates():
    proportional = basq.Paper(n_candidates=50_000, n_nystrom="proportional")
    assert proportional.sizes(100, 0.0) == (50_000, 500)
    assert basq.Paper(n_nystrom="proportional").sizes(100, 0.0) == (20_000, 200)
    assert basq.Paper(n_candidates=2_000, n_nystrom="proportional").sizes(64, 0.0) == (2_000, 64)
    assert basq.Paper(n_candidates="auto", n_nystrom="proportional").sizes(100, 9.0) == (60_000, 600)
    assert run(n_candidates=3_000, n_nystrom="proportional").history[-1].info["n_nystrom"] == 32


def test_more_supersamples_draw_nearer_to_the_proposal():
    # the points themselves, without weights, against the law that they are to be drawn from
    x = np.random.default_rng(0).standard_normal((400, 2))
    kernel = RBF(1.0, np.full(2, 0.2))
    gp = GP.condition(x, np.exp(-2.0 * ((x - 1.0) ** 2).sum(axis=1)), kernel, noise=1e-6)
    target, measure = Target(Vanilla(gp), True), GaussianMixture.standard(2)
    pool = measure.sample_quasi(2**15, np.random.default_rng(1))
    var = gp.predict(pool).var
    share = (var * (pool**2).sum(axis=1)).sum() / var.sum()
    off = []
    for supersamples in (2, 30):
        c = propose(target, measure, "ub", 0.5, 1000, np.random.default_rng(2), supersamples=supersamples)
        off.append(abs((c.prediction.x**2).sum(axis=1).mean() - share))
    assert off[1] < 0.3 * off[0]


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"supersamples": 1}, "at least 2"),
        ({"supersamples": "auto"}, "integer"),
        ({"initial": "sobol"}, "'even', 'recombination'"),
        ({"n_nystrom": "half"}, "'auto', or 'proportional'"),
        ({"n_candidates": "proportional"}, "or 'auto'"),
        ({"audited": 0}, "True and False"),
    ],
)
def test_what_is_not_allowed(options, allowed):
    with pytest.raises(basq.InputError, match=allowed):
        basq.Paper(**options)
