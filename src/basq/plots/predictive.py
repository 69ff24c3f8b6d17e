"""The simulator's output over the posterior, with the data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from basq.errors import InputError
from basq.plots.style import BLACK, BLUE, GREY, new_figure, readable
from basq.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from basq.results.result import Result

LEVELS = (0.025, 0.16, 0.5, 0.84, 0.975)
N_SAMPLES = 2000
MOST_PANELS = 6


@dataclass(frozen=True)
class Panel:
    """One line of the output: a key of a dict, or a row of an array with two axes.

    Attributes
    ----------
    key : str or None
    row : int or None
    bands : (5, m) array
        Quantiles.
    """

    key: str | None
    row: int | None
    bands: FloatArray

    @property
    def title(self) -> str:
        place = "" if self.row is None else f"row {self.row}"
        return ", ".join(part for part in (self.key or "", place) if part)

    def of(self, given: Any, what: str) -> FloatArray | None:
        """The panel's part (m,) of what was given for the output: an array, or a dict; None if there is none."""
        if isinstance(given, Mapping):
            if self.key is None:
                raise InputError(f"{what} is a dict, and the output one array.")
            given = given.get(self.key)
        if given is None:
            return None
        part, m = np.atleast_1d(np.asarray(given, dtype=float)), self.bands.shape[1]
        if self.row is not None and part.ndim == 2 and len(part) > self.row:
            part = part[self.row]
        if part.shape != (m,):
            raise InputError(f"{what} has the shape {np.shape(given)}; {self.title or 'the output'} has {m} numbers.")
        return part


def plot_predictive(
    result: "Result",
    data: ArrayLike | Mapping[str, ArrayLike] | None = None,
    x: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    names: str | int | Sequence[str | int] | None = None,
    noise: Callable[..., Any] | None = None,
) -> Figure:
    """Draw median and bands of 68 and 95 % of the output, with the data over them.

    Parameters
    ----------
    data : array or dict of arrays, optional
        As the output; NaN where there are none.
    x : array or dict of arrays, optional
        What the output is drawn against, its index by default; one for all panels, or as the output.
    names : str, int or list of such, optional
        Keys or rows to draw; the first six by default.
    noise : callable, optional
        As that of `Result.predict`: draws where 95 % of the data are expected, too.
    """
    panels = list(_panels(result.predict(LEVELS, n=N_SAMPLES)))
    chosen = _chosen(panels, names)
    noisy = None if noise is None else list(_panels(result.predict(LEVELS, n=N_SAMPLES, noise=noise)))
    n_columns = 1 if len(chosen) == 1 else 2
    n_rows = -(-len(chosen) // n_columns)
    figure = new_figure(6.8 if n_columns == 1 else 8.4, (3.8 if n_rows == 1 else 2.5 * n_rows) + 0.4)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for axis in axes.ravel()[len(chosen) :]:
        axis.set_axis_off()
    for axis, i in zip(axes.ravel(), chosen, strict=False):
        panel = panels[i]
        _draw(axis, panel, panel.of(x, "x"), panel.of(data, "data"), None if noisy is None else noisy[i].bands)
    drawn = {text: handle for a in axes.ravel() for handle, text in zip(*a.get_legend_handles_labels(), strict=True)}
    figure.legend(
        drawn.values(), drawn.keys(), loc="outside upper center", ncols=len(drawn), fontsize=8.5, frameon=False
    )
    if names is None and len(panels) > len(chosen):
        figure.supxlabel(f"{len(chosen)} of {len(panels)}; names= chooses", fontsize=8.5, color=GREY)
    return figure


def _panels(bands: Any) -> Iterator[Panel]:
    """Quantiles of the output (5, …), or a dict of such, line by line."""
    for key, values in bands.items() if isinstance(bands, Mapping) else [(None, bands)]:
        if values.ndim > 3:
            name = "The output" if key is None else f"The output under {key!r}"
            raise InputError(
                f"{name} has {values.ndim - 1} axes; only one or two can be drawn. result.predict(q=…) gives numbers."
            )
        if values.ndim == 3:
            yield from (Panel(key, row, values[:, row]) for row in range(values.shape[1]))
        else:
            yield Panel(key, None, values.reshape(len(LEVELS), -1))


def _chosen(panels: Sequence[Panel], names: str | int | Sequence[str | int] | None) -> list[int]:
    """Places of the panels to draw."""
    if names is None:
        return list(range(min(len(panels), MOST_PANELS)))
    wanted = [names] if isinstance(names, str | int) else list(names)
    out = [[i for i, p in enumerate(panels) if name in (p.key, p.row)] for name in wanted]
    strange = [name for name, found in zip(wanted, out, strict=True) if not found]
    allowed = list(dict.fromkeys(p.row if p.key is None else p.key for p in panels))
    if strange or not wanted or sum(map(len, out)) > MOST_PANELS:
        raise InputError(f"names={names!r}: give at most {MOST_PANELS} lines out of {allowed}.")
    return [i for found in out for i in found]


def _draw(
    axis: "Axes", panel: Panel, x: FloatArray | None, measured: FloatArray | None, noisy: FloatArray | None
) -> None:
    """Bands, data where there are any, and what is expected of them."""
    place = np.arange(panel.bands.shape[1], dtype=float) if x is None else x
    order = np.argsort(place, kind="stable")
    at = place[order]
    if len(place) == 1:  # a band of one point would not be seen: widen it
        order, at = np.array([0, 0]), place + np.array([-0.3, 0.3])
        axis.set(xlim=(at[0] - 0.5, at[1] + 0.5), xticks=place)
    lowest, low, middle, high, highest = panel.bands[:, order]
    if noisy is not None:
        axis.fill_between(at, noisy[0, order], noisy[-1, order], color=GREY, alpha=0.2, lw=0, label="95 % of data")
    axis.fill_between(at, lowest, highest, color=BLUE, alpha=0.2, lw=0, label="95 %")
    axis.fill_between(at, low, high, color=BLUE, alpha=0.35, lw=0, label="68 %")
    axis.plot(at, middle, color=BLUE, lw=1.3, label="median")
    if measured is not None:
        axis.plot(place, measured, "o", color=BLACK, ms=3.2, mew=0, label="data")
    axis.set_title(readable(panel.title, 40) if panel.title else "", fontsize=9)
    axis.set_xlabel("index" if x is None else "", fontsize=8.5)
    axis.ticklabel_format(axis="y", useOffset=False)
    axis.tick_params(labelsize=7.5)
    axis.grid(color="#e6e6e6", lw=0.6)
    axis.set_axisbelow(True)
