"""What counts as a value of the likelihood: real numbers, and nothing that NumPy would only make one."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from basq.evaluation.call import Call

DAY = np.datetime64("2020-01-01")
RAGGED = [np.zeros((2, 1)), np.zeros((2, 2)), np.zeros((2, 1))]
NOT_NUMBERS = {
    "masked": np.ma.masked,
    "masked array": np.ma.array([1.0], mask=[True]),
    "masked scalar": np.ma.array(1.0, mask=True),
    "masked in a list": [np.ma.masked],
    "masked array in a list": [np.ma.array([1.0], mask=[True])],
    "masked array as an object": np.array([np.ma.array(1.0, mask=True)], dtype=object),
    "True": True,
    "False": False,
    "True of NumPy": np.True_,
    "array of True": np.array([True]),
    "True as an object": np.array(True, dtype=object),
    "True in a list": [True],
    "date": DAY,
    "array of dates": np.array([DAY]),
    "date of pandas": pd.Timestamp("2020-01-01"),
    "duration": np.timedelta64(3, "s"),
    "duration of Python": timedelta(seconds=3),
    "missing": pd.NA,
    "no time": pd.NaT,
    "text": "1.5",
    "bytes": b"1.5",
    "text of NumPy": np.array("1.5"),
    "text in a list": ["1.5"],
    "text as an object": np.array("1.5", dtype=object),
    "None": None,
    "None as an object": np.array(None),
    "complex": 1.0 + 0.0j,
    "complex as an object": np.array(1.0 + 0.0j, dtype=object),
    "record": np.array((1.5,), dtype=[("value", float)]),
    "function": np.sin,
    "dict": {"value": 1.5},
    "set": {1.5},
}
NUMBERS = {
    "float": 1.5,
    "of NumPy": np.float32(1.5),
    "array": np.array(1.5),
    "array of one": np.array([[1.5]]),
    "list of one": [1.5],
    "array that masks nothing": np.ma.array([1.5], mask=[False]),
    "decimal": Decimal("1.5"),
    "fraction": Fraction(3, 2),
    "object": np.array(1.5, dtype=object),
    "series": pd.Series([1.5], index=["value"]),
}


def one(value):
    """The outcome of a call that gives this."""
    return Call(lambda x: value, ("a",)).attempt(np.ones((1, 1)))[0]


def many(values):
    """The outcomes of a vectorised call at a = 0, 1, …."""
    x = np.arange(3.0)[:, None]
    return Call(lambda x: values, ("a",), vectorized=True).attempt(x)


@pytest.mark.parametrize("value", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_what_is_no_number_is_a_failure(value):
    outcome = one(value)
    assert outcome.log_likelihood is None
    assert outcome.traceback is None  # a sentence about the value, not an error from the inside of NumPy
    assert outcome.error.startswith("log_likelihood returned ")
    assert outcome.error.endswith(" at a = 1; it must return a number, finite or -inf (zero likelihood).")


@pytest.mark.parametrize("value", NUMBERS.values(), ids=NUMBERS)
def test_every_kind_of_real_number_is_a_value(value):
    outcome = one(value)
    assert (outcome.log_likelihood, outcome.error) == (1.5, None)
    assert type(outcome.log_likelihood) is float


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), 3.0])
def test_integers_are_values(value):
    assert one(value).log_likelihood == 3.0


def test_minus_infinity_is_zero_likelihood():
    assert one(-np.inf).log_likelihood == -np.inf
    assert one(np.float32(-np.inf)).log_likelihood == -np.inf


@pytest.mark.parametrize(
    ("value", "text"),
    [(np.nan, "nan"), (np.inf, "inf"), (Decimal("NaN"), "nan"), (10**400, "1000"), (-(10**400), "-1000")],
    ids=["nan", "inf", "decimal", "large", "small"],
)
def test_what_is_not_finite_is_a_failure(value, text):
    outcome = one(value)
    assert outcome.log_likelihood is None
    assert outcome.traceback is None
    assert f"returned {text}" in outcome.error
    assert "finite" in outcome.error


# --- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        np.ma.masked,
        True,
        np.True_,
        DAY,
        np.timedelta64(3, "s"),
        pd.NA,
        pd.NaT,
        "1.5",
        b"1.5",
        None,
        1.0j,
        np.nan,
        10**400,
    ],
    ids=lambda bad: repr(bad)[:20],
)
def test_a_row_that_is_no_number_costs_only_itself(bad):
    outcomes = many([1.0, bad, 2.0])
    assert [o.log_likelihood for o in outcomes] == [1.0, None, 2.0]
    assert " at a = 1; " in outcomes[1].error


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_what_is_under_the_mask_of_an_array_is_no_value(shape):
    values = np.ma.array([1.0, 5.0, 2.0], mask=[False, True, False]).reshape(shape)
    outcomes = many(values)
    assert [o.log_likelihood for o in outcomes] == [1.0, None, 2.0]
    assert "returned masked" in outcomes[1].error
    assert " at a = 1; it must return a number" in outcomes[1].error


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False, True]),
        [True, False, True],
        np.array([DAY] * 3),
        ["1", "2", "3"],
        np.array(["1", "2", "3"]),
        np.ones(3) + 0.0j,
        pd.Series([True, False, True]),
        pd.Series(pd.to_datetime(["2020-01-01"] * 3)),
    ],
    ids=repr,
)
def test_a_batch_without_a_number_is_told_once(values):
    outcomes = many(values)
    assert [o.log_likelihood for o in outcomes] == [None] * 3
    assert {o.traceback for o in outcomes} == {None}
    assert "not numbers" in outcomes[0].error


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, -np.inf, 2.0]),
        [1.0, -np.inf, 2.0],
        (1.0, -np.inf, 2.0),
        np.array([[1.0], [-np.inf], [2.0]]),
        [[1.0], [-np.inf], [2.0]],
        np.array([1.0, -np.inf, 2.0], dtype=object),
        np.array([1.0, -np.inf, 2.0], dtype=np.float32),
        pd.Series([1.0, -np.inf, 2.0], index=[5, 6, 7]),
    ],
    ids=repr,
)
def test_batches_of_numbers_are_values(values):
    outcomes = many(values)
    assert [o.log_likelihood for o in outcomes] == [1.0, -np.inf, 2.0]
    assert {type(o.log_likelihood) for o in outcomes} == {float}


@pytest.mark.parametrize(
    "values",
    [
        1.0,
        None,
        [1.0, 2.0],
        [[1.0, 2.0]] * 3,
        [[1.0], [1.0, 2.0], 3.0, 4.0],
        {"a": 1.0},
        iter([1.0, 2.0, 3.0]),
        RAGGED,
    ],
)
def test_a_batch_of_the_wrong_form_is_a_failure(values):
    outcomes = many(values)
    assert [o.log_likelihood for o in outcomes] == [None] * 3
    assert {o.traceback for o in outcomes} == {None}


def test_a_batch_of_different_shapes_says_so():
    assert "whose parts have different shapes; it must return a number" in many(RAGGED)[0].error


# --- noise ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sd", [True, np.ma.masked, np.timedelta64(1), "0.1", 1j, np.zeros(2)], ids=repr)
def test_a_noise_that_is_no_number_is_a_failure(sd):
    outcome = one((1.0, sd))
    assert outcome.log_likelihood is None
    assert "as the noise of its value" in outcome.error
    outcomes = many(([1.0, 2.0, 3.0], [0.1, sd, 0.3]))
    assert [o.log_likelihood for o in outcomes] == [1.0, None, 3.0]
    assert [o.noise for o in outcomes] == [0.1, 0.0, 0.3]


@pytest.mark.parametrize("sd", [np.nan, np.inf, -1.0])
def test_a_noise_that_no_noise_can_have_is_a_failure(sd):
    for outcome in (one((1.0, sd)), many((np.ones(3), np.array([0.1, sd, 0.3])))[1]):
        assert f"a noise standard deviation of {sd} at a = 1; it must be finite, and 0 or more" in outcome.error


def test_a_noise_that_nobody_knows_is_a_value():
    assert np.isnan(one((1.0, None)).noise)
    assert np.isnan([o.noise for o in many((np.ones(3), None))]).all()
