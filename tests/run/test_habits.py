"""Habits from other tools are met, or answered with the right word."""

from collections.abc import Mapping
from typing import TypedDict

import numpy as np
import pytest

import basq
from basq.errors import EvaluationError, InputError

BOX = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
FEW = {"method": "paper", "max_evals": 16, "seed": 1, "progress": False}


class Point(TypedDict):
    a: float
    b: float


def gauss(x):
    return -0.5 * float(x[0] ** 2 + 2.0 * x[1] ** 2)


def transform(cube):
    return 6.0 * cube - 3.0


@pytest.fixture(scope="module")
def result():
    return basq.infer(gauss, BOX, **FEW)


def of_names(a, b):
    assert isinstance(a, float)
    return gauss([a, b])


def of_any_names(**p):
    return gauss([p["a"], p["b"]])


def of_a_dict(p: dict):
    return gauss([p["a"], p["b"]])


def of_a_mapping(p: Mapping[str, float], power: float = 1.0):
    return power * gauss([p["a"], p["b"]])


def of_text(p: "dict[str, float]"):
    return gauss([p["a"], p["b"]])


def of_a_typed_dict(p: Point):
    return gauss([p["a"], p["b"]])


def of_names_with_defaults(b=0.0, a=0.0):
    return gauss([a, b])


@pytest.mark.parametrize(
    "function",
    [of_names, of_any_names, of_a_dict, of_a_mapping, of_text, of_a_typed_dict, of_names_with_defaults],
)
def test_the_signature_says_how_a_likelihood_takes_its_point(function, result):
    assert basq.infer(function, BOX, **FEW).log_evidence == result.log_evidence


def test_whole_batches_may_be_taken_by_name(result):
    found = basq.infer(lambda a, b: -0.5 * (a**2 + 2.0 * b**2), BOX, vectorized=True, **FEW)
    assert found.log_evidence == pytest.approx(result.log_evidence)


def test_a_simulator_may_take_its_parameters_by_name():
    model = basq.Model(lambda a, b: np.array([a, b]), gauss, BOX)
    assert basq.infer(model, **FEW).n_evals == 16


def test_parameters_without_names_are_taken_in_their_order(result):
    found = basq.infer(lambda rate, shift: gauss([rate, shift]), list(BOX.values()), **FEW)
    assert found.log_evidence == result.log_evidence


def test_other_names_are_refused_before_any_call():
    with pytest.raises(InputError, match=r"log_likelihood\(a, c\) cannot be called with a point.*by name, a, b"):
        basq.infer(lambda a, c: pytest.fail("called"), BOX, **FEW)


def test_a_dict_that_no_signature_announces_is_guessed_from_the_error():
    with pytest.raises(EvaluationError, match=r"IndexError.* If it takes a dict of names, give pass_dict=True"):
        basq.infer(lambda p: p["a"], BOX, **FEW)


@pytest.mark.parametrize(
    "prior",
    [
        {"prior": transform, "n_dim": 2},
        {"prior_transform": transform, "n_dim": 2},
        {"prior_transform": transform, "names": ["a", "b"]},
        {"prior": transform, "names": ["a", "b"]},
    ],
)
def test_a_prior_transform_in_all_its_forms(prior):
    found = basq.infer(gauss, **prior, **FEW)
    assert found.names == tuple(prior.get("names", ("x1", "x2")))


def test_a_prior_transform_and_its_dimension_by_place():
    assert basq.infer(gauss, transform, 2, **FEW).n_evals == 16
    assert basq.Sampler(transform, 2).ask(3).x.shape == (3, 2)


def test_names_for_priors_that_have_none():
    assert basq.infer(gauss, list(BOX.values()), names=["p", "q"], **FEW).names == ("p", "q")


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("ndim", "ndim=3: this is called n_dim= here"),
        ("nlive", "there are no live points: max_evals= is the most calls"),
        ("rstate", "this is called seed= here"),
        ("n_jobs", "this is called pool= here"),
        ("verbose", "this is called progress= here"),
        ("maxcall", "this is called max_evals= here"),
        ("draws", "no chain walks: max_evals="),
        ("batchsize", "this is called batch_size= here"),
        ("max_eval", r"no such argument; did you mean max_evals=\?"),
        ("colour", "no such argument; there are log_likelihood, prior,"),
    ],
)
def test_words_of_other_tools_are_answered_before_any_call(word, answer):
    with pytest.raises(InputError, match=answer):
        basq.infer(lambda x: pytest.fail("called"), BOX, **{word: 3})


def test_samplers_and_comparisons_answer_too():
    with pytest.raises(InputError, match="this is called n_dim= here"):
        basq.Sampler(transform, ndim=2)
    with pytest.raises(InputError, match="this is called pool= here"):
        basq.compare({"a": (gauss, BOX), "b": (gauss, BOX)}, n_workers=2)


def test_a_result_answers_to_short_words(result):
    assert result.n_calls == result.n_evals == 16
    assert result.samples.shape == result.sample(seed=0).shape == (4000, 2)
    assert np.array_equal(result.samples, result.samples)
    _, value = result.best
    assert value == result.best.log_likelihood == result.observations.log_likelihood.max()
    assert gauss(result.best.x) == pytest.approx(value)
    assert result.marginal(0).ppf(0.5) == result.marginal("a").ppf(0.5)
    assert result.marginal([np.int64(1), "a"]).names == ("b", "a")


@pytest.mark.parametrize("place", [2, -1, "c"])
def test_places_and_names_that_there_are_not(result, place):
    with pytest.raises(InputError, match=rf"No parameter {place!r}; this prior has 'a', 'b', by their places 0 to 1"):
        result.marginal(place)


def test_the_best_point_has_what_calls_were_made_with():
    model = basq.Model(
        lambda x: np.array([x[0], 1.0]),
        lambda output, sigma: -0.5 * float(np.sum(output**2)) / sigma**2 - 2.0 * np.log(sigma),
        {"a": (-1, 1)},
        cheap={"sigma": (0.5, 2.0)},
    )
    assert basq.infer(model, **FEW).best.x.shape == (1,)


def test_observations_say_how_many_they_are(result):
    assert repr(result.observations).startswith("<Observations: 16 points, log-likelihoods from -")
    assert len(repr(result.observations)) < 90
    assert repr(result.observations.since(16)) == "<Observations: none>"


def test_scales_have_a_shorthand():
    prior = basq.Prior({"k": basq.log_uniform(1e-3, 10)})
    assert prior.from_standard(np.array([0.0])) == pytest.approx([0.1])
    for low, high in [(0, 1), (2, 1), (1, np.inf), ("a", 2)]:
        with pytest.raises(InputError, match="give two positive numbers, the first one less"):
            basq.log_uniform(low, high)
