"""How rival models compare: log Bayes factors and probabilities."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from basq.plots.style import BLUE, GREY, new_figure
from basq.rivals.standing import SCALE

if TYPE_CHECKING:
    from basq.rivals.comparison import Comparison


def plot_comparison(comparison: "Comparison") -> Figure:
    """Draw log Bayes factors to the best model, and probabilities, with their errors."""
    rows = comparison.rows()[::-1]
    place = np.arange(len(rows))
    figure = new_figure(8.4, 1.7 + 0.4 * len(rows))
    left, right = figure.subplots(1, 2, sharey=True)
    colours = [BLUE if r["converged"] else GREY for r in rows]
    for y, r, colour in zip(place, rows, colours, strict=True):
        log_b, sd = r["log_bayes_factor"], r["log_evidence_std"]
        if _known(r):
            left.errorbar(log_b, y, xerr=2.0 * sd, fmt="o", ms=5, capsize=3, color=colour)
        else:
            where = ("axes fraction", "data")
            left.annotate("unknown", (0.97, y), xycoords=where, ha="right", va="center", size=8, color=GREY)
        right.barh(y, r["probability"], height=0.55, color=colour, alpha=0.45)
        right.plot([r["probability_low"], r["probability_high"]], [y, y], color=colour, lw=2)
        right.annotate(
            f" {r['probability']:.3f}", (max(r["probability_high"], r["probability"]), y), va="center", size=8
        )
    for (limit, _), (_, name) in pairwise(SCALE):
        left.axvline(-limit, color="#cccccc", lw=0.8, zorder=0)
        left.annotate(
            name, (-limit, 0.02), xycoords=("data", "axes fraction"), rotation=90, size=7, color=GREY, ha="right"
        )
    ends = (r["log_bayes_factor"] - 2.0 * min(r["log_evidence_std"], 50.0) for r in rows if _known(r))
    least = min(ends, default=0.0)
    left.set_xlim(1.08 * min(least, -6.0), 1.5)
    if least < -100.0:
        left.set_xscale("symlog", linthresh=10.0)
        left.set_xlim(2.0 * least, 5.0)
    left.set_xlabel(f"ln B to {comparison.best}, ± 2 sd of log Z")
    right.set_xlabel("probability, 95 % interval")
    right.set_xlim(0.0, 1.18)
    left.set_yticks(place, [r["model"] if r["converged"] else f"{r['model']}\n(not converged)" for r in rows])
    left.set_ylim(-0.6, len(rows) - 0.4)
    return figure


def _known(row: dict[str, Any]) -> bool:
    return bool(np.isfinite(row["log_evidence"]) and np.isfinite(row["log_evidence_std"]))
