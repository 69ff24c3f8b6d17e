"""Files of strangers: whatever is in them, nothing of it runs when they are read."""

import hashlib
import io
import json
import pickle
import shutil
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import basq
from basq.cli import main
from basq.errors import InputError, StoreError
from basq.evaluation.store import Store
from basq.report.target import SAVED
from helpers.old_stores import aged
from helpers.small import gauss

PRIOR = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 32, "dlogz": 0.0, "progress": False}
MODEL = """
import numpy as np
prior = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
def log_likelihood(x):
    return float(-0.5 * np.sum((np.asarray(x) - 0.3) ** 2) / 0.1)
"""
VERBS = {
    "show": ["show", "FILE"],
    "report": ["report", "FILE", "-o", "page.html"],
    "list": ["list", "FILE"],
    "ask": ["ask", "FILE", "-n", "4"],
    "tell": ["tell", "FILE", "values.csv"],
    "resume": ["resume", "FILE", "--model", "model.py", "--no-progress"],
    "certify": ["certify", "FILE", "--model", "model.py", "-n", "8", "--no-progress"],
    "certify --ask": ["certify", "FILE", "--ask"],
    "compare": ["compare", "FILE", "other=whole.sqlite"],
    "rescue": ["rescue", "FILE", "-o", "new.sqlite"],
}


class Evil:
    """What a stranger would write: code that runs where it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return Path.touch, (self.place,)


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **{name: np.array([value, None], dtype=object) for name, value in arrays.items()})
    return file.getvalue()


def attack(path, way, evil):
    """Put code into a store, in one of the places where there are bytes."""
    code = pickle.dumps(evil)
    if way == "format 3":
        aged(path, objects=evil)
        return
    with Store(path) as store:
        if way == "problem":
            store.set(problem=code)
        elif way == "objects":
            store.drop("problem")
            store.set(objects=code)
        elif way == "kept":
            store.keep(store.kept()[0], code)
        elif way == "certificate":
            store.set(certificate=npz(numbers=evil, ids=evil))
        else:
            store.insert("outputs", ("id", "output"), [(i, zlib.compress(npz(output=evil))) for i in range(32)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "whole.sqlite"
    basq.infer(gauss, PRIOR, store=path, **OPTIONS)
    return path


@pytest.fixture
def here(tmp_path, monkeypatch, whole):
    monkeypatch.chdir(tmp_path)
    for name in "whole.sqlite", "strange.sqlite":
        shutil.copy(whole, name)
    Path("model.py").write_text(MODEL)
    Path("values.csv").write_text("id,log_likelihood\n")
    return tmp_path


WAYS = ["format 3", "objects", "problem", "kept", "certificate", "outputs"]


@pytest.mark.parametrize("way", WAYS)
def test_no_verb_runs_code_of_a_store(way, here, capsys):
    marker = here / "ran"
    attack("strange.sqlite", way, Evil(marker))
    for verb, arguments in VERBS.items():
        shutil.copy("strange.sqlite", "copy.sqlite")
        main([text.replace("FILE", "copy.sqlite") for text in arguments])
        err = capsys.readouterr().err
        assert not marker.exists(), verb
        assert "Traceback" not in err, verb


@pytest.mark.parametrize("way", WAYS)
def test_nor_does_any_function(way, here):
    marker = here / "ran"
    attack("strange.sqlite", way, Evil(marker))
    uses = [
        lambda path: basq.Sampler.open(path).result(),
        lambda path: basq.Sampler.open(path).ask(1),
        lambda path: basq.compare({"a": path, "b": "whole.sqlite"}),
        lambda path: basq.Sampler(PRIOR, store=path, **{k: v for k, v in OPTIONS.items() if k != "progress"}).result(),
        lambda path: basq.infer(gauss, PRIOR, store=path, **OPTIONS | {"max_evals": 40}),
        lambda path: basq.infer(gauss, PRIOR, evaluations=path, **OPTIONS | {"max_evals": 40}),
    ]
    for use in uses:
        shutil.copy("strange.sqlite", "copy.sqlite")
        with suppress(InputError):  # any other error is none that people should see
            use("copy.sqlite")
        assert not marker.exists()


def test_old_stores_are_read_if_they_are_trusted_and_hold_plain_data_then(here, capsys):
    aged("strange.sqlite")
    assert main(["show", "strange.sqlite"]) == 2
    said = capsys.readouterr().err
    assert "was written by an older basq, as pickled objects, which can run any code" in said
    assert "--trust" in said
    assert main(["show", "strange.sqlite", "--trust"]) == 0
    shown = capsys.readouterr().out
    assert main(["show", "strange.sqlite"]) == 0
    assert capsys.readouterr().out == shown
    with Store("strange.sqlite") as store:
        assert store.get("objects") is None
    assert shown.splitlines()[0] == str(basq.Sampler.open("whole.sqlite").result()).splitlines()[0]


def test_or_migrated_by_whoever_has_the_prior(here):
    aged("strange.sqlite")
    with pytest.raises(StoreError, match=r"Sampler\.open\('strange\.sqlite', allow_pickle=True\)"):
        basq.Sampler.open("strange.sqlite")
    result = basq.infer(gauss, PRIOR, store="strange.sqlite", **OPTIONS)
    assert basq.Sampler.open("strange.sqlite").result().log_evidence == result.log_evidence
    aged("whole.sqlite")
    assert basq.Sampler.open("whole.sqlite", allow_pickle=True).result().log_evidence == result.log_evidence


def saved(path, format_, blob):
    about = {"format": format_, "basq": "0.1.0", "sha256": hashlib.sha256(blob).hexdigest()}
    Path(path).write_bytes(SAVED + json.dumps(about).encode() + b"\n" + blob)


@pytest.mark.parametrize("format_", [2, 3])
def test_no_code_of_a_saved_result_runs(format_, here):
    saved("strange.basq", format_, pickle.dumps(Evil(here / "ran")))
    with pytest.raises(InputError, match=r"strange\.basq"):
        basq.Result.load("strange.basq")
    assert not (here / "ran").exists()


def test_old_results_are_read_if_they_are_trusted(here):
    result = basq.Sampler.open("whole.sqlite").result()
    saved("old.basq", 2, pickle.dumps(result))
    with pytest.raises(
        InputError, match=r"pickled objects, which can run any code .* allow_pickle=True\), and save it"
    ):
        basq.Result.load("old.basq")
    found = basq.Result.load("old.basq", allow_pickle=True)
    found.save("new.basq")
    assert str(basq.Result.load("new.basq")) == str(result)


def test_damaged_results_give_one_clear_error(here):
    whole, said = basq.Sampler.open("whole.sqlite").result(), []
    whole.save("whole.basq")
    data, rng = Path("whole.basq").read_bytes(), np.random.default_rng(4)
    for _ in range(100):
        damaged = bytearray(data)
        damaged[rng.integers(min(len(data), 10 ** rng.integers(1, 7)))] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.3:
            del damaged[rng.integers(len(data)) :]
        Path("damaged.basq").write_bytes(damaged)
        try:
            found = basq.Result.load("damaged.basq")
        except InputError as error:
            said.append(str(error))
        else:  # what has changed is who wrote it
            assert np.array_equal(found.sample(9, seed=0), whole.sample(9, seed=0))
    assert len(said) > 90
    assert all("damaged.basq" in text for text in said)
