"""Notebooks that are really executed."""

from typing import Any

import nbformat
from nbclient import NotebookClient

RUN = """
import basq
result = basq.infer(lambda x: -0.5 * float(x @ x), {"a": (-3, 3), "b": (-3, 3)}, max_evals=48, seed=1, progress=False)
"""


def executed(*cells: str) -> list[list[Any]]:
    """The outputs of every cell, in a fresh kernel."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    return [cell.outputs for cell in book.cells]


def pictures(outputs: list[Any]) -> int:
    """How many pictures a cell shows."""
    return sum("image/png" in output.get("data", {}) for output in outputs)
