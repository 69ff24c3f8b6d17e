"""The rules of the house: kept by this package, and broken by one that is made for it."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
house = runpy.run_path(str(ROOT / "tools" / "house.py"))


@pytest.fixture
def package(tmp_path):
    """Writes the files of a package, named by their paths."""

    def write(files):
        for name, text in {"__init__.py": "", **files}.items():
            path = tmp_path / "shed" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(text, encoding="utf-8")
        return tmp_path / "shed"

    return write


def test_this_package_keeps_the_rules(capsys):
    assert house["main"]([]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    for line in ("modules by folder", "longest files", "imports between folders", "no cycle"):
        assert line in printed.out


def test_every_room_is_in_the_drawing():
    drawing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```text")[1].split("```")[0]
    rooms = {room for edge in house["imports_between_rooms"](house["PACKAGE"]) for room in edge} - {"basq"}
    assert rooms - set(re.findall(r"\w+", drawing)) == set()


def test_every_broken_rule_gets_a_line(package, capsys):
    bad = package(
        {f"loose{i}.py": "" for i in range(13)}
        | {"long.py": "x = 0\n" * 401}
        | {"attic/beam.py": "from shed.cellar.wall import stone\n"}
        | {"cellar/wall.py": "def stone():\n    import shed.attic.beam\n"}
    )
    assert house["main"]([str(bad)]) == 1
    printed = capsys.readouterr()
    assert "there is a cycle" in printed.out
    too_long, loose, circle = printed.err.splitlines()
    assert too_long == "broken: long.py has 401 lines, at most 400 are allowed: split it by concept"
    assert loose == "broken: 14 modules lie loose at the top, at most 12 are allowed: give them a folder"
    assert circle == "broken: imports go in a circle: attic → cellar → attic"


def test_what_counts_as_an_import(package):
    good = package(
        {
            "__init__.py": "from shed import tools, rake\n",
            "tools.py": "import numpy\nfrom . import rake\n",
            "rake.py": "",
            "attic/beam.py": "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from shed.cellar import wall\n"
            "else:\n    from ..tools import saw, hammer\n"
            "from shed.attic.roof import tile\n",
            "attic/roof.py": "from .beam import oak\n",  # within a room
            "cellar/wall.py": "def stone():\n    from shed.attic import beam\n",
        }
    )
    assert house["imports_between_rooms"](good) == {
        ("shed", "tools"): 1,
        ("shed", "rake"): 1,
        ("tools", "rake"): 1,
        ("attic", "tools"): 1,
        ("cellar", "attic"): 1,
    }
    assert house["modules_by_folder"](good) == {".": 2, "attic": 2, "cellar": 1}
    assert house["broken_rules"](good) == []
