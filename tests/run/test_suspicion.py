"""A likelihood that forgot its logarithm, has the wrong sign, or is a χ², gets a note."""

import numpy as np
import pytest

import basq

BOX = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}


def notes(function):
    found = basq.infer(function, BOX, max_evals=16, seed=1, progress=False, method="paper")
    assert all(note in str(found) for note in found.notes)
    return " ".join(found.notes)


def chi2(x):
    return float(x @ x) + 1.0


def test_a_likelihood_without_its_logarithm():
    assert "between 0 and 1, as likelihoods do" in notes(lambda x: float(np.exp(-0.5 * chi2(x))))


def test_a_misfit_and_a_wrong_sign():
    assert "instead of χ² return -χ²/2" in notes(chi2)
    assert "instead of a negative log-likelihood its opposite" in notes(lambda x: 0.5 * chi2(x) + 3.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -0.5 * chi2(x),
        lambda x: 100.0 - chi2(x),  # a density of precise data
        lambda x: -np.inf if x[0] > 2.0 else -chi2(x),
        lambda x: 0.5,
    ],
)
def test_a_log_likelihood_gets_none(function):
    assert notes(function) == ""
