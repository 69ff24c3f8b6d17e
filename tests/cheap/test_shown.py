"""Results of models in words, tables, pictures and other packages: cheap parameters belong to the posterior only."""

import numpy as np
import pytest

import basq
from helpers.models import infer, line, model


def failing(x):
    if x[0] > 2.0:
        raise RuntimeError("diverged")
    return line(x)


@pytest.fixture(scope="module")
def result():
    return infer(model(failing), max_evals=64)


def test_one_line_says_what_was_integrated(result):
    said = "sigma was integrated over at every call; the calls were spent on a and b."
    assert said in str(result).splitlines()
    assert said in result._repr_html_()
    assert "parameters a, b, sigma" in repr(result)


def test_the_report_has_failures_and_slices_of_the_called_parameters(result, tmp_path):
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "sigma was integrated over at every call" in page
    assert "<td>cheap parameters</td>" in page.replace(' class="text"', "") or "cheap parameters" in page
    assert "simulate raised RuntimeError: diverged (test_shown.py, line" in page
    x = result.failures[0].x
    assert f"a = {x[0]:.6g}, b = {x[1]:.6g}" in page


def test_slices_leave_out_cheap_parameters(result):
    figure = result.plot_slices()
    assert [axis.get_xlabel() for axis in figure.axes if axis.get_xlabel()] == ["a", "b"]
    with pytest.raises(basq.InputError, match="sigma was integrated over at every call; there are slices of a, b"):
        result.plot_slices(names=["a", "sigma"])


def test_the_corner_plot_shows_points_of_calls_only(result):
    figure = result.plot_corner()
    rows = {axis.get_ylabel(): axis for axis in figure.axes if axis.get_ylabel()}
    assert rows["b"].collections[-1].get_offsets().size or len(rows["b"].collections) > 2
    drawn = {name: sum(type(c).__name__ == "PathCollection" for c in axis.collections) for name, axis in rows.items()}
    assert drawn == {"b": 3, "sigma": 0}
    result.plot_corner(names="sigma", truths={"sigma": 0.2})
    result.plot_run()
    result.plot_time()
    result.plot_calibration()


def test_tables_and_exports_have_all_parameters(result):
    assert [row.parameter for row in result.summary()] == ["a", "b", "sigma"]
    pytest.importorskip("pandas")
    assert list(result.to_pandas(n=10).columns) == ["a", "b", "sigma"]
    evaluations = result.to_pandas("evaluations")
    assert list(evaluations.columns) == ["a", "b", "log_likelihood", "noise", "explores", "batch"]
    np.testing.assert_array_equal(evaluations["a"], result.observations.x[:, 0])


def test_arviz(result):
    pytest.importorskip("arviz")
    data = result.to_arviz(n=50)
    for group in (data.posterior, data.prior):
        assert {"a", "b", "sigma"} <= set(group)
    assert np.isfinite(np.asarray(data.sample_stats["lp"])).all()


def test_getdist(result):
    pytest.importorskip("getdist")
    samples = result.to_getdist(n=200)
    assert samples.getParamNames().list() == ["a", "b", "sigma"]
    assert samples.mean("sigma") == pytest.approx(result.mean[2], abs=0.05)


def test_anesthetic(result):
    pytest.importorskip("anesthetic")
    assert {"a", "b", "sigma", "logL"} <= set(result.to_anesthetic(n=50).columns.get_level_values(0))


def test_densities_of_cheap_and_expensive_parameters_agree(result):
    x = result.sample(200, seed=1)
    log_likelihood = result.weighted_samples().log_likelihood
    assert np.isfinite(log_likelihood).mean() > 0.99
    assert np.isfinite(result.log_pdf(x)).all()
    both = result.marginal(["a", "sigma"])
    assert np.isfinite(both.pdf(x[:, [0, 2]])).all()
    assert result.conditional({"sigma": 0.2}).pdf(x[:5, :2]).shape == (5,)
