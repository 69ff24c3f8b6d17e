"""Slices of the log-likelihood: what the surrogate believes along each parameter, and how sure it is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from basq.errors import InputError
from basq.plots.ranges import hatch_outside, inside, shown_range
from basq.plots.style import BLACK, BLUE, GREY, ORANGE, Unit, chosen, new_figure
from basq.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.results.result import Result

N_GRID = 300
NEAR = 3.0
"""Standard deviations of the samples about a slice, in the other parameters together, within which a point is near."""
DEEPEST = 30.0
"""Nats below the top that are shown."""


def plot_slices(
    result: "Result",
    *,
    names: str | Sequence[str] | None = None,
    through: Literal["best", "mean"] | ArrayLike = "best",
) -> Figure:
    """Draw the surrogate's log-likelihood along every parameter, with all others held.

    The band is the mean ± 2 standard deviations; the points are those evaluated near the slice, the darker the nearer.

    Parameters
    ----------
    names : str or list of str, optional
        Only these parameters.
    through : "best", "mean" or (d,) array
        Where the others are held: the evaluated point of the largest posterior density, the posterior mean, or here.
    """
    if result.surrogate is None:
        raise InputError(f"This result has no surrogate to slice. {result.message}")
    if not (result.prior.is_separable or result.prior.affine is not None):
        raise InputError("A prior transform that couples its parameters has no inverse, so there are no slices.")
    dims, centre = chosen(result, result.expensive if names is None else names), _centre(result, through)
    cheap = [result.names[i] for i in dims if result.names[i] in result.cheap]
    if cheap:
        raise InputError(
            f"plot_slices: {', '.join(cheap)} was integrated over at every call; there are slices of "
            f"{', '.join(result.expensive)}."
        )
    n_columns = min(len(dims), next((c for c in (3, 4) if len(dims) % c != 1), 3) if len(dims) != 4 else 2)
    n_rows = -(-len(dims) // n_columns)
    figure = new_figure(max(2.9 * n_columns + 0.4, 5.0), 2.5 * n_rows + 0.5)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    samples = result.sample(2000, seed=0)
    for axis in axes.ravel()[len(dims) :]:
        axis.set_axis_off()
    for place, i in enumerate(dims):
        axis = axes[place // n_columns, place % n_columns]
        _draw(axis, result, i, centre, samples)
        axis.set_ylabel("log-likelihood" if place % n_columns == 0 else "", fontsize=8.5)
    handles, texts = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, texts, loc="outside upper center", ncols=4 if n_columns > 2 else 2, fontsize=8.5, frameon=False
    )
    return figure


def _centre(result: "Result", through: str | ArrayLike) -> FloatArray:
    """The point that all slices go through (d,)."""
    if isinstance(through, str) and through == "best":
        seen = result.observations
        u = seen.u.copy()
        u[:, result.prior.index(result.cheap)] = 0.0
        return seen.x[int(np.argmax(seen.log_values + result.prior.measure.log_pdf(u)))]
    if isinstance(through, str) and through == "mean":
        return result.mean
    try:
        point = np.asarray(through, dtype=float)
    except (TypeError, ValueError):
        point = np.empty(0)
    if point.shape != (result.prior.n_dim,):
        raise InputError(f"through={through!r}: give 'best', 'mean' or one value for each of {result.names}.")
    return point


def _draw(axis: "Axes", result: "Result", i: int, centre: FloatArray, samples: FloatArray) -> None:
    bounds = result.prior.bounds[i]
    shown = shown_range(samples[:, i], bounds, float(centre[i]))
    grid = np.linspace(*inside(shown, bounds), N_GRID)
    points = np.tile(centre, (N_GRID, 1))
    points[:, i] = grid
    u = result.prior.to_standard(points)
    assert result.surrogate is not None
    lower, middle, upper = result.surrogate.band(u) - result.prior.log_weight(u)
    floor, ceiling = _frame(middle, upper)
    axis.fill_between(
        grid, np.clip(lower, floor, ceiling), np.clip(upper, floor, ceiling), color=BLUE, alpha=0.25, lw=0,
        label="surrogate ± 2 sd",
    )  # fmt: skip
    axis.plot(grid, np.where(np.isfinite(middle), middle, np.nan), color=BLUE, lw=1.3, label="surrogate")
    _draw_near(axis, result, i, centre, samples)
    axis.axvline(centre[i], color=GREY, lw=0.8, ls=":")
    axis.set_xlim(*shown)
    axis.set_ylim(floor, ceiling)
    axis.ticklabel_format(axis="y", style="plain", useOffset=False)
    hatch_outside(axis.axvspan, bounds, np.array(shown))
    unit = Unit.of(*shown)
    unit.apply(axis.xaxis, shown)
    axis.set_xlabel(unit.label(result.prior.labels[i], result.prior.units[i]), fontsize=8.5)
    axis.tick_params(labelsize=7.5)


def _frame(middle: FloatArray, upper: FloatArray) -> tuple[float, float]:
    """What to show of a slice: its mean down to some depth, and the band about it as wide as it mostly is."""
    finite = np.isfinite(middle)
    top = float(middle[finite].max())
    bottom = max(float(middle[finite].min()), top - DEEPEST)
    seen = finite & (middle >= bottom)
    usual = float(np.quantile(upper[seen] - middle[seen], 0.75))
    margin = max(0.15 * max(top - bottom, 0.5), 1.25 * min(usual, DEEPEST))
    return bottom - margin, top + margin


def _draw_near(axis: "Axes", result: "Result", i: int, centre: FloatArray, samples: FloatArray) -> None:
    """The evaluated points near a slice: the darker the nearer; one on the slice has a ring."""
    seen = result.observations
    held = [k for k in result.prior.index(result.expensive) if k != i]
    distance = _distances((seen.x - centre)[:, held], (samples - centre)[:, held])
    near = (distance < NEAR) & np.isfinite(seen.log_likelihood)
    shade = np.clip(1.0 - distance[near] / NEAR, 0.08, 1.0)
    colours = np.column_stack([np.zeros((len(shade), 3)) + 0.13, shade])
    value = seen.log_likelihood[near]
    axis.scatter(seen.x[near, i], value, c=colours, s=13, lw=0, zorder=3)
    axis.scatter([], [], color=BLACK, s=13, lw=0, label="evaluated nearby")
    on = distance[near] < 1e-6
    if held:  # with one parameter, all of them are
        axis.scatter(seen.x[near, i][on], value[on], s=34, facecolors="none", edgecolors=ORANGE, lw=1.3, zorder=4,
                     label="evaluated on the slice")  # fmt: skip


def _distances(points: FloatArray, samples: FloatArray) -> FloatArray:
    """How far points (n, k) are from the origin, in standard deviations of the samples (m, k) about it: (n,)."""
    if not points.shape[1]:
        return np.zeros(len(points))
    scale = np.abs(samples).mean(axis=0) + 1e-300
    nearest = np.argsort(((samples / scale) ** 2).sum(axis=1))[: len(samples) // 3]  # of several modes, this one
    white = samples[nearest] / scale
    root = np.linalg.cholesky(white.T @ white / len(white) + 1e-9 * np.eye(len(scale)))
    out: FloatArray = np.sqrt((np.linalg.solve(root, (points / scale).T) ** 2).sum(axis=0))
    return out
