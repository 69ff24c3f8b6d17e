"""How an answer depends on what was assumed: log Z and posterior means against a family."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from basq.plots.style import BLUE, GREY, Unit, new_figure, readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.results.sensitivity import Sensitivity

MOST = 6
"""Parameters that are drawn."""


def plot_sensitivity(sensitivity: "Sensitivity") -> Figure:
    """Draw log Z with its error, and the posterior means and standard deviations, one line for each member.

    Members that are not converged are grey; the line is the answer as it was run.
    """
    names, rows = sensitivity.names[:MOST], sensitivity.rows
    figure = new_figure(3.4 + 2.0 * (1 + len(names)), 1.5 + 0.36 * len(rows))
    axes = figure.subplots(1, 1 + len(names), sharey=True, squeeze=False, width_ratios=[1.3, *[1.0] * len(names)])[0]
    known = [np.isfinite([r.log_evidence, r.log_evidence_std]).all() for r in rows]
    _draw(
        axes[0],
        [r.log_evidence if k else None for r, k in zip(rows, known, strict=True)],
        [2.0 * r.log_evidence_std for r in rows],
        sensitivity,
        "log Z ± 2 sd",
    )
    for axis, name in zip(axes[1:], names, strict=True):
        _draw(axis, [r.mean.get(name) for r in rows], [r.sd.get(name, 0.0) for r in rows], sensitivity, name)
    labels = [readable(r.label, 30) + ("" if r.status == "converged" else "\n(not converged)") for r in rows]
    axes[0].set_yticks(range(len(rows)), labels)
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    return figure


def _draw(axis: "Axes", values: list[float | None], bars: list[float], sensitivity: "Sensitivity", label: str) -> None:
    """One panel: a point with its bar for each member that has one."""
    ends = [end for v, bar in zip(values, bars, strict=True) if v is not None for end in (v - bar, v + bar)]
    for y, (row, value, bar) in enumerate(zip(sensitivity.rows, values, bars, strict=True)):
        if value is None:
            axis.annotate("–", (0.5, y), xycoords=("axes fraction", "data"), ha="center", va="center", color=GREY)
            continue
        colour = BLUE if row.status == "converged" else GREY
        axis.errorbar(value, y, xerr=bar, fmt="o", ms=5, capsize=3, color=colour)
    if values[0] is not None:
        axis.axvline(values[0], color=GREY, lw=0.8, ls="--", zorder=0)
    if ends and max(ends) > min(ends):
        margin = 0.08 * (max(ends) - min(ends))
        shown = min(ends) - margin, max(ends) + margin
        unit = Unit.of(*shown)
        axis.set_xlim(*shown)
        unit.apply(axis.xaxis, shown, 3)
        label = unit.label(label)
    else:
        axis.xaxis.set_major_locator(MaxNLocator(3))
    axis.set_xlabel(label)
    axis.grid(axis="y", color="#eeeeee", lw=0.6)
