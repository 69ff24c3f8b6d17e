"""The user's model in a Python file: a log-likelihood and a prior, or a simulator and what belongs to it."""

import importlib.util
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from basq.cheap.model import Model as ExpensiveAndCheap
from basq.errors import InputError


@dataclass(frozen=True)
class Model:
    """A log-likelihood and a prior, and where they are: ``/path/file.py`` or ``/path/file.py:name``.

    A `basq.Model` stands in the place of the log-likelihood, and has its prior.
    """

    log_likelihood: Any
    prior: Any
    place: str

    @classmethod
    def load(cls, place: str, modules: dict[Path, ModuleType] | None = None) -> "Model":
        """Read a model from its file; ``modules`` are the files that were read before, where one is enough."""
        path, name = split(place)
        known = {} if modules is None else modules
        if path.resolve() not in known:
            known[path.resolve()] = execute(path)
        module = known[path.resolve()]
        where = f"{path.resolve()}:{name}" if name else str(path.resolve())
        found = _found(module, name, place)
        if isinstance(found, ExpensiveAndCheap):
            return cls(found, None, where)
        if name and isinstance(found, tuple | list) and len(found) == 2:
            log_likelihood, prior = found
        elif name and hasattr(found, "log_likelihood") and hasattr(found, "prior"):
            log_likelihood, prior = found.log_likelihood, found.prior
        else:
            log_likelihood, prior = found, get(module, "prior", place) if callable(found) else None
        if not callable(log_likelihood):
            raise InputError(
                f"{place}: {name or 'log_likelihood'} is {type(found).__name__}; give a function (with prior in the "
                "file), a pair (log_likelihood, prior), an object with .log_likelihood and .prior, or a basq.Model."
            )
        return cls(log_likelihood, prior, where)

    @property
    def simulates(self) -> bool:
        """Whether it is a `basq.Model`."""
        return isinstance(self.log_likelihood, ExpensiveAndCheap)


def _found(module: ModuleType, name: str | None, place: str) -> Any:
    """What is meant: the object of this name, or else the file's model, or what it can be made of."""
    if name is not None:
        return get(module, name, place)
    if isinstance(getattr(module, "model", None), ExpensiveAndCheap):
        return module.model
    log_likelihood = get(module, "log_likelihood", place)
    if not callable(getattr(module, "simulate", None)):
        return log_likelihood
    prior, cheap, keep = get(module, "prior", place), getattr(module, "cheap", None), getattr(module, "keep", None)
    return ExpensiveAndCheap(module.simulate, log_likelihood, prior, cheap=cheap, keep=keep)


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
