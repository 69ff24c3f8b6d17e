"""The command line."""

import csv
import re

import numpy as np
import pytest

import basq
from basq.cli import main
from basq.errors import InputError


def test_demo(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--output", "corner.png", "--seed", "2"]) == 0
    out, err = capfd.readouterr()
    for text in ("mixture-3", "log Z = ", "truth: log Z = 0.000", "calls in", "batches", "picture: corner.png"):
        assert text in out
    for name in ("parameter", "x1", "x2", "x3", "97.5%"):
        assert name in out
    assert "log Z" in err  # the progress bar
    assert (tmp_path / "corner.png").stat().st_size > 10_000
    error = float(out.split("(error ")[1].split(")")[0])
    assert abs(error) < 0.1


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "demo" in capsys.readouterr().out


def test_help_of_the_demo(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "--output" in out
    assert "basq-demo.png" in out


@pytest.mark.parametrize("arguments", [[], ["fly"], ["demo", "--seed", "x"]])
def test_wrong_commands_exit_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: basq" in capsys.readouterr().err


def test_errors_are_one_line_and_exit_code_two(capsys, monkeypatch):
    def refuse(*_):
        raise InputError("not like this")

    monkeypatch.setattr("basq.cli._demo", refuse)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "basq: not like this\n"


def test_a_negative_seed_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--seed", "-1"])
    assert stop.value.code == 2
    assert "negative" in capsys.readouterr().err


# --- a run without a driver -----------------------------------------------------------------------------------------


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("prior = {'a': (-3, 3), 'b': (-3, 3)}\n")
    return tmp_path


def gauss(x):
    return float(-0.5 * np.sum((np.asarray(x) - 0.3) ** 2) / 0.1)


def answer(points, values):
    """Evaluate a file of points into a file of values, as a job would."""
    with points.open() as file:
        rows = list(csv.DictReader(file))
    lines = [f"{row['id']},{gauss([float(row['a']), float(row['b'])])!r}" for row in rows]
    values.write_text("id,log_likelihood\n" + "\n".join(lines))
    return len(rows)


def test_a_run_by_ask_and_tell_is_the_run_of_infer(directory, capsys):
    assert main(["new", "run.sqlite", "model.py:prior", "--seed", "1", "--batch-size", "8", "--max-evals", "48"]) == 0
    assert "a ~ uniform(-3, 3)" in capsys.readouterr().out
    sizes = []
    for _ in range(3):
        assert main(["ask", "run.sqlite", "-o", "points.csv"]) == 0
        sizes.append(answer(directory / "points.csv", directory / "values.csv"))
        assert main(["tell", "run.sqlite", "values.csv"]) == 0
    assert sizes == [32, 8, 8]
    capsys.readouterr()
    assert main(["show", "run.sqlite"]) == 0
    shown = capsys.readouterr().out
    plain = basq.infer(gauss, {"a": (-3, 3), "b": (-3, 3)}, seed=1, batch_size=8, max_evals=48, progress=False)
    assert shown.splitlines()[0] == str(plain).splitlines()[0]
    assert main(["list"]) == 0
    assert capsys.readouterr().out.startswith("run.sqlite: 48 done, 0 failed, 0 pending; log Z = ")


def test_points_on_the_terminal(directory, capsys):
    main(["new", "run.sqlite", "model.py:prior", "--seed", "1"])
    capsys.readouterr()
    assert main(["ask", "run.sqlite", "-n", "3"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "id,a,b"
    assert len(out.splitlines()) == 4
    np.testing.assert_array_equal(
        [[float(v) for v in line.split(",")[1:]] for line in out.splitlines()[1:]],
        basq.Sampler.open("run.sqlite").pending().x,
    )
    assert "3 points. Running: nothing has been modelled yet." in err
    assert main(["list", "run.sqlite"]) == 0
    assert "0 done, 0 failed, 3 pending; nothing learned yet" in capsys.readouterr().out


def test_values_in_several_files_with_failures(directory, capsys):
    main(["new", "run.sqlite", "model.py:prior", "--seed", "1"])
    main(["ask", "run.sqlite", "-n", "6", "-o", "points.csv"])
    (directory / "a.csv").write_text("id, log_likelihood, noise\n4, -1.5, 0.1\n0, -inf,\n")
    (directory / "b.csv").write_text("id,log_likelihood,error\n2,,solver diverged\n1,nan,\n3,,\n")
    capsys.readouterr()
    assert main(["tell", "run.sqlite", "a.csv", "b.csv"]) == 0
    assert capsys.readouterr().out == "2 values, 3 failures; 1 calls are still pending.\n"
    rows = basq.Sampler.open("run.sqlite").store.rows()
    assert [row["state"] for row in rows] == ["done", "failed", "failed", "failed", "done", "pending"]
    assert [row["error"] for row in rows][1:4] == ["told as NaN", "solver diverged", "no value was given"]
    assert rows[4]["noise"] == 0.1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,value\n0,1\n", "there is no column log_likelihood"),
        ("", "there is no column id, log_likelihood"),
        ("id,log_likelihood\n0,1\nx,2\n", "line 3: invalid literal.*nothing was recorded"),
        ("id,log_likelihood\n0,1\n99,2\n", "call 99 was never asked for; nothing was recorded"),
    ],
)
def test_wrong_values_record_nothing(directory, capsys, text, message):
    main(["new", "run.sqlite", "model.py:prior"])
    main(["ask", "run.sqlite", "-n", "3", "-o", "points.csv"])
    (directory / "values.csv").write_text(text)
    capsys.readouterr()
    assert main(["tell", "run.sqlite", "values.csv"]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert basq.Sampler.open("run.sqlite").store.counts()["done"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "nothing.sqlite"], "There is no store 'nothing.sqlite'"),
        (["tell", "run.sqlite", "nothing.csv"], "nothing.csv"),
        (["new", "run.sqlite", "model.py:prior"], "exists already"),
        (["new", "other.sqlite", "model.py"], "give a file and a name in it"),
        (["new", "other.sqlite", "model.py:law"], "model.py has no 'law'"),
        (["ask", "run.sqlite", "-n", "0"], "positive whole number"),
    ],
)
def test_wrong_use_is_one_line(directory, capsys, arguments, message):
    main(["new", "run.sqlite", "model.py:prior"])
    capsys.readouterr()
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (directory / "other.sqlite").exists()
