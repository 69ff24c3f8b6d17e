"""Stored figures say what made them, and which of them are stale."""

import json
import subprocess

import pytest
from benchmarks import made
from benchmarks.study import run_all


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a commit, code of two folders and a place for tables."""
    for folder in ("src/basq/paper", "src/basq/auto", "benchmarks/results/paper"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(made, "ROOT", tmp_path)
    monkeypatch.setattr(made, "RESULTS", tmp_path / "benchmarks" / "results")

    def commit(name, text):
        (tmp_path / name).write_text(text)
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x"]):
            subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    commit("src/basq/paper/method.py", "a = 1\n")
    return commit


def work(seed, size):
    return {"seed": seed, "size": size, "error": 0.5}


def study(seeds, name="paper/tables.csv"):
    path = made.RESULTS / name
    rows = run_all(work, [{"seed": s, "size": "small"} for s in range(seeds)], path, jobs=1, restart=False)
    return path, rows


def test_a_study_records_what_made_its_rows(repository):
    path, rows = study(2)
    assert len(rows) == 2
    line = json.loads((path.parent / "tables.made.jsonl").read_text())
    assert line["rows"] == 2
    assert line["settings"] == {"seed": [0, 1], "size": ["small"]}
    assert len(line["commit"]) == 12
    assert line["changed"] is False
    assert made.verdict(path) == ("fresh", f"2 rows of {line['commit']}")
    study(3)  # one row more: a second line
    assert made.verdict(path)[0] == "fresh"
    assert [json.loads(x)["rows"] for x in (path.parent / "tables.made.jsonl").read_text().splitlines()] == [2, 1]
    assert made.tables() == [path]


def test_a_table_is_stale_when_its_own_code_has_changed(repository):
    (paper, _), (engine, _) = study(1), study(1, "engine.csv")
    repository("src/basq/auto/engine.py", "b = 1\n")
    assert made.verdict(paper)[0] == "fresh"
    assert made.verdict(engine) == ("stale", "since then: auto/engine.py")
    repository("src/basq/paper/method.py", "a = 2\n")
    assert made.verdict(paper) == ("stale", "since then: paper/method.py")


def test_rows_that_nobody_recorded_are_noticed_and_can_be_adopted(repository):
    path, _ = study(1)
    with path.open("a") as file:
        file.write("7,small,0.1\n")
    assert made.verdict(path) == ("unrecorded", "it was written to after its last record")
    other = made.RESULTS / "engine.csv"
    repository("benchmarks/results/engine.csv", "seed\n1\n2\n")
    assert made.verdict(other)[0] == "unrecorded"
    made.adopt(other)
    assert made.verdict(other)[0] == "fresh"
    assert json.loads((made.RESULTS / "engine.made.jsonl").read_text())["rows"] == 2


def test_a_row_with_other_columns_is_refused(repository):
    path, _ = study(1)
    with pytest.raises(ValueError, match="columns"):
        run_all(
            lambda seed, size: {"seed": seed, "size": size}, [{"seed": 9, "size": "s"}], path, jobs=1, restart=False
        )
