"""What a function is made of besides its own code: what is bound to it, and the data and helpers that it uses.

Looked at is what lies in the function's own file; imported modules are not. Of arrays and plain data there is a digest,
of helpers one of their code; of all else it is known that it cannot be seen.
"""

import dis
import functools
import hashlib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np

CHANGING = frozenset(
    ("add", "append", "appendleft", "clear", "discard", "extend", "fill", "insert", "pop", "popitem", "popleft", "put",
     "remove", "resize", "reverse", "setdefault", "sort", "update")
)  # fmt: skip
"""Methods that change what they are called of."""
WRITES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "DELETE_ATTR")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
LOADS = (*GLOBALS, "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST")
"""What their names begin with: some load two local variables at once."""
REACHES = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")
ASSIGNS = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")
SELF = "self."
"""What names of attributes begin with, those of the object that is called."""
PLAIN = (type(None), type(...), bool, int, complex, bytes, bytearray, range)
DIGITS = 10
"""Binary mantissas are rounded to so many decimals: another machine may compute the same data to another last bit."""
BLOCK = 1 << 20
"""Numbers that are rounded at a time."""

Found: TypeAlias = tuple[dict[str, str], dict[str, str]]
"""Digests of what can be seen and, of what cannot, why; by names for people."""


class OpaqueError(Exception):
    """Data that cannot be seen; the message says what they are."""


def bare(function: Any) -> Any:
    """The function inside partials and decorators."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)


def code_of(body: Any) -> CodeType | None:
    """The compiled code of a function, of a method, or of an object that can be called."""
    return getattr(body, "__code__", None) or getattr(type(body).__call__, "__code__", None)


def ingredients(function: Callable[..., Any]) -> Found:
    """What a function is made of besides its own code."""
    named, outer = _bound(function)
    body = bare(outer)
    own = body if isinstance(body, FunctionType) else getattr(body, "__func__", None) or type(body).__call__
    owner = None if own is body else getattr(body, "__self__", body)
    if owner is not None:
        named += _state(owner)
    if not isinstance(own, FunctionType):  # compiled elsewhere
        return _digests(named, "", set())
    helpers = _helpers(own, [outer, *(value for _, value in named)], owner)
    if owner is not None:
        named += _shared(owner, helpers.values())
    for prefix, helper in helpers.items():
        named += [(prefix + name, value) for name, value in _used(helper)]
    changed = {name for helper in helpers.values() for name in _changed(helper.__code__)}
    data, unseen = _digests(named, own.__module__, changed)
    codes = {prefix.removesuffix(": "): _sha(repr(essence(f.__code__))) for prefix, f in helpers.items() if prefix}
    return data | codes, unseen


def _bound(function: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The arguments that partials have bound, with names for people; and the function that they are bound to."""
    args: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        args, keywords, function = function.args + args, function.keywords | keywords, function.func
    return [(f"bound argument {name}", value) for name, value in [*enumerate(args, 1), *keywords.items()]], function


def _state(owner: Any) -> list[tuple[str, Any]]:
    """The attributes of an object that is called, or whose method is; the object itself, if it shows none."""
    if isinstance(owner, ModuleType):  # of a function that is compiled
        return []
    slots = [name for kind in type(owner).__mro__ for name in _slots(kind) if hasattr(owner, name)]
    state = {name: getattr(owner, name) for name in slots} | getattr(owner, "__dict__", {})
    return [(f"{SELF}{name}", value) for name, value in sorted(state.items())] or [("self", owner)]


def _slots(kind: type) -> Iterable[str]:
    slots: str | Iterable[str] = kind.__dict__.get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if not name.startswith("__")]


def _in_class(owner: Any, f: FunctionType) -> dict[str, Any]:
    """What a function names of the class of an object, as it stands there."""
    if owner is None:
        return {}
    kind = type(owner)
    names = {name for code in _codes(f.__code__) for name in code.co_names if hasattr(kind, name)}
    return {name: inspect.getattr_static(kind, name) for name in sorted(names)}


def _shared(owner: Any, functions: Iterable[FunctionType]) -> list[tuple[str, Any]]:
    """The data of an object's class that functions name, as far as the object has none of its own instead."""
    found = {name: value for f in functions for name, value in _in_class(owner, f).items()}
    own = getattr(owner, "__dict__", {})
    code = {name for name, value in found.items() if hasattr(value, "__get__") or callable(value)}
    return [(f"{SELF}{name}", value) for name, value in found.items() if name not in own and name not in code]


def _methods(owner: Any, f: FunctionType) -> list[Any]:
    """The methods and properties of an object that a function names."""
    found = _in_class(owner, f).values()
    return [getattr(each, "fget", getattr(each, "func", getattr(each, "__func__", each))) for each in found]


def _helpers(own: FunctionType, around: list[Any], owner: Any) -> dict[str, FunctionType]:
    """The function, and those of its file that are bound to it or used by it, by what goes before names of theirs."""
    out = {"": own}
    waiting = [*around, *_reached(own), *_methods(owner, own)]
    while waiting:
        f = waiting.pop(0)
        if isinstance(f, FunctionType) and f.__globals__ is own.__globals__ and all(f is not g for g in out.values()):
            prefix = f"{f.__qualname__}: "
            while prefix in out:  # of one factory
                prefix = f"another {prefix}"
            out[prefix] = f
            waiting += [*_reached(f), *_methods(owner, f)]
    return out


def _reached(f: FunctionType) -> list[Any]:
    return [getattr(f, "__wrapped__", None), *(value for _, value in _used(f))]


def _used(f: FunctionType) -> Iterator[tuple[str, Any]]:
    """Defaults, closure and globals of a function, by their names."""
    code = f.__code__
    named = code.co_varnames[: code.co_argcount]
    defaults = f.__defaults__ or ()
    for name, value in [
        *zip(named[len(named) - len(defaults) :], defaults, strict=True),
        *(f.__kwdefaults__ or {}).items(),
    ]:
        yield f"argument {name}", value
    for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
        with suppress(ValueError):  # nothing is in it yet
            yield name, cell.cell_contents
    for name in sorted({i.argval for c in _codes(code) for i in dis.get_instructions(c) if i.opname in GLOBALS}):
        if name in f.__globals__ and not name.startswith("__"):
            yield name, f.__globals__[name]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Compiled code, and that of the functions inside."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)


def _changed(code: CodeType) -> set[str]:
    """Names of outer variables that a function assigns, or whose content it changes: counters, caches, lists of calls.

    What is written to, as in ``name[i] = ...`` or ``name.append(...)``, begins where the name stands in the text. What
    begins with ``self`` changes an attribute, and not all of the object.
    """
    out = set()
    for part in _codes(code):
        loads: dict[Any, set[str]] = {}
        writes = set()
        for i in dis.get_instructions(part):
            at = i.positions and (i.positions.lineno, i.positions.col_offset)
            if i.opname.startswith(LOADS):
                loads.setdefault(at, set()).update(i.argval if isinstance(i.argval, tuple) else (i.argval,))
            if i.opname in REACHES:
                loads.setdefault(at, set()).add(f"{SELF}{i.argval}")
            if i.opname in WRITES or (i.opname in ("LOAD_ATTR", "LOAD_METHOD") and i.argval in CHANGING):
                writes.add(at)
            elif i.opname in ASSIGNS:
                out.add(i.argval)
        out |= {name for at in writes for name in loads.get(at, ())}
    return out


# --- digests ----------------------------------------------------------------------------------------------------------


def _digests(named: list[tuple[str, Any]], module: str, changed: set[str]) -> Found:
    """Digests of values, and why there are none of others."""
    data, unseen = {}, {}
    for name, value in named:
        if _is_code(value, module):
            continue
        if name.rpartition(": ")[2].removeprefix("argument ") in changed:
            unseen[name] = "changed by the calls"
            continue
        try:
            if isinstance(value, str) and os.path.isabs(value):
                raise OpaqueError("a path")
            data[name] = _sha("".join(_plain(value)))
        except OpaqueError as error:
            unseen[name] = str(error)
    return data, unseen


def _is_code(value: Any, module: str) -> bool:
    """Whether it is a module, a function, or a class of another file."""
    if isinstance(value, ModuleType | FunctionType):
        return True
    return hasattr(value, "__name__") and callable(value) and getattr(value, "__module__", None) != module


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any, inside: tuple[int, ...] = ()) -> Iterator[str]:
    """Plain data as text, which is equal for equal data only, in every process."""
    kind = type(value)
    if id(value) in inside:
        raise OpaqueError("data that contain themselves")
    within = (*inside, id(value))
    if kind in PLAIN:
        yield f"{kind.__name__} {value!r}\n"
    elif kind is str:  # a folder may move, with all that is in it
        yield "path\n" if os.path.isabs(value) else f"str {value!r}\n"
    elif kind is float or isinstance(value, np.ndarray | np.generic):
        yield from _array(np.asarray(value), kind, within)
    elif kind in (tuple, list) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        yield f"{kind.__name__} {len(value)}\n"
        for item in value:
            yield from _plain(item, within)
    elif kind in (set, frozenset, dict):
        items = value.items() if kind is dict else value
        yield f"{kind.__name__} {len(value)}\n"
        yield from sorted("".join(_plain(item, within)) for item in items)
    else:
        raise OpaqueError(kind.__name__)


def _array(array: np.ndarray, kind: type, inside: tuple[int, ...]) -> Iterator[str]:
    if issubclass(kind, np.ma.MaskedArray) or array.dtype.kind not in "biufcSUMmO":
        raise OpaqueError(f"{kind.__name__} of {array.dtype}")
    yield f"{'float' if kind is float else 'array'} {array.dtype.str} {array.shape}\n"
    if array.dtype.kind == "O":
        for item in array.ravel().tolist():
            yield from _plain(item, inside)
        return
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    digest = hashlib.sha256()
    for start in range(0, len(flat), BLOCK):
        digest.update(_rounded(flat[start : start + BLOCK]))
    yield digest.hexdigest() + "\n"


def _rounded(values: np.ndarray) -> bytes:
    if values.dtype.kind != "f":
        return values.tobytes()
    mantissa, exponent = np.frexp(values.astype(float))
    mantissa = np.round(mantissa, DIGITS)
    over = np.abs(mantissa) == 1.0  # a mantissa is below 1: 0.99999999999 is 0.5 of the next power of two
    exponent += over
    mantissa = np.where(over, 0.5 * mantissa, mantissa) + 0.0  # no negative zero
    return bytes(mantissa.tobytes() + exponent.tobytes())


def essence(code: CodeType) -> tuple[Any, ...]:
    """What a compiled function does, without where it stands in its file."""
    first = 1 if code.co_consts and isinstance(code.co_consts[0], str | None) else 0  # the documentation
    return code.co_code, code.co_names, code.co_varnames, tuple(map(_constant, code.co_consts[first:]))


def _constant(value: Any) -> Any:
    """A constant in a form that is the same in every process: a set of texts has another order in each."""
    if isinstance(value, CodeType):
        return essence(value)
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)
