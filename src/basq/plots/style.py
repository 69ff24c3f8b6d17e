"""What the pictures share: colours, names and numbers that can be read."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.mathtext import MathTextParser
from matplotlib.ticker import FuncFormatter, MaxNLocator

from basq.plots.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from basq.results.result import Result

# Okabe and Ito's colours, which the colour-blind can tell apart
BLUE, ORANGE, GREEN, PURPLE, BLACK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222", "#8c8c8c"
BATCHES = "viridis"
"""Colour map of the batches, early to late."""


def new_figure(width: float, height: float, *, constrained: bool = True) -> "Figure":
    """A figure of this size in inches, laid out so that nothing is cut off, unless its panels are placed by hand."""
    return Picture(figsize=(width, height), layout="constrained" if constrained else None)


def readable(name: str, width: int = 18) -> str:
    """A parameter's name for an axis: broken into at most three lines, and mathematics only if it parses."""
    if name.count("$") >= 2:
        try:
            MathTextParser("agg").parse(name)
            return name
        except ValueError:
            pass
    broken = name.replace("_", "_\u200b").replace(".", ".\u200b")  # may be broken after these
    lines = textwrap.wrap(broken.replace("\u200b", " \u200b"), width, max_lines=3, placeholder=" …") or [name]
    return "\n".join(lines).replace(" \u200b", "").replace("\u200b", "").replace("$", r"\$")


@dataclass(frozen=True)
class Unit:
    """How the numbers of an axis are written: (value − offset) / 10^exponent.

    Attributes
    ----------
    exponent : int
        0 for numbers that are short as they are.
    offset : float
        What all numbers of the axis have in common, if they differ only far behind the point.
    """

    exponent: int = 0
    offset: float = 0.0

    @classmethod
    def of(cls, low: float, high: float) -> "Unit":
        """A unit in which the numbers from low to high are short."""
        span, size = high - low, max(abs(low), abs(high))
        offset = 0.0
        if span < 1e-4 * size:
            step = 10.0 ** np.ceil(np.log10(span))
            offset, size = float(step * np.round(0.5 * (low + high) / step)), span
        exponent = int(np.floor(np.log10(size))) if size > 0.0 else 0
        short = -3 < exponent < (7 if span < 0.01 * size else 4)  # with many digits a power of ten shortens nothing
        return cls(0 if short else exponent, offset)

    def label(self, name: str, unit: str = "") -> str:
        """The name of an axis, with what its numbers are multiples of."""
        out = readable(name)
        if self.offset:
            out += f"\n− {self.offset:.12g}"
        parts = [f"$10^{{{self.exponent}}}$" if self.exponent else "", readable(unit)]
        return f"{out} [{' '.join(filter(None, parts))}]" if any(parts) else out

    def apply(self, axis: "Axis", shown: Sequence[float], n_ticks: int = 4) -> None:
        """Write an axis's numbers in this unit: two or more, none so near its ends that it touches the next panel's."""
        margin = 0.07 * (shown[1] - shown[0])
        for n in range(n_ticks, n_ticks + 4):
            ticks = MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(*shown)
            inner = [t for t in ticks if shown[0] + margin <= t <= shown[1] - margin]
            if len(inner) > 1:
                break
        axis.set_ticks(inner)
        axis.set_major_formatter(FuncFormatter(lambda value, _: self.write(value)))

    def write(self, value: float) -> str:
        """A number in this unit."""
        short = round((value - self.offset) / 10.0**self.exponent, 7) + 0.0  # no negative zero
        return f"{short:.6g}".replace("-", "−")


def estimate(low: float, middle: float, high: float, exponent: int | None = None) -> str:
    """A median with the distances to two quantiles, two digits of the smaller one, as mathematical text.

    It is written with this power of ten if that is not longer; by default with its own, if it has many digits.
    """
    up, down = high - middle, middle - low
    least = min(d for d in (up, down, max(up, down)) if d > 0.0) if max(up, down) > 0.0 else abs(middle) or 1.0
    if exponent is None:
        size = max(abs(middle), up, down)
        exponent = int(np.floor(np.log10(size))) if size > 0.0 else 0
        exponent = exponent if not -3 < exponent < 5 else 0
    values = (middle, up, down)
    if exponent > 0 and len("".join(_written(values, least, 0))) < len("".join(_written(values, least, exponent))):
        exponent = 0
    number, plus, minus = _written(values, least, exponent)
    if len(plus.partition(".")[2]) > 9:  # as good as known
        return f"{middle:.10g}".replace("-", "−")
    factor = rf"\times10^{{{exponent}}}" if exponent else ""
    return rf"${number}^{{+{plus}}}_{{-{minus}}}{factor}$"


def _written(values: Sequence[float], least: float, exponent: int) -> list[str]:
    """Numbers as multiples of a power of ten, to two digits of the least of their distances."""
    digits = max(1 - int(np.floor(np.log10(least / 10.0**exponent) + 1e-9)), 0)
    return [f"{round(v / 10.0**exponent, digits) + 0.0:.{digits}f}" for v in values]


def chosen(result: "Result", names: str | Sequence[str] | None) -> list[int]:
    """Places of the parameters to draw: those named, or all."""
    return list(range(result.prior.n_dim)) if names is None else result.prior.index(names)
