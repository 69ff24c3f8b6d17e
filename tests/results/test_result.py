"""A result's posterior, in the user's parameters, whatever the prior."""

import pickle
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from scipy.special import ndtri

import basq
from basq.errors import InputError
from basq.report.tables import Row, with_error
from helpers.small import rotate

METHOD = basq.Paper(model="wsabi-m", mean="constant", n_candidates=2000, n_nystrom=100)
MIXTURE = basq.problems.mixture(2)
SEPARABLE = {"rate": stats.lognorm(0.5), "phase": (-1.0, 3.0)}
CENTRE, WIDTH = np.array([1.2, 0.8]), np.array([0.5, 0.7])


def infer(log_likelihood, prior=None, *, method=METHOD, **options):
    return basq.infer(
        log_likelihood, prior, method=method, batch_size=16, max_evals=80, dlogz=0.0, seed=1, progress=False, **options
    )


def gauss(x):
    return float(-0.5 * np.sum(((x - CENTRE) / WIDTH) ** 2))


def fall(cube):
    """A separable transform whose first coordinate runs backwards."""
    return np.array([np.exp(-0.5 * ndtri(cube[0])), -1.0 + 4.0 * cube[1]])


@pytest.fixture(scope="module")
def affine():
    return infer(MIXTURE.log_likelihood, MIXTURE.prior, vectorized=True)


@pytest.fixture(scope="module")
def separable():
    return infer(gauss, SEPARABLE)


@pytest.fixture(scope="module")
def falling():
    return infer(gauss, prior_transform=fall, n_dim=2)


@pytest.fixture(scope="module")
def coupled():
    return infer(gauss, prior_transform=rotate, n_dim=2)


@pytest.fixture(scope="module")
def sampled():
    """No closed form: the posterior is a density with samples."""
    return infer(gauss, SEPARABLE, method=replace(METHOD, kernel="matern52"))


ALL = ["affine", "separable", "falling", "coupled", "sampled"]
BOXES = {"affine": ((-7.0, 7.0), (-7.0, 7.0)), "separable": ((1e-3, 6.0), (-1.0, 3.0))}


def box(name):
    return BOXES["affine" if name in ("affine", "coupled") else "separable"]


def quadrature(low, high, n=60):
    """Gauss-Legendre nodes and weights."""
    t, w = np.polynomial.legendre.leggauss(n)
    return 0.5 * (high - low) * t + 0.5 * (high + low), 0.5 * (high - low) * w


def truth(name):
    """Posterior density over a grid: nodes (n,), (n,), and masses (n, n)."""
    (a, wa), (b, wb) = (quadrature(*bounds) for bounds in box(name))
    x = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1)
    if name == "affine":
        log_p = MIXTURE.log_likelihood(x.reshape(-1, 2)) + MIXTURE.prior.log_pdf(x.reshape(-1, 2))
    elif name == "coupled":
        log_p = -0.5 * (((x - CENTRE) / WIDTH) ** 2 + x**2).sum(axis=-1).ravel()
    else:
        log_p = (-0.5 * ((x - CENTRE) / WIDTH) ** 2).sum(axis=-1).ravel() + stats.lognorm(0.5).logpdf(x[..., 0]).ravel()
    mass = np.exp(log_p).reshape(len(a), len(b)) * np.outer(wa, wb)
    return a, b, mass / mass.sum()


def exact_moments(name):
    a, b, mass = truth(name)
    x = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
    mean = mass.ravel() @ x
    return mean, (mass.ravel()[:, None] * (x - mean)).T @ (x - mean)


@pytest.mark.parametrize("name", ALL)
def test_samples_follow_the_posterior(name, request):
    result = request.getfixturevalue(name)
    samples = result.sample(4000, seed=2)
    assert samples.shape == (4000, 2)
    mean, cov = exact_moments(name)
    np.testing.assert_allclose(samples.mean(axis=0), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(samples.T), cov, atol=0.12)
    np.testing.assert_array_equal(result.sample(5, seed=3), result.sample(5, seed=3))
    assert not np.array_equal(result.sample(5, seed=3), result.sample(5, seed=4))


def test_the_grid_itself_knows_the_exact_posterior():
    mean, cov = exact_moments("affine")
    np.testing.assert_allclose(mean, MIXTURE.posterior_mean, atol=1e-6)
    np.testing.assert_allclose(cov, MIXTURE.posterior_cov, atol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_moments(name, request):
    result = request.getfixturevalue(name)
    mean, cov = exact_moments(name)
    np.testing.assert_allclose(result.mean, mean, atol=0.06)
    np.testing.assert_allclose(result.cov, cov, atol=0.1)
    np.testing.assert_allclose(result.cov, result.cov.T, atol=1e-12)
    samples = result.sample(4000, seed=5)
    np.testing.assert_allclose(result.mean, samples.mean(axis=0), atol=0.08)


@pytest.mark.parametrize("name", ["affine", "separable", "falling", "sampled"])
def test_density_integrates_to_one_and_is_the_posterior(name, request):
    result = request.getfixturevalue(name)
    a, b, mass = truth(name)
    x = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = np.outer(*(quadrature(*bounds)[1] for bounds in box(name))).ravel()
    found = np.exp(result.log_pdf(x)) * cell
    assert found.sum() == pytest.approx(1.0, abs=0.02 if name == "sampled" else 2e-3)
    assert 0.5 * np.abs(found - mass.ravel()).sum() < 0.06  # total variation
    assert result.log_pdf(x[0]).shape == (1,)


def test_density_outside_the_support_is_zero(separable):
    np.testing.assert_array_equal(separable.log_pdf([[-1.0, 0.0], [1.0, 3.5]]), -np.inf)
    np.testing.assert_array_equal(separable.marginal("phase").pdf([-1.5, 3.5]), 0.0)
    np.testing.assert_array_equal(separable.marginal("phase").cdf([-1.5, 3.5]), [0.0, 1.0])
    np.testing.assert_array_equal(separable.marginal("rate").cdf([-2.0, 0.0, np.inf]), [0.0, 0.0, 1.0])


@pytest.mark.parametrize("i", [0, 1])
@pytest.mark.parametrize("name", ALL)
def test_marginals_of_one_parameter(name, i, request):
    result = request.getfixturevalue(name)
    density = result.marginal(result.names[i])
    assert density.names == (result.names[i],)
    t, w = quadrature(*box(name)[i])
    pdf = density.pdf(t)
    assert pdf @ w == pytest.approx(1.0, abs=1e-2)
    exact = truth(name)[2].sum(axis=1 - i) / w
    rough = name in ("coupled", "sampled")  # smoothed from samples
    np.testing.assert_allclose(pdf, exact, atol=0.12 if rough else 0.04)
    assert (np.diff(density.cdf(t)) >= -1e-9).all()
    for cut in (20, 30, 40):  # the mass below a node, from a quadrature that ends there
        s, v = quadrature(box(name)[i][0], t[cut])
        assert density.cdf([t[cut]])[0] == pytest.approx(density.pdf(s) @ v, abs=5e-3)
    q = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
    quantiles = density.ppf(q)
    assert (np.diff(quantiles) > 0).all()
    np.testing.assert_allclose(density.cdf(quantiles), q, atol=1e-5)
    samples = density.sample(2000, seed=1)
    assert samples.shape == (2000, 1)
    assert np.mean(samples[:, 0] <= quantiles[2]) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("name", ALL)
def test_marginal_of_both_parameters(name, request):
    result = request.getfixturevalue(name)
    density = result.marginal([result.names[1], result.names[0]])
    assert density.names == (result.names[1], result.names[0])
    samples = result.sample(4000, seed=6)[:, ::-1]
    drawn = density.sample(4000, seed=7)
    np.testing.assert_allclose(drawn.mean(axis=0), samples.mean(axis=0), atol=0.12)
    (a, wa), (b, wb) = (quadrature(*bounds) for bounds in box(name)[::-1])
    x = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = density.pdf(x) * np.outer(wa, wb).ravel()
    assert mass.sum() == pytest.approx(1.0, abs=0.03)
    np.testing.assert_allclose(mass @ x / mass.sum(), samples.mean(axis=0), atol=0.1)
    with pytest.raises(InputError, match="marginal first"):
        density.cdf([0.0])
    with pytest.raises(InputError, match="marginal first"):
        density.ppf([0.5])
    with pytest.raises(InputError, match=r"shape \(k, 2\)"):
        density.pdf([[1.0, 2.0, 3.0]])


@pytest.mark.parametrize(("name", "at"), [("affine", 0.5), ("separable", 0.9), ("falling", 0.9), ("sampled", 0.9)])
def test_conditional_is_a_ratio_of_densities(name, at, request):
    result = request.getfixturevalue(name)
    first, second = result.names
    density = result.conditional({first: at})
    assert density.names == (second,)
    t, w = quadrature(*box(name)[1])
    joint = np.exp(result.log_pdf(np.column_stack([np.full(len(t), at), t])))
    np.testing.assert_allclose(density.pdf(t), joint / (joint @ w), rtol=5e-3, atol=2e-3)
    q = np.array([0.05, 0.5, 0.95])
    np.testing.assert_allclose(density.cdf(density.ppf(q)), q, atol=1e-5)
    assert density.sample(10, seed=0).shape == (10, 1)


def test_three_parameters_marginals_and_conditionals():
    problem = basq.problems.mixture(3)
    result = infer(problem.log_likelihood, problem.prior, vectorized=True)
    np.testing.assert_allclose(result.mean, problem.posterior_mean, atol=0.1)
    exact = problem.sample_posterior(20_000, np.random.default_rng(0))
    for i, name in enumerate(result.names):
        np.testing.assert_allclose(
            result.marginal(name).ppf([0.1, 0.5, 0.9]), np.quantile(exact[:, i], [0.1, 0.5, 0.9]), atol=0.15
        )
    x = exact[:5]
    pair = result.conditional({"x2": 0.3})
    assert pair.names == ("x1", "x3")
    points = np.insert(x[:, [0, 2]], 1, 0.3, axis=1)
    ratio = np.exp(result.log_pdf(points)) / result.marginal("x2").pdf([0.3])
    np.testing.assert_allclose(pair.pdf(x[:, [0, 2]]), ratio, rtol=1e-6)
    single = result.conditional({"x3": -0.2, "x1": 0.4})
    points = np.column_stack([np.full(5, 0.4), x[:, 1], np.full(5, -0.2)])
    ratio = np.exp(result.log_pdf(points)) / result.marginal(["x3", "x1"]).pdf([[-0.2, 0.4]])
    np.testing.assert_allclose(single.pdf(x[:, 1]), ratio, rtol=1e-6)


def test_coupled_transforms_say_what_they_cannot_do(coupled):
    with pytest.raises(InputError, match="inverse of the prior transform"):
        coupled.log_pdf([[0.0, 0.0]])
    with pytest.raises(InputError, match="couples its parameters"):
        coupled.conditional({"x1": 0.0})


@pytest.mark.parametrize("name", ALL)
def test_summary_is_a_table_of_every_parameter(name, request):
    result = request.getfixturevalue(name)
    summary = result.summary()
    assert [row.parameter for row in summary] == list(result.names)
    assert len(summary) == 2
    for i, row in enumerate(summary):
        assert (row.mean, row.sd) == (result.mean[i], np.sqrt(result.cov[i, i]))
        np.testing.assert_array_equal(
            [row.low, row.median, row.high], result.marginal(row.parameter).ppf([0.025, 0.5, 0.975])
        )
        assert summary[row.parameter] is row
    head, *lines = str(summary).splitlines()
    assert head.split() == ["parameter", "mean", "sd", "2.5%", "50%", "97.5%"]
    for line, row in zip(lines, summary, strict=True):
        parameter, *numbers = line.split()
        assert parameter == row.parameter
        found = np.array(numbers, dtype=float)
        np.testing.assert_allclose(found, [row.mean, row.sd, row.low, row.median, row.high], atol=0.06 * row.sd)
    with pytest.raises(InputError, match=r"'speed'.*" + result.names[0]):
        summary["speed"]


def test_summary_as_a_data_frame(separable):
    frame = separable.summary().to_pandas()
    assert list(frame.columns) == ["mean", "sd", "2.5%", "50%", "97.5%"]
    assert list(frame.index) == ["rate", "phase"]
    assert frame.loc["rate", "97.5%"] == separable.summary()["rate"].high


def test_text_of_a_result(separable):
    text = str(separable)
    assert re.match(r"log Z = -?\d+\.\d+ ± 0\.\d+   \(80 calls in 5 batches\)", text)
    assert separable.message in text
    assert str(separable.summary()) in text
    assert "\n" not in repr(separable)
    assert len(repr(separable)) < 200
    assert "not converged" in repr(separable)
    assert "rate, phase" in repr(separable)


def test_a_result_that_is_not_sure_says_so_above_its_table(separable):
    warning = "The posterior below may be far off."
    assert not separable.converged
    assert separable.sound  # nothing was missing but calls: dlogz is 0
    assert warning not in str(separable) + separable._repr_html_()
    unsound = replace(separable, sound=False)
    assert f"\n\n{warning}\nparameter" in str(unsound)
    assert warning in unsound._repr_html_()
    sure = replace(unsound, status=basq.Status.CONVERGED)
    assert warning not in str(sure) + sure._repr_html_()
    nothing = replace(unsound, standard_posterior=None)
    assert warning not in str(nothing) + nothing._repr_html_()


def test_a_result_that_is_not_sure_gives_no_number_to_copy(separable):
    log_z, sd = separable.log_evidence, separable.log_evidence_std
    assert separable.log_evidence_interval == pytest.approx((log_z - 1.96 * sd, log_z + 1.96 * sd))
    unsound = replace(separable, sound=False)
    low, high = unsound.log_evidence_interval
    assert (low, high) == (pytest.approx(log_z - 1.96 * sd), np.inf)
    for text in (str(unsound), repr(unsound), unsound._repr_html_()):
        assert "±" not in text.split("(95 %)")[0]
        assert re.search(r"log Z not known yet: above -?\d+\.\d+ \(95 %\), -?\d+\.\d+ so far", text)
    sure = replace(unsound, status=basq.Status.CONVERGED)
    assert sure.log_evidence_interval == separable.log_evidence_interval
    assert str(sure).startswith("log Z = ")


def test_a_result_of_fewer_calls_than_a_model_needs_shows_no_posterior():
    few = basq.infer(lambda x: -float(x @ x), {"a": (-3, 3), "b": (-3, 3)}, max_evals=3, seed=1, progress=False)
    assert few.too_few == "too few calls for a posterior (3 of 32)"
    assert str(few).endswith(f"\n\n{few.too_few}")
    assert "parameter" not in str(few) + few._repr_html_()
    assert few.too_few in few._repr_html_()
    assert few.mean.shape == (2,)  # for programs it is there
    assert len(few.summary()) == 2


def test_enough_calls_for_a_posterior_are_those_of_the_design_or_a_batch_that_was_learned_from(separable):
    needed = separable.settings["initial_size"]
    first = replace(separable, history=separable.history[:1])
    assert separable.too_few is None
    assert first.too_few is None  # one look at all of the design
    some = replace(first, observations=separable.observations.where(np.arange(separable.n_evals) < needed - 1))
    assert some.too_few == f"too few calls for a posterior ({needed - 1} of {needed})"
    assert replace(some, history=separable.history[:2]).too_few is None  # failed calls, but a batch since
    assert replace(some, settings={}).too_few is None


def test_one_batch_is_not_batches(separable):
    assert "in 1 batch," in repr(replace(separable, history=separable.history[:1]))


def test_the_representation_of_a_summary_is_the_table(separable):
    assert repr(separable.summary()) == str(separable.summary())


def test_an_estimated_noise_is_shown(separable):
    rng = np.random.default_rng(0)

    def noisy(x):
        return -0.5 * float(x @ x) / 0.1 + 0.4 * rng.standard_normal(), None

    result = basq.infer(noisy, {"a": (-1, 1), "b": (-1, 1)}, max_evals=96, dlogz=0.0, seed=0, progress=False)
    assert 0.2 < result.noise < 0.8
    line = f"Noise of the values: sd {result.noise:.2f} (estimated)"
    assert line in str(result)
    assert line in result._repr_html_()
    assert separable.noise is None
    assert "Noise of" not in str(separable)


def test_html_of_a_result_is_small_well_formed_and_has_no_colours_of_its_own_for_text(separable):
    html = separable._repr_html_()
    text = "".join(ElementTree.fromstring(f"<body>{html.replace('&ensp;', ' ')}</body>").itertext())
    assert separable.message in text
    for row in separable.summary():
        assert all(number in text for number in row.texts())
    assert len(html) < 3000
    assert set(re.findall(r"[^-]color:(\w+)", html)) <= {"inherit"}
    assert "http" not in html


def test_html_escapes_what_users_wrote():
    def fails(x):
        raise ValueError("<b>& more")

    calls = iter(range(100))

    def sometimes(x):
        return fails(x) if next(calls) == 5 else -float(x[0] ** 2)

    result = basq.infer(
        sometimes, {"<i>": (0, 1)}, method=METHOD, batch_size=8, max_evals=16, dlogz=0.0, seed=0, progress=False
    )
    html = result._repr_html_()
    ElementTree.fromstring(f"<body>{html.replace('&ensp;', ' ')}</body>")
    assert "1 more call failed" in html
    assert "&lt;b&gt;&amp; more" in html
    assert "&lt;i&gt;" in html


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.36132, 0.02513, "1.361 ± 0.025"),
        (-12345.678, 0.0996, "-12345.68 ± 0.10"),
        (0.0, 1.0, "0.0 ± 1.0"),
        (12345.678, 120.4, "12346 ± 120"),
        (3.9123e-14, 1.234e-15, "3.91e-14 ± 1.2e-15"),
        (-2.4e-10, 3e-9, "-2e-10 ± 3.0e-09"),
        (6.02214e23, 1.5e21, "6.022e+23 ± 1.5e+21"),
        (1234567.0, 1e-9, "1.2345670000000000e+06 ± 1.0e-09"),
        (float("-inf"), float("inf"), "-inf ± inf"),
        (float("nan"), 0.1, "nan ± 0.10"),
        (2.0 / 3.0, 0.0, "0.66667 ± 0"),
        (-0.04, 1.0, "0.0 ± 1.0"),
    ],
)
def test_as_many_digits_as_the_error_allows(value, error, text):
    assert with_error(value, error) == text


def test_a_skewed_posterior_keeps_digits_at_its_steep_end():
    assert Row("a", 3.0, 5.0, 0.021, 0.9, 14.0).texts() == ["3.00", "5.00", "0.02", "0.90", "14.00"]


def test_aliases(separable):
    assert separable.logz == separable.log_evidence
    assert separable.logzerr == separable.log_evidence_std
    assert separable.n_evals == 80
    assert separable.n_batches == len(separable.history) == 5
    assert separable.names == ("rate", "phase")


def test_unknown_and_useless_names(separable):
    with pytest.raises(InputError, match=r"'speed'.*'rate', 'phase'"):
        separable.marginal("speed")
    with pytest.raises(InputError, match=r"'speed'.*'rate', 'phase'"):
        separable.conditional({"speed": 1.0})
    for names in ([], ["rate", "rate"]):
        with pytest.raises(InputError, match=r"different names.*'rate', 'phase'"):
            separable.marginal(names)
    for values in ({}, {"rate": 1.0, "phase": 0.0}):
        with pytest.raises(InputError, match="some but not all"):
            separable.conditional(values)
    with pytest.raises(InputError, match="outside the prior's support"):
        separable.conditional({"phase": 7.0})


@pytest.mark.parametrize("n", [0, -3, 2.5])
def test_sample_sizes_are_checked(separable, n):
    with pytest.raises(InputError, match="positive whole number"):
        separable.sample(n)


@pytest.mark.parametrize("levels", [[-0.1], [1.1], [np.nan]])
@pytest.mark.parametrize("name", ["affine", "separable", "sampled"])
def test_quantile_levels_are_checked(name, levels, request):
    result = request.getfixturevalue(name)
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        result.marginal(result.names[0]).ppf(levels)


@pytest.mark.parametrize("name", ALL)
def test_results_can_be_pickled(name, request):
    result = request.getfixturevalue(name)
    _ = result.mean  # cached values have to survive too
    again = pickle.loads(pickle.dumps(result))
    assert again.log_evidence == result.log_evidence
    np.testing.assert_array_equal(again.sample(20, seed=1), result.sample(20, seed=1))
    np.testing.assert_array_equal(again.observations.x, result.observations.x)
    assert again.summary() == result.summary()


@pytest.mark.parametrize("name", ALL)
def test_corner_plot(name, request, tmp_path):
    result = request.getfixturevalue(name)
    figure = result.plot_corner(truths=result.mean)
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 4
    figure.savefig(tmp_path / "corner.png")
    assert (tmp_path / "corner.png").stat().st_size > 1000
    assert {axis.get_xlabel() for axis in figure.axes} >= set(result.names)


def test_corner_plot_of_one_parameter_and_without_points(tmp_path, separable):
    one = basq.infer(
        lambda x: -float(x[0] ** 2), {"a": (-2, 2)}, method=METHOD, max_evals=16, dlogz=0.0, seed=0, progress=False
    )
    one.plot_corner().savefig(tmp_path / "one.pdf")
    separable.plot_corner(points=False).savefig(tmp_path / "two.svg")
    assert (tmp_path / "one.pdf").exists()


def test_run_plot(tmp_path, separable):
    figure = separable.plot_run(truth=separable.log_evidence)
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 1000


def test_corner_plot_of_a_run_that_found_nothing_says_why():
    nothing = basq.infer(
        lambda x: -np.inf, {"a": (0, 1)}, method=METHOD, batch_size=4, max_evals=12, seed=0, progress=False
    )
    with pytest.raises(InputError, match="no posterior"):
        nothing.plot_corner()
    assert len(nothing.summary()) == 0
    assert "no posterior over a" in str(nothing)
    assert "no posterior over a" in nothing._repr_html_()
    assert "log Z = -inf ± inf" in repr(nothing)


def test_results_are_frozen_and_can_be_compared_and_kept_in_sets(separable, affine):
    with pytest.raises(AttributeError):
        separable.log_evidence = 0.0
    assert separable != affine
    assert separable in {separable, affine}


def test_evidence_itself_has_the_surrogates_moments():
    problem = basq.problems.mixture(2, 0)
    states = []
    result = basq.infer(
        problem.log_likelihood,
        problem.prior,
        method=basq.Paper(n_candidates=2000, audited=False),
        batch_size=10,
        max_evals=30,
        vectorized=True,
        seed=0,
        progress=False,
        callback=states.append,
    )
    moments = states[-1].fitted.evidence
    scale = np.exp(moments.log_scale)
    assert result.evidence == pytest.approx(scale * moments.scaled_mean, rel=1e-12)
    assert result.evidence_std == pytest.approx(scale * np.sqrt(moments.scaled_var), rel=1e-9)
