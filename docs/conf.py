"""Sphinx settings; `make docs` builds with warnings as errors, and neither building nor reading needs a network."""

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

from basq.version import __version__

sys.path.insert(0, str(Path(__file__).parent))  # for gallery_pictures

project = "basq"
author = "The basq developers"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "gallery", "sg_execution_times.rst"]

nitpicky = True
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"

default_role = "code"  # single backticks in docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say types and shapes
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # autodoc lists them

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": "/",  # all of them are executed
    "abort_on_example_error": True,
    "image_scrapers": ("gallery_pictures.pictures",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"basq\.plots|matplotlib\.figure",
    "reset_modules": (),
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "copyfile_regex": "",
}

html_theme = "furo"
html_title = f"basq {version}"
html_static_path = ["static"]
html_css_files = ["basq.css"]
html_copy_source = False
copybutton_exclude = ".gp, .go"  # prompts and what the console answers


def escape_bars(app, what, name, obj, options, lines):
    """Keep |x| in the formulas of docstrings from being read as a substitution."""
    lines[:] = [line if "``" in line or ">>>" in line else line.replace("|", r"\|") for line in lines]


def mathml(tex, as_block):
    """Formula in the browser's own mathematics: no script, no picture, no network."""
    if re.search(r"frac\s*\d", tex):
        raise MathError("docutils takes the first two digits for a numerator: write \\frac{1}{2}, not \\frac12")
    out = re.sub(r">\s+<", "><", tex2mathml(tex, as_block=as_block)).replace(">'<", ">′<")
    out = out.replace("<mo accent", '<mo stretchy="false" accent')
    # a browser leaves no space between the name of a function and what it is taken of, unless that has brackets
    return re.sub(r"(?<=<mo>&ApplyFunction;</mo>)(?=<m(?!o>|o |row><mo))", '<mspace width="0.1667em"></mspace>', out)


def visit_math(translator, node):
    """Write a formula, in a line or on its own."""
    as_block = isinstance(node, nodes.math_block)
    try:
        formula = mathml(node.astext(), as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %s", error, node.astext(), location=node)
        formula = translator.encode(node.astext())
    translator.body.append(f'<div class="formula">{formula}</div>' if as_block else formula)
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
