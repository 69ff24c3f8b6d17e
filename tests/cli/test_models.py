"""The command line and models with a simulator."""

import csv
import json

import numpy as np
import pytest

import basq
from basq.cli import main

MODEL = """
import numpy as np
from scipy import stats

T = np.linspace(0.0, 1.0, 20)
DATA = 1.0 + 0.5 * T + 0.2 * np.random.default_rng(0).standard_normal(20)
prior = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
cheap = {"sigma": stats.halfcauchy(scale=1.0)}


def simulate(x):
    return x[0] + x[1] * T


def log_likelihood(output, sigma):
    return -0.5 * np.sum((DATA - output) ** 2) / sigma**2 - len(DATA) * np.log(sigma)
"""
NAMED = """
import basq

model = basq.Model(simulate, log_likelihood, prior, cheap)
heavy = model.with_likelihood(lambda output, sigma: -np.abs(DATA - output).sum() / sigma - 20.0 * np.log(sigma), cheap)
"""
RUN = ["--no-progress", "--max-evals", "40", "--batch-size", "8", "--seed", "1"]
NOT_CONVERGED = 3


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "named.py").write_text(MODEL + NAMED)
    return tmp_path


def test_a_file_with_a_simulator_is_run_resumed_shown_and_reported(folder, capsys):
    assert main(["run", "model.py", *RUN]) == NOT_CONVERGED
    assert "sigma was integrated over at every call; the calls were spent on a and b." in capsys.readouterr().out
    assert (
        main(["resume", "model.sqlite", "--max-evals", "48", "--no-progress", "--report", "page.html"]) == NOT_CONVERGED
    )
    assert "48 calls" in capsys.readouterr().out
    assert main(["show", "model.sqlite"]) == 0
    shown = capsys.readouterr().out
    assert "sigma was integrated over at every call" in shown
    assert "\nsigma  " in shown
    assert main(["report", "model.sqlite", "-o", "again.html"]) == 0
    for page in ("page.html", "again.html"):
        assert "sigma was integrated over at every call" in (folder / page).read_text(encoding="utf-8")
    assert main(["list"]) == 0
    assert "model.sqlite" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["named.py", "named.py:model"])
def test_a_file_with_a_model_gives_the_same_run(place):
    main(["run", "model.py", "--store", "a.sqlite", *RUN])
    main(["run", place, "--store", "b.sqlite", "--pool", "2", *RUN])
    one, other = (basq.Sampler.open(f"{name}.sqlite").result() for name in "ab")
    np.testing.assert_array_equal(one.observations.x, other.observations.x)
    assert one.log_evidence == other.log_evidence
    assert other.names == ("a", "b", "sigma")


def test_models_of_one_file_share_its_simulator(capsys):
    command = ["compare", "named.py:model", "heavy=named.py:heavy", "--max-evals", "40", "--batch-size", "8"]
    main([*command, "--seed", "1", "--no-progress"])
    assert "values came from simulations that a rival had paid for." in capsys.readouterr().out


def points():
    with open("points.csv", newline="") as file:
        return [(int(row["id"]), [float(row["a"]), float(row["b"])]) for row in csv.DictReader(file)]


def simulate(x):
    return (x[0] + x[1] * np.linspace(0.0, 1.0, 20)).tolist()


@pytest.mark.parametrize("place", ["model.py", "named.py", "named.py:model"])
def test_outputs_are_told_in_json(place, capsys):
    assert main(["new", "run.sqlite", place, "--seed", "1", "--batch-size", "8"]) == 0
    assert "integrated over at every call: Prior(sigma" in capsys.readouterr().out
    assert main(["ask", "run.sqlite", "-n", "16", "-o", "points.csv"]) == 0
    rows = [{"id": i, "output": simulate(x)} for i, x in points()]
    rows[3] = {"id": rows[3]["id"], "error": "spilled"}
    with open("outputs.json", "w") as file:
        json.dump(rows, file)
    assert main(["tell", "run.sqlite", "outputs.json"]) == 0
    assert "15 outputs, 1 failures; 0 calls are still pending." in capsys.readouterr().out
    result = basq.Sampler.open("run.sqlite").result()
    assert result.n_evals == 15
    assert [failure.error for failure in result.failures] == ["spilled"]
    np.testing.assert_array_equal(result.outputs.load()[0], simulate(result.observations.x[0]))
    assert main(["show", "run.sqlite"]) == 0


def test_outputs_may_be_dicts_and_the_model_may_move(folder, capsys):
    text = MODEL.replace("DATA - output", 'DATA - output["curve"]')
    (folder / "moved.py").write_text(text)
    main(["new", "run.sqlite", "moved.py", "--seed", "1"])
    main(["ask", "run.sqlite", "-n", "4", "-o", "points.csv"])
    with open("outputs.json", "w") as file:
        json.dump([{"id": i, "output": {"curve": simulate(x), "n": 3}} for i, x in points()], file)
    (folder / "moved.py").rename("elsewhere.py")
    assert main(["tell", "run.sqlite", "outputs.json"]) == 2
    assert main(["tell", "run.sqlite", "outputs.json", "--model", "elsewhere.py"]) == 0
    assert "4 outputs, 0 failures" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "allowed is a list of"),
        ('{"id": 0}', "allowed is a list of"),
        ('[{"id": 0}]', "KeyError: 'output'; allowed is a list of"),
        ('[{"id": 99, "output": [1.0]}]', "call 99 was never asked for; nothing was recorded"),
    ],
)
def test_wrong_outputs_record_nothing(text, message, folder, capsys):
    main(["new", "run.sqlite", "model.py", "--seed", "1"])
    main(["ask", "run.sqlite", "-n", "4", "-o", "points.csv"])
    (folder / "outputs.json").write_text(text)
    assert main(["tell", "run.sqlite", "outputs.json"]) == 2
    assert message in capsys.readouterr().err
    assert len(basq.Sampler.open("run.sqlite").pending()) == 4


def test_values_are_refused_where_outputs_are_needed(folder, capsys):
    main(["new", "run.sqlite", "model.py", "--seed", "1"])
    main(["ask", "run.sqlite", "-n", "4", "-o", "points.csv"])
    (folder / "values.csv").write_text("id,log_likelihood\n0,1.0\n")
    assert main(["tell", "run.sqlite", "values.csv"]) == 2
    assert "give outputs=, not values" in capsys.readouterr().err
    assert main(["tell", "run.sqlite", "values.csv", "outputs.json"]) == 2
    assert "give outputs in .json files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("output, sigma", "output, scale"), "must take the output and the cheap parameters by name, sigma"),
        (("prior =", "law ="), "there is no 'prior' in the file"),
        (("cheap =", "others ="), "of which there are none; it takes sigma"),
    ],
)
def test_wrong_files_cost_nothing(change, message, folder, capsys):
    (folder / "wrong.py").write_text(MODEL.replace(*change))
    assert main(["run", "wrong.py", *RUN]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "wrong.sqlite").exists()


def test_a_plain_file_has_no_model_to_tell_outputs_to(folder, capsys):
    (folder / "plain.py").write_text("prior = {'a': (0, 1)}\ndef log_likelihood(x):\n    return 0.0\n")
    assert main(["new", "run.sqlite", "plain.py"]) == 2
    assert "such as model.py:prior, or a file with a basq.Model." in capsys.readouterr().err
    main(["new", "run.sqlite", "plain.py:prior"])
    (folder / "outputs.json").write_text("[]")
    assert main(["tell", "run.sqlite", "outputs.json"]) == 2
    assert "does not say where its model is; add --model" in capsys.readouterr().err
    assert main(["tell", "run.sqlite", "outputs.json", "--model", "plain.py"]) == 2
    assert "outputs need a basq.Model" in capsys.readouterr().err
