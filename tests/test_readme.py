"""Every Python block of the README and the docs runs, in order, in one namespace per file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page.name, "exec"), namespace)


def test_the_readme_has_code():
    assert len(BLOCK.findall(PAGES[0].read_text(encoding="utf-8"))) >= 4
