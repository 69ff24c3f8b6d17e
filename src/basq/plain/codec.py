"""Plain data as bytes: a tree in JSON, and the arrays that it names behind it.

In the tree, numbers, texts and None stand for themselves; everything else is a list whose first entry says what it is.
An object that is met twice is written once.
"""

import json
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from basq.errors import BasqError
from basq.plain import laws
from basq.plain.absent import Absent
from basq.plain.known import class_of, fields_of, kept_of, name_of, unkept_of

HEAD = b"basq plain 1\n"
LENGTH = 8
"""Bytes of the length of the tree, which follows the head."""
DTYPE = re.compile(r"[<>|][biufcU]\d+")
"""Numbers, truth values and texts; nothing that holds objects."""


class NotPlainError(BasqError, ValueError):
    """Something cannot be written as plain data, or bytes are no such."""


def pack(value: Any, given: Sequence[Any] = (), *, strict: bool = True) -> bytes:
    """Write known objects as bytes.

    Parameters
    ----------
    value : object
    given : sequence
        Objects that whoever reads it will give again; they are not written.
    strict : bool
        Raise NotPlainError where something is not known; otherwise an `Absent` stands in its place.
    """
    writer = _Writer(given, strict=strict)
    tree = json.dumps([writer.node(value), writer.tables], separators=(",", ":")).encode()
    return b"".join([HEAD, len(tree).to_bytes(LENGTH, "little"), tree, *writer.buffers])


def unpack(blob: bytes, given: Sequence[Any] = ()) -> Any:
    """Read what `pack` has written; NotPlainError if it is anything else, whatever it is."""
    try:
        start = len(HEAD) + LENGTH
        if blob[: len(HEAD)] != HEAD:
            raise NotPlainError("the bytes are no plain data of basq")
        end = start + int.from_bytes(blob[len(HEAD) : start], "little")
        tree, tables = json.loads(blob[start:end])
        return _Reader(memoryview(blob)[end:], tables, given).value(tree)
    except NotPlainError:
        raise
    except Exception as error:  # of whatever kind damage leads to: no code of the file has run
        raise NotPlainError(f"plain data cannot be read ({type(error).__name__}: {error})") from error


class _Writer:
    def __init__(self, given: Sequence[Any], *, strict: bool) -> None:
        self.tables: list[Any] = []
        self.buffers: list[bytes] = []
        self._size = 0
        self._strict = strict
        self._given = {id(value): i for i, value in enumerate(given)}
        self._met: dict[int, int] = {}
        self._alive: list[Any] = []  # whose addresses stand in `_met`

    def node(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) in self._given:
            return ["given", self._given[id(value)]]
        return self._simple(value) or self._shared(value)

    def _simple(self, value: Any) -> list[Any] | None:
        """What is written wherever it is met; None for anything else."""
        kind = type(value)
        if isinstance(value, bytes):
            return ["bytes", self._array(np.frombuffer(value, dtype=np.uint8))]
        if isinstance(value, np.generic):
            return ["number", value.dtype.str, self._array(np.asarray(value))]
        if isinstance(value, Enum) and name_of(kind):
            return ["member", name_of(kind), value.value]
        if kind in (tuple, list, frozenset, set):
            return [kind.__name__, *map(self.node, value)]
        if isinstance(value, dict | MappingProxyType):
            return ["dict", *([self.node(k), self.node(v)] for k, v in value.items())]
        return ["path", str(value)] if isinstance(value, Path) else None

    def _shared(self, value: Any) -> Any:
        """What may be met again."""
        if id(value) in self._met:
            return ["same", self._met[id(value)]]
        is_array, name = isinstance(value, np.ndarray), name_of(type(value))
        law = None if is_array or name or isinstance(value, Absent) else laws.recipe(value)
        if not (is_array or name or law):
            return self._unknown(value)
        self._met[id(value)] = len(self._alive)
        self._alive.append(value)
        if is_array:
            return ["array", self._array(value)]
        if law is not None:
            return ["law", self.node(law)]
        cls: Any = type(value)
        fields = {key: self.node(getattr(value, key)) for key in fields_of(cls)}
        kept = {key: self.node(value.__dict__[key]) for key in kept_of(cls) if key in value.__dict__}
        return ["object", name, fields, kept]

    def _unknown(self, value: Any) -> Any:
        absent = Absent.of(value)
        if self._strict:
            raise NotPlainError(f"{absent.name} cannot be written as plain data")
        return ["absent", absent.name]

    def _array(self, value: Any) -> int:
        """Append an array to the buffers; its number."""
        if not DTYPE.fullmatch(value.dtype.str):
            raise NotPlainError(f"an array of dtype {value.dtype} cannot be written as plain data")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        self.buffers.append(value.tobytes(order))
        self.tables.append([value.dtype.str, value.shape, order, self._size])
        self._size += len(self.buffers[-1])
        return len(self.tables) - 1


class _Reader:
    def __init__(self, data: memoryview, tables: list[Any], given: Sequence[Any]) -> None:
        self._data, self._tables, self._given = data, tables, given
        self._met: list[Any] = []

    def value(self, node: Any) -> Any:
        if not isinstance(node, list):
            if isinstance(node, dict):
                raise NotPlainError("a bare object stands where a value is due")
            return node
        kind, *parts = node
        if kind == "given":
            return self._given[_index(parts[0], len(self._given))]
        if kind == "same":
            return self._met[_index(parts[0], len(self._met))]
        if kind in ("array", "law", "object"):
            place = len(self._met)
            self._met.append(None)
            self._met[place] = found = getattr(self, f"_{kind}")(*parts)
            return found
        return self._simple(kind, parts)

    def _simple(self, kind: str, parts: list[Any]) -> Any:
        match kind, parts:
            case (("tuple" | "list" | "frozenset" | "set"), items):
                makers: Mapping[str, Any] = {"tuple": tuple, "list": list, "frozenset": frozenset, "set": set}
                return makers[kind](self.value(item) for item in items)
            case "dict", items:
                return {self.value(key): self.value(item) for key, item in items}
            case "number", [dtype, number]:
                return np.dtype(dtype).type(self._array(number)[()])
            case "bytes", [data]:
                return self._array(data).tobytes()
            case "member", [str(name), member]:
                return class_of(name)(member)
            case (("path" | "absent"), [str(text)]):
                return Path(text) if kind == "path" else Absent(text)
        raise NotPlainError(f"there is no kind of value {kind!r}")

    def _array(self, number: Any) -> Any:
        dtype, shape, order, start = self._tables[_index(number, len(self._tables))]
        if not DTYPE.fullmatch(dtype) or order not in ("C", "F") or not all(type(n) is int and n >= 0 for n in shape):
            raise NotPlainError("an array is not described as one")
        kind = np.dtype(dtype)
        end = _index(start, len(self._data) + 1) + prod(shape) * kind.itemsize
        if end > len(self._data):
            raise NotPlainError("an array reaches beyond the end of the data")
        flat = np.frombuffer(self._data[start:end], dtype=kind)
        return flat.reshape(shape, order=order).copy(order=order)

    def _law(self, recipe: Any) -> Any:
        return laws.made(*self.value(recipe))

    def _object(self, name: str, fields: dict[str, Any], kept: dict[str, Any]) -> Any:
        cls = class_of(name)
        allowed = fields_of(cls)
        strange = (fields.keys() - allowed.keys()) | (kept.keys() - set(kept_of(cls)))
        lacking = [key for key, default in allowed.items() if default is None and key not in fields]
        if strange or lacking:
            raise NotPlainError(f"{name} is of another version of basq: {', '.join([*strange, *lacking])}")
        made = object.__new__(cls)
        defaults = {key: make() for key, make in (allowed | unkept_of(cls)).items() if key not in fields}
        made.__dict__.update(defaults)
        made.__dict__.update({key: self.value(node) for key, node in (fields | kept).items()})
        return made


def _index(number: Any, size: int) -> int:
    if type(number) is not int or not 0 <= number < size:
        raise NotPlainError(f"{number!r:.20} is no place among {size}")
    return number
