"""Sphinx settings; `make docs` builds with warnings as errors, and neither building nor reading needs a network."""

from basq.version import __version__

project = "basq"
author = "The basq developers"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]

nitpicky = True
myst_heading_anchors = 3

default_role = "code"  # single backticks in docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say types and shapes
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # autodoc lists them

html_theme = "furo"
html_title = f"basq {version}"
html_static_path = ["static"]
html_css_files = ["basq.css"]
html_copy_source = False
copybutton_exclude = ".gp, .go"  # prompts and what the console answers


def escape_bars(app, what, name, obj, options, lines):
    """Keep |x| in the formulas of docstrings from being read as a substitution."""
    lines[:] = [line if "``" in line or ">>>" in line else line.replace("|", r"\|") for line in lines]


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars)
