"""The command line."""

import csv
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import basq
from basq.cli import main
from basq.cli.demo import PROBLEMS
from basq.cli.model import Model
from basq.cli.output import say
from basq.cli.parser import DEMOS
from basq.errors import InputError
from basq.evaluation.store import Store
from basq.run import identity
from basq.version import CHECKOUT, of_checkout
from helpers.commands import run_python
from helpers.small import gauss


def test_demo(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--output", "corner.png", "--report", "page.html", "--seed", "2"]) == 0
    out, err = capfd.readouterr()
    for text in ("rosen-2", "log Z = ", "truth: log Z = -3.994", "calls in", "batches", "Converged: "):
        assert text in out
    assert out.endswith("picture: corner.png\nreport: page.html\n")
    for name in ("parameter", "x1", "x2", "97.5%"):
        assert name in out
    assert "log Z" in err  # the progress bar
    assert (tmp_path / "corner.png").stat().st_size > 10_000
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "basq demo: banana" in page
    assert "rosen-2 of basq.problems" in page
    assert "Pointwise" not in page
    error = float(out.split("(error ")[1].split(")")[0])
    assert abs(error) < 0.1


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "demo" in capsys.readouterr().out


def test_every_demo_is_described_and_can_be_made():
    assert {*PROBLEMS, "battery"} == set(DEMOS)
    for make, _ in PROBLEMS.values():
        assert make(1).log_likelihood(make(1).prior.sample(2, np.random.default_rng(0))).shape == (2,)


COMMANDS = ["demo", "run", "resume", "certify", "compare", "report", "show", "list", "new", "ask", "tell", "rescue"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"examples:\n  basq {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_fits_a_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) < 80


def test_what_is_said_is_broken_between_words_on_a_terminal_only(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    text = "log Z = 1   (3 calls)\nConverged: " + "so many words " * 9 + "\n\n" + "a row of a table " * 4
    say(text)
    assert capsys.readouterr().out == f"{text}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    say(text)
    head, first, *more, blank, row = capsys.readouterr().out.splitlines()
    assert head == "log Z = 1   (3 calls)"
    assert max(map(len, [first, *more])) <= 30
    assert " ".join([first, *more]) == text.splitlines()[1].strip()
    assert (blank, row) == ("", "a row of a table " * 4)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    say("basq: " + "wrong " * 8, sys.stderr)
    assert capsys.readouterr().err.splitlines()[1].startswith("      wrong")


@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="no checkout")
def test_the_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    version, said = capsys.readouterr().out.split(maxsplit=2)[1:]
    assert version == basq.__version__
    name = re.fullmatch(r"\(commit ([0-9a-f]{7,})(-dirty)?\)\n", said)[1]
    head = ["git", "-C", str(CHECKOUT), "rev-parse", "HEAD"]
    assert subprocess.run(head, capture_output=True, text=True, check=True).stdout.startswith(name)


def test_a_release_names_the_commit_that_is_written_into_it(tmp_path, monkeypatch, capsys):
    written = tmp_path / "commit.txt"
    monkeypatch.setattr("basq.version.WRITTEN", written)
    for text, said in (("abc1234\n", " (commit abc1234)"), ("\n", "")):  # built from a checkout, and outside of one
        written.write_text(text)
        with pytest.raises(SystemExit):
            main(["--version"])
        assert capsys.readouterr().out == f"basq {basq.__version__}{said}\n"
    assert of_checkout(tmp_path) is None


def test_help_imports_nothing_heavy():
    code = "import sys; from basq.cli import build_parser; build_parser().format_help(); print(*sys.modules)"
    loaded = run_python(code)[0].split()
    assert not {"numpy", "scipy", "matplotlib", "tqdm", "sqlite3"} & set(loaded)


@pytest.mark.parametrize("arguments", [[], ["fly"], ["demo", "--seed", "x"], ["demo", "fly"], ["run"]])
def test_wrong_commands_exit_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: basq" in capsys.readouterr().err


def test_errors_are_one_line_and_exit_code_two(capsys, monkeypatch):
    def refuse(*_):
        raise InputError("not like this")

    monkeypatch.setattr("basq.cli.demo.demo", refuse)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "basq: not like this\n"
    for arguments in (["--debug", "demo"], ["demo", "--debug"]):
        assert main(arguments) == 2
        err = capsys.readouterr().err
        assert "Traceback" in err
        assert err.endswith("basq: not like this\n")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["run", "model.py", "--maxevals", "3"], "--maxevals 3; did you mean --max-evals?"),
        (["run", "--maxevals=3", "model.py"], "did you mean --max-evals?"),
        (["list", "--zzz"], "unrecognized arguments: --zzz\n"),
    ],
)
def test_a_misspelt_option_is_guessed(arguments, hint, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert f"usage: basq {arguments[0]}" in err
    assert hint in err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (basq.EvaluationError("all\n failed"), 1, "basq: all failed"),
        (ZeroDivisionError("a bug"), 1, "basq: ZeroDivisionError: a bug"),
        (OSError("no such disk"), 2, "basq: no such disk"),
        (KeyboardInterrupt(), 130, "basq: interrupted"),
    ],
)
def test_exit_codes(error, code, line, capsys, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr("basq.cli.demo.demo", fail)
    assert main(["demo"]) == code
    assert capsys.readouterr().err.splitlines()[0] == line


def test_a_negative_seed_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--seed", "-1"])
    assert stop.value.code == 2
    assert "-1: give a whole number, 0 or more" in capsys.readouterr().err


# --- a run without a driver -----------------------------------------------------------------------------------------


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("prior = {'a': (-3, 3), 'b': (-3, 3)}\n")
    return tmp_path


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
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["store", "state", "done", "failed", "pending", "log", "Z"]
    # show has learned from the last values, and kept nothing of it
    assert re.fullmatch(r"run.sqlite  not finished +48 +0 +0  -\d\.\d+ so far, 8 newer values", line)


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
    assert re.search(r"not finished +0 +0 +3  nothing learned yet", capsys.readouterr().out)


def test_a_bad_file_does_not_hide_the_other_runs(directory, capsys):
    main(["new", "run.sqlite", "model.py:prior", "--seed", "1"])
    (directory / "a.sqlite").write_text("no database at all\n" * 100)
    (directory / "empty.sqlite").touch()
    capsys.readouterr()
    assert main(["list"]) == 0
    out, err = capsys.readouterr()
    lines = [line.split(maxsplit=1) for line in out.splitlines()[1:]]
    assert [name for name, _ in lines] == ["a.sqlite", "empty.sqlite", "run.sqlite"]
    assert "file is not a database" in lines[0][1]
    assert "holds no run yet" in lines[1][1]
    assert err == ""
    assert main(["list", "a.sqlite", "nothing.sqlite"]) == 1
    assert "There is no store" in capsys.readouterr().out
    assert not (directory / "nothing.sqlite").exists()


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
        (["new", "other.sqlite", "model.py:law"], "there is no 'law' in the file; it has prior"),
        (["new", "other.sqlite", "nothing.py:prior"], "give a Python file that exists"),
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


# --- run, resume, report ----------------------------------------------------------------------------------------------

MODEL = """
from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from neighbour import CENTRE


@dataclass
class Gauss:
    width: float
    prior = {"a": (-3, 3), "b": (-3, 3)}

    def log_likelihood(self, x):
        time.sleep(0.01)
        return float(-0.5 * np.sum((x - CENTRE) ** 2) / self.width)


model = Gauss(0.1)
prior = Gauss.prior


def log_likelihood(x):
    return model.log_likelihood(x)


def other(x):
    return log_likelihood(x) - 1.0


def broken(x):
    raise ArithmeticError("no steady state")


pair = (log_likelihood, {"c": (-1, 1)})
number = 3

if __name__ == "__main__":
    raise SystemExit("this is no script")
"""
FEW = ["--seed", "1", "--batch-size", "8", "--no-progress"]


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A directory with a model and a neighbour that it imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "neighbour", raising=False)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("CENTRE = 0.3\n")
    return tmp_path


def test_a_run_is_that_of_infer(model, capsys):
    assert main(["run", "model.py", *FEW, "--max-evals", "48", "--report", "page.html"]) in (0, 3)
    out, err = capsys.readouterr()
    plain = basq.infer(gauss, {"a": (-3, 3), "b": (-3, 3)}, seed=1, batch_size=8, max_evals=48, progress=False)
    assert out.splitlines()[0] == str(plain).splitlines()[0]
    assert out.endswith("report: page.html\n")
    assert err == "basq: model.sqlite, a new run: at most 48 calls, --dlogz 0.1\n"
    assert str(model / "model.py") in (model / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "names"), [("model", "ab"), ("other", "ab"), ("pair", "c")])
def test_the_forms_of_a_model(model, name, names, capsys):
    assert main(["run", f"model.py:{name}", *FEW, "--max-evals", "16"]) == 3
    result = basq.Sampler.open(f"model-{name}.sqlite").result()
    assert result.names == tuple(names)
    assert result.n_evals == 16
    assert "Not converged" in capsys.readouterr().out


def test_options_reach_the_run_and_are_remembered(model, capsys):
    arguments = ["run", "model.py:other", "--store", "mine.sqlite", "--pool", "2", "--timeout", "60", "--retries", "1"]
    assert main([*arguments, "--on-error", "zero", "--dlogz", "0.5", "--max-evals", "40", *FEW]) in (0, 3)
    capsys.readouterr()
    with Store("mine.sqlite") as store:
        command = store.get("command")
        assert command["model"] == f"{model / 'model.py'}:other"
        assert (command["pool"], command["timeout"], command["retries"]) == (2, 60.0, 1)
        assert store.get("on_error") == "zero"
        assert store.get("dlogz") == 0.5
    assert main(["resume", "mine.sqlite", "--max-evals", "56", "--dlogz", "0", "--no-progress"]) == 3
    assert "(56 calls" in capsys.readouterr().out
    with Store("mine.sqlite") as store:
        assert store.get("command") == command


def test_a_run_says_where_it_stands_and_what_it_aims_at(model, capsys):
    assert main(["run", "model.py", "--seed", "1", "--no-progress"]) == 0
    assert capsys.readouterr().err == "basq: model.sqlite, a new run: at most 200 calls, --dlogz 0.1\n"
    n = basq.Sampler.open("model.sqlite").result().n_evals
    for again in (["run", "model.py"], ["resume", "model.sqlite"]):  # no bar that starts and ends
        assert main(again) == 0
        out, err = capsys.readouterr()
        assert err == f"basq: model.sqlite, already converged after {n} calls (--dlogz 0.1); lower --dlogz to go on\n"
        assert f"({n} calls in " in out
    more = ["resume", "model.sqlite", "--max-evals", str(n + 16), "--no-progress"]
    assert main([*more, "--dlogz", "0.001"]) == 3
    assert f"going on after {n} calls: at most {n + 16} calls, --dlogz 0.001" in capsys.readouterr().err
    assert main(["resume", "model.sqlite"]) == 3  # the target stays
    spent = f"all {n + 16} calls of --max-evals are spent; allow more to go on"
    assert capsys.readouterr().err == f"basq: model.sqlite, {spent}\n"


def test_list_show_resume_and_the_exit_code_agree(model, capsys):
    """A run that has spent its calls converges when its target is raised, without a new call."""

    def seen(code):
        words = [capsys.readouterr().out]
        for look in (["show", "model.sqlite"], ["list"]):
            main(look)
            words.append(capsys.readouterr().out)
        return code, [re.search("not converged|converged", text.lower())[0] for text in words]

    spent = main(["run", "model.py", "--seed", "1", "--max-evals", "80", "--dlogz", "0.0005", "--no-progress"])
    assert seen(spent) == (3, ["not converged"] * 3)
    raised = main(["resume", "model.sqlite", "--dlogz", "0.5", "--no-progress"])
    assert seen(raised) == (0, ["converged"] * 3)


def test_what_is_missing_is_said_in_our_words_with_a_command_that_goes_on(model, capsys):
    assert main(["run", "model.py", "--seed", "1", "--max-evals", "32", "--dlogz", "0.001", "--no-progress"]) == 3
    why, step = capsys.readouterr().out.splitlines()[1:3]
    assert why.startswith("Not converged: 32 of --max-evals 32 calls spent; ")
    assert why.count(";") <= 2
    assert step == "Next: basq resume model.sqlite --max-evals 64"
    assert main([*step.removeprefix("Next: basq ").split(), "--no-progress"]) in (0, 3)
    assert main(["run", "model.py", "--batch-size", "0"]) == 2
    assert "--batch-size 0: give a positive whole number" in capsys.readouterr().err


def test_the_paper_method(model, capsys):
    assert main(["run", "model.py", "--method", "paper", *FEW, "--max-evals", "16"]) in (0, 3)
    assert main(["resume", "model.sqlite", "--max-evals", "24", "--no-progress"]) in (0, 3)
    assert main(["run", "model.py", *FEW]) == 2
    assert "is of another problem: it has --method Paper" in capsys.readouterr().err


def test_the_same_file_is_the_same_function_and_another_one_is_not(model, capsys):
    first, second = Model.load("model.py"), Model.load("model.py")
    assert first.log_likelihood is not second.log_likelihood
    assert identity.describe(first.log_likelihood) == identity.describe(second.log_likelihood)
    assert main(["run", "model.py:other", "--store", "run.sqlite", *FEW, "--max-evals", "16"]) == 3
    (model / "model.py").write_text("# moved down\n" + MODEL)
    assert main(["run", "model.py:other", "--store", "run.sqlite", *FEW, "--max-evals", "24"]) == 3
    (model / "model.py").write_text(MODEL.replace("log_likelihood(x) - 1.0", "log_likelihood(x) - 2.0"))
    capsys.readouterr()
    assert main(["resume", "run.sqlite", "--max-evals", "32"]) == 2
    err = capsys.readouterr().err
    assert "holds values of another log-likelihood: the code of other has changed. Give another file name" in err
    assert "another --store" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import numpy\n\nprior = nothing\n", "model.py, line 3: NameError: name 'nothing' is not defined"),
        ("x = 1\nprior = {\n", "model.py, line 2: SyntaxError: '{' was never closed: prior = {\n"),
        ("import sys\nsys.exit('no data')\n", "model.py, line 2: SystemExit: no data"),
        ("from neighbour import NOTHING\n", "model.py, line 1: ImportError: cannot import name 'NOTHING'"),
        ("prior = {}\n", "there is no 'log_likelihood' in the file; it has prior"),
        ("log_likelihood = 3\nprior = {'a': (0, 1)}\n", "log_likelihood"),
        ("def log_likelihood(x): return 0.0\nprior = {'a': (1, 0)}\n", "a"),
    ],
)
def test_errors_in_the_model_are_one_line(model, capsys, text, message):
    (model / "model.py").write_text(text)
    assert main(["run", "model.py"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not list(model.glob("*.sqlite"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing.py"], "give a Python file that exists"),
        (["run", "model.py:nothing"], "there is no 'nothing' in the file"),
        (["run", "model.py:number"], "number is int; give a function"),
        (["run", "model.py", "--batch-size", "0"], "--batch-size 0"),
        (["run", "model.py", "--max-evals", "0"], "--max-evals 0"),
        (["resume", "nothing.sqlite"], "There is no store 'nothing.sqlite'"),
        (["report", "nothing.sqlite"], "There is no store 'nothing.sqlite'"),
        (["show", "model.py"], "model.py"),
    ],
)
def test_wrong_runs_are_one_line(model, capsys, arguments, message):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "wrong", [["--pool", "0"], ["--timeout", "-3"], ["--timeout", "nan"], ["--retries", "-1"], ["--max-time", "soon"]]
)
def test_wrong_ways_to_make_calls_leave_no_trace(model, capsys, wrong):
    for arguments in (["run", "model.py"], ["resume", "model.sqlite"], ["compare", "a.sqlite", "b.sqlite"]):
        with pytest.raises(SystemExit) as stop:
            main([*arguments, *wrong])
        assert stop.value.code == 2
        assert f"argument {wrong[0]}: {wrong[1]}: give a " in capsys.readouterr().err
    assert not list(model.glob("*.sqlite"))


def test_a_function_that_cannot_be_called_leaves_no_trace(model, capsys):
    (model / "model.py").write_text("def log_likelihood(x, y): return 0.0\nprior = {'a': (0, 1)}\n")
    assert main(["run", "model.py"]) == 2
    assert "one argument" in capsys.readouterr().err
    assert not list(model.glob("*.sqlite"))


@pytest.mark.parametrize(
    "arguments",
    [["run", "model.py", "--report"], ["demo", "--output"], ["demo", "--report"], ["ask", "run.sqlite", "-o"],
     ["report", "run.sqlite", "-o"]],
)  # fmt: skip
def test_files_that_cannot_be_written_are_refused_before_anything_is_done(model, capsys, arguments):
    main(["new", "run.sqlite", "model.py:prior"])
    capsys.readouterr()
    for place, message in (("no/page.html", "there is no folder no"), (".", ". is a folder")):
        assert main([*arguments, place]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert message in err
        assert err.count("\n") == 1
    assert sorted(p.name for p in model.iterdir() if p.suffix == ".sqlite") == ["run.sqlite"]
    assert basq.Sampler.open("run.sqlite").store.counts()["pending"] == 0


def test_a_file_that_cannot_be_written_in_the_end(model, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(basq.Result, "report", full)
    assert main(["run", "model.py", *FEW, "--max-evals", "16", "--report", "page.html"]) == 1
    out, err = capsys.readouterr()
    assert "log Z not known yet: above " in out
    assert "page.html could not be written: the disk is full" in err


def test_a_likelihood_that_always_fails(model, capsys):
    assert main(["run", "model.py:broken", *FEW]) == 1
    err = capsys.readouterr().err
    line = MODEL[: MODEL.index("raise ArithmeticError")].count("\n") + 1
    assert f"ArithmeticError: no steady state (model.py, line {line}) at a = " in err
    assert err.endswith("basq: --debug shows the traceback\n")
    assert "Traceback" not in err
    assert main(["report", "model-broken.sqlite"]) == 0  # says why, without a single value
    text = (model / "model-broken.html").read_text(encoding="utf-8")
    assert "no call has succeeded yet" in text
    assert "no steady state" in text


def test_a_traceback_is_offered_only_if_there_is_something_to_see(model, capsys):
    (model / "model.py").write_text("def log_likelihood(x): return float('nan')\nprior = {'a': (0, 1)}\n")
    assert main(["run", "model.py", *FEW]) == 1
    err = capsys.readouterr().err
    assert "log_likelihood returned nan at a = 0." in err
    assert "--debug" not in err


def test_a_model_that_always_failed_can_be_mended(model, capsys):
    (model / "model.py").write_text(MODEL.replace("return model", "raise OverflowError('a bug')\n    return model"))
    assert main(["run", "model.py", *FEW, "--max-evals", "32"]) == 1
    (model / "model.py").write_text(MODEL)
    assert main(["run", "model.py", *FEW, "--max-evals", "32"]) == 3
    assert "(32 calls" in capsys.readouterr().out


def test_a_store_without_a_model_or_whose_model_has_moved(model, capsys):
    basq.infer(gauss, {"a": (-3, 3), "b": (-3, 3)}, store="plain.sqlite", seed=1, max_evals=32, progress=False)
    assert main(["resume", "plain.sqlite"]) == 2
    assert "add --model model.py" in capsys.readouterr().err
    main(["run", "model.py", *FEW, "--max-evals", "32"])
    (model / "model.py").rename(model / "moved.py")
    assert main(["resume", "model.sqlite"]) == 2
    assert "which is gone; add --model" in capsys.readouterr().err
    assert main(["resume", "model.sqlite", "--model", "moved.py", "--max-evals", "40", "--dlogz", "0"]) == 3
    assert main(["report", "model.sqlite", "--title", "Moved"]) == 0
    assert "<h1>Moved</h1>" in (model / "model.html").read_text(encoding="utf-8")


def command(*arguments):
    return [sys.executable, "-c", "from basq.cli import main; raise SystemExit(main())", *arguments]


def start(*arguments, **options):
    return subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def wait_for(path, n_done, driver):
    """Wait until so many calls are in the store."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until and driver.poll() is None:
        if path.exists():
            try:
                with Store(path) as store:
                    if store.counts()["done"] >= n_done:
                        return
            except basq.StoreError:
                pass
        time.sleep(0.05)
    raise AssertionError(f"the run did not get so far: {driver.communicate(timeout=10)}")


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(model, number, capsys):
    arguments = [
        "run",
        "model.py",
        "--pool",
        "2",
        "--seed",
        "1",
        "--batch-size",
        "8",
        "--max-evals",
        "64",
        "--dlogz",
        "0",
    ]
    driver = start(*arguments)
    wait_for(model / "model.sqlite", 36, driver)
    os.kill(driver.pid, number)
    out, err = driver.communicate(timeout=60)
    if number == signal.SIGINT:
        assert driver.returncode == 130
        assert "log Z " in out
        assert "Next: basq resume model.sqlite\n" in out
    assert "Traceback" not in err
    capsys.readouterr()
    assert main(["list"]) == main(["show", "model.sqlite"]) == 0
    state = "interrupted" if number == signal.SIGINT else "not finished"
    assert capsys.readouterr().out.lower().count(state) == 2
    assert main(["report", "model.sqlite"]) == 0  # in between, without the likelihood
    assert "Not finished" in (model / "model.html").read_text(encoding="utf-8")
    time.sleep(1.2)  # the killed driver's workers notice
    done = subprocess.run(command("resume", "model.sqlite"), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3, done.stderr  # dlogz = 0 never converges
    again = basq.Sampler.open("model.sqlite").result()
    plain = basq.infer(
        gauss, {"a": (-3, 3), "b": (-3, 3)}, seed=1, batch_size=8, max_evals=64, dlogz=0.0, progress=False
    )
    np.testing.assert_array_equal(again.observations.x, plain.observations.x)
    assert again.log_evidence == plain.log_evidence


def test_a_store_that_is_in_use_is_refused_but_can_be_read(model, capsys):
    driver = start("run", "model.py", "--seed", "1", "--dlogz", "0", "--max-evals", "5000")
    try:
        wait_for(model / "model.sqlite", 33, driver)
        assert main(["run", "model.py"]) == 2
        assert "in use" in capsys.readouterr().err
        assert main(["list"]) == main(["show", "model.sqlite"]) == 0
        assert capsys.readouterr().out.lower().count("running") == 2
        assert main(["report", "model.sqlite", "-o", "now.html"]) == 0
        assert "Not finished" in (model / "now.html").read_text(encoding="utf-8")
    finally:
        driver.kill()
        driver.communicate()


# --- progress ---------------------------------------------------------------------------------------------------------


def test_a_log_file_gets_few_lines(model, monkeypatch, capfd):
    assert main(["run", "model.py", "--seed", "1", "--batch-size", "8", "--max-evals", "64", "--dlogz", "0"]) == 3
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) <= 3  # what it does, the first batch, the end
    assert re.fullmatch(r"basq: 64 of at most 64 calls after \d+ s, log Z = -\d\.\d{3} ± \d\.\d{3}", lines[-1])
    assert "\r" not in "".join(lines)


def test_demo_battery(tmp_path, monkeypatch, capfd):
    pytest.importorskip("pybamm")
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "battery"]) == 0
    out, err = capfd.readouterr()
    assert "Positive evidence for SPMe against SPM" in out
    assert "noise_variance" in out
    assert "SPMe 0." in err  # the progress
    assert (tmp_path / "basq-demo.png").stat().st_size > 10_000
    assert "Lithium-ion cell, SPMe" in (tmp_path / "basq-demo.html").read_text(encoding="utf-8")


RIVALS = """
import numpy as np

prior = {"a": (-3, 3), "b": (-3, 3)}


def wide(x):
    return -0.5 * float(np.sum(np.square(x)))


def narrow(x):
    return -0.5 * float(np.sum(np.square(x))) / 0.01


pair = narrow, {"a": (-1, 1), "b": (-1, 1)}
"""


def test_compare_runs_models_and_reads_their_stores(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(RIVALS)
    models = ["model.py:wide", "model.py:narrow", "small=model.py:pair"]
    assert main(["compare", *models, "--store", "runs", "--seed", "1", "--no-progress", "-o", "all.png"]) == 0
    first = capsys.readouterr().out
    assert "evidence for wide against small" in first  # areas 2π / 36 and 2π 0.01 / 4
    assert sorted(p.name for p in (tmp_path / "runs").iterdir() if p.suffix == ".sqlite") == [
        "narrow.sqlite", "small.sqlite", "wide.sqlite",
    ]  # fmt: skip
    assert (tmp_path / "all.png").stat().st_size > 5_000
    assert main(["compare", "runs/wide.sqlite", "runs/narrow.sqlite", "--odds", "narrow=1e6"]) == 0
    second = capsys.readouterr().out
    assert "evidence for wide against narrow" in second
    row = next(line for line in second.splitlines() if line.startswith("narrow"))
    assert "> 0.999" in row


def test_compare_gives_free_workers_points_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(RIVALS)
    options = ["--asynchronous", "--pool", "2", "--seed", "1", "--no-progress"]
    assert main(["compare", "model.py:wide", "model.py:narrow", *options]) == 0
    assert "evidence for wide against narrow" in capsys.readouterr().out


def test_compare_says_by_its_exit_code_that_it_was_interrupted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ctrl_c = "\n\ndef rude(x):\n    import signal\n\n    signal.raise_signal(signal.SIGINT)\n    return wide(x)\n"
    (tmp_path / "model.py").write_text(RIVALS + ctrl_c)
    assert main(["compare", "model.py:rude", "model.py:wide", "--seed", "1", "--no-progress"]) == 130
    out, err = capsys.readouterr()
    assert "Interrupted after 1 calls." in out
    assert "basq: the same command goes on" in err


def test_compare_says_by_its_exit_code_that_nothing_is_decided(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(RIVALS)
    assert main(["compare", "model.py:wide", "same=model.py:wide", "--seed", "1", "--no-progress"]) == 3
    assert "Not decided" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.sqlite", "b.sqlite"], "there is no such store"),
        (["model.py:wide"], "at least two"),
        (["model.py:wide", "model.py:wide"], "same name"),
        (["model.py:wide", "model.py:narrow", "--odds", "x=2"], "no model 'x'"),
        (["model.py:wide", "model.py:narrow", "--odds", "wide"], "name=number"),
    ],
)
def test_compare_names_wrong_use(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(RIVALS)
    assert main(["compare", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_demo_of_too_few_calls_draws_no_posterior(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make, _ = PROBLEMS["ring"]
    monkeypatch.setitem(PROBLEMS, "ring", (make, {"max_evals": 3, "progress": False}))
    assert main(["demo", "ring"]) == 0
    out = capsys.readouterr().out
    assert "too few calls for a posterior (3 of 32)" in out
    assert "picture" not in out
    assert not (tmp_path / "basq-demo.png").exists()
    assert "Too few calls for a posterior (3 of 32)." in (tmp_path / "basq-demo.html").read_text(encoding="utf-8")
