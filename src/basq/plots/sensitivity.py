"""How an answer depends on what was assumed: log Z and posterior means against a family."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from basq.plots.style import BLUE, GREY, Unit, new_figure, readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.results.sensitivity import Sensitivity

Bar = tuple[float, float]
"""A value and its error."""
MOST = 6
"""Parameters that are drawn."""


def plot_sensitivity(sensitivity: "Sensitivity") -> Figure:
    """Draw log Z with its error, and the posterior means and standard deviations, one line for each member.

    Members that are not converged are grey, and an arrow stands for one of them that is far from the others. The
    dashed line is the answer as it was run.
    """
    names, rows = sensitivity.names[:MOST], sensitivity.rows
    figure = new_figure(3.4 + 2.0 * (1 + len(names)), 1.5 + 0.36 * len(rows))
    axes = figure.subplots(1, 1 + len(names), sharey=True, squeeze=False, width_ratios=[1.3, *[1.0] * len(names)])[0]
    converged = [row.status == "converged" for row in rows]
    evidence = [_finite(row.log_evidence, 2.0 * row.log_evidence_std) for row in rows]
    _draw(axes[0], evidence, converged, "log Z", "2 sd")
    for axis, name in zip(axes[1:], names, strict=True):
        means = [_finite(row.mean.get(name, np.nan), row.sd.get(name, np.nan)) for row in rows]
        _draw(axis, means, converged, name, "sd")
    notes = ["" if good else "\n(not converged)" for good in converged]
    axes[0].set_yticks(range(len(rows)), [readable(r.label, 30) + note for r, note in zip(rows, notes, strict=True)])
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    return figure


def _finite(value: float, bar: float) -> Bar | None:
    return (value, bar) if np.isfinite(value) and np.isfinite(bar) else None


def _draw(axis: "Axes", bars: list[Bar | None], converged: list[bool], name: str, what: str) -> None:
    """One panel: a point with its bar for each member that has one."""
    low, high = _frame(bars, converged)
    unit = Unit.of(low, high)
    for y, (own, good) in enumerate(zip(bars, converged, strict=True)):
        if own is None:
            axis.annotate("–", (0.5, y), xycoords=("axes fraction", "data"), ha="center", va="center", color=GREY)
        elif low <= own[0] <= high:
            axis.errorbar(own[0], y, xerr=own[1], fmt="o", ms=5, capsize=3, color=BLUE if good else GREY)
        else:
            edge, marker = (0.04, "<") if own[0] < low else (0.96, ">")
            axis.plot(edge, y, marker, transform=axis.get_yaxis_transform(), color=BLUE if good else GREY, ms=6)
    if bars[0] is not None:
        axis.axvline(bars[0][0], color=GREY, lw=0.8, ls="--", zorder=0)
    axis.set_xlim(low, high)
    unit.apply(axis.xaxis, (low, high), 3)
    axis.set_xlabel(f"{unit.label(name)} ± {what}")
    axis.grid(axis="y", color="#eeeeee", lw=0.6)


def _frame(bars: list[Bar | None], converged: list[bool]) -> tuple[float, float]:
    """What to show: members that are converged in full, the others if they are near them."""
    known = [(own, good) for own, good in zip(bars, converged, strict=True) if own is not None]
    if not known:
        return 0.0, 1.0
    sure = [own for own, good in known if good] or [own for own, _ in known]
    low, high = min(v - bar for v, bar in sure), max(v + bar for v, bar in sure)
    span = max(high - low, 1e-9 * max(abs(low), abs(high), 1e-300))
    near = [v for (v, _), _ in known if low - span <= v <= high + span]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.1 * max(high - low, span)
    return low - margin, high + margin
