"""basq: evidence and posterior of an expensive likelihood, from few calls in parallel batches."""

from basq import problems
from basq.errors import BasqError, EvaluationError, FitError, InputError, NumericsWarning, StoreError
from basq.infer import infer
from basq.loop import Sampler
from basq.paper import Paper
from basq.prior import Prior
from basq.result import Result
from basq.version import __version__

__all__ = [
    "BasqError",
    "EvaluationError",
    "FitError",
    "InputError",
    "NumericsWarning",
    "Paper",
    "Prior",
    "Result",
    "Sampler",
    "StoreError",
    "__version__",
    "infer",
    "problems",
]
