"""Where outputs may be written: never over a store, another database, an input of the command or code."""

import os
import sqlite3
from contextlib import closing

import pytest

from basq.errors import InputError
from basq.evaluation.store import Store
from basq.report.target import spare


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a store, a foreign database, a saved result, code and a page."""
    monkeypatch.chdir(tmp_path)
    Store("run.sqlite", 2).close()
    with closing(sqlite3.connect("other.dat")) as foreign:
        foreign.execute("CREATE TABLE t (x)")
    (tmp_path / "saved.basq").write_bytes(b"basq result\nand more")
    (tmp_path / "model.py").write_text("x = 1\n")
    (tmp_path / "page.html").write_text("<p>old</p>")
    (tmp_path / "empty").touch()
    return tmp_path


@pytest.mark.parametrize("name", ["page.html", "empty", "new.html", "run.sqlite.html", "new.lock", os.devnull])
def test_pages_and_what_is_new_may_be_written(here, name):
    spare(here / name)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("run.sqlite", "a store of basq"),
        ("other.dat", "an SQLite database"),
        ("saved.basq", "a saved result"),
        ("model.py", "code"),
    ],
)
def test_what_cannot_be_made_again_is_not_written_over(here, name, what):
    before = (here / name).read_bytes()
    with pytest.raises(InputError, match=f"{name}, which is {what}.*nothing was written.*another file"):
        spare(here / name)
    assert (here / name).read_bytes() == before


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm", ".lock"])
def test_nor_what_belongs_to_a_database(here, end):
    with pytest.raises(InputError, match=f"run.sqlite{end}.*belongs to the store or database run.sqlite"):
        spare(here / f"run.sqlite{end}")
    with pytest.raises(InputError, match=f"new.sqlite{end}.*belongs to"):  # a store that the command will make
        spare(here / f"new.sqlite{end}", inputs=[here / "new.sqlite"])


def test_nor_inputs_by_whatever_name(here):
    (here / "data.csv").write_text("1, 2")
    (here / "hard.html").hardlink_to(here / "data.csv")
    (here / "soft.html").symlink_to("data.csv")
    (here / "code.html").symlink_to("model.py")
    for name in ("data.csv", "hard.html", "soft.html", "../" + here.name + "/data.csv"):
        with pytest.raises(InputError, match="which this command reads or makes"):
            spare(here / name, inputs=["data.csv"])
    with pytest.raises(InputError, match="code"):
        spare(here / "code.html")
    with pytest.raises(InputError, match="which this command reads or makes"):  # not there yet
        spare(here / "new.sqlite", inputs=["new.sqlite"])


def test_a_saved_result_may_be_replaced_by_another(here):
    spare(here / "saved.basq", saves=True)
    with pytest.raises(InputError, match="a store of basq"):
        spare(here / "run.sqlite", saves=True)
