"""Methods and pools of other packages, found by name; and what is said of those that are none."""

import os
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import basq
from basq.errors import InputError
from basq.extras import OWN
from basq.testing import check_pool

PRIOR = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 24, "dlogz": 0.0, "progress": False}

PLUGIN = """
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import basq

POOLS = []


@dataclass(frozen=True)
class Small(basq.Paper):
    n_candidates: int = 1000
    n_nystrom: int = 50


def nothing():
    return object()


@contextmanager
def threads(argument):
    with ThreadPoolExecutor(int(argument or 1)) as pool:
        POOLS.append(pool)
        yield pool
"""
ENTRIES = """
[basq.methods]
small = basq_small:Small
nothing = basq_small:nothing
missing = basq_small:Missing

[basq.pools]
threads = basq_small:threads
"""


def gauss(x):
    return float(-0.5 * np.sum((np.asarray(x) - 0.3) ** 2) / 0.1)


def infer(**options):
    return basq.infer(gauss, PRIOR, **{**OPTIONS, **options})


def install(directory, name, entries, code=None):
    """Put a distribution into a directory, as an installer would."""
    info = directory / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    if code is not None:
        (directory / f"{name.replace('-', '_')}.py").write_text(code)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A directory on the path with a package that adds to basq."""
    directory = tmp_path / "site"
    install(directory, "basq-small", ENTRIES, PLUGIN)
    monkeypatch.syspath_prepend(directory)
    monkeypatch.delitem(sys.modules, "basq_small", raising=False)
    yield directory
    sys.modules.pop("basq_small", None)


# --- methods ----------------------------------------------------------------------------------------------------------


def test_our_own_names_are_registered_like_those_of_others():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == OWN


def test_the_paper_by_name():
    result = infer(method="paper", max_evals=16)
    assert result.settings["method"] == repr(basq.Paper())


def test_a_method_of_another_package(site):
    result = infer(method="small")
    assert result.settings["method"].startswith("Small(model='wsabi-l'")
    assert result.log_evidence == infer(method=basq.Paper(n_candidates=1000, n_nystrom=50)).log_evidence


def test_a_comparison_by_a_method_of_another_package(site):
    models = {"narrow": (gauss, PRIOR), "wide": (lambda x: 0.1 * gauss(x), PRIOR)}
    found = basq.compare(models, method="small", batch_size=8, max_evals=64, seed=1, progress=False)
    assert found.best == "wide"


def test_a_name_that_is_not_installed(site):
    with pytest.raises(InputError, match=r"method='tiny'.*'auto', 'paper', .*'small' \(of basq-small\)"):
        infer(method="tiny")


def test_a_package_that_cannot_be_imported(site):
    install(site, "basq-rusty", "[basq.methods]\nrusty = basq_rusty:Rusty\n", "import basq_needs_this\n")
    with pytest.raises(
        InputError, match=r"method='rusty'.*basq_rusty:Rusty of the package basq-rusty .*No module named 'basq_needs"
    ):
        infer(method="rusty")


def test_a_package_without_what_it_registers(site):
    with pytest.raises(InputError, match=r"basq_small:Missing of the package basq-small .*AttributeError"):
        infer(method="missing")


def test_two_packages_with_one_name(site):
    install(site, "basq-other", "[basq.methods]\nsmall = basq_small:Small\n")
    with pytest.raises(InputError, match=r"method='small'.*basq-other and basq-small"):
        infer(method="small")


def test_a_package_cannot_take_the_name_of_ours(site):
    install(site, "basq-other", "[basq.methods]\nauto = basq_small:nothing\n")
    assert infer().settings["method"] == repr(basq.Auto())


def test_a_plugin_that_makes_no_method(site):
    with pytest.raises(InputError, match=r"method=<object object.*has no check, initial_size, fit, select"):
        infer(method="nothing")


# --- pools ------------------------------------------------------------------------------------------------------------


def test_a_pool_of_another_package(site):
    result = infer(pool="threads:2")
    (pool,) = sys.modules["basq_small"].POOLS
    assert pool._max_workers == 2
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)
    assert result.log_evidence == infer().log_evidence


def test_its_pool_keeps_the_contract(site):
    check_pool("threads")


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        ("thread:2", r"pool='thread'.*'ray', 'threads' \(of basq-small\)"),
        ("threads:many", "pool='threads': the plug-in basq_small:threads of the package basq-small .*'many'"),
        (object(), "pool=<object.*a number of worker processes"),
        (dict, "pool=<class 'dict'>"),
        (True, "pool=True"),
        (0, "pool=0"),
    ],
)
def test_a_wrong_pool(site, pool, text):
    calls = []
    with pytest.raises(InputError, match=text):
        basq.infer(calls.append, PRIOR, pool=pool, **OPTIONS)
    assert not calls


# --- on the command line ----------------------------------------------------------------------------------------------


def basq_command(site, *arguments):
    path = [str(Path(basq.__file__).parents[1]), str(site), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-c", "import sys; from basq.cli import main; sys.exit(main())", *arguments]
    return subprocess.run(
        command,
        cwd=site.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def model(tmp_path):
    text = """
        prior = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}


        def log_likelihood(x):
            return -0.5 * sum((x - 0.3) ** 2) / 0.1
    """
    (tmp_path / "model.py").write_text(textwrap.dedent(text))
    return "model.py"


def test_plugins_on_the_command_line(site, model):
    options = ["--max-evals", "24", "--batch-size", "8", "--seed", "1", "--dlogz", "0", "--no-progress"]
    done = basq_command(site, "run", model, "--method", "small", "--pool", "threads:2", *options)
    assert "24 calls in 3 batches" in done.stdout, done.stderr
    store = site.parent / "model.sqlite"
    assert basq.Sampler.open(store).result().settings["method"].startswith("Small(")
    again = basq_command(site, "resume", str(store), "--max-evals", "32", "--no-progress")
    assert "going on after 24 calls: at most 32 calls" in again.stderr
    assert "32 calls in 4 batches" in again.stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--method", "huge"], "--method 'huge': this name is not known; installed are 'auto', 'paper'"),
        (["--pool", "huge"], "--pool 'huge': this name is not known; installed are 'ray'"),
        (["--pool", "0"], "give a whole number, 1 or more"),
    ],
)
def test_wrong_names_on_the_command_line(site, model, options, text):
    done = basq_command(site, "run", model, *options)
    assert done.returncode == 2
    assert text in done.stderr
    assert not (site.parent / "model.sqlite").exists()


# --- objects that are no methods --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Half:
    """Some of what a method needs."""

    def check(self, batch_size):
        pass

    def initial_size(self, n_dim):
        return 4

    def select(self, fitted, n, rng, *, cost_ratio, taken):
        return basq.Batch(np.zeros((n, 2)))


@dataclass(frozen=True)
class Narrow(basq.Paper):
    def select(self, fitted, batch_size, rng):
        return super().select(fitted, batch_size, rng)


@dataclass(frozen=True)
class Shapeless(basq.Paper):
    n_candidates: int = 1000
    n_nystrom: int = 50
    batch: object = None

    def select(self, fitted, batch_size, rng, *, cost_ratio, taken):
        return self.batch


class Unfit(Half):
    def fit(self, observations, prior, previous, rng):
        return {"log_evidence": 0.0}


@dataclass(frozen=True)
class Bare(basq.Fit):
    log_evidence: float = 0.0

    def converged(self, dlogz):
        return False, "it is bare"


class Barely(Half):
    def fit(self, observations, prior, previous, rng):
        return Bare()


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (object(), "method=<object.*has no check, initial_size, fit, select"),
        (basq.Paper, r"method=Paper: this is a class; give an object, such as Paper\(\)"),
        (Half(), r"method=Half\(\).*has no fit; basq.Method says"),
        (
            Narrow(),
            r"its select\(fitted, batch_size, rng\) cannot be called as "
            r"select\(fitted, batch_size, rng, \*, cost_ratio, taken\)",
        ),
        (None, "method=None"),
    ],
    ids=["object", "class", "no fit", "wrong select", "None"],
)
def test_a_wrong_method_costs_no_call(method, text):
    calls = []
    with pytest.raises(InputError, match=text):
        basq.infer(calls.append, PRIOR, method=method, **OPTIONS)
    with pytest.raises(InputError, match=text):
        basq.Sampler(PRIOR, method=method)
    assert not calls


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (Unfit(), "its fit returned dict, which is no subclass of basq.Fit"),
        (Barely(), "its fit returned Bare without log_evidence_std, posterior"),
        (Shapeless(), "its select returned NoneType; allowed is a basq.Batch"),
        (
            Shapeless(batch=basq.Batch(np.zeros(2))),
            r"points of shape \(2,\); allowed are one or more .* \(n, 2",
        ),
        (Shapeless(batch=basq.Batch(np.full((3, 2), np.nan))), r"points of shape \(3, 2\); allowed are .* finite ones"),
    ],
    ids=["no fit", "no answers", "no batch", "wrong shape", "NaN"],
)
def test_wrong_answers_of_a_method_lose_no_call(method, text):
    with pytest.raises(InputError, match=text) as caught:
        infer(method=method)
    assert len(caught.value.observations) == 8


def test_a_fit_may_leave_out_what_has_a_default():
    fitted = Bare()
    assert (fitted.audits, fitted.log_surrogate, fitted.noise, dict(fitted.seconds)) == ((), None, None, {})
