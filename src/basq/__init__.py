"""basq: evidence and posterior of an expensive likelihood, from few calls in parallel batches."""

from basq import problems
from basq.errors import BasqError, EvaluationError, FitError, InputError, NumericsWarning
from basq.infer import infer
from basq.paper import Paper
from basq.prior import Prior
from basq.result import Result

__version__ = "0.1.0.dev0"

__all__ = [
    "BasqError",
    "EvaluationError",
    "FitError",
    "InputError",
    "NumericsWarning",
    "Paper",
    "Prior",
    "Result",
    "infer",
    "problems",
]
