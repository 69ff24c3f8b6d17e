"""basq: evidence and posterior of an expensive likelihood, from few calls in parallel batches."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from basq.version import __version__

if TYPE_CHECKING:
    from basq import problems
    from basq.auto import Auto
    from basq.errors import BasqError, EvaluationError, FitError, InputError, NumericsWarning, StoreError
    from basq.inference import infer
    from basq.paper import Paper
    from basq.prior import Prior
    from basq.results.result import Result
    from basq.rivals.compare import compare
    from basq.rivals.comparison import Comparison
    from basq.run.sampler import Sampler
    from basq.status import Status

__all__ = [
    "Auto",
    "BasqError",
    "Comparison",
    "EvaluationError",
    "FitError",
    "InputError",
    "NumericsWarning",
    "Paper",
    "Prior",
    "Result",
    "Sampler",
    "Status",
    "StoreError",
    "__version__",
    "compare",
    "infer",
    "problems",
]

# Imported when first used: worker processes and the command line need little of it, and start at once.
_HOMES = {
    **dict.fromkeys(
        ("BasqError", "EvaluationError", "FitError", "InputError", "NumericsWarning", "StoreError"), "errors"
    ),
    "Comparison": "rivals.comparison",
    "Auto": "auto",
    "Paper": "paper",
    "Prior": "prior",
    "Result": "results.result",
    "Sampler": "run.sampler",
    "Status": "status",
    "compare": "rivals.compare",
    "infer": "inference",
}


def __getattr__(name: str) -> Any:
    if name == "problems":
        return import_module("basq.problems")
    if name not in _HOMES:
        raise AttributeError(f"module 'basq' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"basq.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
