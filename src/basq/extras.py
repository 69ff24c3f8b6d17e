"""Optional packages."""

from importlib import import_module
from typing import Any

from basq.errors import InputError


def package(name: str) -> Any:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # it is there, but something that it needs is not
            raise
        raise InputError(f"This needs {name}, which is not installed: pip install 'basq[{name}]'.") from error
