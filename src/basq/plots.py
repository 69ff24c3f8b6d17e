"""Pictures of a result (matplotlib)."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from basq.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.result import ParameterDensity, Result

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
LEVELS = (0.95, 0.68)
"""Posterior mass inside the contours of a corner plot."""
GRID = 48
"""Points per side of a pair's density."""


def plot_corner(result: "Result", *, truths: ArrayLike | None = None, points: bool = True) -> Figure:
    """Draw the marginals of one and two parameters.

    Parameters
    ----------
    truths : (d,) array, optional
        Marked where known.
    points : bool
        Show the evaluated points.
    """
    d = result.prior.n_dim
    figure = Figure(figsize=(2.2 * d + 0.6, 2.2 * d + 0.6), layout="constrained")
    axes = np.atleast_2d(np.array(figure.subplots(d, d, squeeze=False)))
    samples = result.sample(4000, seed=0)
    ranges = [_range(samples[:, i]) for i in range(d)]
    marks = None if truths is None else np.asarray(truths, dtype=float)
    for row in range(d):
        for column in range(d):
            axis = axes[row, column]
            if column > row:
                axis.set_axis_off()
                continue
            if row == column:
                t = np.linspace(*ranges[row], 200)
                pdf = result.marginal(result.names[row]).pdf(t)
                axis.fill_between(t, pdf, color=BLUE, alpha=0.25, lw=0)
                axis.plot(t, pdf, color=BLUE)
                axis.set_ylim(bottom=0)
                axis.set_yticks([])
            else:
                _draw_pair(
                    axis, result.marginal([result.names[column], result.names[row]]), ranges[column], ranges[row]
                )
                if points:
                    axis.plot(*result.observations.x[:, [column, row]].T, ".", color="k", ms=2, alpha=0.5)
                axis.set_ylim(*ranges[row])
            axis.set_xlim(*ranges[column])
            axis.tick_params(labelsize=7)
            axis.tick_params(axis="x", rotation=45)
            if marks is not None:
                axis.axvline(marks[column], color=ORANGE, lw=1)
                if row != column:
                    axis.axhline(marks[row], color=ORANGE, lw=1)
            _label(axis, row, column, d, result.names)
    return figure


def _label(axis: "Axes", row: int, column: int, d: int, names: tuple[str, ...]) -> None:
    """Name the outer axes and hide the inner ticks."""
    if row == d - 1:
        axis.set_xlabel(names[column])
    else:
        axis.set_xticklabels([])
    if column == 0 and row > 0:
        axis.set_ylabel(names[row])
    elif row != column:
        axis.set_yticklabels([])


def _range(values: FloatArray) -> tuple[float, float]:
    """Show all but a thousandth of the mass at either end."""
    low, high = np.quantile(values, [0.001, 0.999])
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _draw_pair(
    axis: "Axes", density: "ParameterDensity", x_range: tuple[float, float], y_range: tuple[float, float]
) -> None:
    """Fill the contours that hold 68 % and 95 % of the mass."""
    x, y = np.linspace(*x_range, GRID), np.linspace(*y_range, GRID)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    values = np.maximum(np.nan_to_num(density.pdf(points)), 0.0)
    ordered = np.sort(values)[::-1]
    mass = np.cumsum(ordered) / ordered.sum()
    levels = np.unique([ordered[np.searchsorted(mass, level)] for level in LEVELS] + [ordered[0] * 1.001])
    axis.contourf(x, y, values.reshape(GRID, GRID), levels=levels, colors=["#9ecae1", "#3182bd"][: len(levels) - 1])


def plot_run(result: "Result", *, truth: float | None = None) -> Figure:
    """Draw log Z and its standard deviation after every batch.

    Parameters
    ----------
    truth : float, optional
        True log-evidence, where known.
    """
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axis = figure.subplots()
    known = [r for r in result.history if np.isfinite(r.log_evidence) and np.isfinite(r.log_evidence_std)]
    axis.errorbar(
        [r.n_evals for r in known],
        [r.log_evidence for r in known],
        yerr=[2.0 * r.log_evidence_std for r in known],
        fmt="o-",
        color=BLUE,
        capsize=3,
        label="log Z ± 2 sd",
    )
    if truth is not None:
        axis.axhline(truth, color=ORANGE, lw=1, label="truth")
    axis.set_xlabel("likelihood calls")
    axis.set_ylabel("log evidence")
    axis.legend(frameon=False)
    return figure
