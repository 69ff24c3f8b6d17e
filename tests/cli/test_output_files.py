"""Outputs of commands never take the place of a store, of another database or of what the command reads."""

import sqlite3
import sys
from contextlib import closing

import pytest

from basq.cli import main
from basq.cli.output import writing
from basq.errors import InputError
from basq.evaluation.store import Store
from helpers.certified import quick_stores

MODEL = """
from pathlib import Path

import numpy as np

prior = {"a": (-3, 3), "b": (-3, 3)}


def log_likelihood(x):
    Path("called").touch()
    return float(-0.5 * np.sum((x - 0.3) ** 2) / 0.1)
"""
FEW = ["--seed", "1", "--batch-size", "8", "--max-evals", "16", "--no-progress"]


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with quick_stores():
        yield


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The bytes of a run's store."""
    directory = tmp_path_factory.mktemp("run")
    (directory / "model.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setattr(sys, "path", list(sys.path))
        assert main(["run", "model.py", *FEW]) in (0, 3)
    return (directory / "model.sqlite").read_bytes()


@pytest.fixture
def files(done, tmp_path, monkeypatch):
    """A folder with a model, the store of a run under two names, a new store and a foreign database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "model.py").write_text(MODEL)
    for name in ("run.sqlite", "run.html"):
        (tmp_path / name).write_bytes(done)
    with Store("run.sqlite") as store:
        store.set(command={"model": str(tmp_path / "model.py")})
    with closing(sqlite3.connect("other.db")) as foreign:
        foreign.execute("CREATE TABLE t (x)")
    return tmp_path


REFUSED = [
    ["ask", "run.sqlite", "-o", "run.sqlite"],
    ["ask", "run.sqlite", "-o", "other.db"],
    ["ask", "run.sqlite", "-o", "run.sqlite-journal"],
    ["report", "run.sqlite", "-o", "run.sqlite"],
    ["report", "run.sqlite", "-o", "model.py"],
    ["report", "run.sqlite"],  # its page would be run.html, which is a store here
    ["report", "run.html"],
    ["run", "model.py", *FEW, "--report", "model.py"],
    ["run", "model.py", *FEW, "--report", "model.sqlite"],  # which this command makes
    ["run", "model.py", *FEW, "--store", "new.html", "--report", "new.html"],
    ["run", "model.py", *FEW, "--report", "other.db"],
    ["resume", "run.sqlite", "--max-evals", "24", "--report", "run.sqlite"],
    ["resume", "run.sqlite", "--max-evals", "24", "--report", "model.py"],
    ["certify", "run.sqlite", "--ask", "-o", "run.sqlite"],
    ["certify", "run.sqlite", "--ask", "-o", "other.db"],
    ["certify", "run.sqlite", "--report", "run.sqlite"],
    ["certify", "run.sqlite", "--report", "model.py"],
    ["certify", "run.sqlite", "--ask", "-o", "new.csv", "--report", "new.csv"],
    ["compare", "run.sqlite", "twin=run.html", "-o", "run.sqlite"],
    ["compare", "run.sqlite", "twin=run.html", "-o", "run.html"],
    ["compare", "one=model.py", "two=model.py", "-o", "model.py"],
    ["compare", "one=model.py", "two=model.py", "--store", ".", "-o", "one.sqlite"],
    ["demo", "gauss", "--output", "other.db"],
    ["demo", "gauss", "--report", "model.py"],
    ["demo", "gauss", "--output", "new", "--report", "new"],
]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_outputs_over_what_is_needed_are_refused_before_any_call(files, capsys, command):
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    assert main(command) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "basq: The output would be written over " in err
    assert err.endswith("nothing was written. Name another file for the output.\n")
    assert {path.name: path.read_bytes() for path in files.iterdir() if path.is_file()} == before


def test_outputs_of_before_are_replaced(files):
    assert main(["new", "new.sqlite", "model.py:prior"]) == 0
    for command, name in ((["ask", "new.sqlite", "-o"], "points.csv"), (["report", "run.sqlite", "-o"], "page.html")):
        (files / name).write_text("old")
        assert main([*command, name]) == 0
        assert (files / name).read_text() != "old"


def test_a_picture_spares_a_store_that_appeared_while_models_ran(files):
    with pytest.raises(InputError, match="which is a store of basq"), writing(files / "run.html", "picture"):
        pytest.fail("it is written")
