"""Replicas of a run: independent designs side by side, whose calls make one answer and whose answers test it."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from itertools import zip_longest
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from basq.cheap.model import Model
from basq.errors import InputError, StoreError
from basq.evaluation.calls import Calls
from basq.evaluation.store import Store
from basq.method import Method
from basq.observations import Observations
from basq.prior import Prior
from basq.results.result import Result
from basq.run.again import Origin, Problem
from basq.run.arguments import as_batch_size, as_budget, as_method, as_seed
from basq.run.drive import drive
from basq.run.driver import Driver
from basq.run.interrupt import Interrupt
from basq.run.past import Past, joined
from basq.run.progress import Progress, shown
from basq.run.sampler import Sampler
from basq.run.steps import State
from basq.settings import Shown
from basq.status import Status
from basq.types import LogLikelihood, is_number


def replicated(
    log_likelihood: LogLikelihood | Model,
    space: Prior,
    *,
    replicas: int,
    method: Method[Any] | str,
    batch_size: int,
    max_evals: int | None,
    max_time: float | None,
    seed: Any,
    store: str | os.PathLike[str] | None,
    pool: Any,
    asynchronous: bool,
    evaluations: Any,
    certify: int | None,
    progress: Shown,
    callback: Callable[[State], object],
    **options: Any,
) -> Result:
    """Run replicas side by side, then one run that begins with all of their calls; the arguments are those of `infer`.

    The last of them has a batch at least, so that its surrogate, which knows all calls, is tested as well.
    """
    _check(replicas, asynchronous, evaluations)
    size, number = as_batch_size(batch_size, as_method(method)), as_seed(seed)
    total = replicas * as_budget(None, space) + size if max_evals is None else as_budget(max_evals, space)
    each = _share(replicas, total, size, as_method(method), space)
    start, workers = time.monotonic(), max(int(pool) // replicas, 1) if is_number(pool, Integral) else pool
    files = _files(store, replicas)
    common: dict[str, Any] = {"method": method, "batch_size": batch_size, **options}
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt.watched(store))
        drivers = [
            stack.enter_context(
                Driver.open(log_likelihood, space, max_evals=each, max_time=max_time, pool=workers, store=file,
                            seed=_seed(number, k), evaluations=None, interrupt=interrupt, **common)
            )
            for k, file in enumerate(files)
        ]  # fmt: skip
        view = stack.enter_context(shown(total, sum(d.sampler.store.counts()["done"] for d in drivers), progress))
        try:
            _side_by_side(drivers, view, lambda state: interrupt.heard(callback(state)))
        except BaseException as error:
            with suppress(StoreError):  # which may be the error itself
                _keep(drivers, error)
            raise
        found = [driver for driver in drivers if len(driver.salvage())]
        interrupt.leave()
        results = [driver.sampler.result() for driver in found]
        stopped = interrupt()
    past = _merged(results, log_likelihood)
    if stopped:
        problem = log_likelihood if isinstance(log_likelihood, Model) else space
        sampler = Sampler(
            problem, evaluations=past, seed=number, max_evals=total, method=method, batch_size=batch_size,
            on_error=options["on_error"],
        )  # fmt: skip
        return sampler.result(ended=Status.INTERRUPTED)
    left = None if max_time is None else max(max_time - (time.monotonic() - start), 1e-3)
    return drive(
        log_likelihood, space, max_evals=total, max_time=left, pool=pool, store=store, seed=number, evaluations=past,
        certify=certify, progress=progress, callback=callback, replicas=_answers(results), **common,
    )  # fmt: skip


def _check(replicas: int, asynchronous: bool, evaluations: Any) -> None:
    """Refuse what cannot be replicated."""
    if not (is_number(replicas, Integral) and replicas >= 2):
        raise InputError(f"replicas={replicas!r}: give a whole number of at least 2, or None for one run.")
    if asynchronous or evaluations is not None:
        word = "asynchronous=True" if asynchronous else "evaluations"
        raise InputError(
            f"replicas={replicas} and {word} exclude each other: replicas are independent, batch by batch."
        )


def _share(replicas: int, total: int, batch_size: int, method: Method[Any], space: Prior) -> int:
    """Most calls of each replica."""
    each = (total - batch_size) // replicas
    least = batch_size * int(np.ceil(method.initial_size(space.n_dim) / batch_size)) + batch_size
    if each < least:
        raise InputError(
            f"max_evals={total} is too few for {replicas} replicas: each needs {least} calls at least, and what they "
            f"make together a batch more; that is {replicas * least + batch_size} calls."
        )
    return each


def _side_by_side(drivers: Sequence[Driver], view: Progress, callback: Callable[[State], object]) -> None:
    """Run all of them, each until its own stopping rule speaks: while one learns, the calls of the others go on."""
    for driver in drivers:
        driver.evaluator.finished = view.finished
        driver.evaluator.start(driver.sampler.pending())
    running = list(drivers)
    while running:
        for driver in tuple(running):
            sampler = driver.sampler
            if not driver.evaluator.finish():
                return
            if sampler.learn():
                n_done = sum(d.sampler.store.counts()["done"] for d in drivers)
                view.learned(n_done, ", ".join(_news(d.sampler) for d in drivers))
                callback(sampler.known)
            if sampler.verdict.stop:
                running.remove(driver)
            else:
                driver.evaluator.start(sampler.choose())


def _news(sampler: Sampler) -> str:
    return f"{sampler.known.history[-1].log_evidence:.3f}" if sampler.has_learned else "…"


def _keep(drivers: Sequence[Driver], error: BaseException) -> None:
    """Hang everything that was paid for on an error that leaves the replicas."""
    seen: list[Observations] = []
    for driver in drivers:
        driver.keep(error)
        seen.append(error.observations)  # type: ignore[attr-defined]
    error.observations = tuple(seen)  # type: ignore[attr-defined]


def _merged(results: Sequence[Result], log_likelihood: LogLikelihood | Model) -> Past:
    """The calls of all replicas, batch by batch."""
    model = log_likelihood if isinstance(log_likelihood, Model) else None
    pasts = []
    for result in results:
        origin = result.source
        assert isinstance(origin, Origin)
        recipe = origin.recipe
        pasts.append(origin.past(recipe, Problem(recipe.prior, model, moved=False, judges=False))[0])
    steps = []
    for round_ in zip_longest(*(past.steps for past in pasts)):
        present = [step for step in round_ if step is not None]
        table = np.concatenate([calls.table for calls, _ in present])
        steps.append((Calls(table), [outcome for _, outcomes in present for outcome in outcomes]))
    return Past(joined(steps, 1))


def _answers(results: Sequence[Result]) -> list[tuple[float, float]]:
    return [(result.log_evidence, result.log_evidence_std) for result in results]


def _files(store: str | os.PathLike[str] | None, n: int) -> list[Path | None]:
    """Where the calls of every replica are kept: beside the store of all of them."""
    if store is None:
        return [None] * n
    if not isinstance(store, str | os.PathLike):
        raise StoreError(f"store={store!r}: give the name of a file, or None.")
    path = Path(store)
    if path.exists():
        with Store(path) as known:
            if not known.get("replicas"):
                raise StoreError(f"store={str(path)!r} holds a run without replicas; give the name of another file.")
    return [path.with_name(f"{path.stem}-replica{k + 1}{path.suffix}") for k in range(n)]


def _seed(number: int | None, k: int) -> int | None:
    """Every replica its own stream."""
    if number is None:
        return None
    return int(np.random.SeedSequence(number, spawn_key=(k,)).generate_state(1, np.uint64)[0])
