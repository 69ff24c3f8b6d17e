"""The picture of the output over the posterior, by its structure."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy import stats

import basq
from basq.errors import InputError
from basq.plots.predictive import LEVELS, N_SAMPLES

TIMES = np.linspace(0.0, 2.0, 9)
DATA = 2.0 * np.exp(-TIMES)
BANDS = ["95 %", "68 %", "median"]


def run(keep):
    model = basq.Model(
        lambda x: x[0] * np.exp(-x[1] * TIMES),
        lambda output, sigma: stats.norm.logpdf(DATA, curve(output), sigma).sum(),
        {"a": (0.0, 4.0), "k": (0.0, 3.0)},
        {"sigma": stats.lognorm(0.5, scale=0.1)},
        keep,
    )
    return basq.infer(model, seed=1, max_evals=80, progress=False)


def curve(output):
    """The first curve of an output of any form."""
    return np.ravel(output["all"] if isinstance(output, dict) else output)[:9]


def rows(output):
    return np.stack([output * k for k in range(1, 9)])


def named(output):
    return {"all": output, "first": float(output[0]), "pair": np.stack([output, output**2])}


@pytest.fixture(scope="module")
def line():
    return run(None)


@pytest.fixture(scope="module")
def several():
    return run(rows)


@pytest.fixture(scope="module")
def dictionary():
    return run(named)


def drawn(figure):
    """Draw; the titles of the panels that are shown, and the words of the legend."""
    FigureCanvasAgg(figure).draw()
    titles = [axis.get_title() for axis in figure.axes if axis.axison]
    return titles, [text.get_text() for text in figure.legends[0].get_texts()]


def noise(output, rng, sigma):
    return output + sigma * rng.standard_normal(np.shape(output))


def test_bands_are_the_quantiles_and_data_lie_over_them(line):
    order = np.array([3, 1, 0, 2, 4, 5, 8, 7, 6])
    figure = line.plot_predictive(DATA, TIMES, noise=noise)
    assert drawn(figure) == ([""], ["95 % of data", *BANDS, "data"])
    median, data = figure.axes[0].get_lines()
    expected = line.predict(LEVELS, n=N_SAMPLES)
    np.testing.assert_allclose(median.get_xydata(), np.stack([TIMES, expected[2]], axis=1))
    np.testing.assert_allclose(data.get_xydata(), np.stack([TIMES, DATA], axis=1))
    outer = figure.axes[0].collections[1].get_paths()[0].get_extents()
    assert outer.y1 == pytest.approx(expected[4].max())
    # x need not be in order: lines are
    shuffled = line.plot_predictive(None, 10.0 + order).axes[0].get_lines()[0]
    np.testing.assert_allclose(shuffled.get_xydata()[order], np.stack([10.0 + order, expected[2]], axis=1))


def test_rows_have_panels_of_their_own(several):
    figure = several.plot_predictive(rows(DATA), TIMES)
    assert drawn(figure) == ([f"row {k}" for k in range(6)], [*BANDS, "data"])
    assert "6 of 8" in figure.get_supxlabel()
    assert drawn(several.plot_predictive(names=[7, 0]))[0] == ["row 7", "row 0"]
    assert drawn(several.plot_predictive(names=3))[0] == ["row 3"]


def test_keys_have_panels_of_their_own(dictionary):
    figure = dictionary.plot_predictive({"first": 2.0, "pair": [DATA, np.full(9, np.nan)]}, {"all": TIMES})
    assert drawn(figure) == (["all", "first", "pair, row 0", "pair, row 1"], [*BANDS, "data"])
    shown = [axis for axis in figure.axes if axis.axison]
    assert [len(axis.get_lines()) for axis in shown] == [1, 2, 2, 2]
    assert [axis.get_xlabel() for axis in shown] == ["", "index", "index", "index"]
    number = shown[1].get_lines()[0].get_xydata()  # one number is drawn as a bar
    assert number[0, 0] < 0.0 < number[1, 0]
    assert drawn(dictionary.plot_predictive(names="pair"))[0] == ["pair, row 0", "pair, row 1"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"data": DATA[:4]}, r"data has the shape \(4,\); the output has 9 numbers"),
        ({"x": TIMES[:4]}, r"x has the shape \(4,\)"),
        ({"data": {"a": DATA}}, "data is a dict"),
        ({"names": "a"}, "names='a'"),
        ({"names": []}, "at most 6"),
    ],
)
def test_wrong_arguments_are_told(line, arguments, told):
    with pytest.raises(InputError, match=told):
        line.plot_predictive(**arguments)


def test_what_is_no_line_is_told():
    model = basq.Model(lambda x: x[0] * np.ones((2, 2, 2)), lambda output: -float(output[0, 0, 0] ** 2), {"a": (-2, 2)})
    found = basq.infer(model, seed=1, max_evals=24, progress=False)
    with pytest.raises(InputError, match="3 axes"):
        found.plot_predictive()
    assert found.predict(0.5).shape == (2, 2, 2)
