"""The tuned numbers of the engine: all in one place, every one of them used."""

import ast
import re
from pathlib import Path

import pytest

import basq
from basq.auto.settings import Charts, Settings, Values

AUTO = Path(basq.__file__).parent / "auto"
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in AUTO.glob("*.py") if path.name != "settings.py"}
FORMULAS = {0.0, 0.5, 1.0, 2.0, 3.0, 10.0, 2.38}
"""Halves, squares, the step of a random walk, and a few that are no choice of anybody's."""
GUARDS = 1e-3
"""Floats up to this size, or beyond its square's inverse, keep rounding away."""
OTHERS = {("error.py", 110.0), ("error.py", 100.0), ("engine.py", 31), ("smc.py", 12)}
"""Rounding of a message, bits of a seed, halvings of an interval."""
OVERFLOWS = {60.0, 300.0, 600.0, 700.0}
"""Exponents at which exponentials are cut off."""
GRIDS = {
    ("ends.py", 17),
    ("images.py", 9),
    ("reduction.py", 6),
    ("reduction.py", 8.0),
    ("reduction.py", 100),
    ("scales.py", 4.0),
}
"""Digits by which points are told apart, a grid over the prior, the four values that a scale is recognised by."""


def test_no_tuned_number_stands_elsewhere():
    found = {
        (name, node.value)
        for name, text in SOURCES.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if node.value not in FORMULAS and GUARDS < node.value < GUARDS**-2
    }
    assert {(name, value) for name, value in found - OTHERS - GRIDS if value not in OVERFLOWS} == set()


def test_every_number_is_used():
    elsewhere = ("gp/classifier.py", "gp/kernels/trend.py", "numerics/student.py", "auto/settings.py")
    others = [(AUTO.parent / name).read_text(encoding="utf-8") for name in elsewhere]
    text = "\n".join([*SOURCES.values(), *others])
    unused = [name for name in Settings().items() if not re.search(rf"\.{name.split('.')[-1]}\b", text)]
    assert not unused


def test_every_number_says_what_it_is():
    lines = (AUTO / "settings.py").read_text(encoding="utf-8").splitlines()
    numbers = [k for k, line in enumerate(lines) if re.match(r"    \w+: (int|float|bool|tuple)", line)]
    assert len(numbers) > 100
    assert [lines[k] for k in numbers if "  # " not in lines[k] and not lines[k - 1].startswith("    # ")] == []


def test_changed_by_dotted_names():
    settings = Settings().changed({"values.depth": 20.0, "kernel.trend.scale_sd": 1.0})
    assert settings.values == Values(depth=20.0)
    assert settings.chart == Charts()
    assert settings.differences() == {"values.depth": 20.0, "kernel.trend.scale_sd": 1.0}
    assert Settings().differences() == {}


@pytest.mark.parametrize("name", ["depth", "values", "values.deepness", "values.depth.more", "kernel.trend"])
def test_an_unknown_name_is_refused_with_those_that_exist(name):
    with pytest.raises(basq.InputError, match=f"Settings have no '{name}'; .* has .*, "):
        Settings().changed({name: 1.0})


def test_formulas_of_the_number_of_parameters():
    settings = Settings()
    assert [settings.start.size(d) for d in (1, 2, 10)] == [16, 32, 40]
    assert settings.values.window(3) == 22.0
    assert settings.values.room(4) == 2.0
    assert settings.evidence.draws(2) == 4000
    assert settings.evidence.draws(12) == 6000
    assert settings.exploration.enough(5) == 26.0
