"""The commands of the documentation do what it says: files are written, commands run, in the order of the page."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(
    r"^```(?P<kind>python|bash|console)(?: (?P<file>[\w.]+))?\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)
NEEDS = {"## Dask": "distributed", "## Ray": "ray", "## MPI": "mpi4py"}


def sections(page):
    """Sections of a page with their files and commands; what stands before the first is for all."""
    head, *rest = re.split(r"^(?=## )", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for text in rest:
        blocks = [m.groupdict() for m in BLOCK.finditer(head + text)]
        if any(b["kind"] == "console" for b in blocks):
            yield pytest.param(blocks, id=text.splitlines()[0].strip("# "))


def needed(request):
    return next((module for title, module in NEEDS.items() if request.node.callspec.id.startswith(title[3:])), None)


@pytest.mark.parametrize("blocks", [*sections("cluster.md"), *sections("report.md")])
def test_commands_of_the_cluster_page(blocks, tmp_path, request):
    module = needed(request)
    if module and not importlib.util.find_spec(module):
        pytest.skip(f"{module} is not installed")
    script = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"]
    for block in blocks:
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
        elif block["kind"] == "console":
            script += [line[2:] for line in block["text"].splitlines() if line.startswith("$ ")]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-c", "\n".join(script)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "log Z = " in done.stdout
