"""What a likelihood is known by in a store: its code, what is bound to it, and the data that it uses."""

import functools
import logging
import os
import re
from pathlib import Path

import numpy as np
import pytest

import basq
from basq.cli.model import Model
from basq.evaluation.store import Store
from basq.run import identity
from helpers.commands import run_python
from helpers.small import infer

HEAD = "import functools\nimport os\nfrom pathlib import Path\n\nimport numpy as np\n"


def changed(tmp_path, before, after):
    """What differs between the likelihoods of two files, which are loaded as `basq run` does."""
    mine, known = (_described(tmp_path, text) for text in (after, before))
    return identity.difference(mine, known)


def _described(tmp_path, text):
    path = tmp_path / "identified.py"
    path.write_text(HEAD + text + "\nprior = {'a': (0, 1)}\n")
    return identity.describe(Model.load(str(path)).log_likelihood)


CHANGES = {
    "a default argument": ("def log_likelihood(x, k=1): return k * x[0]", "k=1", "k=2", "argument k"),
    "one by keyword": ("def log_likelihood(x, *, k=1): return k * x[0]", "k=1", "k=2", "argument k"),
    "a partial argument": (
        "def f(k, x, s=0): return k * x[0]\nlog_likelihood = functools.partial(f, 1)",
        "f, 1", "f, 2", "bound argument 1",
    ),
    "one by name": (
        "def f(x, s=0): return s * x[0]\nlog_likelihood = functools.partial(f, s=1)",
        "s=1)", "s=2)", "bound argument s",
    ),
    "partials of partials": (
        "def f(k, x, s=0): return k * x[0]\nlog_likelihood = functools.partial(functools.partial(f, 1), s=1)",
        "f, 1", "f, 2", "bound argument 1",
    ),
    "a closure": (
        "def make(k):\n    def f(x): return k * x[0]\n    return f\nlog_likelihood = make(1)",
        "make(1)", "make(2)", "k",
    ),
    "an array": ("DATA = np.arange(3.0)\ndef log_likelihood(x): return x[0] - DATA.sum()", "3.0", "4.0", "DATA"),
    "its type": ("DATA = np.ones(9)\ndef log_likelihood(x): return x[0] - DATA.sum()",
                 "np.ones(9)", "np.ones(9, dtype=int)", "DATA"),
    "a complex array": ("Z = np.ones(2) * 1j\ndef log_likelihood(x): return abs(Z[0])", "1j", "2j", "Z"),
    "a table": ("C = {'k': [1, (2.0, 'a')]}\ndef log_likelihood(x): return x[0] * C['k'][0]", "2.0", "2.5", "C"),
    "inside a lambda": ("K = 1\ndef log_likelihood(x): return (lambda y: y * K)(x[0])", "K = 1", "K = 2", "K"),
    "what a helper uses": ("K = 1\ndef g(y): return y * K\ndef log_likelihood(x): return g(x[0])",
                           "K = 1", "K = 2", "g: K"),
    "a helper": ("def g(y): return y * 1\ndef log_likelihood(x): return g(x[0])", "y * 1", "y * 2", "g"),
    "a decorated function's own": (
        "def twice(f):\n    @functools.wraps(f)\n    def g(x): return 2 * f(x)\n    return g\n"
        "K = 1\n@twice\ndef log_likelihood(x): return K * x[0]", "K = 1", "K = 2", "K",
    ),
    "an attribute of an object that is called": (
        "class F:\n    def __init__(self, k): self.k = k\n    def __call__(self, x): return self.k * x[0]\n"
        "log_likelihood = F(1)", "F(1)", "F(2)", "self.k",
    ),
    "of one whose method is called": (
        "class F:\n    def __init__(self, k): self.k = k\n    def value(self, x): return self.k * x[0]\n"
        "log_likelihood = F(1).value", "F(1)", "F(2)", "self.k",
    ),
    "in a slot": (
        "class F:\n    __slots__ = ('k',)\n    def __init__(self, k): self.k = k\n"
        "    def __call__(self, x): return self.k * x[0]\nlog_likelihood = F(1)", "F(1)", "F(2)", "self.k",
    ),
    "next to one that the calls change": (
        "class F:\n    def __init__(self, k): self.k, self.n = k, 0\n"
        "    def __call__(self, x):\n        self.n += 1\n        return self.k * x[0]\n"
        "log_likelihood = F(1)", "F(1)", "F(2)", "self.k",
    ),
    "an attribute of its class": (
        "class F:\n    K = 1\n    def __call__(self, x): return self.K * x[0]\nlog_likelihood = F()",
        "K = 1", "K = 2", "self.K",
    ),
    "a method of an object that is called": (
        "class F:\n    def g(self, y): return y * 1\n    def __call__(self, x): return self.g(x[0])\n"
        "log_likelihood = F()", "y * 1", "y * 2", "F.g",
    ),
    "a property": (
        "class F:\n    @property\n    def g(self): return 1\n    def __call__(self, x): return self.g * x[0]\n"
        "log_likelihood = F()", "return 1", "return 2", "F.g",
    ),
    "a number's type": ("K = 1\ndef log_likelihood(x): return x[0] // K", "K = 1", "K = 1.0", "K"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "what"), CHANGES.values(), ids=CHANGES)
def test_data_that_have_changed_are_named(tmp_path, text, old, new, what):
    assert changed(tmp_path, text, text) is None
    assert text.count(old) == 1
    said = changed(tmp_path, text, text.replace(old, new))
    assert said is not None
    assert re.search(rf"\b{what} has changed", said), said


SAME = {
    "the last bits, which another machine computes otherwise": (
        "D = np.ones(9), 1.0\ndef log_likelihood(x): return x[0] - D[1]", "np.ones(9), 1.0",
        "np.nextafter(np.ones(9), 0), 1.0 - 1e-16",
    ),
    "a number as large as there are, with its last bits": (
        "K = 1.7976931348623157e308\ndef log_likelihood(x): return max(x[0], -K)", "623157e308", "623155e308",
    ),
    "a name that is not used": ("OTHER = 1\ndef log_likelihood(x): return x[0]", "1", "2"),
    "an attribute of that name": ("sum = 1\ndef log_likelihood(x): return x.sum()", "1", "2"),
    "the order of a set or a dict": (
        "S = ({'a': 1, 'b': 2}, {'x', 'y'})\ndef log_likelihood(x): return x[0] * len(S)",
        "{'a': 1, 'b': 2}, {'x', 'y'}", "{'b': 2, 'a': 1}, {'y', 'x'}",
    ),
    "where files are": ("HERE = '/one/data.csv'\ndef log_likelihood(x): return len(HERE)", "/one", "/two"),
    "a counter": ("N = 0\ndef log_likelihood(x):\n    global N\n    N += 1\n    return x[0]", "N = 0", "N = 7"),
    "a list of calls": ("CALLS = []\ndef log_likelihood(x):\n    CALLS.append(x)\n    return x[0]", "[]", "[1]"),
    "a cache": ("CACHE = {}\ndef log_likelihood(x):\n    CACHE[x[0]] = 1\n    return x[0]", "{}", "{1: 2}"),
    "a cache among the arguments": (
        "def log_likelihood(x, memo={}):\n    memo[x[0]] = 1\n    return x[0]", "{}", "{1: 2}",
    ),
    "a count in a list": ("N = [0]\ndef log_likelihood(x):\n    N[0] += 1\n    return x[0]", "[0]", "[5]"),
    "a closure that counts": (
        "def make(n):\n    def f(x):\n        nonlocal n\n        n += 1\n        return x[0]\n    return f\n"
        "log_likelihood = make(0)", "make(0)", "make(5)",
    ),
    "attributes that count and keep": (
        "class F:\n    def __init__(self): self.n, self.seen, self.calls = 0, {}, []\n"
        "    def __call__(self, x):\n        self.n += 1\n        self.seen[x[0]] = 1\n        self.calls.append(x)\n"
        "        return x[0]\nlog_likelihood = F()", "0, {}, []", "5, {1: 2}, [3]",
    ),
    "a method that is not used": (
        "class F:\n    def plot(self): return 1\n    def __call__(self, x): return x[0]\nlog_likelihood = F()",
        "return 1", "return 2",
    ),
    "a helper that counts": (
        "N = []\ndef g(x): N.append(x)\ndef log_likelihood(x):\n    g(x)\n    return x[0] + 0 * len(N)", "[]", "[1]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new"), SAME.values(), ids=SAME)
def test_what_does_not_make_values_may_change(tmp_path, text, old, new):
    assert text.replace(old, new, 1) != text
    assert changed(tmp_path, text, text.replace(old, new, 1)) is None


def test_a_subscript_store_next_to_data_hides_only_what_it_changes(tmp_path):
    text = (
        "R, D, S = np.zeros(2), np.ones(2), 1.0\ndef log_likelihood(x):\n    R[0] = (D[0] - x[0]) / S\n    return R[0]"
    )
    known = _described(tmp_path, text)
    assert "R" in known["unseen"]
    assert {"D", "S"} <= set(known["data"])


def test_what_cannot_be_seen_is_said(tmp_path, caplog):
    text = "R = np.random.default_rng(0)\nF = Path('a')\ndef log_likelihood(x): return x[0] + R.normal() + len(str(F))"
    known = _described(tmp_path, text)
    assert known["unseen"] == {
        "R": "Generator",
        "F": "PosixPath",
    }
    with caplog.at_level(logging.INFO, "basq"), Store(tmp_path / "a.sqlite", 1) as store:
        identity.check_function(store, Model.load(str(tmp_path / "identified.py")).log_likelihood)
        said = identity.settings(store)["not_compared"]
    assert said == "F (PosixPath), R (Generator)"
    assert f"not compared when the run is resumed: {said}" in caplog.text


def test_data_that_contain_themselves_are_no_plain_data(tmp_path):
    known = _described(tmp_path, "L = [1]\nL += [L]\ndef log_likelihood(x): return x[0] * L[0]")
    assert list(known["unseen"]) == ["L"]


def test_a_helper_that_calls_itself(tmp_path):
    text = "K = 1\ndef g(n): return K if n == 0 else g(n - 1)\ndef log_likelihood(x): return g(3)"
    assert changed(tmp_path, text, text.replace("K = 1", "K = 2")) is not None


# --- stores -----------------------------------------------------------------------------------------------------------


def scaled(k):
    def log_likelihood(x):
        return float(-k * np.sum(x**2))

    return log_likelihood


def test_a_store_of_other_data_is_refused_and_nothing_is_written(tmp_path):
    store = tmp_path / "run.sqlite"
    infer(scaled(1.0), store=store, max_evals=16)
    calls = basq.Sampler.open(store).store.counts()
    said = r"values of another log-likelihood: in .*log_likelihood, k has changed\. Give another file name"
    with pytest.raises(basq.StoreError, match=said):
        infer(scaled(2.0), store=store, max_evals=24)
    assert basq.Sampler.open(store).store.counts() == calls
    assert infer(scaled(1.0), store=store, max_evals=24).n_evals == 24


def test_a_store_that_knows_the_code_only_still_opens(tmp_path):
    path = tmp_path / "run.sqlite"
    infer(scaled(1.0), store=path, max_evals=16)
    with Store(path) as store:
        old = {key: store.get("function")[key] for key in ("name", "code", "python")}
        store.set(function=old)
    assert infer(scaled(2.0), store=path, max_evals=24).n_evals == 24
    with pytest.raises(basq.StoreError, match=r"it was .*scaled.*, not "):
        infer(lambda x: float(np.sum(x)), store=path, max_evals=32)


def test_another_python_is_let_through():
    known = identity.describe(scaled(1.0)) | {"python": "3.0"}
    assert identity.difference(identity.describe(scaled(2.0)), known) is None


def test_the_identity_is_the_same_in_every_process(tmp_path):
    """Sets of texts have another order in each."""
    path = tmp_path / "identified.py"
    path.write_text(HEAD + "S = {'a', 'bc', 'de'}\ndef log_likelihood(x): return len(S)\nprior = {'a': (0, 1)}\n")
    code = f"""
        from basq.cli.model import Model
        from basq.run import identity

        print(identity.describe(Model.load({str(path)!r}).log_likelihood))
    """
    said = {run_python(code, env={**os.environ, "PYTHONHASHSEED": seed})[0] for seed in "12"}
    assert len(said) == 1
    assert "'data': {'S': " in said.pop()


def part(model, x):
    return model * x[0]


def test_both_functions_of_a_model_are_looked_at():
    def model(offset, data):
        return basq.Model(lambda x: x[0] + offset, lambda output: -float((output - data) ** 2), {"a": (0.0, 1.0)})

    base = identity.describe(model(0.0, 1.0))
    assert identity.difference(identity.describe(model(0.0, 1.0)), base) is None
    assert "simulate: offset has changed" in identity.difference(identity.describe(model(1.0, 1.0)), base)
    assert "log_likelihood: data has changed" in identity.difference(identity.describe(model(0.0, 2.0)), base)


def test_partial_objects_still_have_their_function_s_name():
    assert identity.describe(functools.partial(part, 2.0))["name"] == "part"
    assert Path(part.__code__.co_filename).name == "test_identity.py"
