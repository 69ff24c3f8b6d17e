"""What a simulator gave: packed for the store, and read again when it is asked for."""

import io
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from basq.errors import EvaluationError
from basq.evaluation.store import Store
from basq.types import FloatArray, IntArray

LARGEST = 64 * 2**20
"""Bytes of one output, before it is compressed: a thousand of them are meant to fit on a disk."""
KEY = "output"
"""Name of an output that is one array; those of a dict have their own names, with this in front."""


def as_stored(output: Any) -> Any:
    """An output as the store gives it back, arrays that cannot be changed: what a likelihood sees at any time."""
    arrays = _arrays(output)
    for name, array in arrays.items():
        arrays[name] = array.copy()
        arrays[name].flags.writeable = False
    return _output(arrays)


def pack(output: Any, draws: FloatArray) -> bytes:
    """An array or a dict of arrays, with draws (m, k) of the cheap parameters, as bytes."""
    arrays = _arrays(output)
    size = sum(a.nbytes for a in arrays.values())
    if size > LARGEST:
        raise EvaluationError(
            f"simulate returned {size / 2**20:.0f} MiB; at most {LARGEST // 2**20} MiB are stored with a call. "
            "Give keep=, a function that reduces an output to what the likelihood needs."
        )
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, draws=draws, **arrays)  # a store of somebody else's runs no code
    return zlib.compress(buffer.getvalue(), 1)


def unpack(blob: bytes) -> tuple[Any, FloatArray]:
    """The output and the draws again."""
    try:
        with np.load(io.BytesIO(zlib.decompress(blob)), allow_pickle=False) as file:
            return _output({name: file[name] for name in file if name != "draws"}), file["draws"]
    except Exception as error:  # whatever is in its place; nothing of it has run
        raise EvaluationError(f"A stored output cannot be read ({type(error).__name__}: {error}).") from error


def _output(arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """Inverse of `_arrays`; a single number is one again."""
    if KEY in arrays:
        array = arrays[KEY]
        return float(array) if array.ndim == 0 else array
    return {name.removeprefix(f"{KEY}:"): array for name, array in arrays.items()}


def _arrays(output: Any) -> dict[str, np.ndarray[Any, Any]]:
    if isinstance(output, Mapping):
        return {f"{KEY}:{name}": _array(value, f"[{name!r}]") for name, value in output.items()}
    return {KEY: _array(output, "")}


def _array(value: Any, which: str) -> np.ndarray[Any, Any]:
    """A plain array of numbers, or texts; nothing that would have to be pickled."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.hasobject:
        raise EvaluationError(
            f"simulate returned {type(value).__name__} (output{which}); allowed are arrays of numbers and dicts of "
            "them. Give keep=, a function that turns an output into such."
        )
    return array


def _shape(output: Any) -> str:
    if isinstance(output, Mapping):
        return f"{{{', '.join(f'{name}: {np.shape(value)}' for name, value in output.items())}}}"
    return str(np.shape(output))


@dataclass(frozen=True)
class Outputs:
    """Outputs of the calls of a run; those in a file are read when they are asked for.

    Attributes
    ----------
    path : Path or None
        The store that has them,
    ids : (n,) int array
        by their calls; in the order of a result's observations.
    blobs : tuple of bytes or None
        The same in memory, where there is no file.
    """

    path: Path | None
    ids: IntArray
    blobs: tuple[bytes | None, ...] = ()

    @classmethod
    def of(cls, store: Store, ids: IntArray) -> "Outputs":
        """Those of a store's calls."""
        return cls(store.path.absolute(), ids) if store.path else cls(None, ids, tuple(store.outputs(ids)))

    def __len__(self) -> int:
        return len(self.ids)

    def packed(self) -> list[bytes | None]:
        """All of them, as they are stored."""
        if self.path is None:
            return list(self.blobs)
        if not os.path.exists(self.path):
            raise EvaluationError(f"The outputs are in {str(self.path)!r}, which is not there any more.")
        with Store(self.path) as store:
            return store.outputs(self.ids)

    def load(self) -> list[Any]:
        """All outputs; None where a call has none."""
        return [None if blob is None else unpack(blob)[0] for blob in self.packed()]

    def shapes(self) -> list[str | None]:
        """Shapes of all outputs, as text; None where a call has none."""
        return [None if output is None else _shape(output) for output in self.load()]

    def draws(self) -> list[FloatArray | None]:
        """Draws of the cheap parameters at every call (m, k); None where there are none."""
        found = [None if blob is None else unpack(blob)[1] for blob in self.packed()]
        return [None if own is None or not len(own) else own for own in found]
