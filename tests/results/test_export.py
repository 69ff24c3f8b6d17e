r"""Results in files, and in other packages: what they say about the samples is what the result says."""

import functools
import importlib.util
import json
import math
import pickle
import sys
import threading
from dataclasses import replace

import matplotlib.mathtext
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import basq
from basq.errors import AbsentError, InputError
from basq.plain import codec, known
from basq.results import archive, export
from helpers.commands import run_python
from helpers.small import rotate

NAMES = ("decay rate", r"$\alpha_1$")
PRIOR = {NAMES[0]: stats.lognorm(0.5), NAMES[1]: (-1.0, 3.0)}
PAPER = basq.Paper(model="wsabi-m", mean="constant", n_candidates=2000, n_nystrom=100)
CENTRE, WIDTH = np.array([1.2, 0.8]), np.array([0.3, 0.4])


def log_likelihood(x):
    return float(-0.5 * np.sum(((x - CENTRE[: len(x)]) / WIDTH[: len(x)]) ** 2))


def infer(function=log_likelihood, prior=None, **options):
    options = {"batch_size": 16, "max_evals": 64, "dlogz": 0.0, "seed": 1, "progress": False} | options
    return basq.infer(function, prior, **options)


@pytest.fixture(scope="module")
def awkward():
    """The default engine; names that no file format likes, values of −inf, failed calls."""

    def function(x):
        if x[0] > 2.4:
            return -np.inf
        if x[1] > 2.9:
            raise ValueError("no <convergence>")
        return log_likelihood(x)

    result = infer(function, PRIOR)
    assert result.n_failed > 0
    return result


@pytest.fixture(scope="module")
def one():
    return infer(prior={"a": stats.norm(0, 2)}, max_evals=32)


@pytest.fixture(scope="module")
def paper():
    return infer(prior=PRIOR, method=PAPER, max_evals=48)


@pytest.fixture(scope="module")
def density():
    """A prior known by a lambda and samples."""
    samples = np.random.default_rng(0).standard_normal((500, 2))
    prior = basq.Prior.from_density(
        lambda x: -0.5 * np.sum(x**2, axis=-1) - math.log(2.0 * math.pi), samples, names=NAMES
    )
    return infer(prior=prior, method=PAPER, max_evals=48)


@pytest.fixture(scope="module")
def coupled():
    """A prior transform without inverse, hence without densities."""
    return infer(prior_transform=rotate, n_dim=2)


@pytest.fixture(scope="module")
def nothing():
    return infer(lambda x: -np.inf, {"a": (0, 1)}, max_evals=16)


ALL = ["awkward", "one", "paper", "density", "coupled"]
EVERY = pytest.mark.parametrize("name", ALL)


@pytest.fixture
def result(name, request):
    return request.getfixturevalue(name)


@functools.cache
def quantiles(result, name):
    """Low, middle and high, computed once: closed forms of many components take their time."""
    return result.marginal(name).ppf([0.1, 0.5, 0.9])


def agrees(result, x, weights=None):
    """Weighted points have the result's moments and quantiles, up to what samples can say."""
    weights = np.full(len(x), 1.0 / len(x)) if weights is None else weights / weights.sum()
    mean, sd = result.mean, np.sqrt(np.diag(result.cov))
    np.testing.assert_allclose((weights @ x - mean) / sd, 0.0, atol=0.1)
    np.testing.assert_allclose(np.sqrt(weights @ (x - mean) ** 2) / sd, 1.0, atol=0.1)
    for column, name, scale in zip(x.T, result.names, sd, strict=True):
        order = np.argsort(column)
        cumulative = np.cumsum(weights[order])
        found = column[order][np.searchsorted(cumulative, [0.1, 0.5, 0.9])]
        np.testing.assert_allclose(found, quantiles(result, name), atol=0.15 * scale)


# --- files ------------------------------------------------------------------------------------------------------------


@EVERY
def test_a_loaded_result_gives_the_same_answers_to_the_bit(name, result, tmp_path):
    fresh = replace(result)  # nothing computed yet
    fresh.save(tmp_path / "result.basq")
    again = basq.Result.load(tmp_path / "result.basq")
    assert [path.name for path in tmp_path.iterdir()] == ["result.basq"]
    assert str(again) == str(result)
    assert repr(again.prior) == repr(result.prior)
    assert repr((again.history, again.audits)) == repr((result.history, result.audits))
    assert [f.error for f in again.failures] == [f.error for f in result.failures]
    np.testing.assert_array_equal(again.observations.x, result.observations.x)
    np.testing.assert_array_equal(again.observations.log_likelihood, result.observations.log_likelihood)
    np.testing.assert_array_equal(again.sample(20, seed=1), result.sample(20, seed=1))
    if name == "coupled":  # more draws than there are need its function
        with pytest.raises(AbsentError, match=r"function helpers\.small\.rotate is needed"):
            again.sample(4500, seed=1)
    else:
        np.testing.assert_array_equal(again.sample(4500, seed=1), result.sample(4500, seed=1))
    first = result.names[0]
    np.testing.assert_array_equal(again.marginal(first).ppf([0.1, 0.9]), result.marginal(first).ppf([0.1, 0.9]))
    if result.prior.is_separable or result.prior.affine:
        x = result.sample(5, seed=2)
        np.testing.assert_array_equal(again.log_pdf(x), result.log_pdf(x))
        if len(result.names) > 1:
            held = {first: float(x[0, 0])}
            np.testing.assert_array_equal(again.conditional(held).pdf(x[:, 1]), result.conditional(held).pdf(x[:, 1]))
    if len(result.names) == 1:
        again.plot_corner()


def test_plain_pickles_work_where_the_prior_has_no_local_functions(paper):
    again = pickle.loads(pickle.dumps(paper))
    np.testing.assert_array_equal(again.sample(20, seed=1), paper.sample(20, seed=1))


def test_a_result_without_posterior_can_be_kept(nothing, tmp_path):
    nothing.save(str(tmp_path / "nothing"))
    again = basq.Result.load(str(tmp_path / "nothing"))
    assert str(again) == str(nothing)
    assert again.standard_posterior is None


def test_another_process_reads_functions_of_a_script(tmp_path):
    """What was drawn of a prior's function travels with the file, and not the function."""
    write = """
        import basq, numpy as np
        scale = 3.0
        def transform(cube):
            return scale * cube
        result = basq.infer(lambda x: -float(x @ x), prior_transform=transform, n_dim=1, method=basq.Paper(),
                            batch_size=8, max_evals=16, seed=1, progress=False)
        result.save("r.basq")
        print(result)
    """
    read = """
        import basq
        result = basq.Result.load("r.basq")
        print(result)
        assert ((result.sample(3000, seed=0) > 0.0) & (result.sample(3000, seed=1) < 3.0)).all()
    """
    written, found = (run_python(code, cwd=tmp_path)[0] for code in (write, read))
    assert written == found
    assert "log Z" in written


def test_a_crash_while_writing_leaves_the_old_file(one, paper, tmp_path, monkeypatch):
    path = tmp_path / "result.basq"
    one.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(archive.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        paper.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["result.basq"]
    monkeypatch.undo()
    paper.save(path)
    assert basq.Result.load(path).names == paper.names


def test_saves_at_once_do_not_meet(one, tmp_path):
    path = tmp_path / "r.basq"
    threads = [threading.Thread(target=one.save, args=(path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert str(basq.Result.load(path)) == str(one)
    assert [p.name for p in tmp_path.iterdir()] == ["r.basq"]


def test_drafts_are_written_over_nothing(one, tmp_path, monkeypatch):
    monkeypatch.setattr(archive.secrets, "token_hex", lambda _: "known")
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / ".r.basq.known.tmp").symlink_to(target)
    with pytest.raises(FileExistsError):
        one.save(tmp_path / "r.basq")
    assert target.read_text() == "precious"


def test_the_head_of_a_file_is_readable_and_names_format_and_version(one, tmp_path):
    one.save(tmp_path / "r.basq")
    magic, head, _ = (tmp_path / "r.basq").read_bytes().split(b"\n", 2)
    assert magic == b"basq result"
    assert json.loads(head)["format"] == archive.FORMAT
    assert json.loads(head)["basq"] == basq.__version__


def rewritten(path, **changes):
    magic, head, blob = path.read_bytes().split(b"\n", 2)
    path.write_bytes(b"\n".join([magic, json.dumps(json.loads(head) | changes).encode(), blob]))


def test_files_that_are_no_results_are_refused_with_a_reason(one, tmp_path):
    path = tmp_path / "r.basq"
    one.save(path)
    rewritten(path, format=99, basq="7.0")
    with pytest.raises(InputError, match=r"written by basq 7\.0.*too old"):
        basq.Result.load(path)
    rewritten(path, format=1, basq="0.0")
    with pytest.raises(InputError, match=r"written by basq 0\.0.*too new"):
        basq.Result.load(path)
    one.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="damaged"):
        basq.Result.load(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InputError, match="damaged"):
        basq.Result.load(path)
    archive.write(path, {"a": 1})
    with pytest.raises(InputError, match="holds a dict, not a result"):
        basq.Result.load(path)
    for content in (b"", b"something else entirely"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"r\.basq is not a file of Result\.save\.$"):
            basq.Result.load(path)
    path.write_bytes(b"SQLite format 3\0 and so on")
    with pytest.raises(InputError, match=r"Sampler\.open"):
        basq.Result.load(path)
    with pytest.raises(FileNotFoundError):
        basq.Result.load(tmp_path / "missing.basq")


def test_a_class_that_is_gone_is_named(one, tmp_path, monkeypatch):
    path = tmp_path / "r.basq"
    one.save(path)
    monkeypatch.setattr(codec, "class_of", lambda name: known.class_of(name.replace("Observations", "Gone")))
    with pytest.raises(InputError, match=r"cannot be read by basq.*'observations:Gone' is not a class of this version"):
        basq.Result.load(path)


# --- samples and tables -----------------------------------------------------------------------------------------------


@EVERY
def test_weighted_samples(result):
    draws = result.weighted_samples()
    assert draws.names == result.names
    assert draws.x.shape == (len(draws), len(result.names))
    assert draws.weights.sum() == pytest.approx(1.0)
    assert draws.relative_weights.max() == 1.0
    assert 1000 < draws.n_effective <= len(draws) * (1 + 1e-9)
    agrees(result, draws.x, draws.weights)


@EVERY
def test_the_surrogates_likelihood_and_the_prior_come_with_the_samples(result):
    draws = result._draws(500, 3)
    np.testing.assert_array_equal(draws.x, result.sample(500, seed=3))
    truth = np.array([log_likelihood(x) for x in draws.x])
    assert np.median(np.abs(draws.log_likelihood - truth)) < 0.1
    if draws.log_prior is None:
        assert not result.prior.is_separable
        assert draws.log_joint is None
    else:
        np.testing.assert_allclose(draws.log_prior, result.prior.log_pdf(draws.x), rtol=1e-6, atol=1e-6)
        # Bayes: likelihood times prior is evidence times posterior
        np.testing.assert_allclose(draws.log_joint, result.log_pdf(draws.x) + result.log_evidence, atol=1e-5)


@EVERY
def test_pandas_posterior(result):
    frame = result.to_pandas(n=4000, seed=2)
    assert tuple(frame.columns) == result.names
    np.testing.assert_array_equal(frame.to_numpy(), result.sample(4000, seed=2))
    agrees(result, frame.to_numpy())


def test_pandas_evaluations(awkward, nothing):
    frame = awkward.to_pandas("evaluations")
    assert tuple(frame.columns) == (*NAMES, "log_likelihood", "noise", "explores", "batch")
    assert len(frame) == awkward.n_evals
    np.testing.assert_array_equal(frame[NAMES[1]], awkward.observations.x[:, 1])
    assert (frame["log_likelihood"] == -np.inf).any()
    assert frame["explores"].dtype == bool
    assert len(nothing.to_pandas("evaluations")) == nothing.n_evals
    with pytest.raises(InputError, match="'posterior' and 'evaluations'"):
        awkward.to_pandas("prior")


EXPORTS = ["to_pandas", "to_arviz", "to_getdist", "to_anesthetic"]


@pytest.mark.parametrize("method", [*EXPORTS, "weighted_samples"])
def test_without_a_posterior_there_is_nothing_to_export(nothing, method):
    with pytest.raises(InputError, match=r"no posterior.*zero"):
        getattr(nothing, method)()


@pytest.mark.parametrize("method", EXPORTS)
@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_numbers_of_samples_are_checked(one, method, n):
    with pytest.raises(InputError, match="positive whole number"):
        getattr(one, method)(n=n)


@pytest.mark.parametrize("method", EXPORTS)
def test_missing_packages_are_named_with_their_extra(one, method, monkeypatch):
    name = method.removeprefix("to_")
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=rf"pip install 'basq\[{name}\]'"):
        getattr(one, method)()


def test_reserved_names_are_refused(one):
    def named(name):
        return replace(one, prior=basq.Prior({name: stats.norm(0, 2)}))

    with pytest.raises(InputError, match=r"'logL'.*anesthetic"):
        named("logL").to_anesthetic()
    with pytest.raises(InputError, match="'batch'"):
        named("batch").to_pandas("evaluations")
    for name in ("chain", "draw"):
        with pytest.raises(InputError, match=f"'{name}'.*ArviZ"):
            named(name).to_arviz()


# --- ArviZ ------------------------------------------------------------------------------------------------------------


@EVERY
def test_arviz_groups(result):
    tree = result.to_arviz(n=1000, seed=4)
    posterior = tree["posterior"]
    assert list(posterior.data_vars) == list(result.names)
    for i, name in enumerate(result.names):
        assert posterior[name].dims == ("chain", "draw")
        np.testing.assert_array_equal(posterior[name].to_numpy(), result.sample(1000, seed=4)[:, i].reshape(4, 250))
        assert tree["prior"][name].shape == (4, 250)
    stats_ = tree["sample_stats"]
    draws = result._draws(1000, 4)
    np.testing.assert_array_equal(stats_["total_log_likelihood"].to_numpy().ravel(), draws.log_likelihood)
    np.testing.assert_array_equal(tree["log_likelihood"]["total"].to_numpy().ravel(), draws.log_likelihood)
    assert ("lp" in stats_) == (draws.log_prior is not None)
    for attributes in (tree.attrs, posterior.attrs):
        assert attributes["log_evidence"] == result.log_evidence
        assert attributes["log_evidence_std"] == result.log_evidence_std
        assert attributes["converged"] == result.converged
        assert attributes["status"] == result.status
        assert attributes["message"] == result.message
        assert attributes["inference_library"] == "basq"
        assert attributes["inference_library_version"] == basq.__version__


@EVERY
def test_arviz_summary_agrees(result):
    arviz = pytest.importorskip("arviz")  # its part that holds data has no statistics
    table = arviz.summary(result.to_arviz(), round_to="none")
    assert list(table.index) == list(result.names)
    sd = np.sqrt(np.diag(result.cov))
    np.testing.assert_allclose(table["mean"].astype(float), result.mean, atol=0.1 * sd.max())
    np.testing.assert_allclose(table["sd"].astype(float), sd, rtol=0.1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # it calls Matplotlib in an old way
@pytest.mark.filterwarnings("ignore::UserWarning")  # and would rather have the likelihood of every datum
def test_arviz_does_what_people_expect(one):
    arviz = pytest.importorskip("arviz")
    data = one.to_arviz()
    assert float(arviz.summary(data)["r_hat"].iloc[0]) == pytest.approx(1.0, abs=0.02)
    axes = np.atleast_1d(arviz.plot_posterior(data))
    assert axes.shape == (1,)
    plt.close("all")
    worse = replace(one, log_evidence=one.log_evidence - 5.0)
    assert list(arviz.compare({"worse": worse.to_arviz(), "better": data}).index) == ["better", "worse"]
    assert one.to_arviz(n=10)["posterior"]["a"].shape == (1, 10)  # no four chains of one length


def test_labels_and_units_are_exported(one):
    (name,) = one.names
    labelled = replace(one, prior=one.prior.labelled([r"$\mu$"], {name: "kg"}))
    assert labelled.to_arviz(n=8)["posterior"][name].attrs == {"long_name": r"$\mu$", "units": "kg"}
    assert labelled.to_getdist().getParamNames().labels() == [r"\mu\mathrm{\ [kg]}"]
    assert labelled.to_anesthetic().get_label(name) == r"$\mu\mathrm{\ [kg]}$"


def test_arviz_files(awkward, tmp_path):
    arviz = pytest.importorskip("arviz")
    tree = awkward.to_arviz(n=100)
    tree.to_netcdf(str(tmp_path / "tree.nc"))
    again = arviz.from_netcdf(str(tmp_path / "tree.nc"))
    for name in NAMES:
        np.testing.assert_array_equal(again["posterior"][name], tree["posterior"][name])
    assert again["posterior"].attrs["log_evidence"] == awkward.log_evidence


def test_arviz_gets_the_class_of_its_version(one):
    tree = one.to_arviz(n=10)
    arviz = importlib.import_module("arviz" if importlib.util.find_spec("arviz") else "arviz_base")
    old = "InferenceData" in vars(arviz)
    assert type(tree).__name__ == ("InferenceData" if old else "DataTree")
    slash = replace(one, prior=basq.Prior({"a/b": stats.norm(0, 2)}))
    if old:
        assert "a/b" in slash.to_arviz(n=10)["posterior"]
    else:
        with pytest.raises(InputError, match="no '/' in names"):
            slash.to_arviz(n=10)


# --- GetDist ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4000, None])
@EVERY
def test_getdist_agrees(result, n, capsys):
    samples = result.to_getdist(n=n)
    assert capsys.readouterr().out == ""
    assert samples.getParamNames().list() == export.plain_names(result.names)
    agrees(result, samples.samples, samples.weights)
    sd = np.sqrt(np.diag(result.cov))
    np.testing.assert_allclose(samples.getMeans(), result.mean, atol=0.1 * sd.max())
    for i, tag in enumerate(export.plain_names(result.names)):
        assert samples.std(tag) == pytest.approx(sd[i], rel=0.1)
        assert samples.confidence(tag, 0.1) == pytest.approx(quantiles(result, result.names[i])[0], abs=0.15 * sd[i])
    if n:  # GetDist drops samples of almost no weight
        draws = result._draws(n, 0)
        np.testing.assert_array_equal(
            samples.loglikes, -(draws.log_likelihood if draws.log_prior is None else draws.log_joint)
        )


def test_getdist_names_labels_and_ranges(awkward):
    samples = awkward.to_getdist()
    assert samples.getParamNames().list() == ["decay_rate", "alpha_1"]
    assert samples.getParamNames().labels() == [r"\mathrm{decay\ rate}", r"\alpha_1"]
    assert (samples.ranges.getLower("alpha_1"), samples.ranges.getUpper("alpha_1")) == (-1.0, 3.0)
    assert samples.ranges.getLower("decay_rate") == 0.0
    assert samples.ranges.getUpper("decay_rate") is None
    assert samples.sampler == "uncorrelated"


@pytest.mark.filterwarnings("ignore:The format attribute was deprecated")  # GetDist 1.7 with Matplotlib 3.11
def test_getdist_triangle_plot(awkward, tmp_path):
    plots = pytest.importorskip("getdist.plots")
    plotter = plots.get_subplot_plotter(width_inch=4)
    plotter.triangle_plot([awkward.to_getdist()], filled=True)
    plotter.export(str(tmp_path / "triangle.png"))
    assert (tmp_path / "triangle.png").stat().st_size > 5000


@pytest.mark.parametrize("n", [4000, None])
@EVERY
def test_getdist_files(result, n, tmp_path, capsys):
    getdist = pytest.importorskip("getdist")
    root = tmp_path / "new" / "chain"
    samples = result.to_getdist(root, n=n)
    assert {p.name for p in root.parent.iterdir()} >= {"chain.txt", "chain.paramnames"}
    again = getdist.loadMCSamples(str(root), no_cache=True)
    assert again.getParamNames().list() == samples.getParamNames().list()
    assert again.getParamNames().labels() == samples.getParamNames().labels()
    assert again.sampler == "uncorrelated"
    np.testing.assert_allclose(again.samples, samples.samples, rtol=1e-6)
    np.testing.assert_allclose(again.weights, samples.weights, rtol=1e-6)
    np.testing.assert_allclose(again.loglikes, samples.loglikes, rtol=1e-6)
    for tag in samples.getParamNames().list():
        assert again.ranges.getLower(tag) == samples.ranges.getLower(tag)
        assert again.ranges.getUpper(tag) == samples.ranges.getUpper(tag)
    assert again.properties.float("log_evidence") == pytest.approx(result.log_evidence)


def test_getdist_files_keep_the_message_on_one_line(one, tmp_path, capsys):
    getdist = pytest.importorskip("getdist")
    replace(one, status=basq.Status.NOT_CONVERGED, why="calls failed\nsampler=mcmc").to_getdist(tmp_path / "chain")
    again = getdist.loadMCSamples(str(tmp_path / "chain"), no_cache=True)
    assert again.sampler == "uncorrelated"
    assert again.properties.string("message") == "Not converged: calls failed sampler=mcmc."


def test_anesthetic_reads_the_getdist_files(awkward, tmp_path):
    anesthetic = pytest.importorskip("anesthetic")
    awkward.to_getdist(tmp_path / "chain", n=None)
    again = anesthetic.read_chains(str(tmp_path / "chain"))
    columns = [name for name in again.columns.get_level_values(0) if name not in ("logL", "chain")]
    assert columns == ["decay_rate", "alpha_1"]
    agrees(awkward, again[columns].to_numpy(), again.get_weights())


# --- anesthetic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4000, None])
@EVERY
def test_anesthetic_agrees(result, n):
    samples = result.to_anesthetic(n=n)
    assert list(samples.columns.get_level_values(0)) == [*result.names, "logL"]
    draws = result._draws(n, 0)
    np.testing.assert_array_equal(samples["logL"], draws.log_likelihood)
    np.testing.assert_allclose(samples.get_weights(), draws.relative_weights)
    sd = np.sqrt(np.diag(result.cov))
    for i, name in enumerate(result.names):
        assert samples[name].mean() == pytest.approx(result.mean[i], abs=0.1 * sd[i])
        assert samples[name].std() == pytest.approx(sd[i], rel=0.1)
        assert samples[name].quantile(0.9) == pytest.approx(quantiles(result, name)[2], abs=0.15 * sd[i])
    assert samples.attrs["log_evidence"] == result.log_evidence
    assert samples.attrs["log_evidence_std"] == result.log_evidence_std


def test_anesthetic_labels(awkward):
    samples = awkward.to_anesthetic()
    assert samples.get_label(NAMES[0]) == r"$\mathrm{decay\ rate}$"
    assert samples.get_label(NAMES[1]) == r"$\alpha_1$"


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tag", "label"),
    [
        ("rate", "rate", r"\mathrm{rate}"),
        ("k_on_off", "k_on_off", r"\mathrm{k\_on\_off}"),
        (r"$\alpha$", "alpha", r"\alpha"),
        (r"rate $k_1$ [1/s]", "rate_k_1_1_s", r"\mathrm{rate\ }k_1\mathrm{\ [1/s]}"),
        ("100 $", "100", r"\mathrm{100\ \$}"),
        ("β", "β", r"\mathrm{β}"),
        ("?*", "p", r"\mathrm{?*}"),
        ("a & b!", "a_b", r"\mathrm{a\ \ b}"),
    ],
)
def test_names_for_getdist_and_for_latex(name, tag, label):
    assert export.plain_names((name,)) == [tag]
    assert export.tex(name) == label


PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8)


@settings(deadline=None, max_examples=50)
@given(st.lists(PRINTABLE, unique=True, min_size=1, max_size=4))
def test_any_names_become_different_tags_and_labels_that_can_be_drawn(names):
    tags = export.plain_names(tuple(names))
    assert len(set(tags)) == len(names)
    assert not any(set(tag) & set(" *?\t$\\#!") for tag in tags)
    parser = matplotlib.mathtext.MathTextParser("agg")
    for name in names:
        if "$" not in name:  # what stands between dollar signs is the user's own LaTeX
            parser.parse(f"${export.tex(name)}$")
