"""Optional packages, notebooks, and what installed packages add under a name: methods and pools."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from basq.errors import BasqError, InputError

OWN = {
    "basq.methods": {"auto": "basq.auto:Auto", "paper": "basq.paper:Paper"},
    "basq.pools": {"ray": "basq.evaluation.backends:ray_pool"},
}
"""What pyproject.toml registers for this package itself, so that it is found without metadata and before others."""


def package(name: str) -> Any:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # it is there, but something that it needs is not
            raise
        raise InputError(f"This needs {name}, which is not installed: pip install 'basq[{name}]'.") from error


def in_notebook() -> bool:
    """Whether this is a cell of a notebook, rather than a script or a terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def registered(group: str, name: str) -> EntryPoint:
    """What is registered under a name of an entry-point group, not loaded yet; or say which names there are."""
    if name in OWN[group]:
        return EntryPoint(name, OWN[group][name], group)
    others = [entry for entry in entry_points(group=group) if entry.name not in OWN[group]]
    found = [entry for entry in others if entry.name == name]
    if len(found) == 1:
        return found[0]
    kind = _kind(group)
    if found:
        raise InputError(
            f"{kind}={name!r}: several installed packages have a {kind} of this name, "
            f"{' and '.join(sorted(map(_origin, found)))}. Uninstall all but one."
        )
    names = [*map(repr, OWN[group]), *sorted(f"{entry.name!r} (of {_origin(entry)})" for entry in others)]
    raise InputError(
        f"{kind}={name!r}: this name is not known; installed are {', '.join(names)}. Other packages add theirs in the "
        f"entry-point group {group!r}."
    )


def names_of(group: str) -> list[str]:
    """All names that are registered in an entry-point group."""
    return sorted({*OWN[group], *(entry.name for entry in entry_points(group=group))})


@contextmanager
def blaming(entry: EntryPoint) -> Iterator[None]:
    """Say whose it is if what is registered cannot be loaded or made."""
    try:
        yield
    except BasqError:
        raise
    except Exception as error:
        raise InputError(
            f"{_kind(entry.group)}={entry.name!r}: the plug-in {entry.value} of the package {_origin(entry)} does not "
            f"work ({type(error).__name__}: {error}). Mend or uninstall that package."
        ) from error


def _kind(group: str) -> str:
    """The argument that names of a group are given for."""
    return group.removeprefix("basq.").removesuffix("s")


def _origin(entry: EntryPoint) -> str:
    return "basq" if entry.dist is None else entry.dist.name
