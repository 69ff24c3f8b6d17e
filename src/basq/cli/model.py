"""The user's model: a log-likelihood and a prior in a Python file."""

import importlib.util
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from basq.errors import InputError


@dataclass(frozen=True)
class Model:
    """A log-likelihood and a prior, and where they are: ``/path/file.py`` or ``/path/file.py:name``."""

    log_likelihood: Any
    prior: Any
    place: str

    @classmethod
    def load(cls, place: str) -> "Model":
        """Read a model from its file."""
        path, name = split(place)
        module = execute(path)
        found = get(module, name or "log_likelihood", place)
        if name and isinstance(found, tuple | list) and len(found) == 2:
            log_likelihood, prior = found
        elif name and hasattr(found, "log_likelihood") and hasattr(found, "prior"):
            log_likelihood, prior = found.log_likelihood, found.prior
        else:
            log_likelihood, prior = found, get(module, "prior", place) if callable(found) else None
        if not callable(log_likelihood):
            raise InputError(
                f"{place}: {name or 'log_likelihood'} is {type(found).__name__}; give a function (with prior in the "
                "file), a pair (log_likelihood, prior), or an object with .log_likelihood and .prior."
            )
        return cls(log_likelihood, prior, f"{path.resolve()}:{name}" if name else str(path.resolve()))


def split(place: str) -> tuple[Path, str | None]:
    """File and name of ``file.py:name`` or ``file.py``."""
    if Path(place).is_file():
        return Path(place), None
    path, _, name = place.rpartition(":")
    if path and Path(path).is_file() and name:
        return Path(path), name
    raise InputError(f"{place!r}: give a Python file that exists, or one and a name in it, such as model.py:name.")


def execute(path: Path) -> ModuleType:
    """Run a file as a module: its neighbours can be imported, and what it defines travels whole to worker processes.

    By value, since the workers could not import it under the name it has here; so the same file is the same model
    wherever it is loaded, and a store can be read without it.
    """
    import cloudpickle

    name = f"basq_model_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is no Python file; its name has to end in .py.")
    module = importlib.util.module_from_spec(spec)
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    sys.modules[name] = module  # dataclasses, for example, look there
    cloudpickle.register_pickle_by_value(module)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(f"{_where(error, path)}: {type(error).__name__}: {_what(error)}") from error
    return module


def _where(error: BaseException, path: Path) -> str:
    """File and line of the user's code where an error came up."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    here = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path.resolve()]
    return f"{path}, line {here[-1].lineno}" if here else str(path)


def _what(error: BaseException) -> str:
    """What an error says; one of the syntax shows the line instead of saying once more where it is."""
    if isinstance(error, SyntaxError) and error.text:
        return f"{error.msg}: {error.text.strip()}"
    return str(error)


def get(module: ModuleType, name: str, place: str) -> Any:
    """The object of this name in the file at a place."""
    if hasattr(module, name):
        return getattr(module, name)
    names = [n for n, v in vars(module).items() if not n.startswith("_") and not isinstance(v, ModuleType)]
    has = f"it has {', '.join(names)}" if names else "it has no names"
    raise InputError(f"{place}: there is no {name!r} in the file; {has}.")
