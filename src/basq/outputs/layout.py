"""Outputs of many calls as rows of one table, and rows as outputs again."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from basq.errors import InputError
from basq.types import FloatArray, IntArray

MOST_NAMED = 8
"""Calls that a message names; it counts the others."""


@dataclass(frozen=True)
class Layout:
    """How outputs lie in rows of numbers.

    Attributes
    ----------
    keys : tuple of str or None
        Of a dict, without those whose values are texts; None for one array.
    shapes : tuple of tuples of int
        Of the array, or of those under the keys.
    """

    keys: tuple[str, ...] | None
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, output: Any) -> "Layout":
        """The layout of a number, an array or a dict of such."""
        if not isinstance(output, Mapping):
            if not _has_numbers(output, ""):
                raise InputError("The output is an array of texts, between which nothing can be interpolated.")
            return cls(None, (np.shape(output),))
        keys = tuple(key for key, value in output.items() if _has_numbers(value, f" under {key!r}"))
        return cls(keys, tuple(np.shape(output[key]) for key in keys))

    @property
    def size(self) -> int:
        """Numbers in a row."""
        return sum(map(math.prod, self.shapes))

    def __str__(self) -> str:
        if self.keys is None:
            return f"an array {self.shapes[0]}" if self.shapes[0] else "a number"
        return "{" + ", ".join(f"{k!r}: {shape}" for k, shape in zip(self.keys, self.shapes, strict=True)) + "}"

    def row(self, output: Any) -> FloatArray:
        """An output as a row (p,)."""
        parts = [output] if self.keys is None else [output[key] for key in self.keys]
        return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts] or [np.empty(0)])

    def shaped(self, rows: FloatArray) -> Any:
        """Rows (…, p) as one output with as many axes in front: an array, or a dict of arrays."""
        lead, ends = rows.shape[:-1], np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(rows, ends[:-1], axis=-1) if self.shapes else []
        arrays = [part.reshape((*lead, *shape))[()] for part, shape in zip(parts, self.shapes, strict=True)]
        return arrays[0] if self.keys is None else dict(zip(self.keys, arrays, strict=True))


def _has_numbers(value: Any, where: str) -> bool:
    kind = np.asarray(value).dtype.kind
    if kind == "c":
        raise InputError(
            f"The output{where} is complex, and has no quantiles. result.derived(f) takes a function of it, as its "
            "absolute value; keep= of basq.Model stores real and imaginary parts."
        )
    return kind in "biuf"


@dataclass(frozen=True)
class Table:
    """Outputs of calls in rows.

    Attributes
    ----------
    layout : Layout
    calls : (n,) int array
        Places of the rows among all outputs.
    values : (n, p) array
        Finite; except for entries that never are, which are NaN in all rows.
    """

    layout: Layout
    calls: IntArray
    values: FloatArray

    @classmethod
    def of(cls, outputs: Sequence[Any], ids: IntArray, what: str) -> "Table":
        """Collect outputs; None and those with numbers that are not finite are left out.

        Parameters
        ----------
        outputs : sequence
        ids : (n,) int array
            Of their calls.
        what : str
            Gave them, for messages: "simulate".
        """
        have = [i for i, output in enumerate(outputs) if output is not None]
        layouts = [Layout.of(outputs[i]) for i in have]
        if not have:
            raise InputError("No call of this run has an output: its values were given without, or all calls failed.")
        usual = Counter(layouts).most_common(1)[0][0]
        strange = [k for k, layout in enumerate(layouts) if layout != usual]
        if strange:
            raise InputError(
                f"{what} does not always return the same shape: {usual} mostly, but {layouts[strange[0]]} at "
                f"{_named([int(ids[have[k]]) for k in strange])}. Only what has one shape can be "
                "interpolated: result.derived(f) takes a function of the output, and keep= of basq.Model reduces it."
            )
        values = np.stack([usual.row(outputs[i]) for i in have])
        finite = np.isfinite(values)
        ever = finite.any(axis=0)
        good = finite[:, ever].all(axis=1)
        if not good.any() or not ever.any():
            raise InputError(f"{what} returned NaN or infinite numbers at every call; there is nothing to interpolate.")
        return cls(usual, np.array(have)[good], np.where(ever, values[good], np.nan))


def _named(ids: Sequence[int]) -> str:
    """Some calls in words: call 3; calls 3, 7 and 12; calls 1, 2, … and 20 more."""
    shown = [str(i) for i in ids[:MOST_NAMED]]
    if len(ids) > MOST_NAMED:
        return f"calls {', '.join(shown)} and {len(ids) - MOST_NAMED} more"
    return f"calls {', '.join(shown[:-1])} and {shown[-1]}" if shown[1:] else f"call {shown[0]}"
