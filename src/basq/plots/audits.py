"""The audits: how well each batch was predicted before it was evaluated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from basq.errors import InputError
from basq.method import Audit
from basq.plots.style import BLACK, BLUE, GREY, ORANGE, new_figure
from basq.types import BoolArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.results.result import Result

CAP = 5.0
"""Standardised residuals beyond this are drawn at it, as they are counted."""
LEAST = 0.1
"""Root mean square residuals below this are only pointed at."""


def plot_calibration(result: "Result") -> Figure:
    """Draw the standardised residuals of the batches, predicted before they were evaluated, against the normal law.

    Left their histogram, right their quantiles, of the last batches, which calibrate the error of log Z, and
    of all earlier ones. On the line the surrogate is as uncertain as it should be; steeper, it was too sure.
    """
    tested = [a for a in result.audits if a.n_inside]
    if not tested:
        raise InputError(
            "There are no audits to draw: they come with method='auto', from its second batch on. "
            f"This result has {result.n_batches} batches and {len(result.audits)} audits."
        )
    memory, accepted = tested[-1].memory, tested[-1].accepted
    last, early = (np.array([z for a in part for z in a.z]) for part in (tested[-memory:], tested[:-memory]))
    figure = new_figure(7.4, 3.5)
    left, right = figure.subplots(1, 2)
    parts = ((early, GREY, "earlier batches"), (last, BLUE, f"last {min(memory, len(tested))} batches"))
    t = np.linspace(-CAP, CAP, 201)
    for z, colour, name in parts:
        if len(z):
            label = f"{name}: {len(z)} points, rms {np.sqrt(np.mean(z**2)):.2f}"
            if colour == BLUE:
                label += f" (accepted up to {np.sqrt(accepted):.1f})"
            left.hist(z, bins=np.linspace(-CAP, CAP, 26).tolist(), density=True, histtype="stepfilled", alpha=0.5,
                      color=colour, label=label)  # fmt: skip
            level = (np.arange(len(z)) + 0.5) / len(z)
            right.plot(stats.norm.ppf(level), np.sort(z), ".", color=colour, ms=4)
    left.plot(t, stats.norm.pdf(t), color=BLACK, lw=1.2, label="standard normal")
    left.set_xlabel("standardised residual z")
    left.set_ylabel("density")
    right.plot([-CAP, CAP], [-CAP, CAP], color=BLACK, lw=1.0)
    right.set_xlim(-3.6, 3.6)
    right.set_ylim(-CAP - 0.3, CAP + 0.3)
    right.set_xlabel("quantile of the standard normal")
    right.set_ylabel("quantile of z")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8.5, frameon=False)
    return figure


def audited(result: "Result") -> list[tuple[int, Audit]]:
    """The audits, each with the calls after its batch as the history counts them: failed ones included."""
    records = result.history[len(result.history) - len(result.audits) :]  # the first batches were not predicted
    return [(record.n_evals, audit) for record, audit in zip(records, result.audits, strict=True)]


def draw_ratios(axis: "Axes", audits: Sequence[tuple[int, Audit]]) -> None:
    """Log of the mean of true over predicted likelihood, batch by batch."""
    tested = [(n, a) for n, a in audits if a.n_inside]
    calls, ratio = [n for n, _ in tested], np.array([a.log_ratio for _, a in tested])
    limit = max(3.0 * float(np.abs(ratio[len(ratio) // 2 :]).max()), 0.1)
    axis.axhline(0.0, color=BLACK, lw=0.8)
    axis.plot(calls, np.where(np.abs(ratio) > limit, np.nan, ratio), "s", color=BLUE, ms=4)
    for sign, marker in ((-1.0, "v"), (1.0, "^")):  # pointing at what lies further out
        _mark_beyond(axis, calls, sign * ratio > limit, sign * limit, marker)
    _mark_surprises(axis, audits)
    axis.set_ylim(-1.15 * limit, 1.15 * limit)
    axis.set_ylabel("true / predicted L\n(log of the mean)", fontsize=8.5)


def draw_rms(axis: "Axes", audits: Sequence[tuple[int, Audit]]) -> None:
    """Root mean square of standardised residuals, with where 95 % lie if the surrogate is calibrated."""
    tested = [(n, a) for n, a in audits if a.n_inside]
    calls, n = [n for n, _ in tested], np.array([a.n_inside for _, a in tested])
    low, high = (np.sqrt(stats.chi2.ppf(q, n) / n) for q in (0.025, 0.975))
    axis.vlines(calls, low, high, color="#cfcfcf", lw=5, label="95 % if calibrated")
    axis.axhline(1.0, color=BLACK, lw=0.8)
    rms = np.sqrt([a.z2 for _, a in tested])
    axis.plot(calls, np.where(rms < LEAST, np.nan, rms), "D", color=BLUE, ms=4)
    _mark_beyond(axis, calls, rms < LEAST, 1.25 * LEAST, "v", label=f"below {LEAST}")
    axis.set_yscale("log")
    axis.set_ylim(LEAST, 1.15 * CAP)
    axis.set_yticks([0.1, 0.3, 1.0, 3.0], ["0.1", "0.3", "1", "3"])
    axis.minorticks_off()
    axis.set_ylabel("rms z", fontsize=8.5)
    axis.legend(frameon=False, fontsize=7.5, loc="lower left", borderaxespad=0.2, ncols=2)


def _mark_beyond(
    axis: "Axes", calls: Sequence[int], beyond: BoolArray, edge: float, marker: str, label: str | None = None
) -> None:
    """Point from the edge of the frame at values that lie beyond it."""
    if beyond.any():
        at = np.array(calls)[beyond]
        axis.plot(at, np.full(len(at), edge), marker, color=BLUE, mfc="none", ms=5, label=label)


def _mark_surprises(axis: "Axes", audits: Sequence[tuple[int, Audit]]) -> None:
    """Mark the batches that found something new."""
    label: str | None = "surprise: a point far above its prediction"
    for n, a in audits:
        if a.surprise:
            axis.axvline(n, color=ORANGE, lw=1.2, ls=":", label=label)
            label = None
    if label is None:
        axis.legend(frameon=False, fontsize=7.5, loc="upper right", borderaxespad=0.2)
