"""The words of other tools, answered with those of this one, before any call is spent."""

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from basq.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")

SAME = {
    "n_dim": ("ndim", "ndims", "n_dims", "n_params", "dim", "num_params", "npars"),
    "seed": ("rstate", "random_state", "rng", "random_seed", "random_generator"),
    "pool": ("n_jobs", "n_workers", "npool", "nprocs", "n_processes", "queue_size", "workers", "cores", "threads"),
    "progress": ("verbose", "print_progress", "show_status", "verbosity", "silent", "quiet", "show_progress"),
    "max_evals": ("maxcall", "max_ncalls", "max_calls", "maxfev", "n_calls", "n_evals", "n_like_max", "budget"),
    "dlogz": ("frac_remain", "tol", "logz_tol", "evidence_tolerance"),
    "store": ("log_dir", "checkpoint_file", "filepath", "resume", "outdir", "output", "checkpoint"),
    "names": ("param_names", "parameters", "parameter_names", "paramnames"),
    "prior_transform": ("ptform", "transform", "prior_unit_cube"),
    "prior": ("bounds", "priors"),
    "batch_size": ("n_batch", "batch", "batchsize", "n_update"),
    "callback": ("callbacks", "viz_callback"),
    "vectorized": ("vectorize", "vectorised"),
    "method": ("sampler", "sampling", "engine"),
}
"""Our words, and what other tools call the same."""
NONE = {
    "nlive": ("nlive", "n_live", "live_points", "min_num_live_points", "nlive_init"),
    "n_samples": ("n_samples", "draws", "nsteps", "n_effective", "n_eff", "n_walkers", "nwalkers", "chains", "tune"),
}
"""What there is nothing of here."""
NEITHER = {
    "nlive": "there are no live points: max_evals= is the most calls, and dlogz= the error of log Z to reach",
    "n_samples": "no chain walks: max_evals= is the most calls, and result.sample(n) draws afterwards",
}


def answering(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function answer keywords that it does not have with the right word."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        strange = [name for name in kwargs if name not in known]
        if strange:
            raise InputError(f"{strange[0]}={kwargs[strange[0]]!r:.40}: {_answer(strange[0], list(known))}.")
        return function(*args, **kwargs)

    return called


def _answer(word: str, known: list[str]) -> str:
    """What is to be given instead."""
    for ours, theirs in SAME.items():
        if word in theirs and ours in known:
            return f"this is called {ours}= here"
    for kind, theirs in NONE.items():
        if word in theirs:
            return NEITHER[kind]
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"there is no such argument; did you mean {near[0]}=?"
    return f"there is no such argument; there are {', '.join(name for name in known if name != 'self')}"
