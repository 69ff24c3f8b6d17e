"""The corner plot: every parameter alone and every pair, with the evaluated points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import is_color_like
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter

from basq.errors import InputError
from basq.plots.corner_marks import LEVELS, TINTS, draw_legend, draw_points, has_points, tint
from basq.plots.ranges import hatch_outside, inside, shown_range
from basq.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, Unit, chosen, estimate, new_figure
from basq.posterior.pairs import LeaningGrid, PairDensity
from basq.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.posterior.densities import ParameterDensity
    from basq.prior import Prior
    from basq.results.result import Result

OTHERS = (GREEN, PURPLE, "#E69F00", "#56B4E9", GREY)
"""Colours of further results."""
N_SAMPLES = 4000
SMOOTH = 3.0
"""Steps of the grid over which a density is smoothed once more, so that its contours do not wobble."""
FLOOR = 1e-6
"""Density, in units of the largest, below which there is nothing to draw."""
MOST_POINTS = 300
"""Evaluated points that are shown if nothing is said: more hide the posterior."""
READABLE = 12
"""Most parameters of one picture."""
GAP = 0.08
"""Inches between panels."""


def plot_corner(
    result: "Result",
    *,
    names: str | Sequence[str] | None = None,
    truths: ArrayLike | Mapping[str, float] | None = None,
    points: bool | None = None,
    prior: bool = True,
    others: Mapping[str, "Result"] | None = None,
    labels: Sequence[str] | Mapping[str, str] | None = None,
    figsize: tuple[float, float] | None = None,
    color: str = BLUE,
) -> Figure:
    """Draw the marginals of one and two parameters.

    Parameters
    ----------
    names : str or list of str, optional
        Only these parameters, in this order.
    truths : dict or (d,) array, optional
        Marked where known: values by name, or one for each parameter of the prior; NaN for none.
    points : bool, optional
        Show the evaluated points, coloured by batch; crosses where the likelihood is zero or a call has failed. By
        default where there are at most 300.
    prior : bool
        Show the prior beside every marginal.
    others : dict of Result, optional
        Further results by their names in the legend, drawn as lines over the parameters that they share.
    labels : list or dict of str, optional
        Instead of those of the prior.
    figsize : (float, float), optional
        Inches.
    color : str
        Of the posterior.
    """
    dims = chosen(result, names)
    if len(dims) > READABLE or len(set(dims)) < len(dims) or not dims:
        raise InputError(
            f"A corner plot of {len(dims)} parameters cannot be read; name 1 to {READABLE} different ones, "
            f"such as names={list(result.names[:4])}."
        )
    if not is_color_like(color):
        raise InputError(f"color={color!r}: give a colour of Matplotlib, such as 'C1' or '#D55E00'.")
    written = result.prior.labelled(labels)
    corner = Corner.of(result, dims, truths, written, color, others or {})
    figure, marked = corner.figure(figsize), points if points is not None else result.n_evals <= MOST_POINTS
    draw_legend(figure, corner, marked, prior)
    for row in range(len(dims)):
        for column in range(row + 1):
            axis = corner.axes(figure, row, column)
            if row == column:
                corner.draw_alone(axis, row, prior)
            else:
                corner.draw_pair(axis, row, column)
            if marked and (row != column or len(dims) == 1) and has_points(corner, row, column):
                draw_points(axis, corner, row, column)
            corner.finish(axis, row, column)
    return figure


@dataclass(frozen=True)
class Layer:
    """One result of a picture: its colour, its name in the legend, and samples (n, d) of all its parameters."""

    result: "Result"
    color: str
    label: str
    samples: FloatArray

    @classmethod
    def of(cls, result: "Result", color: str, label: str) -> "Layer":
        return cls(result, color, label, result.sample(N_SAMPLES, seed=0))

    def columns(self, names: Sequence[str]) -> FloatArray | None:
        """Samples of some parameters (n, k); None if it lacks one of them."""
        known = self.result.names
        return self.samples[:, [known.index(n) for n in names]] if set(names) <= set(known) else None


@dataclass(frozen=True)
class Corner:
    """What the panels of a corner plot share.

    Attributes
    ----------
    result : Result
    dims : list of int
        The parameters, as places in the prior.
    layers : list of Layer
        The result, and those that are drawn over it.
    ranges : (k, 2) array
        What is shown of the parameters.
    truths : (k,) array
        NaN where nothing is known.
    prior : Prior
        As it is to be written.
    panel, left, bottom, right, top : float
        Inches: a panel's side, and the margins.
    """

    result: "Result"
    dims: list[int]
    layers: list[Layer]
    ranges: FloatArray
    truths: FloatArray
    prior: "Prior"
    panel: float
    left: float
    bottom: float
    right: float = 0.2
    top: float = 0.5

    @classmethod
    def of(
        cls,
        result: "Result",
        dims: list[int],
        truths: ArrayLike | Mapping[str, float] | None,
        prior: "Prior",
        color: str,
        others: Mapping[str, "Result"],
    ) -> "Corner":
        known, bounds = _known(result, truths), result.prior.bounds[dims]
        layers = [Layer.of(result, color, "posterior")]
        layers += [Layer.of(r, OTHERS[i % len(OTHERS)], name) for i, (name, r) in enumerate(others.items())]
        ranges = []
        for i, k in enumerate(dims):
            drawn = [x[:, 0] for layer in layers if (x := layer.columns([result.names[k]])) is not None]
            each = np.array([shown_range(x, bounds[i], float(known[k])) for x in drawn])
            ranges.append((each[:, 0].min(), each[:, 1].max()))
        labels = [Unit.of(*r).label(prior.labels[k], prior.units[k]) for r, k in zip(ranges, dims, strict=True)]
        lines = 0.15 * max(label.count("\n") + 1 for label in labels)
        panel = float(np.clip(9.0 / len(dims), 1.15, 2.2))
        margins = (0.6 + lines, 0.55 + lines)
        return cls(result, dims, layers, np.array(ranges), known[dims], prior, panel, *margins)

    @property
    def n(self) -> int:
        return len(self.dims)

    def names(self, *places: int) -> list[str]:
        """Of the parameters of a panel."""
        return [self.result.names[self.dims[i]] for i in places]

    def written(self, i: int) -> tuple[str, str]:
        """Label and unit of a parameter."""
        return self.prior.labels[self.dims[i]], self.prior.units[self.dims[i]]

    def figure(self, size: tuple[float, float] | None) -> Figure:
        side = self.panel * self.n
        own = (6.4, 3.4) if self.n == 1 else (self.left + side + self.right, self.bottom + side + self.top)
        return new_figure(*(size or own), constrained=False)

    def axes(self, figure: Figure, row: int, column: int) -> "Axes":
        """The panel of a pair, laid out by hand: a constrained layout of fifty panels takes a minute."""
        width, height = figure.get_size_inches()
        if self.n == 1:
            return figure.add_axes((0.08, self.bottom / height, 0.56, 1.0 - (self.bottom + self.top) / height))
        wide, high = (width - self.left - self.right) / self.n, (height - self.bottom - self.top) / self.n
        start, base = self.left + column * wide, self.bottom + (self.n - 1 - row) * high
        return figure.add_axes((start / width, base / height, (wide - GAP) / width, (high - GAP) / height))

    def draw_alone(self, axis: "Axes", i: int, prior: bool) -> None:
        """The density of one parameter, with its median and 68 % interval; the prior's, and those of other results."""
        (name,), top = self.names(i), 0.0
        t = np.linspace(*inside(self.ranges[i], self.result.prior.bounds[self.dims[i]]), 400)
        for layer in [each for each in self.layers if name in each.result.names]:
            density, first = layer.result.marginal(name), layer is self.layers[0]
            pdf = np.maximum(np.nan_to_num(density.pdf(t)), 0.0)
            low, middle, high = density.ppf([0.16, 0.5, 0.84])
            top = max(top, float(pdf.max()))
            axis.plot(t, pdf, color=layer.color, lw=1.3)
            if first:
                self._title(axis, i, (float(low), float(middle), float(high)))
                within = (t >= low) & (t <= high) if low <= high else (t >= low) | (t <= high)  # round a circle
                axis.fill_between(t, pdf, where=within.tolist(), color=tint(layer.color, TINTS[1]), lw=0)
                axis.axvline(middle, color=layer.color, lw=0.8, ls=(0, (4, 3)))
        if prior and self.result.prior.is_separable:
            axis.plot(t, _prior_density(self.result.prior, self.dims[i], t), color=GREY, lw=1.0, ls=":")
        axis.set_ylim(0.0, 1.08 * top or 1.0)
        axis.set_yticks([])

    def _title(self, axis: "Axes", i: int, quantiles: tuple[float, float, float]) -> None:
        """Name, median and 68 % interval."""
        low, middle, high = quantiles
        unit = Unit.of(*self.ranges[i])
        exponent = None if unit.offset else unit.exponent  # that of the numbers below
        if self.result.prior.periodic[self.dims[i]]:
            period = float(np.ptp(self.result.prior.bounds[self.dims[i]]))
            low, high = middle - (middle - low) % period, middle + (high - middle) % period
        number, size = estimate(low, middle, high, exponent), 8.5 if self.panel > 1.5 else 7.5
        name = Unit().label(self.written(i)[0]).split("\n")
        short = name[0] if len(name) == 1 and len(name[0]) <= 14 else ""
        between = " = " if self.panel > 1.5 else "\n"
        axis.set_title(f"{short}{between}{number}" if short else number, fontsize=size, pad=5, linespacing=1.7)

    def draw_pair(self, axis: "Axes", row: int, column: int) -> None:
        """The contours that hold 68 % and 95 % of the mass of two parameters."""
        names = self.names(column, row)
        bounds = self.result.prior.bounds[[self.dims[column], self.dims[row]]]
        for layer in self.layers:
            samples = layer.columns(names)
            if samples is None:
                continue
            grid, values = _gridded(layer.result.marginal(names), samples, bounds)
            ordered = np.sort(values[grid.inside(bounds)])[::-1]
            mass = np.cumsum(ordered) / ordered.sum()
            found = [ordered[np.searchsorted(mass, level)] for level in LEVELS]
            levels = np.unique([*found, ordered[0] * 1.001])
            if len(levels) > 1:
                x, y = grid.whole.mesh
                values = np.minimum(np.pad(values, 1, mode="edge"), ordered[0])
                box, shades = self._box(axis, row, column), [tint(layer.color, t) for t in TINTS]
                if layer is self.layers[0]:
                    filled = axis.contourf(x, y, values, levels=levels, colors=shades[-(len(levels) - 1) :], zorder=1)
                    filled.set_clip_path(box)
                # above the points
                lines = axis.contour(x, y, values, levels=levels[:-1], colors=[layer.color], linewidths=0.9, zorder=4)
                lines.set_clip_path(box)

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
        unit, size = Unit.of(*self.ranges[column]), 8.5 if self.panel > 1.5 else 7.5
        unit.apply(axis.xaxis, self.ranges[column], n_ticks)
        if row == self.n - 1:
            axis.set_xlabel(unit.label(*self.written(column)), fontsize=size)
            axis.tick_params(axis="x", rotation=0 if self.n == 1 else 45)
            if self.n > 1:  # all of them at one height
                axis.xaxis.set_label_coords(0.5, -0.42 / self.panel)
        else:
            axis.tick_params(labelbottom=False)
        if row != column:
            unit = Unit.of(*self.ranges[row])
            unit.apply(axis.yaxis, self.ranges[row], n_ticks)
            axis.tick_params(labelleft=column == 0)
            if column == 0:
                axis.set_ylabel(unit.label(*self.written(row)), fontsize=size)
                axis.yaxis.set_label_coords(-0.46 / self.panel, 0.5)

    def _box(self, axis: "Axes", row: int, column: int) -> Rectangle:
        """What the prior allows of a panel."""
        (left, right), (low, high) = (
            np.clip(self.ranges[i], *self.result.prior.bounds[self.dims[i]]) for i in (column, row)
        )
        return Rectangle((left, low), right - left, high - low, transform=axis.transData)


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


def _prior_density(prior: "Prior", i: int, t: FloatArray) -> FloatArray:
    """Density of one parameter's prior at t (n,), where it maps coordinate by coordinate."""
    u = prior.coordinate_to_standard(i, t)
    out: FloatArray = np.exp(-0.5 * u * u - prior.coordinate_log_jacobian(i, u)) / np.sqrt(2.0 * np.pi)
    return out


def _gridded(pair: "ParameterDensity", samples: FloatArray, bounds: FloatArray) -> tuple[LeaningGrid, FloatArray]:
    """A density of two parameters on a grid: one that is made of samples, once more smoothed; or one around them."""
    if isinstance(pair.density, PairDensity):
        known = pair.density.values
        # of the logarithm: narrow modes, a few steps wide, keep their width
        smooth = gaussian_filter(np.log(np.maximum(known, FLOOR * known.max())), SMOOTH, mode="nearest")
        return pair.density.grid, np.exp(smooth)
    grid = LeaningGrid.around(samples, bounds)
    return grid, _density_on(grid, pair, bounds)


def _density_on(grid: LeaningGrid, pair: "ParameterDensity", bounds: FloatArray) -> FloatArray:
    """A density that is known at any point, on a grid (rows, columns); beyond the bounds (2, 2), that next to them."""
    x, y = grid.mesh
    nodes = np.column_stack([x.ravel(), y.ravel()])
    hair = 1e-3 * np.ptp(nodes, axis=0)  # the very edge of a prior is infinitely far in standard space
    values = pair.pdf(np.clip(nodes, bounds[:, 0] + hair, bounds[:, 1] - hair))
    return np.maximum(np.nan_to_num(values), 0.0).reshape(x.shape)
