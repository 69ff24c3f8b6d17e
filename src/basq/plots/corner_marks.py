"""What lies over a corner plot: the evaluated points, and the legend in its empty corner."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from basq.plots.style import BATCHES, BLACK, GREY, ORANGE, PURPLE
from basq.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.plots.corner import Corner
    from basq.results.result import Result

LEVELS = (0.95, 0.68)
"""Posterior mass inside the contours."""
TINTS = (0.16, 0.4)
"""How much of a colour is in the areas of these."""
WHOLE = 60
"""Points that are drawn in full; more of them fade."""


def tint(color: str, much: float) -> tuple[float, float, float]:
    """A colour mixed with white."""
    red, green, blue = (1.0 - much * (1.0 - part) for part in to_rgb(color))
    return red, green, blue


def has_points(corner: "Corner", *panel: int) -> bool:
    """Whether calls were made with the parameters of a panel: not with the cheap ones."""
    return set(corner.names(*panel)) <= set(corner.result.expensive)


def draw_points(axis: "Axes", corner: "Corner", row: int, column: int) -> None:
    """The evaluated points inside a panel, below the contours: by batch, crosses where there is no likelihood."""
    alone, seen = row == column, corner.result.observations
    # whole, even on the frame
    options: dict[str, Any] = {"clip_on": False} | ({"transform": axis.get_xaxis_transform()} if alone else {})
    options["alpha"] = min(1.0, (WHOLE / max(len(seen), 1)) ** 0.5)
    size = 14.0 if corner.panel > 2.0 else 7.0

    def marks(x: FloatArray, **look: Any) -> None:
        axis.scatter(x[:, column], np.full(len(x), 0.03) if alone else x[:, row], **look, **options)

    known = np.isfinite(seen.log_likelihood)
    at, batch = seen.x[known][:, corner.dims], seen.batch[known]
    shown = _within(corner, at)[:, [row, column]].all(axis=1)
    marks(
        at[shown], c=batch[shown] + 1, cmap=BATCHES, norm=_batches(corner.result), s=size, lw=0.25,
        edgecolors="white", zorder=3,
    )  # fmt: skip
    for x, marker, colour, wide, lw in ((_zero(corner), "x", GREY, 1.0, 0.7), (_failed(corner), "+", PURPLE, 1.5, 0.9)):
        shown = _within(corner, x)[:, [row, column]].all(axis=1)
        marks(x[shown], marker=marker, color=colour, s=wide * size, lw=lw, zorder=2.5)


def _zero(corner: "Corner") -> FloatArray:
    """The points of zero likelihood (m, k)."""
    seen = corner.result.observations
    return seen.x[~np.isfinite(seen.log_likelihood)][:, corner.dims]


def _failed(corner: "Corner") -> FloatArray:
    """The points of failed calls (m, k)."""
    result = corner.result
    x = np.full((result.n_failed, result.prior.n_dim), np.nan)
    for row, failure in zip(x, result.failures, strict=True):
        all_of_them = len(failure.x) == len(row)
        row[slice(None) if all_of_them else result.prior.index(result.expensive)] = failure.x
    return x[:, corner.dims]


def _within(corner: "Corner", x: FloatArray) -> BoolArray:
    """Which coordinates of points (m, k) lie in the ranges shown: (m, k)."""
    out: BoolArray = (x >= corner.ranges[:, 0]) & (x <= corner.ranges[:, 1])
    return out


def _shows(corner: "Corner", x: FloatArray) -> bool:
    """Whether a panel shows any of the points (m, k)."""
    return bool((_within(corner, x).sum(axis=1) >= min(corner.n, 2)).any())


def _batches(result: "Result") -> Normalize:
    last = int(result.observations.batch.max()) + 1
    return Normalize(1, max(last, 2))


def draw_legend(figure: Figure, corner: "Corner", points: bool, prior: bool) -> None:
    """Say what is drawn, in the empty corner."""
    first, *others = corner.layers
    entries: list[Any] = [Line2D([], [], color=first.color, lw=1.3, label=first.label)]
    areas = list(zip(TINTS, LEVELS, strict=True))[-1 if corner.n == 1 else 0 :]
    entries += [Patch(color=tint(first.color, t), label=f"{100 * level:.0f} % of the mass") for t, level in areas]
    entries += [Line2D([], [], color=layer.color, lw=1.3, label=layer.label) for layer in others]
    if prior and corner.result.prior.is_separable:
        entries.append(Line2D([], [], color=GREY, lw=1.0, ls=":", label="prior"))
    if np.isfinite(corner.truths).any():
        entries.append(Line2D([], [], color=ORANGE, lw=1.2, label="truth"))
    marks: dict[str, Any] = {"ls": "", "ms": 4}
    if points and _shows(corner, _zero(corner)):
        entries.append(Line2D([], [], marker="x", color=GREY, label="zero likelihood", **marks))
    if points and _shows(corner, _failed(corner)):
        entries.append(Line2D([], [], marker="+", color=PURPLE, label="failed call", **marks))
    width, height = figure.get_size_inches()
    right, top = 1.0 - 0.1 / width, 1.0 - 0.1 / height
    figure.legend(handles=entries, loc="upper right", bbox_to_anchor=(right, top), fontsize=7.5, frameon=False)
    if points:
        below = top - (0.2 * len(entries) + 0.25) / height
        bar = figure.add_axes((right - 1.45 / width, below, 1.3 / width, 0.1 / height))
        colours = figure.colorbar(ScalarMappable(_batches(corner.result), BATCHES), cax=bar, orientation="horizontal")
        colours.set_label("evaluated in batch", fontsize=7.5, color=BLACK)
        colours.ax.tick_params(labelsize=7, length=2)
        colours.ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
