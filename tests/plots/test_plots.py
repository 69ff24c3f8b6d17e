"""Pictures, by their structure: what is drawn, what it is called, and that nothing is cut off or overlaps."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from scipy import stats

import basq
from basq.errors import InputError
from basq.method import Audit
from basq.plots.run import duration
from basq.plots.style import Unit, estimate, readable
from basq.results.result import Failure

LONG = "a_rather_long_parameter_name"
UNITS = {LONG: (3e-14, 5e-14), "temperature": stats.norm(298.15, 0.005), "rate": stats.lognorm(1.0)}


def small(x):
    """Parameters of very different sizes, one with a hard edge inside its posterior, and a region of zero."""
    if x["rate"] > 3.0:
        return -np.inf
    return -0.5 * (
        ((x[LONG] - 3.0e-14) / 2e-15) ** 2 + ((x["temperature"] - 298.15) / 1e-3) ** 2 + np.log(x["rate"]) ** 2 / 0.04
    )


def infer(function, prior, **options):
    return basq.infer(function, prior, **({"seed": 1, "progress": False} | options))


@pytest.fixture(scope="module")
def units():
    return infer(small, UNITS, pass_dict=True, max_evals=96)


@pytest.fixture(scope="module")
def ten():
    problem = basq.problems.gauss(10)
    return infer(problem.log_likelihood, problem.prior, vectorized=True, max_evals=112)


@pytest.fixture(scope="module")
def one():
    return infer(lambda x: -0.5 * float(x[0] / 0.5) ** 2, {"a": (0.0, 2.0)}, max_evals=32)


@pytest.fixture(scope="module")
def paper():
    method = basq.Paper(model="wsabi-m", mean="constant", n_candidates=2000, n_nystrom=100, audited=False)
    return infer(lambda x: -float(x @ x), {"a": (-2, 2), "b": (-2, 2)}, method=method, max_evals=48, dlogz=0.0)


def drawn(figure):
    """Draw, and check that every text lies inside the figure."""
    assert isinstance(figure, Figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, frame = canvas.get_renderer(), figure.bbox
    for text in texts(figure):
        box = text.get_window_extent(renderer)
        assert box.x0 >= frame.x0 - 1, text
        assert box.y0 >= frame.y0 - 1, text
        assert box.x1 <= frame.x1 + 1, text
        assert box.y1 <= frame.y1 + 1, text
    return renderer


def texts(figure):
    """Everything written in a figure that is shown."""
    out = [t for legend in figure.legends for t in legend.get_texts()]
    for axis in figure.axes:
        if not axis.axison:
            continue
        out += [axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        out += [label for a in (axis.xaxis, axis.yaxis) for label in tick_labels(a)]
        out += axis.get_legend().get_texts() if axis.get_legend() else []
    return [t for t in out if t.get_visible() and t.get_text()]


def tick_labels(axis):
    """Of the ticks in view."""
    low, high = sorted(axis.get_view_interval())
    return [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high and t.label1.get_visible()]


def labels_overlap(axis, renderer):
    """Whether two upright tick labels along x touch."""
    boxes = [t.get_window_extent(renderer) for t in tick_labels(axis.xaxis) if t.get_rotation() == 0]
    return any(a.x1 > b.x0 for a, b in itertools.pairwise(boxes))


# --- corner -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["units", "one", "paper"])
def test_corners_are_whole(name, request):
    result = request.getfixturevalue(name)
    figure = result.plot_corner(truths=result.mean)
    renderer = drawn(figure)
    d = result.prior.n_dim
    assert len(figure.axes) == d * (d + 1) // 2 + 1  # panels and a colour bar
    assert not any(labels_overlap(axis, renderer) for axis in figure.axes)
    legend = [t.get_text() for t in figure.legends[0].get_texts()]
    assert "truth" in legend
    assert ("zero likelihood" in legend) == (name == "units")


def test_a_corner_of_ten_and_of_some(ten):
    figure = ten.plot_corner()
    drawn(figure)
    assert len(figure.axes) == 56
    some = ten.plot_corner(names=["x7", "x2"])
    drawn(some)
    assert [a.get_xlabel() for a in some.axes if a.get_xlabel() and "batch" not in a.get_xlabel()] == ["x7", "x2"]


def test_tiny_numbers_get_a_unit_and_close_ones_an_offset(units):
    written = {t.get_text() for t in texts(units.plot_corner())}
    label = next(t for t in written if "10^{-14}" in t and "rather" in t)
    assert label.replace("\n", "").startswith(LONG)
    assert any("298.15" in t and "10^{-3}" in t for t in written)
    assert any(r"\times10^{-14}" in t for t in written)  # the title over its density


def test_hard_edges_are_hatched_and_the_density_ends_there(units, one):
    for result in (units, one):
        hatched = [p for axis in result.plot_corner().axes for p in axis.patches if p.get_hatch()]
        assert hatched
    panel = next(axis for axis in one.plot_corner().axes if axis.get_xlabel() == "a")
    curve = panel.lines[0].get_xdata()
    assert 0.0 < curve.min() < 0.01
    density = panel.lines[0].get_ydata()
    assert density[4] > 0.75 * density.max()  # no fall towards the edge


def test_points_are_coloured_by_batch_and_failures_marked(units):
    failure = Failure(0, np.array([3.1e-14, 298.15, 1.0]), "no", None, 1)
    figure = replace(units, failures=(failure,)).plot_corner()
    pair = figure.axes[2]
    assert sorted(len(c.get_offsets()) for c in pair.collections if len(c.get_offsets()))[0] == 1
    assert "failed call" in [t.get_text() for t in figure.legends[0].get_texts()]
    assert len(units.plot_corner(points=False).axes) == 6


def test_the_legend_names_only_marks_that_are_drawn(units):
    far = Failure(0, np.array([4.9e-14, 298.25, 40.0]), "no", None, 1)
    seen = replace(units.observations, log_likelihood=np.where(units.observations.x[:, 2] > 3.0, -np.inf, 0.0))
    nowhere = replace(seen, x=np.where(seen.x[:, 2:] > 3.0, far.x, seen.x))
    for observations, drawn_too in ((seen, True), (nowhere, False)):
        figure = replace(units, observations=observations, failures=(far,)).plot_corner()
        legend = [t.get_text() for t in figure.legends[0].get_texts()]
        assert ("zero likelihood" in legend) == drawn_too
        assert "failed call" not in legend
    assert "zero likelihood" not in [t.get_text() for t in units.plot_corner(points=False).legends[0].get_texts()]


def test_points_on_the_frame_are_whole(units):
    for axis in units.plot_corner().axes:
        for marks in (c for c in axis.collections if isinstance(c, PathCollection) and len(c.get_offsets())):
            assert not marks.get_clip_on()
            x, y = marks.get_offsets().T
            assert axis.get_xlim()[0] <= x.min() <= x.max() <= axis.get_xlim()[1]
            assert axis.get_ylim()[0] <= y.min() <= y.max() <= axis.get_ylim()[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["nothing"]}, "No parameter 'nothing'"),
        ({"names": []}, "name 1 to 12"),
        ({"names": ["rate", "rate"]}, "different ones"),
        ({"truths": [1.0]}, "one number for each"),
        ({"truths": ["a", "b", "c"]}, "one number for each"),
        ({"truths": {"rate": "much"}}, "some by name"),
        ({"truths": {"speed": 1.0}}, "No parameter 'speed'"),
    ],
)
def test_wrong_corners(units, options, message):
    with pytest.raises(InputError, match=message):
        units.plot_corner(**options)


def test_many_points_are_left_out_unless_they_are_asked_for(units):
    seen = units.observations
    many = replace(units, observations=seen.at(np.arange(400) % len(seen)))
    assert len(many.plot_corner().axes) == 6
    faded = many.plot_corner(points=True)
    alphas = {c.get_alpha() for a in faded.axes for c in a.collections if isinstance(c, PathCollection)}
    assert alphas == {np.sqrt(60 / 400)}


def test_contours_lie_above_points_and_panels_have_one_size(units):
    figure = units.plot_corner(points=True)
    for axis in figure.axes:
        marks = [c.get_zorder() for c in axis.collections if isinstance(c, PathCollection)]
        lines = [c.get_zorder() for c in axis.collections if isinstance(c, ContourSet) and not c.filled]
        assert not (marks and lines) or max(marks) < min(lines)
    sizes = np.array([a.get_position().size for a in figure.axes[1:]])
    np.testing.assert_allclose(sizes, np.broadcast_to(sizes[0], sizes.shape))


def test_several_results_in_one_picture(units):
    other = replace(units, prior=units.prior.labelled(["D", "T", "k"]))
    figure = units.plot_corner(others={"again": other}, color="C3", figsize=(5, 5), labels={"rate": "$k$"})
    assert figure.get_size_inches().tolist() == [5.0, 5.0]
    legend = [t.get_text() for t in figure.legends[0].get_texts()]
    assert legend[:4] == ["posterior", "95 % of the mass", "68 % of the mass", "again"]
    assert "prior" in legend
    assert "prior" not in [t.get_text() for t in units.plot_corner(prior=False).legends[0].get_texts()]
    assert "$k$" in [a.get_xlabel() for a in figure.axes]
    assert any("$k$ = " in a.get_title() for a in figure.axes)
    curves = [line for a in figure.axes for line in a.lines if len(line.get_xdata()) == 400]
    assert len(curves) == 9  # of three parameters: two posteriors and the prior


def test_the_prior_is_drawn_with_its_density(one):
    (axis,) = (a for a in one.plot_corner().axes if a.get_xlabel() == "a")
    drawn_prior = axis.lines[-1]
    assert drawn_prior.get_ydata() == pytest.approx(np.exp(one.prior.log_pdf(drawn_prior.get_xdata()[:, None])))


def test_truths_by_name(units):
    by_name, by_place = units.plot_corner(truths={"rate": 1.3}), units.plot_corner(truths=[np.nan, np.nan, 1.3])
    lines = [[tuple(line.get_xdata()) for axis in f.axes for line in axis.get_lines()] for f in (by_name, by_place)]
    assert lines[0] == lines[1]
    assert (1.3, 1.3) in lines[0]


def test_the_numbers_of_a_title_are_in_the_unit_of_its_axis(units):
    crossing = basq.Prior({LONG: (9e-14, 1.5e-13), "temperature": (298.0, 299.0), "rate": (0.0, 5.0)})
    figure = replace(units, prior=crossing).plot_corner(names=LONG)
    (axis,) = (a for a in figure.axes if a.get_title())
    assert axis.get_xlabel().endswith("[$10^{-13}$]")
    assert axis.get_title().startswith("$0.9")
    assert axis.get_title().endswith(r"\times10^{-13}$")


@pytest.mark.parametrize("shown", [(-1.08, 1.08), (0.0, 1.0), (-0.04, 1.04), (2.9e-14, 3.9e-14), (-3.3, 9.1)])
@pytest.mark.parametrize("n_ticks", [3, 4, 6])
def test_every_axis_has_two_numbers(shown, n_ticks):
    axis = Figure().subplots()
    Unit.of(*shown).apply(axis.xaxis, shown, n_ticks)
    assert len(axis.get_xticks()) >= 2


def test_a_known_density_is_drawn_where_it_is():
    """Contours of a Gaussian with correlation 0.8 hold the right mass."""
    cov = np.array([[1.0, 0.8], [0.8, 1.0]])
    precision = np.linalg.inv(cov)
    result = infer(lambda x: -0.5 * float(x @ precision @ x), {"a": (-9, 9), "b": (-9, 9)}, max_evals=64)
    pair = next(a for a in result.plot_corner().axes if a.get_ylabel() == "b")
    filled = next(c for c in pair.collections if len(c.get_paths()) == 2)
    samples = np.random.default_rng(0).multivariate_normal([0, 0], cov, 4000)
    for path, mass in zip(filled.get_paths(), (0.95, 0.68), strict=True):
        inside = path.contains_points(samples).mean()
        assert inside == pytest.approx(mass, abs=0.04)


# --- run, calibration, slices, time -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["units", "one", "paper", "ten"])
def test_run_plots(name, request):
    result = request.getfixturevalue(name)
    figure = result.plot_run(truth=result.log_evidence + 0.01)
    drawn(figure)
    assert len(figure.axes) == (1 if name == "paper" else 3)
    legend = [t.get_text() for t in figure.axes[0].get_legend().get_texts()]
    assert {"log Z ± 2 sd", "truth"} <= set(legend)
    assert ("converged" in legend) == result.converged
    low, high = figure.axes[0].get_ylim()
    assert low < result.log_evidence < high


def test_bars_that_leave_the_frame_are_marked(one):
    wide, narrow = (replace(one.history[-1], log_evidence_std=sd) for sd in (5.0, 0.01))
    axis = replace(one, history=(wide, narrow, narrow)).plot_run().axes[0]
    marks = [line.get_marker() for line in axis.lines if line.get_marker() in ("v", "^")]
    assert marks == ["v", "^"]
    assert "outside the frame" in [t.get_text() for t in axis.get_legend().get_texts()]


def test_audits_beyond_the_frame_are_marked(units):
    sizes = ((1e-4, 9.0), (1.0, 0.01), (1.0, 0.01), (1.0, -0.01))
    audits = tuple(Audit(16 * i, 4, z2, 0.1, ratio, False, (1.0,) * 4) for i, (z2, ratio) in enumerate(sizes))
    history = units.history[-1:] * len(audits)
    _, ratio, rms = replace(units, audits=audits, history=history).plot_run().axes
    for axis, marker, drawn_as in ((ratio, "^", "s"), (rms, "v", "D")):
        (beyond,) = (line for line in axis.lines if line.get_marker() == marker)
        (inside,) = (line for line in axis.lines if line.get_marker() == drawn_as)
        assert len(beyond.get_xdata()) == 1
        assert np.isfinite(inside.get_ydata()).sum() == 3
    assert "below 0.1" in [t.get_text() for t in rms.get_legend().get_texts()]


def test_audits_stand_under_their_batches_where_calls_failed():
    def sometimes(x):
        return None if x[0] > 1.0 else -0.5 * float(x @ x) / 0.1

    some = infer(sometimes, {"a": (-2, 2), "b": (-2, 2)}, max_evals=64, dlogz=0.0)
    assert some.failures
    _, ratio, rms = some.plot_run().axes
    after = [r.n_evals for r in some.history[1:]]
    for axis in (ratio, rms):
        (marks,) = (line for line in axis.get_lines() if line.get_marker() in ("s", "D"))
        assert list(marks.get_xdata()) == after


def test_a_run_plot_of_a_run_that_found_nothing():
    nothing = infer(lambda x: -np.inf, {"a": (0, 1)}, batch_size=4, max_evals=20)
    figure = nothing.plot_run()
    drawn(figure)
    assert figure.axes[0].texts[0].get_text() == "no evidence yet"
    drawn(nothing.plot_time())
    with pytest.raises(InputError, match="no posterior"):
        nothing.plot_corner()
    with pytest.raises(InputError, match="no surrogate to slice"):
        nothing.plot_slices()
    with pytest.raises(InputError, match="no audits"):
        nothing.plot_calibration()


def test_calibration(units, paper):
    figure = units.plot_calibration()
    drawn(figure)
    tested = [a for a in units.audits if a.n_inside]
    assert all(len(a.z) == a.n_inside for a in tested)
    for a in tested:
        assert np.mean(np.square(a.z)) == pytest.approx(a.z2)
    n_drawn = sum(len(line.get_xdata()) for line in figure.axes[1].lines if line.get_marker() == ".")
    assert n_drawn == sum(a.n_inside for a in tested)
    with pytest.raises(InputError, match="method='auto'"):
        paper.plot_calibration()


def test_calibration_of_many_batches_keeps_the_last_apart(units):
    rng = np.random.default_rng(0)
    audits = tuple(
        Audit(16 * i, 12, 1.0, 0.1, 0.0, i == 1, tuple(rng.standard_normal(12)), 3, 6.0) for i in range(2, 9)
    )
    many = replace(units, audits=audits)
    words = [t.get_text() for t in many.plot_calibration().legends[0].get_texts()]
    assert any(w.startswith("last 3 batches: 36 points") and w.endswith("(accepted up to 2.4)") for w in words)
    assert any(w.startswith("earlier batches: 48 points") for w in words)


@pytest.mark.parametrize("name", ["units", "one", "paper", "ten"])
def test_slices(name, request):
    result = request.getfixturevalue(name)
    figure = result.plot_slices()
    drawn(figure)
    assert sum(axis.axison for axis in figure.axes) == result.prior.n_dim


def test_slices_show_the_likelihood(one):
    """Of an exact function, the surrogate's slice is that function, and its band holds it."""
    axis = one.plot_slices(through="mean").axes[0]
    t, y = axis.lines[0].get_data()
    inside = t < 1.0
    np.testing.assert_allclose(y[inside], -0.5 * (t[inside] / 0.5) ** 2, atol=0.05)


def test_slices_of_large_numbers_are_written_in_full(one):
    moved = replace(one, observations=one.observations.since(len(one.observations)), surrogate=Unsure(-40_000.0))
    figure = moved.plot_slices(through="mean")
    drawn(figure)
    (axis,) = figure.axes
    assert axis.yaxis.get_offset_text().get_text() == ""
    assert all(t.get_text().startswith("−") and len(t.get_text()) >= 6 for t in tick_labels(axis.yaxis))


class Unsure:
    """A surrogate to which a parameter makes no difference, as far as it knows."""

    def __init__(self, level=0.0):
        self.level = level

    def band(self, u):
        return self.level + np.stack([np.full(len(u), level) for level in (-3.0, 0.0, 3.0)])


def test_the_band_of_a_parameter_without_influence_has_edges(one):
    axis = replace(one, surrogate=Unsure()).plot_slices().axes[0]
    low, high = axis.get_ylim()
    assert -6.0 < low < -3.0
    assert 3.0 < high < 6.0


def test_slices_survive_pickling_and_say_what_is_wrong(units):
    again = pickle.loads(pickle.dumps(units))
    before, after = (r.plot_slices(names="rate").axes[0].lines[0].get_ydata() for r in (units, again))
    np.testing.assert_array_equal(before, after)
    for through in ("middle", [1.0]):
        with pytest.raises(InputError, match="'best', 'mean' or one value"):
            units.plot_slices(through=through)


def test_zero_likelihood_leaves_a_gap_in_a_slice():
    def cut(x):
        return -np.inf if x[0] > 0.4 else -0.5 * float(x @ x) / 0.04

    result = infer(cut, {"a": (-1, 1), "b": (-1, 1)}, max_evals=80)
    t, y = result.plot_slices(names="a").axes[0].lines[0].get_data()
    assert np.isfinite(y[t < 0.3]).all()
    assert np.isnan(y[t > 0.55]).all()


def test_time(units):
    figure = units.plot_time()
    drawn(figure)
    axis = figure.axes[0]
    total = sum(bar.get_height() for bars in axis.containers for bar in bars)
    assert total == pytest.approx(sum(sum(r.seconds.values()) for r in units.history))
    assert axis.get_ylabel() == "seconds a batch"


# --- words and numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (2e-4, "< 1 ms"),
        (0.012, "12 ms"),
        (3.44, "3.4 s"),
        (310.0, "5 min 10 s"),
        (12_000.0, "3 h 20 min"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("shown", "value", "text"),
    [
        ((0.0, 1.0), 0.25, "0.25"),
        ((3e-14, 4e-14), 3.5e-14, "3.5"),
        ((-2e6, 1e6), -1e6, "−1"),
        ((5.0, 5.00001), 5.0, "0"),
        ((12345.0, 12347.0), 12345.5, "12345.5"),
    ],
)
def test_units(shown, value, text):
    assert Unit.of(*shown).write(value) == text


@pytest.mark.parametrize(
    ("quantiles", "text"),
    [
        ((0.7, 1.0, 1.5), "$1.00^{+0.50}_{-0.30}$"),
        ((-0.2, -0.0004, 0.2), "$0.00^{+0.20}_{-0.20}$"),
        ((3.8e-14, 3.9e-14, 4.0e-14), r"$3.90^{+0.10}_{-0.10}\times10^{-14}$"),
        ((1.0, 1.0, 1.0), "$1.0^{+0.0}_{-0.0}$"),
    ],
)
def test_estimates(quantiles, text):
    assert estimate(*quantiles) == text


@pytest.mark.parametrize(
    ("quantiles", "exponent", "text"),
    [
        ((12345.63, 12345.87, 12346.11), 4, "$12345.87^{+0.24}_{-0.24}$"),
        ((9e3, 1.2e4, 1.5e4), 4, r"$1.20^{+0.30}_{-0.30}\times10^{4}$"),
        ((1.1e-4, 1.2e-4, 1.3e-4), -4, r"$1.20^{+0.10}_{-0.10}\times10^{-4}$"),
    ],
)
def test_an_exponent_has_to_shorten_the_number(quantiles, exponent, text):
    assert estimate(*quantiles, exponent) == text


def test_names():
    assert readable("$\\sigma_8$") == "$\\sigma_8$"
    assert readable("a $ b") == r"a \$ b"
    assert readable("$\\nonsense{$") == r"\$\nonsense{\$"
    assert readable("short_name") == "short_name"
    assert (
        readable("diffusivity_of_the_negative_electrode").replace("\n", "") == "diffusivity_of_the_negative_electrode"
    )
    assert readable("x" * 200).count("\n") <= 2
