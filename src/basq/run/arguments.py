"""What users may give, checked and in one form, before any call is spent."""

import inspect
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from numbers import Integral
from types import FunctionType, MethodType
from typing import Any, get_args

import numpy as np

from basq.cheap.call import judged
from basq.cheap.model import Model
from basq.errors import InputError, StoreError
from basq.evaluation.call import Outcome
from basq.evaluation.calls import Calls
from basq.evaluation.forks import OneProcess
from basq.evaluation.reals import reals
from basq.evaluation.store import Store
from basq.extras import blaming, names_of, registered
from basq.method import Batch, Fit, Method
from basq.prior import Prior, as_prior
from basq.settings import OnError, budget
from basq.types import FloatArray, IntArray, is_number

METHOD: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "check": (("batch_size",), ()),
    "initial_size": (("n_dim",), ()),
    "fit": (("observations", "prior", "previous", "rng"), ()),
    "select": (("fitted", "batch_size", "rng"), ("cost_ratio", "taken")),
}
"""How a run calls a method: what it gives by place and what by name."""

ANSWERS = ("log_evidence", "log_evidence_std", "posterior")
"""What a fit has to have of its own."""

NOTHING = object()
TRANSFORMS = (FunctionType, MethodType, partial)
"""What is a prior transform where a prior was expected."""

Evaluations = tuple[FloatArray, FloatArray, FloatArray]
"""Points (n, d), their log-likelihoods (n,) and noise standard deviations (n,)."""


def as_problem(
    log_likelihood: Any,
    prior: Any,
    transform: Callable[[FloatArray], Any] | None,
    n_dim: int | None,
    names: Sequence[str] | None,
) -> Prior:
    """The prior of the parameters that calls are spent on."""
    if not isinstance(log_likelihood, Model):
        check_function(log_likelihood, prior)
        return as_space(prior, transform, n_dim, names)
    if any(given is not None for given in (prior, transform, n_dim, names)):
        raise InputError("A Model has its prior; leave out prior, prior_transform, n_dim and names.")
    space: Prior = log_likelihood.prior
    return space


def check_function(log_likelihood: Any, prior: Any) -> None:
    """Refuse what is no function before anything is said of the prior: the two may have changed places."""
    if not callable(log_likelihood):
        swapped = "; prior is a function: did you mean infer(log_likelihood, prior)?" if callable(prior) else "."
        raise InputError(f"log_likelihood must be callable, got {type(log_likelihood).__name__}{swapped}")


def as_callback(callback: Any, takes: str) -> Callable[..., object]:
    """What is called after every batch; what is no function is refused before any call is spent.

    A child that it forks, and that comes back from it, would be a second driver of the run: it ends there.
    """
    if callback is None:
        return lambda *_: None
    if not callable(callback):
        raise InputError(f"callback={callback!r}: give a function that takes {takes}, or None.")

    def called(*given: Any) -> object:
        with OneProcess():
            return callback(*given)

    return called


def as_space(
    prior: Any,
    transform: Callable[[FloatArray], Any] | None,
    n_dim: int | None,
    names: Sequence[str] | None = None,
) -> Prior:
    """The prior, in any of its forms."""
    if (prior is None) == (transform is None):
        raise InputError("Give either prior or prior_transform (with n_dim or names).")
    if isinstance(prior, TRANSFORMS):
        prior, transform = None, prior
    if transform is not None:
        return Prior.from_transform(transform, n_dim, names)
    space = as_prior(prior, names=names)
    if n_dim is not None and n_dim != space.n_dim:
        raise InputError(f"n_dim={n_dim}, but the prior has {space.n_dim} parameters: {', '.join(space.names)}.")
    return space


def as_method(method: Method[Any] | str) -> Method[Any]:
    """The method, by name or as an object."""
    if isinstance(method, str):
        entry = registered("basq.methods", method)
        with blaming(entry):
            method = entry.load()()
        return as_method(method)
    if isinstance(method, type):
        raise InputError(f"method={method.__name__}: this is a class; give an object, such as {method.__name__}().")
    lacking = [name for name in METHOD if not callable(getattr(method, name, None))]
    if lacking:
        raise InputError(
            f"method={method!r}: allowed are the name of a method, such as 'auto', or an object such as basq.Paper(). "
            f"This one has no {', '.join(lacking)}; basq.Method says what it needs."
        )
    for name, (args, options) in METHOD.items():
        signature = _signature(getattr(method, name))
        try:
            if signature is not None:
                signature.bind(*args, **dict.fromkeys(options))
        except TypeError as error:
            form = ", ".join([*args, *(["*", *options] if options else [])])
            raise InputError(
                f"method={method!r}: its {name}{signature} cannot be called as {name}({form}): {error}; basq.Method "
                "says what it is given."
            ) from error
    return method


def installed_method(text: str) -> Method[Any] | None:
    """The installed method that describes itself so; None if there is none. No name of a file is looked up."""
    for name in names_of("basq.methods"):
        with suppress(Exception):  # of a plug-in that does not work
            method = as_method(name)
            if repr(method) == text:
                return method
    return None


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """How a function is called; extension modules may not say."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def as_fit(fitted: Any, method: Method[Any]) -> Fit:
    """What a method has learned, with all answers that a run asks for."""
    if Fit not in type(fitted).__mro__:
        raise InputError(
            f"method={method!r}: its fit returned {type(fitted).__name__}, which is no subclass of basq.Fit; make it "
            "one, and it has defaults for all that is optional."
        )
    lacking = [name for name in ANSWERS if inspect.getattr_static(fitted, name, NOTHING) is NOTHING]
    if lacking:
        raise InputError(f"method={method!r}: its fit returned {type(fitted).__name__} without {', '.join(lacking)}.")
    answers: Fit = fitted
    return answers


def as_batch(batch: Any, n_dim: int, method: Method[Any]) -> Batch:
    """Points that a method has chosen."""
    if not isinstance(batch, Batch):
        raise InputError(f"method={method!r}: its select returned {type(batch).__name__}; allowed is a basq.Batch.")
    if not (np.ndim(batch.u) == 2 and np.shape(batch.u)[1] == n_dim and len(batch.u) and np.isfinite(batch.u).all()):
        raise InputError(
            f"method={method!r}: its select returned points of shape {np.shape(batch.u)}; allowed are one or more "
            f"finite ones, (n, {n_dim})."
        )
    return batch


def as_budget(max_evals: Any, prior: Prior) -> Any:
    """The number of calls allowed; `Stopping` checks it."""
    return budget(prior.n_dim) if max_evals is None else max_evals


def as_seed(seed: Any) -> int | None:
    """One whole number that all randomness comes from; None if nothing was given."""
    if seed is None:
        return None
    whole = is_number(seed, Integral) and seed >= 0
    try:
        return int(seed) if whole else int(np.random.default_rng(seed).integers(2**63))
    except (TypeError, ValueError) as error:
        raise InputError(f"seed={seed!r}: give a non-negative integer, a Generator, or None.") from error


def as_batch_size(batch_size: Any, method: Method[Any]) -> int:
    """The number of points chosen together."""
    if not is_number(batch_size, Integral) or batch_size < 1:
        raise InputError(f"batch_size={batch_size!r}: give a positive whole number.")
    method.check(int(batch_size))
    return int(batch_size)


def as_retries(retries: Any) -> int:
    """How often a failed call is tried again."""
    if not is_number(retries, Integral) or retries < 0:
        raise InputError(f"retries={retries!r}: give how often a failed call is tried again, 0 or more.")
    return int(retries)


def as_evaluations(evaluations: Any, prior: Prior) -> Evaluations:
    """Values that the user has already: arrays, or the path of an older store."""
    if evaluations is None:
        return np.empty((0, prior.n_dim)), np.empty(0), np.empty(0)
    if isinstance(evaluations, str | os.PathLike):
        return _from_store(evaluations, prior)
    if not isinstance(evaluations, Sequence) or len(evaluations) not in (2, 3):
        raise InputError(
            "evaluations must be a pair (x, log_likelihood) of shapes (n, d) and (n,), a third array with the standard "
            "deviations of noisy values, or the path of a store."
        )
    try:
        x, values = reals(evaluations[0]), np.atleast_1d(reals(evaluations[1]))
        noise = np.broadcast_to(_noise(evaluations[2]) if len(evaluations) == 3 else 0.0, values.shape).copy()
    except (TypeError, ValueError) as error:
        raise InputError(f"evaluations must be numbers of shapes (n, {prior.n_dim}) and (n,): {error}.") from error
    if x.ndim != 2 or x.shape[1] != prior.n_dim or values.shape != (len(x),) or noise.shape != values.shape:
        raise InputError(
            f"evaluations have shapes {x.shape} and {values.shape}; allowed are (n, {prior.n_dim}) and (n,)."
        )
    if np.isnan(values).any() or (values == np.inf).any():
        raise InputError("evaluations contain NaN or +inf log-likelihoods; leave those points out.")
    if ((noise < 0.0) | np.isinf(noise)).any():
        raise InputError("evaluations have noise standard deviations that are not finite numbers of 0 or more.")
    return x, values, noise


def _noise(given: Any) -> FloatArray:
    """Noise standard deviations; None is one that nobody knows."""
    if isinstance(given, list | tuple):
        given = [np.nan if sd is None else sd for sd in given]
    return reals(np.nan if given is None else given)


def as_on_error(on_error: Any) -> OnError:
    """What a failed call means."""
    if on_error not in get_args(OnError):
        raise InputError(f"on_error={on_error!r}: allowed are {', '.join(map(repr, get_args(OnError)))}.")
    rule: OnError = on_error
    return rule


def as_outcomes(x: FloatArray, values: Any, noise: Any, state: str, error: Any) -> list[Outcome]:
    """What the user says became of the calls at points x (n, d)."""
    errors = [error] * len(x) if error is None or isinstance(error, str) else list(error)
    if len(errors) != len(x):
        raise InputError(f"tell: {len(x)} calls and {len(errors)} errors; give one text, or one for each.")
    if state not in ("done", "failed"):
        raise InputError(f"state={state!r}: allowed are 'done' and 'failed'.")
    if state == "failed":
        if values is not None:
            raise InputError("tell: a failed call has no value; give values or state='failed'.")
        return [Outcome.failed(e or "told as failed", worker="told") for e in errors]
    try:
        column = np.atleast_1d(reals(values))
        sds = np.broadcast_to(_noise(noise), column.shape)
    except (TypeError, ValueError) as problem:
        raise InputError(f"tell: the values are not numbers: {problem}.") from problem
    if column.shape != (len(x),):
        raise InputError(f"tell: {len(x)} calls and values of shape {column.shape}; give one for each.")
    if (column == np.inf).any() or ((sds < 0.0) | np.isinf(sds)).any():
        raise InputError("tell: allowed are finite numbers, -inf and NaN (failed), with noise of 0 or more.")
    return [
        Outcome.failed(e or "told as NaN", worker="told") if np.isnan(v) else Outcome(float(v), float(s), worker="told")
        for v, s, e in zip(column, sds, errors, strict=True)
    ]


def as_pending(wanted: IntArray, store: Store) -> Calls:
    """The calls with these ids (n,), if all of them are waiting for a value."""
    if wanted.ndim != 1 or not np.issubdtype(wanted.dtype, np.integer) or len(set(wanted.tolist())) < len(wanted):
        raise InputError(f"tell: give what ask returned, or different whole numbers as ids, not {wanted!r}.")
    pending = store.waiting()
    place = {int(i): k for k, i in enumerate(pending.ids)}
    strange = [int(i) for i in wanted if int(i) not in place]
    if strange:
        known = set(store.of(strange).ids.tolist())
        why = "has been told already" if strange[0] in known else "was never asked for"
        raise InputError(f"tell: call {strange[0]} {why}; nothing was recorded. Allowed: ids of pending().")
    return Calls(pending.table[[place[int(i)] for i in wanted]])


def as_judged(model: Model | None, x: FloatArray, outputs: Sequence[Any]) -> list[Outcome]:
    """What outputs of a simulator make of calls at points x (n, d)."""
    if model is None:
        raise InputError("outputs= needs the model: open the run with Sampler.open(path, model).")
    if len(outputs) != len(x):
        raise InputError(f"tell: {len(x)} calls and {len(outputs)} outputs; give one for each.")
    return [replace(judged(model, output, at), worker="told") for output, at in zip(outputs, x, strict=True)]


def _from_store(path: str | os.PathLike[str], prior: Prior) -> Evaluations:
    """The values of an older store with the same parameters, inside the support of this prior."""
    with Store(path) as store:
        names = tuple(store.get("names") or ())
        if names != prior.names:
            raise StoreError(
                f"{store} has the parameters {', '.join(names)}; they cannot be used for {', '.join(prior.names)}."
            )
        calls = store.done()
    keep = np.asarray(prior.in_support(calls.x)) if len(calls) else np.empty(0, dtype=bool)
    return calls.x[keep], calls.log_likelihood[keep], calls.noise[keep]


def fresh_seed() -> int:
    """A seed that nobody else has."""
    entropy = np.random.SeedSequence().entropy
    assert isinstance(entropy, int)
    return entropy


def check_values(cheap: Prior | None) -> None:
    """Refuse values where they would say nothing about the cheap parameters."""
    if cheap is not None:
        names = ", ".join(cheap.names)
        raise InputError(f"This run integrates over {names} at every call: give outputs=, not values.")
