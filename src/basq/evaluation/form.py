"""The form in which a function of the user's takes its points: an array, a dict, or every parameter on its own."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_origin

from basq.errors import InputError
from basq.types import FloatArray

DEFAULT = re.compile(r"x\d+")
"""Names that nobody has given."""
MAPPING = re.compile(r"([\w.]+\.)?(dict|Dict|Mapping|MutableMapping)\b")
"""What an annotation begins with that has not been evaluated."""
Kind = Literal["array", "dict", "names", "places"]


@dataclass(frozen=True)
class Form:
    """How points become arguments.

    Attributes
    ----------
    kind : "array", "dict", "names" or "places"
    names : tuple of str
    """

    kind: Kind
    names: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], names: tuple[str, ...], *, pass_dict: bool, what: str) -> "Form":
        """The form that a function's signature asks for; one that cannot be called with a point is refused."""
        if pass_dict:
            return cls("dict", names)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # built-in or extension callables say nothing
            return cls("array", names)
        named = dict.fromkeys(names)
        if len(names) > 1 and set(names) <= set(signature.parameters) and _binds(signature, **named):
            return cls("names", names)
        if _binds(signature, None):
            first = next(iter(signature.parameters.values()))
            return cls("dict" if _is_mapping(first.annotation) else "array", names)
        if _binds(signature, **named):
            return cls("names", names)
        if all(map(DEFAULT.fullmatch, names)) and _binds(signature, *names):
            return cls("places", names)
        given = f" or the parameters by name, {', '.join(names)}" if names else ""
        raise InputError(
            f"{what}{signature} cannot be called with a point: let it take one argument, the array of the parameters,"
            f"{given}; fix further arguments with functools.partial."
        )

    def call(self, function: Callable[..., Any], x: FloatArray) -> Any:
        """Call a function at a point (d,), or at many, (n, d), with copies that it may overwrite."""
        if self.kind == "array":
            return function(x.copy())
        values = [column.copy() if column.ndim else float(column) for column in x.T]
        if self.kind == "places":
            return function(*values)
        named = dict(zip(self.names, values, strict=True))
        return function(named) if self.kind == "dict" else function(**named)

    def hint(self, error: BaseException) -> str:
        """What to do about an error that comes of another form, as a sentence after it; or nothing."""
        if self.kind == "array" and isinstance(error, IndexError) and "only integers, slices" in str(error):
            return " If it takes a dict of names, give pass_dict=True (on the command line, --pass-dict)."
        return ""


def _binds(signature: inspect.Signature, *args: Any, **named: Any) -> bool:
    try:
        signature.bind(*args, **named)
    except TypeError:
        return False
    return True


def _is_mapping(annotation: Any) -> bool:
    """Whether an annotation says dict: as a type, a generic one, a TypedDict, or the text of one."""
    if isinstance(annotation, str):
        return MAPPING.match(annotation) is not None
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and kind is not inspect.Parameter.empty and issubclass(kind, Mapping)
