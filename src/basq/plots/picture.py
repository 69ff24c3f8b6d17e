"""Figures that show themselves: as the last line of a notebook's cell, by ``figure.show()`` and by ``plt.show()``."""

import sys
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from basq.extras import in_notebook

WINDOWLESS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")
"""Backends of Matplotlib that only write files."""
INLINE = "inline"
"""How the name of the one that draws into notebooks ends."""
SHARPNESS = 110
"""Dots per inch in notebooks that Matplotlib does not draw into."""


class Picture(Figure):
    """A figure that shows itself, and that pyplot keeps only where this is what shows it."""

    def show(self, warn: bool = True) -> None:
        """Show it here if this is a notebook; in a window, until that is closed, if it is not."""
        if in_notebook():
            from IPython.display import display

            display(self)
            return
        import matplotlib.pyplot as plt

        if self.canvas.manager is None:
            _keep(self)
        plt.show()

    def _repr_png_(self) -> bytes:
        """What a notebook shows that Matplotlib does not draw into."""
        file = BytesIO()
        self.savefig(file, format="png", dpi=SHARPNESS)
        return file.getvalue()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Nothing of its own; but as it is shown now, the end of the cell shall not show it once more."""
        if self.canvas.manager is not None:
            import matplotlib.pyplot as plt

            plt.close(self)
        return {}


def offered(figure: Figure) -> Figure:
    """The figure; ``plt.show()`` and the end of a notebook's cell show it too, where they show anything."""
    if in_notebook() or "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        backend = plt.get_backend().lower()
        if backend.endswith(INLINE) if in_notebook() else backend not in WINDOWLESS:
            _keep(figure)
    return figure


def _keep(figure: Figure) -> None:
    """Have pyplot keep a figure, in the place of an empty one that it makes."""
    import matplotlib.pyplot as plt

    canvas = plt.figure(figsize=figure.get_size_inches(), dpi=figure.dpi).canvas
    figure.set_canvas(canvas)
    canvas.figure = figure
