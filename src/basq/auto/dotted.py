"""Values of nested dataclasses by dotted names."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from basq.errors import InputError


def with_value(group: Any, names: list[str], value: Any, whole: str) -> Any:
    """The same group with another value at a path of names; ``whole`` is the path for the error message."""
    known = [f.name for f in fields(group)]
    if names[0] not in known or is_dataclass(getattr(group, names[0])) != bool(names[1:]):
        raise InputError(f"Settings have no {whole!r}; {type(group).__name__} has {', '.join(known)}.")
    if names[1:]:
        value = with_value(getattr(group, names[0]), names[1:], value, whole)
    return replace(group, **{names[0]: value})


def items_of(group: Any, prefix: str = "") -> dict[str, Any]:
    """All values of a group by their dotted names."""
    out: dict[str, Any] = {}
    for f in fields(group):
        value = getattr(group, f.name)
        out |= items_of(value, f"{prefix}{f.name}.") if is_dataclass(value) else {prefix + f.name: value}
    return out


def described(settings: Any) -> str:
    """All values, a line each, under the first line of each group's docstring."""
    lines, last = [], ""
    for name, value in items_of(settings).items():
        group, _, rest = name.partition(".")
        if group != last:
            title = (type(getattr(settings, group)).__doc__ or "").strip().splitlines()[0]
            lines += [f"{group}: {title}"]
            last = group
        lines.append(f"    {rest:<24} {value}")
    return "\n".join(lines)
