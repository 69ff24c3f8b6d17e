"""Every Python block of the README runs, in order, in one namespace; `test_docs` does the same for the docs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_code_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, namespace = BLOCK.findall(TEXT), {}
    assert len(found) >= 4
    for block in found:
        exec(compile(block, "README.md", "exec"), namespace)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", TEXT):
        assert (ROOT / target).exists(), f"README.md links to {target}, which does not exist"


def test_both_ways_to_install_say_how_to_use_it():
    start = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for text in (TEXT, start):
        (place,) = set(re.findall(r"\. (\S+)/bin/activate", text))
        assert f"{place}/" in ignored
    assert f"VENV := {place}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
