"""How far a run is: on a terminal, and in a log file that is kept."""

import os
import re
import subprocess
import sys

import pytest

import basq
from basq.run import progress
from basq.run.progress import Lines, shown
from helpers.notebook import RUN, executed

SCRIPT = """
import basq
basq.infer(lambda x: -float(x @ x), {"a": (-2, 2), "b": (-2, 2)}, max_evals=48, dlogz=0.0, seed=0)
"""


NEWS = "log Z = -1.500 ± 0.250"


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when it is told to."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_every_thirty_seconds_at_most(clock, capsys):
    with shown(1000, 0, True) as view:
        assert isinstance(view, Lines)
        for n in range(1, 601):  # eight calls a second
            clock[0] += 0.125
            view.finished(1)
            if n % 16 == 0:
                view.learned(n, NEWS)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "basq: 16 of at most 1000 calls after 2 s, log Z = -1.500 ± 0.250",
        "basq: 256 of at most 1000 calls after 32 s, log Z = -1.500 ± 0.250",
        "basq: 496 of at most 1000 calls after 62 s, log Z = -1.500 ± 0.250",
        "basq: 600 of at most 1000 calls after 75 s, log Z = -1.500 ± 0.250",
    ]


def test_nothing_is_said_twice_or_unasked(clock, capsys):
    with shown(100, 32, True):
        pass
    with shown(100, 0, True) as view:
        view.learned(16, NEWS)
    with shown(100, 0, False) as view:
        view.finished(3)
        view.learned(16, NEWS)
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_terminal_gets_a_bar():
    ours, theirs = os.openpty()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=theirs) as run:
        os.close(theirs)
        text = ""
        while True:
            try:
                piece = os.read(ours, 4096).decode(errors="replace")
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            text += piece
    os.close(ours)
    assert run.returncode == 0
    assert "48/48" in text
    assert re.search(r"log Z = -\d\.\d{3} ± \d\.\d{3}", text)
    assert text.count("\n") <= 2  # one line, drawn over and over
    assert 2 <= text.count("\r") <= 40


def test_a_notebook_has_one_line_that_changes_and_nothing_in_red():
    run = RUN.replace(", progress=False", "")
    (outputs,) = executed(f"{run}None")
    assert [output.output_type for output in outputs] == ["display_data"]
    (shown,) = outputs
    assert re.match(r"basq: 48 of at most 48 calls after \d+ s, log Z = ", shown.data["text/plain"])
    assert '<progress value="48" max="48">' in shown.data["text/html"]


LOGGED = "basq.infer(bad, dict(a=(-2, 2), b=(-2, 2)), max_evals=48, dlogz=0.0, seed=0, progress={progress})"
BAD = """
import basq
def bad(x):
    if x[0] > 1.8:
        raise ValueError("too hot")
    return -float(x @ x)
"""


def ran(code):
    done = subprocess.run([sys.executable, "-c", BAD + code], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


def test_a_job_may_ask_for_the_log_with_batches_failures_and_doubts():
    lines = ran(LOGGED.format(progress="'log'"))
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} basq (INFO|WARNING): ", line) for line in lines)
    assert sum("INFO: " in line and "of at most 48 calls: log Z = " in line for line in lines) >= 2
    assert any("WARNING: failed call: log_likelihood raised ValueError: too hot" in line for line in lines)
    assert "WARNING: Not converged: " in lines[-1]


def test_whoever_has_set_up_logging_hears_everything_once():
    setup = "import logging; logging.basicConfig(format='mine %(message)s', level=logging.INFO)\n"
    for wanted in ("False", "'log'"):
        lines = ran(setup + LOGGED.format(progress=wanted))
        assert all(line.startswith("mine ") for line in lines)
        assert sum("of at most 48 calls" in line for line in lines) <= 3


def test_nobody_else_hears_anything():
    assert ran(LOGGED.format(progress="False")) == []


def test_another_kind_of_progress_is_refused_before_any_call():
    with pytest.raises(basq.InputError, match=r"progress='loud': allowed are True, False and 'log'"):
        basq.infer(lambda x: pytest.fail("called"), {"a": (0, 1)}, progress="loud")
