"""For the gallery: the figure that is the last line of a block is its picture."""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **_: Any) -> str:
    """Save the figure that a block has ended with, if it has."""
    value = block_vars["example_globals"].get("___")
    if not isinstance(value, Figure):
        return ""
    path = next(block_vars["image_path_iterator"])
    value.savefig(path, dpi=110)
    block_vars["example_globals"]["___"] = None  # the next block has its own
    return str(figure_rst([path], gallery_conf["src_dir"]))
