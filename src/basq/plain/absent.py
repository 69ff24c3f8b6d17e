"""What stands for code that a file does not hold."""

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

from basq.errors import AbsentError


@dataclass(frozen=True)
class Absent:
    """In the place of a function, or an object of a class that is not known: asked for by name when it is used.

    Attributes
    ----------
    name : str
        What it was.
    """

    name: str

    @classmethod
    def of(cls, value: Any) -> "Absent":
        """What stands for this one."""
        return value if isinstance(value, cls) else cls(_name(value))

    def missing(self) -> AbsentError:
        """The error that asks for it."""
        return AbsentError(
            f"{self.name} is needed for this, and files of basq hold data only, no code. Give it again where the file "
            "is opened: basq.Sampler.open(path, prior=…, method=…), or, on the command line, --model model.py."
        )

    def __str__(self) -> str:
        return self.name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise self.missing()

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # what Python looks for by itself, as when it copies
            raise AttributeError(attribute)
        raise self.missing()


def _name(value: Any) -> str:
    """What people know a function or an object by."""
    if isinstance(value, partial):
        return _name(value.func)
    if inspect.isroutine(value) or isinstance(value, type):
        module = "" if value.__module__ in (None, "__main__") else f"{value.__module__}."
        return f"the function {module}{value.__qualname__}" if inspect.isroutine(value) else f"{module}{value.__name__}"
    family = getattr(value, "dist", None)
    kind = type(value if family is None else family)
    return f"an object of the class {kind.__module__}.{kind.__qualname__}"
