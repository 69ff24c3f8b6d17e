"""docs/paper.md: the prose of `page.md`, with the tables of the experiments in their places."""

import re
from collections.abc import Mapping
from pathlib import Path

PROSE = Path(__file__).with_name("page.md")
PLACE = re.compile(r"\{\{(\w+)\}\}")


def written(sections: Mapping[str, str]) -> str:
    """The page; an experiment that has not been run says so."""
    text = PROSE.read_text(encoding="utf-8")
    return PLACE.sub(lambda place: sections.get(place[1], "Not run yet.").strip(), text)
