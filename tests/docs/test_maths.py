"""The pages of formulas and words name things that exist: functions, tests, entries."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATHS, GLOSSARY = (ROOT / "docs" / page for page in ("maths.md", "glossary.md"))
CODE, TEST = re.compile(r"`(basq(?:\.\w+)+)`"), re.compile(r"`(tests/[\w/]+\.py(?:::\w+)+)`")


def named(pattern, *pages):
    return sorted({name for page in pages for name in pattern.findall(page.read_text(encoding="utf-8"))})


def found(path):
    """What a dotted path leads to: a module, or something in one."""
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("path", named(CODE, MATHS, GLOSSARY))
def test_every_function_exists(path):
    found(path)


@pytest.mark.parametrize("name", named(TEST, MATHS))
def test_every_test_exists(name):
    file, *names = name.split("::")
    body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    for part in names:
        defined = {n.name: n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert part in defined, name
        body = defined[part].body
    assert names[-1].startswith("test_")


def test_every_formula_has_a_function_and_a_test():
    text = MATHS.read_text(encoding="utf-8")
    entries = re.findall(r"^\*\*(\d+\.\d+) ", text, re.MULTILINE)
    rows = dict(re.findall(r"^\| (\d+\.\d+) (\|.*)$", text, re.MULTILINE))
    assert len(entries) > 60
    assert list(rows) == entries
    for entry, row in rows.items():
        paper, code, test = row.strip("| ").split(" | ")
        assert re.search(r"\(\d+\)|–|footnote", paper), entry
        assert CODE.search(code), entry
        assert TEST.search(test), entry


def test_corrections_name_their_entry():
    text = MATHS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| (\d+\.\d+) \|$", text.split("## What is corrected")[1], re.MULTILINE)
    assert len(rows) > 20
    assert set(rows) <= set(re.findall(r"^\*\*(\d+\.\d+) ", text, re.MULTILINE))


def test_words_stand_in_order_once_each_with_their_place():
    words = []
    for part in re.findall(r"```\{glossary\}\n(.*?)```", GLOSSARY.read_text(encoding="utf-8"), re.DOTALL):
        entries = dict(re.findall(r"^(\S.*)\n((?:  .*\n)+)", part, re.MULTILINE))
        words += entries
        assert list(entries) == sorted(entries, key=str.casefold)
        assert all(CODE.search(text) for word, text in entries.items() if word != "nat")
    assert len(words) == len(set(words)) > 60
