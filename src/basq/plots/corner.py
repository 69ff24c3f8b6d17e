"""The corner plot: every parameter alone and every pair, with the evaluated points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from basq.errors import InputError
from basq.plots.style import BATCHES, BLACK, BLUE, GREY, ORANGE, PURPLE, Unit, chosen, estimate, new_figure
from basq.posterior.pairs import LeaningGrid, PairDensity
from basq.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.posterior.densities import ParameterDensity
    from basq.results.result import Result

LEVELS = (0.95, 0.68)
"""Posterior mass inside the contours."""
SHADES = ("#dbe9f4", "#a9cbe6")
N_SAMPLES = 4000
READABLE = 10
"""Most parameters of one picture."""


def plot_corner(
    result: "Result",
    *,
    names: str | Sequence[str] | None = None,
    truths: ArrayLike | Mapping[str, float] | None = None,
    points: bool = True,
) -> Figure:
    """Draw the marginals of one and two parameters.

    Parameters
    ----------
    names : str or list of str, optional
        Only these parameters, in this order.
    truths : dict or (d,) array, optional
        Marked where known: values by name, or one for each parameter of the prior; NaN for none.
    points : bool
        Show the evaluated points, coloured by batch; crosses where the likelihood is zero or a call has failed.
    """
    dims = chosen(result, names)
    if len(dims) > READABLE or len(set(dims)) < len(dims) or not dims:
        raise InputError(
            f"A corner plot of {len(dims)} parameters cannot be read; name 1 to {READABLE} different ones, "
            f"such as names={list(result.names[:4])}."
        )
    corner = Corner.of(result, dims, truths)
    figure = corner.figure()
    _legend(figure, corner, points)
    for row in range(len(dims)):
        for column in range(row + 1):
            axis = corner.axes(figure, row, column)
            if row == column:
                corner.draw_alone(axis, row)
            else:
                corner.draw_pair(axis, row, column)
            if points and (row != column or len(dims) == 1) and corner.has_points(row, column):
                corner.draw_points(axis, row, column)
            corner.finish(axis, row, column)
    return figure


@dataclass(frozen=True)
class Corner:
    """What the panels of a corner plot share.

    Attributes
    ----------
    result : Result
    dims : list of int
        The parameters, as places in the prior.
    samples : (n, k) array
        Of these.
    ranges : (k, 2) array
        What is shown of them.
    truths : (k,) array
        NaN where nothing is known.
    panel, left, bottom, right, top : float
        Inches: a panel's side, and the margins.
    """

    result: "Result"
    dims: list[int]
    samples: FloatArray
    ranges: FloatArray
    truths: FloatArray
    panel: float
    left: float
    bottom: float
    right: float = 0.2
    top: float = 0.4

    @classmethod
    def of(cls, result: "Result", dims: list[int], truths: ArrayLike | Mapping[str, float] | None) -> "Corner":
        known = _known(result, truths)
        samples = result.sample(N_SAMPLES, seed=0)[:, dims]
        bounds = result.prior.bounds[dims]
        ranges = np.array([shown_range(samples[:, i], bounds[i], float(known[k])) for i, k in enumerate(dims)])
        labels = [
            Unit.of(*shown).label(result.prior.labels[k], result.prior.units[k])
            for shown, k in zip(ranges, dims, strict=True)
        ]
        names = 0.15 * max(label.count("\n") + 1 for label in labels)
        panel = float(np.clip(9.0 / len(dims), 1.15, 2.2))
        return cls(result, dims, samples, ranges, known[dims], panel, 0.6 + names, 0.55 + names)

    @property
    def n(self) -> int:
        return len(self.dims)

    def figure(self) -> Figure:
        if self.n == 1:
            return new_figure(6.4, 3.4, constrained=False)
        side = self.panel * self.n
        return new_figure(self.left + side + self.right, self.bottom + side + self.top, constrained=False)

    def axes(self, figure: Figure, row: int, column: int) -> "Axes":
        """The panel of a pair, laid out by hand: a constrained layout of fifty panels takes a minute."""
        width, height = figure.get_size_inches()
        if self.n == 1:
            return figure.add_axes((0.08, self.bottom / height, 0.56, 1.0 - (self.bottom + self.top) / height))
        gap = 0.08
        return figure.add_axes(
            (
                (self.left + column * self.panel) / width,
                (self.bottom + (self.n - 1 - row) * self.panel) / height,
                (self.panel - gap) / width,
                (self.panel - gap - (0.16 if row == column else 0.0)) / height,  # room for the diagonal's title
            )
        )

    def draw_alone(self, axis: "Axes", i: int) -> None:
        """The density of one parameter, with its median and 68 % interval."""
        density = self.result.marginal(self.result.names[self.dims[i]])
        t = np.linspace(*self._inside(i), 400)
        pdf = np.maximum(np.nan_to_num(density.pdf(t)), 0.0)
        low, middle, high = density.ppf([0.16, 0.5, 0.84])
        within = (t >= low) & (t <= high) if low <= high else (t >= low) | (t <= high)  # round a circle
        axis.fill_between(t, pdf, where=within.tolist(), color=SHADES[1], lw=0)
        axis.plot(t, pdf, color=BLUE, lw=1.3)
        axis.axvline(middle, color=BLUE, lw=0.8, ls=(0, (4, 3)))
        axis.set_ylim(0.0, 1.08 * float(pdf.max()) or 1.0)
        axis.set_yticks([])
        unit = Unit.of(*self.ranges[i])
        exponent = None if unit.offset else unit.exponent  # that of the numbers below
        if self.result.prior.periodic[self.dims[i]]:
            period = float(np.ptp(self.result.prior.bounds[self.dims[i]]))
            low, high = middle - (middle - low) % period, middle + (high - middle) % period
        axis.set_title(estimate(float(low), float(middle), float(high), exponent), fontsize=8.5, pad=5)

    def draw_pair(self, axis: "Axes", row: int, column: int) -> None:
        """The contours that hold 68 % and 95 % of the mass of two parameters."""
        pair = self.result.marginal([self.result.names[self.dims[i]] for i in (column, row)])
        bounds = self.result.prior.bounds[[self.dims[column], self.dims[row]]]
        if isinstance(pair.density, PairDensity):
            grid, values = pair.density.grid, pair.density.values
        else:
            grid = LeaningGrid.around(self.samples[:, [column, row]], bounds)
            values = _density_on(grid, pair, bounds)
        ordered = np.sort(values[grid.inside(bounds)])[::-1]
        mass = np.cumsum(ordered) / ordered.sum()
        found = [ordered[np.searchsorted(mass, level)] for level in LEVELS]
        levels = np.unique([*found, ordered[0] * 1.001])
        if len(levels) > 1:
            x, y = grid.whole.mesh
            values = np.minimum(np.pad(values, 1, mode="edge"), ordered[0])
            filled = axis.contourf(x, y, values, levels=levels, colors=SHADES[-(len(levels) - 1) :])
            lines = axis.contour(x, y, values, levels=levels[:-1], colors=[BLUE], linewidths=0.7)
            for drawn in (filled, lines):
                drawn.set_clip_path(self._box(axis, row, column))

    def has_points(self, *panel: int) -> bool:
        """Whether calls were made with the parameters of a panel: not with the cheap ones."""
        return all(self.result.names[self.dims[i]] in self.result.expensive for i in panel)

    def draw_points(self, axis: "Axes", row: int, column: int) -> None:
        """The evaluated points inside a panel: coloured by batch, crosses where there is no likelihood."""
        alone = row == column
        # whole, even on the frame
        options: dict[str, Any] = {"clip_on": False} | ({"transform": axis.get_xaxis_transform()} if alone else {})
        size = 14.0 if self.panel > 2.0 else 7.0

        def marks(x: FloatArray, **look: Any) -> None:
            axis.scatter(x[:, column], np.full(len(x), 0.03) if alone else x[:, row], **look, **options)

        seen, batch = self.evaluated
        shown = self.within(seen)[:, [row, column]].all(axis=1)
        marks(
            seen[shown], c=batch[shown] + 1, cmap=BATCHES, norm=_batches(self.result), s=size, lw=0.25,
            edgecolors="white", zorder=3,
        )  # fmt: skip
        for x, marker, colour, wide, lw in ((self.zero, "x", GREY, 1.0, 0.7), (self.failed, "+", PURPLE, 1.5, 0.9)):
            shown = self.within(x)[:, [row, column]].all(axis=1)
            marks(x[shown], marker=marker, color=colour, s=wide * size, lw=lw, zorder=2.5)

    @property
    def evaluated(self) -> tuple[FloatArray, IntArray]:
        """The points with a likelihood (m, k), and their batches (m,)."""
        seen = self.result.observations
        known = np.isfinite(seen.log_likelihood)
        return seen.x[known][:, self.dims], seen.batch[known]

    @property
    def zero(self) -> FloatArray:
        """The points of zero likelihood (m, k)."""
        seen = self.result.observations
        return seen.x[~np.isfinite(seen.log_likelihood)][:, self.dims]

    @property
    def failed(self) -> FloatArray:
        """The points of failed calls (m, k)."""
        x = np.full((self.result.n_failed, self.result.prior.n_dim), np.nan)
        for row, failure in zip(x, self.result.failures, strict=True):
            all_of_them = len(failure.x) == len(row)
            row[slice(None) if all_of_them else self.result.prior.index(self.result.expensive)] = failure.x
        return x[:, self.dims]

    def written(self, i: int) -> tuple[str, str]:
        """Label and unit of a parameter."""
        prior = self.result.prior
        return prior.labels[self.dims[i]], prior.units[self.dims[i]]

    def within(self, x: FloatArray) -> BoolArray:
        """Which coordinates of points (m, k) lie in the ranges shown: (m, k)."""
        out: BoolArray = (x >= self.ranges[:, 0]) & (x <= self.ranges[:, 1])
        return out

    def shows(self, x: FloatArray) -> bool:
        """Whether a panel shows any of the points (m, k)."""
        return bool((self.within(x).sum(axis=1) >= min(self.n, 2)).any())

    def finish(self, axis: "Axes", row: int, column: int) -> None:
        """Ranges, truths, the prior's edges, names and numbers."""
        axis.set_xlim(*self.ranges[column])
        axis.axvline(self.truths[column], color=ORANGE, lw=1.2) if np.isfinite(self.truths[column]) else None
        hatch_outside(axis.axvspan, self.result.prior.bounds[self.dims[column]], self.ranges[column])
        if row != column:
            axis.set_ylim(*self.ranges[row])
            axis.axhline(self.truths[row], color=ORANGE, lw=1.2) if np.isfinite(self.truths[row]) else None
            hatch_outside(axis.axhspan, self.result.prior.bounds[self.dims[row]], self.ranges[row])
        n_ticks = 6 if self.n == 1 else 4 if self.panel > 1.5 else 3
        axis.tick_params(labelsize=7.5 if self.panel > 1.5 else 6.5, length=2.5)
        unit = Unit.of(*self.ranges[column])
        unit.apply(axis.xaxis, self.ranges[column], n_ticks)
        if row == self.n - 1:
            axis.set_xlabel(unit.label(*self.written(column)), fontsize=8.5)
            axis.tick_params(axis="x", rotation=0 if self.n == 1 else 45)
        else:
            axis.tick_params(labelbottom=False)
        if row != column:
            unit = Unit.of(*self.ranges[row])
            unit.apply(axis.yaxis, self.ranges[row], n_ticks)
            axis.tick_params(labelleft=column == 0)
            if column == 0:
                axis.set_ylabel(unit.label(*self.written(row)), fontsize=8.5)

    def _box(self, axis: "Axes", row: int, column: int) -> Rectangle:
        """What the prior allows of a panel."""
        (left, right), (low, high) = (
            np.clip(self.ranges[i], *self.result.prior.bounds[self.dims[i]]) for i in (column, row)
        )
        return Rectangle((left, low), right - left, high - low, transform=axis.transData)

    def _inside(self, i: int) -> tuple[float, float]:
        """The part of a range that the prior allows."""
        return inside(self.ranges[i], self.result.prior.bounds[self.dims[i]])


def _known(result: "Result", truths: ArrayLike | Mapping[str, float] | None) -> FloatArray:
    """True values of all parameters (d,), NaN where nothing is known."""
    known = np.full(result.prior.n_dim, np.nan)
    if truths is None:
        return known
    dims, values = list(range(len(known))), truths
    if isinstance(truths, Mapping):
        dims, values = result.prior.index(truths), list(truths.values())
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (len(dims),) or not dims:
        raise InputError(
            f"truths={truths!r}: give one number for each of {result.names}, NaN where nothing is known, "
            f"or some by name, such as {{{result.names[0]!r}: 1.3}}."
        )
    known[dims] = found
    return known


def shown_range(values: FloatArray, bounds: FloatArray, truth: float) -> tuple[float, float]:
    """All but a thousandth of the mass at either end, a truth that is not far off, and a hard edge if it is near."""
    first, last = np.quantile(values, [0.001, 0.999])
    span = float(last - first) or abs(float(first)) or 1.0
    if abs(truth - 0.5 * (first + last)) < 2.0 * span:
        first, last = min(first, truth), max(last, truth)
    start, end = float(first) - 0.06 * span, float(last) + 0.06 * span
    return max(start, float(bounds[0]) - 0.04 * span), min(end, float(bounds[1]) + 0.04 * span)


def inside(shown: Sequence[float] | FloatArray, bounds: FloatArray) -> tuple[float, float]:
    """The part of a range within bounds, less a hair: the very edge of a prior is infinitely far in standard space."""
    low, high = np.clip(shown, *bounds)
    hair = 1e-3 * (high - low)
    return float(low + hair * (low == bounds[0])), float(high - hair * (high == bounds[1]))


def hatch_outside(draw: Any, bounds: FloatArray, shown: FloatArray) -> None:
    """Hatch what lies outside the prior's support."""
    for start, end in ((shown[0], bounds[0]), (bounds[1], shown[1])):
        if np.isfinite(start) and np.isfinite(end) and end > start:
            draw(start, end, facecolor="#eeeeee", edgecolor="#bbbbbb", hatch="////", lw=0.0, zorder=1)


def _density_on(grid: LeaningGrid, pair: "ParameterDensity", bounds: FloatArray) -> FloatArray:
    """A density that is known at any point, on a grid (rows, columns); beyond the bounds (2, 2), that next to them."""
    x, y = grid.mesh
    nodes = np.column_stack([x.ravel(), y.ravel()])
    hair = 1e-3 * np.ptp(nodes, axis=0)  # the very edge of a prior is infinitely far in standard space
    values = pair.pdf(np.clip(nodes, bounds[:, 0] + hair, bounds[:, 1] - hair))
    return np.maximum(np.nan_to_num(values), 0.0).reshape(x.shape)


def _batches(result: "Result") -> Normalize:
    last = int(result.observations.batch.max()) + 1
    return Normalize(1, max(last, 2))


def _legend(figure: Figure, corner: Corner, points: bool) -> None:
    """Say what is drawn, in the empty corner."""
    result = corner.result
    entries: list[Any] = [Line2D([], [], color=BLUE, lw=1.3, label="posterior")]
    if corner.n == 1:
        entries.append(Patch(color=SHADES[1], label="68 % of the mass"))
    else:
        entries += [
            Patch(color=c, label=f"{100 * level:.0f} % of the mass") for c, level in zip(SHADES, LEVELS, strict=True)
        ]
    if np.isfinite(corner.truths).any():
        entries.append(Line2D([], [], color=ORANGE, lw=1.2, label="truth"))
    marks: dict[str, Any] = {"ls": "", "ms": 4}
    if points and corner.shows(corner.zero):
        entries.append(Line2D([], [], marker="x", color=GREY, label="zero likelihood", **marks))
    if points and corner.shows(corner.failed):
        entries.append(Line2D([], [], marker="+", color=PURPLE, label="failed call", **marks))
    width, height = figure.get_size_inches()
    right, top = 1.0 - 0.1 / width, 1.0 - 0.1 / height
    figure.legend(handles=entries, loc="upper right", bbox_to_anchor=(right, top), fontsize=7.5, frameon=False)
    if points:
        below = top - (0.2 * len(entries) + 0.25) / height
        bar = figure.add_axes((right - 1.45 / width, below, 1.3 / width, 0.1 / height))
        colours = figure.colorbar(ScalarMappable(_batches(result), BATCHES), cax=bar, orientation="horizontal")
        colours.set_label("evaluated in batch", fontsize=7.5, color=BLACK)
        colours.ax.tick_params(labelsize=7, length=2)
        colours.ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
