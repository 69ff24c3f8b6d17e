"""The status of a run is a value; what is said about it is made from it in one place."""

import inspect
import json
import pickle
import re
import signal
from pathlib import Path

import pytest

import basq
from basq import Status
from basq.cli.parser import build_parser
from basq.run.stopping import Verdict
from basq.settings import BATCH_SIZE, DLOGZ, DPROB, ON_ERROR, budget
from helpers.small import PRIOR, gauss

SOURCE = Path(basq.__file__).parent


def test_a_status_is_its_text_also_in_files():
    assert Status.NOT_CONVERGED == "not converged"
    assert json.loads(json.dumps({"status": Status.OUT})) == {"status": "out of the race"}
    assert Status("converged") is Status.CONVERGED
    assert pickle.loads(pickle.dumps(Status.FAILED)) is Status.FAILED


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (Status.RUNNING, "Running: log Z moved."),
        (Status.CONVERGED, "Converged: log Z moved."),
        (Status.NOT_CONVERGED, "Not converged: log Z moved."),
        (Status.FAILED, "Not converged: log Z moved."),
        (Status.INTERRUPTED, "Interrupted: log Z moved."),
        (Status.NOT_FINISHED, "Not finished: log Z moved."),
        (Status.ENDED, "Ended with the comparison: log Z moved."),
        (Status.OUT, "Out of the race: log Z moved."),
    ],
)
def test_messages_begin_with_the_status(status, sentence):
    assert status.because("log Z moved") == sentence
    assert Verdict(status, "log Z moved").message == sentence


def test_a_verdict_follows_from_its_status():
    assert [s for s in Status if not Verdict(s, "").stop] == [Status.RUNNING]
    assert [s for s in Status if Verdict(s, "").converged] == [Status.CONVERGED]
    assert [s for s in Status if s.is_open] == [Status.RUNNING, Status.INTERRUPTED, Status.NOT_FINISHED]


def infer(function=gauss, **options):
    return basq.infer(function, PRIOR, seed=1, progress=False, **options)


def test_runs_end_with_a_status():
    assert infer().status is Status.CONVERGED
    spent = infer(max_evals=20)
    assert spent.status is Status.NOT_CONVERGED
    assert spent.message == f"Not converged: {spent.why}."
    assert infer(max_time=1e-9).status is Status.NOT_CONVERGED
    assert not spent.converged


def test_a_run_whose_calls_fail_has_failed():
    calls = []

    def fragile(x):
        calls.append(x)
        if len(calls) > 20:
            raise RuntimeError("no licence")
        return gauss(x)

    result = infer(fragile, dlogz=0.0)
    assert result.status is Status.FAILED
    assert result.message.startswith("Not converged: ")
    assert "calls failed" in result.why


def test_an_interrupted_run_says_so(capsys):
    calls = []

    def interrupting(x):
        calls.append(x)
        if len(calls) == 40:
            signal.raise_signal(signal.SIGINT)
        return gauss(x)

    result = infer(interrupting, dlogz=0.0)
    assert result.status is Status.INTERRUPTED
    assert result.message.startswith("Interrupted: ")
    assert result.n_evals == 40


def test_a_sampler_says_how_it_stands():
    sampler = basq.Sampler(PRIOR, max_evals=40, seed=1)
    assert sampler.verdict.status is Status.RUNNING
    assert sampler.n_first == 32
    batch = sampler.ask(20)
    assert sampler.n_first == 12
    sampler.tell(batch, [gauss(x) for x in batch.x])
    sampler.learn()
    assert sampler.result().status is Status.RUNNING
    assert sampler.result(ended=Status.NOT_FINISHED).message.startswith("Not finished: ")
    batch = sampler.ask(20)
    sampler.tell(batch, [gauss(x) for x in batch.x])
    sampler.learn()
    assert sampler.verdict.stop
    assert sampler.result(ended=Status.NOT_FINISHED).status is sampler.verdict.status  # the rule has spoken


def test_a_sampler_that_has_asked_for_everything_and_knows_nothing_stops():
    sampler = basq.Sampler(PRIOR, max_evals=20, seed=1)
    sampler.ask(20)
    assert sampler.verdict.stop
    assert sampler.verdict.status is Status.NOT_CONVERGED


def test_no_code_decides_by_the_words_of_a_message():
    words = re.compile(r"message\w*\]?\.(startswith|replace|partition|split|find)\(|[\"'] in \w+\.message")
    guilty = [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if words.search(path.read_text())]
    assert guilty == []


def test_sql_is_in_the_store_only():
    sql = re.compile(r"\bSELECT\b|\bUPDATE \w+ SET\b|state = '|import sqlite3")
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if sql.search(path.read_text())}
    # the list of runs goes on after a file that SQLite cannot read
    rooms = ("lock", "prepare", "rescue", "rest", "schema", "seals", "snapshot", "store")
    assert found == {"cli/look.py", *(f"evaluation/{room}.py" for room in rooms)}


def test_every_entry_takes_the_same_words_with_the_same_defaults():
    infer, compare, sampler = (inspect.signature(f).parameters for f in (basq.infer, basq.compare, basq.Sampler))
    of_one_model = {
        "log_likelihood",
        "prior",
        "prior_transform",
        "n_dim",
        "certify",
        "replicas",
        "names",
        "retry_failed",
    }
    assert set(infer) - of_one_model == set(compare) - {"models", "prior_odds", "dprob"}
    assert set(sampler) <= set(infer)
    for other in (compare, sampler):
        for name in set(infer) & set(other) - {"log_likelihood"}:
            assert infer[name].default == other[name].default
    assert (infer["batch_size"].default, infer["dlogz"].default) == (BATCH_SIZE, DLOGZ)
    assert budget(3) == 250


def test_the_command_line_has_the_same_defaults():
    parse = build_parser().parse_args
    run, new, compare = parse(["run", "m.py"]), parse(["new", "s", "p"]), parse(["compare", "a"])
    assert run.batch_size == new.batch_size == compare.batch_size == BATCH_SIZE
    assert run.dlogz == new.dlogz == DLOGZ
    assert compare.dprob == DPROB
    assert run.on_error == ON_ERROR
