"""Rival models compared by their evidence, and run together where they have not been run."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from basq.cheap.model import Model
from basq.errors import InputError, StoreError
from basq.method import Method
from basq.prior import Prior, as_prior
from basq.results.result import Result
from basq.rivals.comparison import Comparison, as_prior_odds
from basq.rivals.race import Race
from basq.run.arguments import as_budget, as_callback, as_seed
from basq.run.driver import Driver
from basq.run.habits import answering
from basq.run.interrupt import Interrupt
from basq.run.progress import shown
from basq.run.sampler import Sampler
from basq.run.steps import State
from basq.run.stopping import Stopping
from basq.settings import BATCH_SIZE, DLOGZ, DPROB, ON_ERROR, RETRIES, OnError, Shown
from basq.types import LogLikelihood, is_number


@answering
def compare(
    models: Mapping[str, Any],
    *,
    prior_odds: Mapping[str, float] | None = None,
    method: Method[Any] | str = "auto",
    batch_size: int = BATCH_SIZE,
    max_evals: int | None = None,
    max_time: float | None = None,
    dprob: float = DPROB,
    dlogz: float = DLOGZ,
    vectorized: bool = False,
    pass_dict: bool = False,
    pool: Any = None,
    asynchronous: bool = False,
    timeout: float | None = None,
    retries: int = RETRIES,
    on_error: OnError = ON_ERROR,
    store: str | os.PathLike[str] | None = None,
    evaluations: Mapping[str, Any] | None = None,
    seed: Any = None,
    progress: Shown = True,
    callback: Callable[[str, State], object] | None = None,
) -> Comparison:
    """Compare rival models by their evidence: those that have been run, and those that are run here.

    Models that have not been run share the calls. Each next batch goes to the one whose log-evidence contributes most
    to the uncertainty of the model probabilities, unless another that needs calls has had less than half as many; one
    that is out of the race gets no more. The comparison ends when all probabilities are known to ``dprob`` and the
    models still in the race have converged as far as that needs.

    Parameters
    ----------
    models : dict
        By name: a `Result`, the path of a store, a `Model`, a pair (log_likelihood, prior), or an object with these two
        attributes, such as the problems of `basq.problems`. Models with the same simulator and prior of the expensive
        parameters share its calls: what is simulated for one is judged for all of them, and counts once.
    prior_odds : dict, optional
        Positive numbers, relative to each other; one for models that are not named.
    max_evals : int, optional
        Most likelihood calls of all models together; by default 50 (d + 2) for each.
    max_time : float, optional
        Most seconds, looked at between batches.
    dprob : float
        Target standard deviation of the model probabilities.
    dlogz : float
        Target standard deviation of log Z for a model to count as converged.
    asynchronous : bool
        Give a free worker its next point at once, of the model whose calls settle the most by then, instead of waiting
        for a whole batch. The comparison then depends on the order in which calls finish.
    store : path, optional
        A folder with one SQLite file a model, made if it is missing; or a file name, to which the models' names are
        added. A comparison that is there already is taken up where it was left.
    evaluations : dict, optional
        Values known already, by the names of models that are run, each as in `infer`; they count towards ``max_evals``.
    callback : callable, optional
        Called with the name of a model and its state, after every batch of it.
    method, batch_size, vectorized, pass_dict, pool, timeout, retries, on_error, seed, progress
        As in `infer`, for every model that is run.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, basq
    >>> prior = {"a": (-3, 3)}
    >>> models = {
    ...     "narrow": (lambda x: -0.5 * (x[0] / 0.1) ** 2, prior),
    ...     "wide": (lambda x: -0.5 * x[0] ** 2, prior),
    ... }
    >>> print(basq.compare(models, seed=1, progress=False).verdict)
    Positive evidence for wide against narrow (ln B = 2.30 ± 0.01).
    """
    if not isinstance(models, Mapping) or len(models) < 2 or not all(isinstance(n, str) and n for n in models):
        raise InputError("compare: give a dict of at least two models by name.")
    odds = as_prior_odds(prior_odds, tuple(models))
    if not (is_number(dprob) and dprob > 0.0):
        raise InputError(f"dprob={dprob!r}: give the standard deviation of the model probabilities to reach, above 0.")
    called = as_callback(callback, "the name of a model and its state")
    given = {name: known for name, model in models.items() if (known := _as_result(model)) is not None}
    todo = {name: _as_model(name, model) for name, model in models.items() if name not in given}
    known_values = _as_evaluations(evaluations, tuple(todo))
    if not todo:
        return Comparison.of_finished(given, odds, dprob)
    budget = sum(as_budget(None, prior) for _, prior in todo.values()) if max_evals is None else max_evals
    number, files = as_seed(seed), _files(store, list(todo))
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt.watched(store))
        drivers = {
            name: stack.enter_context(
                Driver.open(
                    log_likelihood, prior, method=method, batch_size=batch_size, max_evals=budget, dlogz=dlogz,
                    vectorized=vectorized, pass_dict=pass_dict, pool=pool, timeout=timeout, retries=retries,
                    on_error=on_error, store=files[name], evaluations=known_values.get(name), seed=_seed(number, name),
                    interrupt=interrupt,
                )
            )
            for name, (log_likelihood, prior) in todo.items()
        }  # fmt: skip
        race = Race(drivers, given, odds, Stopping(dlogz, budget, max_time), dprob)
        try:
            with shown(budget, race.n_done, progress) as view:
                for driver in drivers.values():
                    driver.evaluator.finished = view.finished
                for name in race.run(asynchronous=asynchronous):
                    view.learned(race.n_done, race.news)
                    interrupt.heard(called(name, drivers[name].sampler.known))
        except BaseException as error:
            with suppress(StoreError):  # which may be the error itself
                race.keep(error)
            raise
        for driver in drivers.values():
            driver.salvage()
        interrupt.leave()
        return race.comparison(tuple(models), interrupted=interrupt())


def _as_result(model: Any) -> Result | None:
    """A finished run: its result, or the store that holds it; None for a model that has to be run."""
    if isinstance(model, Result):
        return model
    if isinstance(model, str | os.PathLike):
        sampler = Sampler.open(model)
        with sampler.store:
            return sampler.result()
    return None


def _as_model(name: str, model: Any) -> tuple[LogLikelihood | Model, Prior]:
    """Log-likelihood and prior of a model that has to be run."""
    if isinstance(model, tuple) and len(model) == 2:
        log_likelihood, prior = model
    elif isinstance(model, Model):
        return model, model.prior
    elif hasattr(model, "log_likelihood") and hasattr(model, "prior"):
        log_likelihood, prior = model.log_likelihood, model.prior
    else:
        raise InputError(
            f"compare: model {name!r} is {type(model).__name__}; give a Result, the path of a store, a Model, a pair "
            "(log_likelihood, prior), or an object with these two attributes."
        )
    if not callable(log_likelihood):
        raise InputError(f"compare: the log-likelihood of {name!r} cannot be called.")
    return log_likelihood, as_prior(prior)


def _as_evaluations(evaluations: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Values known already of models that have to be run, by name; each is checked with its prior."""
    if evaluations is None:
        return {}
    if not isinstance(evaluations, Mapping):
        raise InputError(
            f"evaluations must be a dict by the names of models, each as in infer; got {type(evaluations).__name__}."
        )
    strange = [name for name in evaluations if name not in names]
    if strange:
        run = f"those that are run here: {', '.join(names)}" if names else "models that are run, and here is none"
        raise InputError(f"evaluations: {strange[0]!r} cannot have any; allowed are {run}.")
    return dict(evaluations)


def _seed(number: int | None, name: str) -> int | None:
    """Every model its own stream, whichever the others are."""
    if number is None:
        return None
    return int(np.random.SeedSequence(number, spawn_key=tuple(name.encode())).generate_state(1, np.uint64)[0])


def _files(store: str | os.PathLike[str] | None, names: list[str]) -> dict[str, Path | None]:
    """Where each model's calls are kept."""
    if store is None:
        return dict.fromkeys(names)
    if not isinstance(store, str | os.PathLike):
        raise StoreError(f"store={store!r}: give the name of a folder or of a file, or None.")
    path = Path(store)
    safe = {name: "".join(c if c.isalnum() or c in "-_.+" else "_" for c in name) for name in names}
    if len(set(safe.values())) < len(names):
        raise InputError(f"store: the names {', '.join(names)} are too much alike for file names.")
    if path.suffix and not path.is_dir():
        return {name: path.with_name(f"{path.stem}-{safe[name]}{path.suffix}") for name in names}
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store={str(store)!r}: the folder cannot be made: {error}.") from error
    return {name: path / f"{safe[name]}.sqlite" for name in names}
