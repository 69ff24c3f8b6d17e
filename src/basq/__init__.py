"""basq: evidence and posterior of an expensive likelihood, from few calls in parallel batches."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from basq.version import __version__

if TYPE_CHECKING:
    from basq import problems, testing
    from basq.auto import Auto
    from basq.cheap.model import Model
    from basq.errors import BasqError, EvaluationError, FitError, InputError, NumericsWarning, StoreError
    from basq.inference import infer
    from basq.method import Audit, Batch, Density, Designer, Fit, LogSurrogate, Method, Posterior
    from basq.paper import Paper
    from basq.prior import Prior, log_uniform, periodic
    from basq.results.result import Result
    from basq.rivals.compare import compare
    from basq.rivals.comparison import Comparison
    from basq.run.sampler import Sampler
    from basq.status import Status

__all__ = [
    "Audit",
    "Auto",
    "BasqError",
    "Batch",
    "Comparison",
    "Density",
    "Designer",
    "EvaluationError",
    "Fit",
    "FitError",
    "InputError",
    "LogSurrogate",
    "Method",
    "Model",
    "NumericsWarning",
    "Paper",
    "Posterior",
    "Prior",
    "Result",
    "Sampler",
    "Status",
    "StoreError",
    "__version__",
    "compare",
    "infer",
    "log_uniform",
    "periodic",
    "problems",
    "testing",
]

# Imported when first used: worker processes and the command line need little of it, and start at once.
_HOMES = {
    **dict.fromkeys(
        ("BasqError", "EvaluationError", "FitError", "InputError", "NumericsWarning", "StoreError"), "errors"
    ),
    **dict.fromkeys(("Audit", "Batch", "Density", "Designer", "Fit", "LogSurrogate", "Method", "Posterior"), "method"),
    "Comparison": "rivals.comparison",
    "Auto": "auto",
    "Model": "cheap.model",
    "Paper": "paper",
    **dict.fromkeys(("Prior", "log_uniform", "periodic"), "prior"),
    "Result": "results.result",
    "Sampler": "run.sampler",
    "Status": "status",
    "compare": "rivals.compare",
    "infer": "inference",
}


def __getattr__(name: str) -> Any:
    if name in ("problems", "testing"):
        return import_module(f"basq.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'basq' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"basq.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
