"""certify on the command line, and what the other commands say about certificates."""

import csv
import re
import sys

import pytest

import basq
from basq.cli import main
from basq.evaluation.store import Store
from helpers.certified import counts, quick_stores
from helpers.small import gauss

MODEL = """
import os

import numpy as np

prior = {"a": (-3, 3), "b": (-3, 3)}
CALLS, OFF = [], 0.0


def log_likelihood(x):
    CALLS.append(x)
    if len(CALLS) == int(os.environ.get("STOP_AT", 0)):
        import signal

        signal.raise_signal(signal.SIGINT)
    return float(-0.5 * np.sum((x - 0.3) ** 2) / 0.1) + OFF + float(os.environ.get("DRIFT", 0))
"""
FEW = ["--seed", "1", "--batch-size", "8", "--max-evals", "64", "--no-progress"]
CERTIFIED = r"Certified: 31 independent calls give log Z = -4\.\d+ ± 0\.\d+"


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with quick_stores():
        yield


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A directory with a model and its run."""
    directory = tmp_path_factory.mktemp("model")
    (directory / "model.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        assert main(["run", "model.py", *FEW]) == 0
    return directory


@pytest.fixture
def model(done, tmp_path, monkeypatch):
    """A copy of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("model.py", "model.sqlite"):
        (tmp_path / name).write_bytes((done / name).read_bytes())
    with Store("model.sqlite") as store:
        store.set(command=store.get("command") | {"model": str(tmp_path / "model.py")})
    return tmp_path


def certify(*arguments):
    return main(["certify", "model.sqlite", "--no-progress", *arguments])


def told(points, values, off=0.0):
    """Evaluate a file of points into a file of values, as a job would; all but the first may be off."""
    with open(points) as file:
        rows = list(csv.DictReader(file))
    found = [gauss([float(row["a"]), float(row["b"])]) + off * (k > 0) for k, row in enumerate(rows)]
    lines = [f"{row['id']},{value!r}" for row, value in zip(rows, found, strict=True)]
    with open(values, "w") as file:
        file.write("\n".join(["id,log_likelihood", *lines]))
    return len(rows)


def test_certify_proves_an_answer_and_shows_it(model, capsys):
    assert certify("-n", "32", "--report", "page.html") == 0
    out = capsys.readouterr().out
    assert re.search(CERTIFIED, out)
    assert "31 more for the certificate" in out
    assert out.endswith("report: page.html\n")
    assert counts("model.sqlite") == (96, 0, 0)
    page = (model / "page.html").read_text(encoding="utf-8")
    assert "<h2>Certificate</h2>" in page
    assert '<span class="badge">Certified</span>' in page
    assert re.search(CERTIFIED.replace("= -", "= −"), page)
    assert main(["show", "model.sqlite"]) == 0
    assert re.search(CERTIFIED, capsys.readouterr().out)


def test_once_more_costs_no_call_and_needs_no_model(model, capsys):
    assert certify("-n", "32") == 0
    first = capsys.readouterr().out
    (model / "model.py").unlink()
    assert certify("-n", "32") == 0
    assert capsys.readouterr().out == first
    assert counts("model.sqlite") == (96, 0, 0)


def test_the_list_has_the_answer_of_the_certificate(model, capsys):
    certify("-n", "32")
    capsys.readouterr()
    assert main(["list"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert re.fullmatch(r"model.sqlite  converged +96 +0 +0  -4\.\d+ ± 0\.\d+, certified", line)


def test_what_is_contradicted_exits_with_three_and_is_listed(model, capsys):
    """Where fresh values are all larger by the same: as if the log Z of the run was wrong."""
    certify("--ask", "-n", "32", "-o", "points.csv")
    told("points.csv", "values.csv", off=0.3)
    assert main(["tell", "model.sqlite", "values.csv"]) == 0
    capsys.readouterr()
    assert certify("-n", "32", "--report", "page.html") == 3
    assert "contradicted, 31 independent calls give log Z = -3.7" in capsys.readouterr().out
    page = (model / "page.html").read_text(encoding="utf-8")
    assert '<span class="badge">Contradicted</span>' in page
    assert main(["list"]) == 0
    assert re.search(r"not converged +96 .* contradicted\n", capsys.readouterr().out)


def test_what_is_not_decided_exits_with_three(model, capsys):
    with Store("model.sqlite") as store:
        store.set(dlogz=1e-6)
    assert certify("-n", "32") == 3
    assert "Not decided: " in capsys.readouterr().out


def test_points_are_written_and_told(model, capsys):
    assert certify("--ask", "-n", "32", "-o", "points.csv") == 0
    assert "32 points; tell their values" in capsys.readouterr().err
    assert counts("model.sqlite") == (64, 0, 32)
    assert told("points.csv", "values.csv") == 32
    assert main(["list"]) == 0
    assert re.search(r"converged +64 +0 +32  -4\.\d+ ± 0\.\d+\n", capsys.readouterr().out)
    assert main(["tell", "model.sqlite", "values.csv"]) == 0
    assert capsys.readouterr().out == "32 values, 0 failures; 0 calls are still pending.\n"
    (model / "model.py").unlink()
    assert certify("-n", "32") == 0
    assert re.search(CERTIFIED, capsys.readouterr().out)
    plain = basq.Sampler.open("model.sqlite").result().certificate
    assert plain.certified


def test_points_on_the_terminal_are_the_same_until_they_are_told(model, capsys):
    assert certify("--ask", "-n", "30") == 0
    first = capsys.readouterr().out
    assert first.splitlines()[0] == "id,a,b"
    assert len(first.splitlines()) == 31
    assert certify("--ask", "-n", "30") == 0
    assert capsys.readouterr().out == first


def test_a_run_without_a_driver_is_certified(model, capsys):
    """Whose last values no step has learned from yet."""
    assert main(["new", "own.sqlite", "model.py:prior", *FEW[:-1]]) == 0
    for _ in range(5):
        main(["ask", "own.sqlite", "-o", "points.csv"])
        told("points.csv", "values.csv")
        main(["tell", "own.sqlite", "values.csv"])
    assert main(["certify", "own.sqlite", "--ask", "-n", "32", "-o", "points.csv"]) == 0
    told("points.csv", "values.csv")
    main(["tell", "own.sqlite", "values.csv"])
    capsys.readouterr()
    assert main(["certify", "own.sqlite", "-n", "32"]) == 0
    assert re.search(CERTIFIED, capsys.readouterr().out)
    assert main(["list", "own.sqlite"]) == 0
    assert ", certified" in capsys.readouterr().out


def test_run_certifies_at_once(model, capsys):
    assert main(["run", "model.py", "--store", "own.sqlite", *FEW, "--certify", "32"]) == 0
    assert re.search(CERTIFIED, capsys.readouterr().out)
    assert counts("own.sqlite") == (96, 0, 0)
    assert main(["run", "model.py", "--store", "own.sqlite", *FEW, "--certify", "32"]) == 0
    assert counts("own.sqlite") == (96, 0, 0)


def test_a_run_that_is_resumed_learns_from_its_certificate(model, capsys):
    certify("-n", "32")
    capsys.readouterr()
    assert main(["resume", "model.sqlite", "--max-evals", "120", "--dlogz", "0", "--no-progress"]) == 3
    out = capsys.readouterr().out
    assert "(120 calls" in out
    assert "certificate" not in out
    assert main(["list"]) == 0
    assert "certified" not in capsys.readouterr().out


def test_options_reach_the_calls(model, capsys):
    arguments = ["-n", "60", "--error", "0.05", "--pool", "2", "--timeout", "60", "--retries", "1"]
    assert certify(*arguments, "--model", "model.py") == 0
    done, failed, pending = counts("model.sqlite")
    assert 64 < done < 64 + 60
    assert (failed, pending) == (0, 0)


def test_an_interrupt_keeps_what_was_paid_for(model, capsys, monkeypatch):
    monkeypatch.setenv("STOP_AT", "20")
    assert certify("-n", "32") == 130
    out, err = capsys.readouterr()
    assert "have no value yet" in out
    assert err.endswith("basq: go on with the same command\n")
    assert counts("model.sqlite") == (84, 0, 12)
    monkeypatch.delenv("STOP_AT")
    assert certify("-n", "32") == 0
    assert counts("model.sqlite") == (96, 0, 0)


def test_a_likelihood_that_has_changed_is_one_line(model, capsys, monkeypatch):
    text = (model / "model.py").read_text()
    with monkeypatch.context() as patch:
        patch.setenv("DRIFT", "0.5")  # which no look at the function can see
        assert certify("-n", "32") == 1
    err = capsys.readouterr().err
    assert "it is not the function of the run any more. 1 call was spent." in err
    assert err.count("\n") == 1
    assert counts("model.sqlite") == (64, 0, 0)
    (model / "model.py").write_text(text.replace("OFF = [], 0.0", "OFF = [], 0.5"))  # its data
    assert certify("-n", "32") == 2
    assert "in log_likelihood, OFF has changed" in capsys.readouterr().err
    (model / "model.py").write_text(text.replace("/ 0.1", "/ 0.2"))  # its code
    assert certify("-n", "32") == 2
    assert "the code of log_likelihood has changed" in capsys.readouterr().err
    assert counts("model.sqlite") == (64, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["certify", "nothing.sqlite"], "There is no store 'nothing.sqlite'"),
        (["certify", "model.py"], "model.py"),
        (["certify", "model.sqlite", "-n", "3"], "A certificate of 3 calls: give a whole number"),
        (["certify", "model.sqlite", "-n", "3", "--ask"], "A certificate of 3 calls: give a whole number"),
        (["certify", "model.sqlite", "--error", "-1"], "error=-1.0"),
        (["certify", "model.sqlite", "--model", "nothing.py"], "give a Python file that exists"),
        (["certify", "model.sqlite", "--report", "no/page.html"], "there is no folder no"),
        (["certify", "model.sqlite", "--ask", "-o", "no/points.csv"], "there is no folder no"),
        (["run", "model.py", "--store", "own.sqlite", "--certify", "3"], "A certificate of 3 calls"),
    ],
)
def test_wrong_use_is_one_line_and_spends_no_call(model, capsys, arguments, message):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert counts("model.sqlite") == (64, 0, 0)
    assert not (model / "own.sqlite").exists()


@pytest.mark.parametrize("wrong", [["-n", "many"], ["--pool", "0"], ["--retries", "-1"], ["--timeout", "0"]])
def test_wrong_options_exit_with_two(model, capsys, wrong):
    with pytest.raises(SystemExit) as stop:
        certify(*wrong)
    assert stop.value.code == 2
    assert f"argument {wrong[0]}" in capsys.readouterr().err
    assert counts("model.sqlite") == (64, 0, 0)


def test_a_store_that_does_not_know_its_model_says_what_to_do(model, capsys):
    with Store("model.sqlite") as store:
        store.set(command={})
    assert certify() == 2
    assert "add --model model.py, or --ask" in capsys.readouterr().err
    assert certify("--model", "model.py", "-n", "32") == 0


def test_help_has_examples_and_fits_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        main(["certify", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "examples:\n  basq certify" in out
    assert max(map(len, out.splitlines())) < 80
