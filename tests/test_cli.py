"""The command line."""

import pytest

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
