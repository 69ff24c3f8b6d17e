"""How rival models compare: log Bayes factors and probabilities."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from basq.plots.style import BLUE, GREY, new_figure
from basq.report.tables import probable
from basq.rivals.standing import SCALE, WIDER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.rivals.comparison import Comparison

RACE = 20.0
"""Nats behind the best up to which a model is shown in its place: those further behind do not squeeze the race."""


def plot_comparison(comparison: "Comparison") -> Figure:
    """Draw log Bayes factors to the best model, and probabilities, with their errors.

    A model that is hopelessly behind has an arrow at the frame, with its number.
    """
    rows = comparison.rows()[::-1]
    place = np.arange(len(rows))
    figure = new_figure(8.4, 1.7 + 0.4 * len(rows))
    left, right = figure.subplots(1, 2, sharey=True)
    edge = _edge(rows)
    for y, r in enumerate(rows):
        colour = BLUE if r["converged"] else GREY
        _draw_factor(left, y, r, edge, colour)
        right.barh(y, r["probability"], height=0.55, color=colour, alpha=0.45)
        right.plot([r["probability_low"], r["probability_high"]], [y, y], color=colour, lw=2)
        end = max(r["probability_high"], r["probability"])
        right.annotate(f" {probable(r['probability'])}", (end, y), va="center", size=8)
    for (limit, _), (_, name) in pairwise(SCALE):
        left.axvline(-limit, color="#cccccc", lw=0.8, zorder=0)
        left.annotate(
            name, (-limit, 0.02), xycoords=("data", "axes fraction"), rotation=90, size=7, color=GREY, ha="right"
        )
    left.set_xlim(edge, -0.12 * edge)
    left.set_xlabel(
        f"ln B to {comparison.best}, ± 2 sd of log Z\n(three times as much where not converged)"
        if any(not r["converged"] for r in rows)
        else f"ln B to {comparison.best}, ± 2 sd of log Z"
    )
    right.set_xlabel("probability, 95 % interval")
    right.set_xlim(0.0, 1.22)
    left.set_yticks(place, [r["model"] if r["converged"] else f"{r['model']}\n(not converged)" for r in rows])
    left.set_ylim(-0.6, len(rows) - 0.4)
    return figure


def _edge(rows: list[dict[str, Any]]) -> float:
    """Left end of the frame: room for all that are in the race, with their errors."""
    ends = [r["log_bayes_factor"] - _error(r) for r in rows if _known(r)]
    return 1.1 * min([-6.0, *(max(end, -1.5 * RACE) for end in ends if end > -2.0 * RACE)])


def _draw_factor(axis: "Axes", y: int, row: dict[str, Any], edge: float, colour: str) -> None:
    """A model's log Bayes factor with its error; an arrow if it lies outside the frame."""
    where: Any = ("axes fraction", "data")
    if not _known(row):
        axis.annotate("unknown", (0.97, y), xycoords=where, ha="right", va="center", size=8, color=GREY)
    elif row["log_bayes_factor"] > edge:
        axis.errorbar(row["log_bayes_factor"], y, xerr=_error(row), fmt="o", ms=5, capsize=3,
                      color=colour)  # fmt: skip
    else:
        number = f"{row['log_bayes_factor']:,.0f} ± {_error(row):.2g}".replace("-", "−")
        axis.annotate(
            f"  {number}", (0.0, y), xytext=(0.05, y), xycoords=where, textcoords=where, va="center", size=8,
            color=colour, bbox={"color": "white", "pad": 1.0},
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.2},
        )  # fmt: skip


def _error(row: dict[str, Any]) -> float:
    """What the probabilities allow for: two standard deviations, three times those where not converged."""
    return float(2.0 * row["log_evidence_std"] * (1.0 if row["converged"] else WIDER))


def _known(row: dict[str, Any]) -> bool:
    return bool(np.isfinite(row["log_evidence"]) and np.isfinite(row["log_evidence_std"]))
