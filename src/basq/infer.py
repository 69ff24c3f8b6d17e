"""The five-line entry point."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from basq.auto import Auto
from basq.errors import InputError
from basq.evaluation.call import Call
from basq.evaluation.pool import Mapper, evaluator
from basq.loop import State, run
from basq.method import Fit, Method, Posterior
from basq.observations import Observations
from basq.prior import Prior, as_prior
from basq.result import Result
from basq.stopping import Stopping
from basq.types import FloatArray, LogLikelihood

CALLS_PER_DIMENSION = 50
"""Default budget: 50 (d + 2) calls, the habit of surrogate-based samplers."""


def infer(
    log_likelihood: LogLikelihood,
    prior: Any = None,
    *,
    prior_transform: Callable[[FloatArray], Any] | None = None,
    n_dim: int | None = None,
    method: Method[Any] | Literal["auto"] = "auto",
    batch_size: int = 16,
    max_evals: int | None = None,
    max_time: float | None = None,
    dlogz: float = 0.1,
    vectorized: bool = False,
    pass_dict: bool = False,
    pool: int | Mapper | None = None,
    evaluations: tuple[Any, Any] | None = None,
    seed: Any = None,
    progress: bool = True,
    callback: Callable[[State], None] | None = None,
) -> Result:
    """Infer the evidence and the posterior from few likelihood calls.

    Parameters
    ----------
    log_likelihood : callable
        Takes a point (d,) and returns the natural log of the likelihood, a float; −inf is allowed. A noisy one
        returns the pair (value, standard deviation of its noise).
    prior : Prior, dict, list or frozen scipy.stats distribution
        For example ``{"rate": stats.lognorm(0.5), "phase": (0, 1)}``.
    prior_transform : callable, optional
        Instead of ``prior``: maps the unit cube (d,) to parameters (d,); needs ``n_dim``.
    n_dim : int, optional
    method : "auto" or a configuration such as ``basq.Paper()``
    batch_size : int
        Points chosen and evaluated together.
    max_evals : int, optional
        Most likelihood calls; 50 (d + 2) by default.
    max_time : float, optional
        Most seconds, looked at between batches.
    dlogz : float
        Target standard deviation of log Z; 0 spends the whole budget.
    vectorized : bool
        The function takes (n, d) and returns (n,).
    pass_dict : bool
        The function takes a dict of parameter names.
    pool : None, int or anything with ``.map``
        Where calls run: here, in that many processes, or in the given executor.
    evaluations : (x, log_likelihood), optional
        Values known already, of shapes (n, d) and (n,); they count towards ``max_evals``.
    seed : optional
        Anything that ``numpy.random.default_rng`` takes; the same seed gives the same run.
    progress : bool
        Show a progress bar on standard error.
    callback : callable, optional
        Called with the state after every batch.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        Before any call is spent, if an argument is wrong.
    EvaluationError
        If the likelihood fails; the evaluations so far are in the error's ``observations``.

    Examples
    --------
    >>> import numpy as np, basq
    >>> result = basq.infer(
    ...     lambda x: -0.5 * np.sum(x**2),
    ...     {"a": (-3, 3), "b": (-3, 3)},
    ...     max_evals=32, seed=1, progress=False,
    ... )
    >>> bool(abs(result.log_evidence - np.log(2 * np.pi / 36)) < 0.1)
    True
    """
    space = _prior(prior, prior_transform, n_dim)
    chosen = _method(method)
    _check_batch_size(batch_size, chosen)
    call = Call(log_likelihood, space.names, pass_dict=pass_dict, vectorized=vectorized)
    known = _known(evaluations, space)
    budget = CALLS_PER_DIMENSION * (space.n_dim + 2) if max_evals is None else max_evals
    stopping = Stopping(dlogz, budget, max_time)
    if len(known) >= budget:
        raise InputError(f"max_evals={budget} leaves no call after the {len(known)} given evaluations.")
    if callback is not None and not callable(callback):
        raise InputError(f"callback={callback!r}: give a function that takes the state, or None.")
    rng = _generator(seed)
    with evaluator(call, pool) as evaluate, _progress_bar(budget, len(known), progress) as show:
        for state in run(space, chosen, evaluate, stopping, batch_size=batch_size, known=known, rng=rng):
            show(state)
            if callback is not None:
                callback(state)
    return _result(space, state)


def _generator(seed: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise InputError(f"seed={seed!r}: give a non-negative integer, a Generator, or None.") from error


def _posterior(fitted: Fit) -> Posterior | None:
    """Return the posterior, or None: a run that found no mass still has calls and a message worth giving back."""
    try:
        return fitted.posterior
    except InputError:
        return None


def _result(prior: Prior, state: State) -> Result:
    fitted = state.fitted
    return Result(
        fitted.log_evidence,
        fitted.log_evidence_std,
        state.verdict.converged,
        state.verdict.message,
        prior,
        state.observations,
        state.history,
        _posterior(fitted),
        getattr(fitted, "audits", ()),
    )


def _prior(prior: Any, transform: Callable[[FloatArray], Any] | None, n_dim: int | None) -> Prior:
    if (prior is None) == (transform is None):
        raise InputError("Give either prior or prior_transform (with n_dim).")
    if transform is not None:
        return Prior.from_transform(transform, n_dim)
    space = as_prior(prior)
    if n_dim is not None and n_dim != space.n_dim:
        raise InputError(f"n_dim={n_dim}, but the prior has {space.n_dim} parameters: {', '.join(space.names)}.")
    return space


def _method(method: Method[Any] | str) -> Method[Any]:
    if method == "auto":
        return Auto()
    if isinstance(method, str | type) or not hasattr(method, "select"):
        raise InputError(f"method={method!r}: allowed are 'auto' and configurations such as basq.Paper().")
    return method


def _check_batch_size(batch_size: int, method: Method[Any]) -> None:
    if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise InputError(f"batch_size={batch_size!r}: give a positive whole number.")
    method.check(int(batch_size))


def _known(evaluations: tuple[Any, Any] | None, prior: Prior) -> Observations:
    """Check values that the user has already, and map them to standard space."""
    empty = Observations.empty(prior.n_dim)
    if evaluations is None:
        return empty
    if not isinstance(evaluations, Sequence) or len(evaluations) != 2:
        raise InputError("evaluations must be a pair (x, log_likelihood) of shapes (n, d) and (n,).")
    try:
        x, values = np.array(evaluations[0], dtype=float), np.array(evaluations[1], dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"evaluations must be numbers of shapes (n, {prior.n_dim}) and (n,): {error}.") from error
    if x.ndim != 2 or x.shape[1] != prior.n_dim or values.shape != (len(x),):
        raise InputError(
            f"evaluations have shapes {x.shape} and {values.shape}; allowed are (n, {prior.n_dim}) and (n,)."
        )
    if np.isnan(values).any() or (values == np.inf).any():
        raise InputError("evaluations contain NaN or +inf log-likelihoods; leave those points out.")
    u = prior.to_standard(x)
    return empty.append(x, u, values, prior.log_weight(u))


@contextmanager
def _progress_bar(budget: int, start: int, shown: bool) -> Iterator[Callable[[State], None]]:
    """Show calls, log Z and its error; rarely in a log file, often on a terminal."""
    interval = 0.2 if sys.stderr.isatty() else 30.0
    with tqdm(total=budget, initial=start, disable=not shown, unit="call", mininterval=interval) as bar:

        def show(state: State) -> None:
            last = state.history[-1]
            bar.set_postfix_str(f"log Z = {last.log_evidence:.3f} ± {last.log_evidence_std:.3f}", refresh=False)
            bar.update(last.n_evals - bar.n)

        yield show
