"""What `Paper` may be given: names from a table or objects of one's own; anything else gets one clear error."""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from basq.errors import InputError
from basq.gp.kernels import KERNELS, KernelFactory, KernelName
from basq.gp.kernels.base import Kernel
from basq.paper.models import MODELS, Model, ModelName
from basq.paper.proposals import PROPOSALS, Proposal, ProposalName


def shown(value: Any) -> str:
    """An option as text; by name where its own has an address in it, which would be another in every process."""
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, partial):
        given = [*map(shown, value.args), *(f"{k}={shown(v)}" for k, v in value.keywords.items())]
        return f"partial({', '.join([shown(value.func), *given])})"
    text = repr(value)
    return f"{shown(type(value))}()" if " at 0x" in text else text


def check_choice(option: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse what is not one of the names."""
    names = tuple(allowed)
    if not (isinstance(value, str) and value in names):
        raise InputError(f"Paper({option}={shown(value)}): allowed are {', '.join(map(repr, names))}.")


def as_model(model: ModelName | Model) -> Model:
    """The model, by its name or as an object of one's own."""
    if isinstance(model, str) and model in MODELS:
        return MODELS[model]
    wanted = "models of your own, with needs_gaussian and fit(data, train, previous, measure, rng)"
    lacking = _lacking(model, Model)
    if isinstance(model, str) or lacking:
        raise _refused("model", model, MODELS, wanted, f"this one lacks {' and '.join(lacking)}")
    if not _takes(model.fit, 5):
        hint = f"; give an object, {shown(model)}(), not its class" if isinstance(model, type) else ""
        raise _refused("model", model, MODELS, wanted, f"fit of this one takes other arguments{hint}")
    return model


def as_kernel(kernel: KernelName | KernelFactory) -> KernelFactory:
    """What makes the kernel, by its name or as a class or function of one's own."""
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]
    wanted = "classes and functions of your own that make a kernel of (variance, lengthscale)"
    if isinstance(kernel, str) or not callable(kernel):
        raise _refused("kernel", kernel, KERNELS, wanted, "this is none")
    if not isinstance(kernel, type) and not _lacking(kernel, Kernel):
        raise _refused("kernel", kernel, KERNELS, wanted, f"this is a kernel already; give {shown(type(kernel))}")
    try:
        made = kernel(1.0, np.ones(2))
    except Exception as error:
        raise _refused("kernel", kernel, KERNELS, wanted, f"this one raised {type(error).__name__}: {error}") from error
    if lacking := _lacking(made, Kernel):
        raise _refused("kernel", kernel, KERNELS, wanted, f"what this one makes lacks {', '.join(lacking)}")
    return kernel


def as_proposal(proposal: ProposalName | Proposal) -> Proposal:
    """The proposal, by its name or as a function of one's own."""
    if isinstance(proposal, str) and proposal in PROPOSALS:
        return PROPOSALS[proposal]
    wanted = "functions of your own of (target, measure, r, n, rng)"
    if isinstance(proposal, str) or not callable(proposal):
        raise _refused("proposal", proposal, PROPOSALS, wanted, "this is none")
    if not _takes(proposal, 5):
        raise _refused("proposal", proposal, PROPOSALS, wanted, "this one takes other arguments")
    return proposal


def _lacking(given: object, protocol: type) -> list[str]:
    """Members of a protocol that an object does not have."""
    wanted = (name for name in vars(protocol) if not name.startswith("_") or name == "__call__")
    return [name for name in wanted if not hasattr(given, name)]


def _takes(function: Callable[..., Any], n: int) -> bool:
    """Whether a function can be called with n arguments, as far as can be seen."""
    try:
        inspect.signature(function).bind(*range(n))
    except TypeError:
        return False
    except ValueError:  # compiled, without a signature
        return True
    return True


def _refused(option: str, value: Any, table: Iterable[str], wanted: str, reason: str) -> InputError:
    names = ", ".join(map(repr, table))
    because = "" if isinstance(value, str) else f"; {reason}"
    return InputError(f"Paper({option}={shown(value)}): allowed are {names}, and {wanted}{because}.")
