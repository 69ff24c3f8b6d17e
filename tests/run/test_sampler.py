"""Ask and tell: the loop in the user's hands."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import basq
from basq import Sampler
from basq.errors import EvaluationError, InputError
from helpers.small import PRIOR, gauss

OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 64, "dlogz": 0.0}
METHOD = basq.Paper(model="wsabi-l", mean="constant", n_candidates=500, n_nystrom=50)


def answered(sampler, n=None):
    batch = sampler.ask(n)
    sampler.tell(batch, [gauss(x) for x in batch.x])
    return batch


@pytest.fixture(scope="module")
def inferred():
    return basq.infer(gauss, PRIOR, progress=False, **OPTIONS)


def test_ask_and_tell_do_what_infer_does(inferred):
    sampler = Sampler(PRIOR, **OPTIONS)
    while sampler.n_left:
        answered(sampler)
    result = sampler.result()
    np.testing.assert_array_equal(result.observations.x, inferred.observations.x)
    assert result.log_evidence == inferred.log_evidence


def test_values_in_any_order_and_in_part(inferred):
    sampler, rng = Sampler(PRIOR, **OPTIONS), np.random.default_rng(0)
    while sampler.n_left:
        batch = sampler.ask()
        order = rng.permutation(len(batch))
        for part in np.array_split(order, 3):
            sampler.tell(batch.ids[part], [gauss(x) for x in batch.x[part]])
    assert sampler.result().log_evidence == inferred.log_evidence


def test_values_from_other_threads(inferred, tmp_path):
    """As from the callbacks of an executor."""
    sampler = Sampler(PRIOR, store=tmp_path / "run.sqlite", **OPTIONS)
    with ThreadPoolExecutor(4) as pool:
        while sampler.n_left:
            batch = sampler.ask()
            told = [
                pool.submit(lambda i, x: sampler.tell(int(i), gauss(x)), *c)
                for c in zip(batch.ids, batch.x, strict=True)
            ]
            for future in told:
                future.result()
    assert sampler.result().log_evidence == inferred.log_evidence


def test_result_looks_without_touching(inferred):
    sampler = Sampler(PRIOR, **OPTIONS)
    with pytest.raises(EvaluationError, match="No call has succeeded yet"):
        sampler.result()
    seen = []
    while sampler.n_left:
        batch = sampler.ask()
        half = len(batch) // 2
        sampler.tell(batch.ids[:half], [gauss(x) for x in batch.x[:half]])
        seen.append(sampler.result().n_evals)
        sampler.tell(batch.ids[half:], [gauss(x) for x in batch.x[half:]])
    assert seen == sorted(seen)
    assert sampler.result().log_evidence == inferred.log_evidence


@pytest.mark.parametrize("method", ["auto", METHOD], ids=["auto", "paper"])
def test_points_under_way_are_not_asked_for_again(method):
    sampler = Sampler(PRIOR, method=method, **OPTIONS)
    answered(sampler, 32)
    batches = [sampler.ask(8) for _ in range(4)]  # no value told in between
    points = np.concatenate([b.x for b in batches])
    u = sampler.recipe.prior.to_standard(points)
    nearest = np.sort(np.linalg.norm(u[:, None] - u, axis=2), axis=1)[:, 1]
    assert nearest.min() > 1e-3
    assert sorted(sampler.pending().ids) == sorted(np.concatenate([b.ids for b in batches]))
    last = batches[-1]
    sampler.tell(last, [gauss(x) for x in last.x])  # the last first
    assert len(sampler.pending()) == 24
    assert len(sampler.ask(3)) == 3


def test_a_variance_needs_no_values():
    """Points under way push the next ones apart as points with values do."""
    together, alone = [], []
    for pending in (0, 24):
        sampler = Sampler(PRIOR, method=METHOD, **OPTIONS)
        answered(sampler, 16)
        if pending:
            sampler.ask(pending)
        sampler.learn()
        state, taken = sampler.known, sampler._taken()
        surrogate = state.fitted.surrogate.gp
        grid = np.random.default_rng(0).standard_normal((200, 2))
        before = surrogate.predict(grid)
        after = surrogate.expecting(taken).predict(grid) if pending else before
        np.testing.assert_allclose(after.mean, before.mean, atol=1e-6 * np.abs(before.mean).max())
        (together if pending else alone).append(after.var.sum())
    assert together[0] < 0.7 * alone[0]


def test_ask_gives_what_was_asked_for():
    sampler = Sampler(PRIOR, **OPTIONS)
    assert len(sampler.ask(5)) == 5  # of the initial design
    assert len(sampler.ask()) == 27  # the rest of it
    assert len(sampler.ask(3)) == 3  # nothing is known yet: more of the same kind
    batch = sampler.pending()
    assert len(np.unique(batch.x, axis=0)) == 35
    assert batch.as_dicts()[0].keys() == PRIOR.keys()
    sampler.tell(batch, [gauss(x) for x in batch.x])
    assert len(sampler.ask()) == 8
    assert len(sampler.ask()) == 8
    assert len(sampler.ask()) == 8
    assert len(sampler.ask()) == 64 - 35 - 24  # max_evals
    assert len(sampler.ask(10)) == 10  # who asks for more gets more


def test_the_initial_design_does_not_depend_on_how_it_is_asked_for():
    whole, parts = Sampler(PRIOR, **OPTIONS), Sampler(PRIOR, **OPTIONS)
    np.testing.assert_array_equal(whole.ask().x, np.concatenate([parts.ask(7).x, parts.ask(20).x, parts.ask().x]))


def test_failures_are_told_too():
    sampler = Sampler(PRIOR, **OPTIONS)
    batch = sampler.ask(20)
    sampler.tell(batch.ids[:16], [gauss(x) for x in batch.x[:16]])
    sampler.tell(batch.ids[16:18], state="failed", error="node 7 burnt down")
    sampler.tell(batch.ids[18:], [np.nan, -np.inf])
    result = sampler.result()
    assert result.n_evals == 17
    assert [f.id for f in result.failures] == [16, 17, 18]
    assert result.failures[0].error == "node 7 burnt down"
    np.testing.assert_array_equal(result.failures[2].x, batch.x[18])
    assert "3 more calls failed" in str(result)


def test_failed_calls_as_zeros():
    sampler = Sampler(PRIOR, on_error="zero", **OPTIONS)
    batch = sampler.ask(20)
    sampler.tell(batch.ids[:16], [gauss(x) for x in batch.x[:16]])
    sampler.tell(batch.ids[16:], state="failed")
    result = sampler.result()
    assert result.n_evals == 20
    assert np.isneginf(result.observations.log_likelihood[16:]).all()
    assert result.n_failed == 4


def test_values_computed_elsewhere():
    sampler = Sampler(PRIOR, **OPTIONS)
    x = np.random.default_rng(0).uniform(-3, 3, (40, 2))
    sampler.add(x, [gauss(p) for p in x], noise=0.01)
    assert sampler.result().n_evals == 40
    np.testing.assert_array_equal(sampler.result().observations.noise, 0.01)
    with pytest.raises(InputError, match="outside the prior's support"):
        sampler.add([[4.0, 0.0]], [1.0])


def test_a_run_of_failures_gives_points_for_ever_and_no_result():
    sampler = Sampler(PRIOR, **OPTIONS)
    sampler.tell(sampler.ask(), state="failed", error="no licence")
    assert len(sampler.ask()) == 8
    with pytest.raises(EvaluationError, match=r"32 failed\. The last one: no licence"):
        sampler.result()


def test_noise_is_passed_on():
    sampler = Sampler(PRIOR, **OPTIONS)
    batch = sampler.ask(20)
    sampler.tell(batch, [gauss(x) for x in batch.x], noise=np.linspace(0.0, 0.2, 20))
    np.testing.assert_array_equal(sampler.result().observations.noise, np.linspace(0.0, 0.2, 20))


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([0, 1], [1.0]), {}, "2 calls and values of shape"),
        (([0, 0], [1.0, 1.0]), {}, "different whole numbers"),
        (([0.5], [1.0]), {}, "whole numbers"),
        (([99], [1.0]), {}, "call 99 was never asked for; nothing was recorded"),
        (([2, 8], [1.0, 1.0]), {}, "call 8 has been told already; nothing was recorded"),
        (([0], ["high"]), {}, "not numbers"),
        (([0], ["1.5"]), {}, "not numbers"),
        (([0], None), {}, "not numbers"),
        (([0], [True]), {}, "not numbers"),
        (([0], np.ma.array([1.0], mask=[True])), {}, "not numbers"),
        (([0], [np.ma.masked]), {}, "not numbers"),
        (([0], np.array(["2020-01-01"], "datetime64[D]")), {}, "not numbers"),
        (([0], [1.0], [True]), {}, "not numbers"),
        (([0], [np.inf]), {}, "finite numbers, -inf and NaN"),
        (([0], [1.0], -1.0), {}, "noise of 0 or more"),
        (([0], [1.0]), {"state": "lost"}, "state='lost'"),
        (([0], [1.0]), {"state": "failed"}, "a failed call has no value"),
    ],
)
def test_wrong_tells_record_nothing(arguments, options, text):
    sampler = Sampler(PRIOR, **OPTIONS)
    sampler.ask(10)
    sampler.tell([8, 9], [0.0, 0.0])
    with pytest.raises(InputError, match=text):
        sampler.tell(*arguments, **options)
    assert sampler.store.counts() == {"done": 2, "failed": 0, "pending": 8}


@pytest.mark.parametrize("n", [0, -1, 1.5, "many", True])
def test_wrong_asks(n):
    with pytest.raises(InputError, match="positive whole number of points"):
        Sampler(PRIOR, **OPTIONS).ask(n)


@pytest.mark.parametrize("value", [True, np.ma.masked, "1.5", np.datetime64("2020-01-01"), None])
def test_values_computed_elsewhere_are_numbers(value):
    sampler = Sampler(PRIOR, **OPTIONS)
    for given in (value, [value]):
        with pytest.raises(InputError, match="must be numbers"):
            sampler.add([[0.0, 0.0]], given)
    assert sampler.store.counts()["done"] == 0


def test_unit_cube_transform_and_density_priors():
    sampler = Sampler(prior_transform=lambda c: 6 * c - 3, n_dim=2, **OPTIONS)
    answered(sampler)
    answered(sampler)
    assert sampler.result().n_evals == 40
    rng = np.random.default_rng(0)
    prior = basq.Prior.from_density(stats.multivariate_normal(np.zeros(2), np.eye(2)).logpdf, rng.normal(size=(500, 2)))
    sampler = Sampler(prior, **OPTIONS)
    answered(sampler)
    assert sampler.result().n_evals == 32


def test_noise_of_unknown_size_can_be_told():
    sampler = basq.Sampler(PRIOR, seed=1)
    batch = sampler.ask(20)
    sampler.tell(batch, [gauss(x) for x in batch.x], noise=None)
    assert np.isnan(sampler.result().observations.noise).all()
