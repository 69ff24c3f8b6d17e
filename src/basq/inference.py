"""The five-line entry point."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from basq.cheap.model import Model
from basq.method import Method
from basq.results.result import Result
from basq.run.arguments import as_callback, as_problem
from basq.run.drive import drive
from basq.run.habits import answering
from basq.run.replicas import replicated
from basq.run.steps import State
from basq.settings import BATCH_SIZE, DLOGZ, ON_ERROR, RETRIES, OnError, Shown
from basq.types import FloatArray, LogLikelihood


@answering
def infer(
    log_likelihood: LogLikelihood | Model,
    prior: Any = None,
    n_dim: int | None = None,
    *,
    prior_transform: Callable[[FloatArray], Any] | None = None,
    names: Sequence[str] | None = None,
    method: Method[Any] | str = "auto",
    batch_size: int = BATCH_SIZE,
    max_evals: int | None = None,
    max_time: float | None = None,
    dlogz: float = DLOGZ,
    vectorized: bool = False,
    pass_dict: bool = False,
    pool: Any = None,
    asynchronous: bool = False,
    timeout: float | None = None,
    retries: int = RETRIES,
    on_error: OnError = ON_ERROR,
    retry_failed: bool = False,
    store: str | os.PathLike[str] | None = None,
    evaluations: Any = None,
    certify: int | None = None,
    replicas: int | None = None,
    seed: Any = None,
    progress: Shown = True,
    callback: Callable[[State], object] | None = None,
) -> Result:
    """Infer the evidence and the posterior from few likelihood calls.

    Parameters
    ----------
    log_likelihood : callable or Model
        Takes a point and returns the natural log of the likelihood, a float; −inf is allowed. The point is an array
        (d,), unless the signature says otherwise: ``f(a, b)`` is given the parameters by name, ``f(p: dict)`` a dict.
        A noisy one returns the pair (value, standard deviation of its noise), or (value, None) if that has to be
        estimated. A `Model` instead, without a prior, keeps simulator and likelihood apart.
    prior : Prior, dict, list or frozen scipy.stats distribution
        For example ``{"rate": stats.lognorm(0.5), "phase": (0, 1)}``; or a function, a prior transform.
    n_dim : int, optional
        Number of parameters of a prior transform, unless ``names`` are given.
    prior_transform : callable, optional
        Instead of ``prior``: maps the unit cube (d,) to parameters (d,).
    names : sequence of str, optional
        Of the parameters, where the prior has none.
    method : str or Method
        ``"auto"``, ``"paper"``, the name of one that an installed package adds, or an object such as ``basq.Paper()``.
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
        The function takes a dict of parameter names, though its signature does not say so.
    pool : optional
        Where calls run: None is here; a number, that many worker processes; or a `concurrent.futures.Executor`
        (MPIPoolExecutor too), a Dask ``Client``, anything with ``.map``, ``"ray"``, or the name of one that an
        installed package adds, ``"name"`` or ``"name:argument"``.
    asynchronous : bool
        Give a free worker its next point at once, chosen with those under way in mind, instead of waiting for a whole
        batch. The run then depends on the order in which calls finish.
    timeout : float, optional
        Seconds that a call may take; it is ended then and counts as failed. Runs in a worker process.
    retries : int
        How often a failed call is tried again. One whose worker died is tried again once in any case.
    on_error : "record", "zero" or "raise"
        What a failed call means (exception, NaN, time-out, dead worker): nothing is known there, the likelihood is zero
        there, or the run ends. All are in ``result.failures``. A call that the system has ended (out of memory, a node
        that is gone) says nothing in any case.
    retry_failed : bool
        Make the failed calls of the store again: they had failed for a reason that is gone. What was learned so far is
        learned anew, with them.
    store : path, optional
        SQLite file that every call is written to as soon as it has finished. If it holds this run already, the run is
        taken up where it was left.
    evaluations : (x, log_likelihood), (x, log_likelihood, noise) or path, optional
        Values known already, of shapes (n, d) and (n,), or an older store; they count towards ``max_evals``.
    certify : int, optional
        Calls, beyond ``max_evals``, for a certificate of the answer: an estimate that does not rest on the surrogate;
        see `Result.certify`. Where it contradicts the answer, the run learns from them, which then count, and goes on
        while calls of ``max_evals`` are left.
    replicas : int, optional
        Independent runs side by side on the pool; one more run then begins with the calls of all of them, and what
        they disagree by beyond their errors enters its own. ``max_evals`` is for all together, by default 50 (d + 2)
        for each. Their stores lie beside ``store``.
    seed : optional
        Anything that ``numpy.random.default_rng`` takes; the same seed gives the same run, whatever the workers.
    progress : bool or "log"
        Show a progress bar: in a notebook, a line below the cell; in a file, a line now and then. ``"log"`` writes
        batches, failures and doubts with their times, for jobs. The logger ``basq`` of `logging` has them in any case.
    callback : callable, optional
        Called with the state after every batch; the run stops, and can be taken up again, when it returns True.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        Before any call is spent, if an argument is wrong.
    EvaluationError
        If the likelihood fails and ``on_error="raise"``, or fails always. Like whatever else leaves the run, an error
        of the callback for example, it has the evaluations so far as its attribute ``observations``.

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
    space = as_problem(log_likelihood, prior, prior_transform, n_dim, names)
    called = as_callback(callback, "the state")
    options: dict[str, Any] = {
        "method": method, "batch_size": batch_size, "max_evals": max_evals, "max_time": max_time, "dlogz": dlogz,
        "vectorized": vectorized, "pass_dict": pass_dict, "pool": pool, "asynchronous": asynchronous,
        "timeout": timeout, "retries": retries, "on_error": on_error, "retry_failed": retry_failed, "store": store,
        "evaluations": evaluations, "certify": certify, "seed": seed, "progress": progress, "callback": called,
    }  # fmt: skip
    if replicas is not None:
        return replicated(log_likelihood, space, replicas=replicas, **options)
    return drive(log_likelihood, space, **options)
