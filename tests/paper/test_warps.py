"""Warps: inverses, offsets and the values that have no logarithm or square root."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from basq.paper.warps import ShiftedLog, SquareRoot

RUN = settings(max_examples=100, derandomize=True, deadline=None)
arrays = hnp.arrays(float, st.integers(1, 20), elements=st.floats(-1e3, 1e3))
positive = hnp.arrays(float, st.integers(1, 20), elements=st.floats(1e-6, 1e3))


@RUN
@given(arrays)
def test_square_root_inverts_for_any_sign(values):
    values.flags.writeable = False
    warp = SquareRoot.below(values)
    y = warp.forward(values)
    assert (y >= 0.0).all()
    np.testing.assert_allclose(warp.inverse(y), values, rtol=1e-12, atol=1e-12 * np.abs(values).max())


@RUN
@given(positive)
def test_offset_of_positive_values_is_the_papers(values):
    assert SquareRoot.below(values).offset == pytest.approx(0.8 * values.min(), rel=1e-14)


@RUN
@given(arrays)
def test_offset_is_never_above_the_data(values):
    offset = SquareRoot.below(values).offset
    assert offset <= values.min()
    assert offset == pytest.approx(values.min() - 0.2 * abs(values.min()), rel=1e-14, abs=1e-300)


def test_offset_below_a_negative_minimum():
    values = np.array([-2.0, 1.0, 5.0])
    warp = SquareRoot.below(values)
    assert warp.offset == pytest.approx(-2.4)
    np.testing.assert_allclose(warp.forward(values), np.sqrt(2.0 * (values + 2.4)), rtol=1e-14)


def test_zero_minimum_has_no_offset():
    values = np.array([0.0, 0.5, 1.0])
    warp = SquareRoot.below(values)
    assert warp.offset == 0.0
    np.testing.assert_allclose(warp.forward(values), [0.0, 1.0, np.sqrt(2.0)], rtol=1e-14)


def test_square_root_of_values_below_the_offset_is_zero():
    np.testing.assert_array_equal(SquareRoot(1.0).forward(np.array([0.0, 1.0, 1.5])), [0.0, 0.0, 1.0])


def test_square_root_inverse_ignores_the_sign():
    warp = SquareRoot(-0.3)
    y = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(warp.inverse(y), [0.2, -0.3, 1.7], rtol=1e-14)


@RUN
@given(hnp.arrays(float, st.integers(1, 20), elements=st.floats(0.0, 1e3)), st.floats(1e-3, 1e2))
def test_shifted_log_inverts(values, shift):
    values.flags.writeable = False
    warp = ShiftedLog(shift)
    y = warp.forward(values)
    np.testing.assert_allclose(y, np.log(values / shift + 1.0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(warp.inverse(y), values, rtol=1e-11, atol=1e-300)


def test_shifted_log_of_zero_and_below():
    np.testing.assert_array_equal(ShiftedLog(0.01).forward(np.array([0.0, -1.0])), [0.0, 0.0])


def test_shifted_log_keeps_small_values():
    warp = ShiftedLog(1.0)
    values = np.array([1e-18, 1e-12])
    np.testing.assert_allclose(warp.inverse(warp.forward(values)), values, rtol=1e-12)
