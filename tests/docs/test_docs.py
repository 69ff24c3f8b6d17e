"""The documentation does what it says: its code runs, prints what the page shows, and its commands work."""

import importlib.util
import os
import re
import runpy
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from helpers.browser import CHROMIUM
from helpers.commands import run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>python|bash|console|text)(?: (?P<label>[\w.]+))?\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?|True|False")
VALUE = re.compile(r"(-?[\d.]+) ± ([\d.]*\d)")
NEEDS = {"## Dask": "distributed", "## Ray": "ray", "## MPI": "mpi4py"}


def blocks(text):
    return [m.groupdict() | {"text": textwrap.dedent(m["text"])} for m in BLOCK.finditer(text)]


def page_blocks(page):
    return blocks(page.read_text(encoding="utf-8"))


def runs(page):
    return any(b["kind"] == "python" and not b["label"] for b in page_blocks(page))


@pytest.mark.parametrize("page", list(filter(runs, PAGES)), ids=lambda p: p.stem)
def test_python_of_every_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # for the files of the page
    namespace = {"__name__": "__main__"}
    for block in page_blocks(page):
        if block["kind"] == "python" and block["label"]:
            Path(block["label"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "python":
            capsys.readouterr()
            exec(compile(block["text"], page.name, "exec"), namespace)
        elif block["label"] == "output":
            agrees(block["text"], capsys.readouterr().out)


def agrees(shown, printed):
    """Same lines, and values that agree within their errors: a machine that rounds differently chooses other points."""
    ours, theirs = by_words(shown), by_words(printed)
    assert list(ours) == list(theirs), printed
    for words, line in ours.items():
        for (value, sd), (other, other_sd) in zip(with_errors(line), with_errors(theirs[words]), strict=True):
            assert abs(value - other) < 3.0 * np.hypot(sd, other_sd) + 0.01, printed  # which are rounded


def by_words(text):
    """The last line with the same words, for all lines of a text; numbers, yes and no are no words."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return {NUMBER.sub("#", line): line for line in lines}


def with_errors(line):
    """All values of a line that stand there with an error."""
    return [(float(a), float(b)) for a, b in VALUE.findall(line)]


def test_every_picture_is_shown_and_every_shown_one_is_there():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = {name for text in texts for name in re.findall(r"\]\((?:\.\./)?pictures/([^)]+)\)", text)}
    assert shown == {path.name for path in (DOCS / "pictures").iterdir()}


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda p: p.stem)
def test_files_that_are_named_exist(page):
    for name in re.findall(r"`([\w.-]+/[\w./-]+\.py)`", page.read_text(encoding="utf-8")):
        assert any((folder / name).is_file() for folder in (ROOT, ROOT / "src" / "basq")), name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_tables_have_as_many_cells_in_every_row(page):
    for table in re.findall(r"(?:^\|.*\|$\n)+", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert len({row.count("|") - row.count(r"\|") for row in table.splitlines()}) == 1, table


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium for the screenshots")
def test_the_pictures_can_be_drawn(tmp_path):
    pytest.importorskip("pybamm")
    runpy.run_path(str(DOCS / "make_pictures.py"))["main"](tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in (DOCS / "pictures").iterdir()}


# --- the commands of the cluster page ---------------------------------------------------------------------------------


def sections(page):
    """Sections of a page with their files and commands; what stands before the first is for all."""
    head, *rest = re.split(r"^(?=## )", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for text in rest:
        found = blocks(head + text)
        if any(b["kind"] == "console" for b in found):
            yield pytest.param(found, id=text.splitlines()[0].strip("# "))


def needed(request):
    return next((module for title, module in NEEDS.items() if request.node.callspec.id.startswith(title[3:])), None)


@pytest.mark.parametrize("section", [*sections("cluster.md"), *sections("report.md")])
def test_commands_of_the_cluster_page(section, tmp_path, request):
    module = needed(request)
    if module and not importlib.util.find_spec(module):
        pytest.skip(f"{module} is not installed")
    script = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"]
    for block in section:
        if block["label"]:
            (tmp_path / block["label"]).write_text(block["text"])
        elif block["kind"] == "console":
            script += [line[2:] for line in block["text"].splitlines() if line.startswith("$ ")]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    out, _ = run(["bash", "-c", "\n".join(script)], cwd=tmp_path, env=environment)
    assert "log Z " in out
