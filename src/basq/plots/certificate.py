"""What independent calls say about the surrogate: where it was off, and how much that matters."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from basq.errors import InputError
from basq.plots.style import BLUE, GREY, ORANGE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.certificate.certificate import Certificate
    from basq.results.result import Result

FAR = 8.0
"""Nats beyond which a residual is drawn at the edge, in any case."""
LIGHT = 1e-4
"""Weight, in average ones, below which a call is drawn at the edge."""


def plot_certificate(result: "Result") -> Figure:
    """Draw the surrogate's error at every call of the certificate, against its weight; and both estimates of log Z."""
    found = result.certificate
    if found is None:
        raise InputError("This result has no certificate: result.certify(log_likelihood) makes one.")
    figure = new_figure(6.8, 3.2)
    calls, estimates = figure.subplots(1, 2, width_ratios=[3.2, 1])
    _draw_calls(calls, found)
    _draw_estimates(estimates, found)
    return figure


def _draw_calls(axis: "Axes", found: "Certificate") -> None:
    """Every call: what it weighs in the posterior, and how far it lay from its prediction."""
    with np.errstate(invalid="ignore", over="ignore"):
        weight = np.exp(np.minimum(found.log_weights - found.log_evidence, 50.0))
    known = np.isfinite(weight) & ~np.isnan(found.residuals)
    matters = np.abs(found.residuals[known & (weight > LIGHT)])
    limit = float(np.clip(1.3 * np.quantile(matters, 0.98, method="higher"), 0.1, FAR)) if len(matters) else FAR
    off = np.clip(found.residuals, -limit, limit)
    x, y = np.maximum(weight[known], LIGHT), off[known]
    inside = (np.abs(y) < limit) & (x > LIGHT)
    axis.axhline(0.0, color=GREY, lw=0.8)
    axis.scatter(x[inside], y[inside], s=18, color=BLUE, alpha=0.75, lw=0, label="a call")
    if not inside.all():
        axis.scatter(x[~inside], y[~inside], s=16, color=GREY, marker="x", lw=0.9, label="beyond the frame")
    odd = np.intersect1d(found.surprises, np.flatnonzero(known))
    if len(odd):
        axis.scatter(np.maximum(weight[odd], LIGHT), off[odd], s=60, facecolors="none", edgecolors=ORANGE, lw=1.4,
                     label="against the surrogate")  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlabel("weight in the posterior (1: average)")
    axis.set_ylabel("log ℓ, true − expected (nats)")
    axis.set_ylim(-1.1 * limit, 1.1 * limit)
    axis.legend(frameon=False, fontsize=8.5, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _draw_estimates(axis: "Axes", found: "Certificate") -> None:
    """Both estimates of log Z, two standard deviations each way."""
    for k, (value, error, color) in enumerate(
        [(*found.surrogate, GREY), (found.log_evidence, found.log_evidence_std, BLUE)]
    ):
        if np.isfinite(value) and np.isfinite(error):
            axis.errorbar([k], [value], yerr=[2.0 * error], fmt="o", color=color, capsize=4, ms=5)
    axis.set_xticks([0, 1], ["surrogate", "calls"])
    axis.set_xlim(-0.6, 1.6)
    axis.set_ylabel("log Z ± 2 sd")
    axis.ticklabel_format(axis="y", useOffset=False)
