"""Outputs between evaluated points, against the functions that they came from."""

import numpy as np
import pytest
from scipy import stats

from basq.errors import InputError
from basq.outputs.emulator import Emulator
from basq.outputs.layout import Layout, Table


def normal(points):
    return stats.norm.logpdf(points).sum(axis=1)


def learned(function, n=60, d=2, spread=1.3, seed=0):
    """An emulator of a function over N(0, I), and samples of that with the function's values."""
    rng = np.random.default_rng(seed)
    u, samples = spread * rng.standard_normal((n, d)), rng.standard_normal((2000, d))
    emulator = Emulator.learn(u, np.stack([function(row) for row in u]), normal(u), samples)
    return emulator, emulator(samples), np.stack([function(row) for row in samples])


def test_linear_and_quadratic_functions_are_found_again():
    a = np.random.default_rng(1).standard_normal((7, 2))
    for function in (lambda u: a @ u + 3.0, lambda u: (a @ u) ** 2):
        emulator, found, exact = learned(function)
        np.testing.assert_allclose(found, exact, atol=0.03 * exact.std())
        assert emulator.error < 0.01


def test_entries_of_all_sizes_are_as_accurate():
    emulator, found, exact = learned(lambda u: np.array([1e9 * np.sin(u[0]), 1e-9 * np.exp(0.5 * u[1]), 5.0]))
    wrong = np.sqrt(np.mean((found - exact) ** 2, axis=0))
    assert (wrong[:2] < 0.01 * exact.std(axis=0)[:2]).all()
    assert emulator.error < 0.01
    np.testing.assert_allclose(found[:, 2], 5.0)


def test_what_never_varies_needs_no_component():
    emulator, found, _ = learned(lambda u: np.array([2.0, -1.0]))
    assert len(emulator.basis) == 0
    assert emulator.error == 0.0
    np.testing.assert_array_equal(found, np.tile([2.0, -1.0], (2000, 1)))


def test_an_entry_that_is_never_a_number_stays_so():
    emulator, found, exact = learned(lambda u: np.array([u[0], np.nan]))
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_allclose(found[:, 0], exact[:, 0], atol=0.01)
    assert emulator.error < 0.01


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_error_is_the_one_that_is_made(noise):
    """Against the values of a function too steep for the points, or with noise that nothing can predict."""
    rng = np.random.default_rng(3)

    def steep(u):
        return np.array([np.sin(3.0 * u[0] + 2.0 * u[1]) + noise * rng.standard_normal()])

    emulator, found, exact = learned(steep, n=40)
    made = np.sqrt(np.mean((found - exact) ** 2)) / found.std()
    assert made > 0.05
    assert 0.5 * made < emulator.error < 2.0 * made


def test_wild_outputs_far_away_do_not_spoil_it():
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.standard_normal((50, 2)), 6.0 + rng.standard_normal((50, 2))])
    samples = rng.standard_normal((1000, 2))

    wild = np.exp(np.clip(4.0 * u[:, 1] - 8.0, 0.0, None))
    values = np.stack([u[:, 0] + wild, u[:, 1]], axis=1)
    emulator = Emulator.learn(u, values, normal(u), samples)
    inside = np.abs(samples).max(axis=1) < 1.5
    np.testing.assert_allclose(emulator(samples)[inside][:, 0], samples[inside][:, 0] + 1.0, atol=0.05)


def test_too_few_outputs_are_told():
    with pytest.raises(InputError, match=r"3 outputs .* over 2 parameters: at least 4"):
        learned(lambda u: u, n=3)


@pytest.mark.parametrize(
    "output", [1.5, np.arange(3.0), np.ones((2, 3), dtype=int), {"a": np.arange(2.0), "b": 3, "c": np.ones((2, 2))}]
)
def test_rows_become_outputs_again(output):
    layout = Layout.of(output)
    row = layout.row(output)
    assert row.shape == (layout.size,)
    back = layout.shaped(np.stack([row, row + 1.0]))
    for key in output if isinstance(output, dict) else [None]:
        mine, own = (back, output) if key is None else (back[key], output[key])
        np.testing.assert_array_equal(mine, np.stack([np.asarray(own), np.asarray(own) + 1.0]))


def test_texts_in_a_dict_are_left_out():
    layout = Layout.of({"name": "cell 3", "v": np.ones(2)})
    assert layout.keys == ("v",)
    assert set(layout.shaped(np.ones((4, 2)))) == {"v"}


def test_what_has_no_quantiles_is_told():
    with pytest.raises(InputError, match="under 'z' is complex"):
        Layout.of({"z": np.array([1j])})
    with pytest.raises(InputError, match="texts"):
        Layout.of(np.array(["a"]))


def test_outputs_without_numbers_are_left_out():
    table = Table.of([None, np.ones(2), np.array([1.0, np.inf]), np.zeros(2)], np.arange(4), "simulate")
    assert table.calls.tolist() == [1, 3]
    np.testing.assert_array_equal(table.values, [[1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(InputError, match="No call"):
        Table.of([None, None], np.arange(2), "simulate")
    with pytest.raises(InputError, match="NaN or infinite"):
        Table.of([np.array([np.nan]), np.array([np.inf])], np.arange(2), "simulate")


@pytest.mark.parametrize(
    ("strange", "told"),
    [((4,), "call 104"), ((2, 4, 5), "calls 102, 104 and 105"), (range(1, 11), "calls 101, .*, 108 and 2 more")],
)
def test_a_change_of_shape_names_the_calls(strange, told):
    outputs = [np.ones(3 if i in strange else 2) for i in range(30)]
    with pytest.raises(InputError, match=rf"\(2,\) mostly, but an array \(3,\) at {told}\."):
        Table.of(outputs, np.arange(100, 130), "simulate")
    with pytest.raises(InputError, match=r"'w'"):
        Table.of([{"v": 1.0}, {"v": 1.0}, {"w": 1.0}], np.arange(3), "simulate")
