"""How a run went: log Z against calls with the audits, and where the time went."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from basq.errors import InputError
from basq.plots.audits import audited, draw_ratios, draw_rms
from basq.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, new_figure
from basq.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.results.result import Result

STAGES = {
    "evaluate": ("calls, waited for and stored", BLUE),
    "fit": ("fitting", ORANGE),
    "integrate": ("integrating", GREEN),
    "search": ("looking for other modes", GREY),
    "select": ("selecting", PURPLE),
}
"""Stages of a batch, as in ``Record.seconds``."""


def plot_run(result: "Result", *, truth: float | None = None) -> Figure:
    """Draw log Z and its standard deviation after every batch, and below it how well that batch was predicted.

    Parameters
    ----------
    truth : float, optional
        True log-evidence, where known.
    """
    n_panels = 3 if any(a.n_inside for a in result.audits) else 1
    figure = new_figure(6.8, 3.4 + 1.5 * (n_panels - 1))
    axes = figure.subplots(n_panels, 1, sharex=True, squeeze=False, height_ratios=[2.4, 1, 1][:n_panels])[:, 0]
    _draw_evidence(axes[0], result, truth)
    if n_panels > 1:
        draw_ratios(axes[1], audited(result))
        draw_rms(axes[2], audited(result))
    axes[-1].set_xlabel("likelihood calls")
    axes[-1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
    return figure


def _draw_evidence(axis: "Axes", result: "Result", truth: float | None) -> None:
    known = [r for r in result.history if np.isfinite(r.log_evidence) and np.isfinite(r.log_evidence_std)]
    axis.set_ylabel("log Z")
    axis.grid(axis="y", color="#e6e6e6", lw=0.6)
    if not known:
        axis.text(0.5, 0.5, "no evidence yet", transform=axis.transAxes, ha="center", va="center", color=GREY)
        axis.set_yticks([])
        return
    calls = np.array([r.n_evals for r in known])
    value = np.array([r.log_evidence for r in known])
    error = 2.0 * np.array([r.log_evidence_std for r in known])
    axis.errorbar(calls, value, yerr=error, fmt="o-", ms=4, color=BLUE, lw=1, capsize=3, label="log Z ± 2 sd")
    low, high = _frame(value, error, truth)
    _mark_outside(axis, calls, (value - error, value + error), (low, high))
    if truth is not None:
        axis.axhline(truth, color=ORANGE, lw=1.2, label="truth")
    if result.converged:
        axis.plot(calls[-1], value[-1], "*", color=GREEN, ms=13, mec="white", mew=0.6, zorder=4, label="converged")
    axis.set_ylim(low, high)
    axis.ticklabel_format(axis="y", useOffset=False)
    axis.legend(frameon=False, fontsize=8.5, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _frame(value: FloatArray, error: FloatArray, truth: float | None) -> tuple[float, float]:
    """What to show of log Z: the later half in full; earlier bars may leave the frame."""
    later = slice(len(value) // 2, None)
    ends = [*(value - error)[later], *(value + error)[later]]
    span = max(float(np.ptp(ends)), 1e-3)
    near = np.abs(value - value[-1]) < 3.0 * span
    ends += value[near].tolist() + ([truth] if truth is not None and abs(truth - value[-1]) < 10.0 * span else [])
    low, high = float(min(ends)), float(max(ends))
    margin = 0.08 * (high - low)
    return low - margin, high + margin


def _mark_outside(
    axis: "Axes", calls: FloatArray, bars: tuple[FloatArray, FloatArray], frame: tuple[float, float]
) -> None:
    """Point at the bars that reach outside the frame."""
    label: str | None = "outside the frame"
    for outside, edge, marker in ((bars[0] < frame[0], 0.03, "v"), (bars[1] > frame[1], 0.97, "^")):
        if outside.any():
            axis.plot(
                calls[outside], np.full(int(outside.sum()), edge), marker, transform=axis.get_xaxis_transform(),
                color=GREY, ms=6, ls="", label=label,
            )  # fmt: skip
            label = None


def plot_time(result: "Result") -> Figure:
    """Draw where the time of every batch went: calls as they are waited for, fitting, integrating, selecting."""
    if not result.history:
        raise InputError("This result has no batch yet, so no time was spent.")
    seconds = {stage: np.array([r.seconds.get(stage, 0.0) for r in result.history]) for stage in STAGES}
    total = max(sum(float(s.sum()) for s in seconds.values()), 1e-300)
    longest = float(np.max(sum(seconds.values())))
    unit, name = (3600.0, "hours") if longest > 2 * 3600 else (60.0, "minutes") if longest > 120 else (1.0, "seconds")
    figure = new_figure(6.8, 3.2)
    axis = figure.subplots()
    batch = np.arange(1, len(result.history) + 1)
    below = np.zeros(len(batch))
    for stage, (label, colour) in STAGES.items():
        height = seconds[stage] / unit
        spent = float(seconds[stage].sum())
        text = f"{label}: {duration(spent)} ({_percent(spent / total)})"
        axis.bar(batch, height, bottom=below, color=colour, width=0.8, label=text)
        below = below + height
    axis.set_xlabel("batch")
    axis.set_ylabel(f"{name} a batch")
    axis.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axis.set_ylim(0.0, 1.05 * float(below.max()) or 1.0)
    axis.legend(frameon=False, fontsize=8.5, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _percent(share: float) -> str:
    """A share in words: 0.4 %, 57 %; nothing that was is called 0."""
    percent = 100.0 * share
    if 0.0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0.0 < percent < 1.0 else f"{percent:.0f} %"


def duration(seconds: float) -> str:
    """A time in words: < 1 ms, 12 ms, 3.4 s, 5 min 10 s, 3 h 20 min."""
    if 0.0 < seconds < 0.001:
        return "< 1 ms"
    if seconds < 1.0:
        return f"{1000.0 * seconds:.0f} ms"
    if seconds < 100.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
