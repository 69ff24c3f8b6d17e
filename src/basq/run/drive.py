"""A whole run from its arguments: workers, the loop, what is shown meanwhile, the result."""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from basq.cheap.model import Model
from basq.errors import StoreError
from basq.prior import Prior
from basq.results.result import Result
from basq.run.agreement import Answer
from basq.run.certify import check_calls, goes_on
from basq.run.driver import Driver
from basq.run.interrupt import Interrupt
from basq.run.loop import run
from basq.run.progress import LOGGER, shown
from basq.run.steps import State
from basq.settings import Shown
from basq.status import Status
from basq.types import LogLikelihood


def drive(
    log_likelihood: LogLikelihood | Model,
    space: Prior,
    *,
    store: str | os.PathLike[str] | None,
    asynchronous: bool = False,
    progress: Shown,
    callback: Callable[[State], object] = lambda _: None,
    certify: int | None = None,
    replicas: Sequence[Answer] = (),
    **options: Any,
) -> Result:
    """Run until the stopping rule speaks or the user interrupts; ``options`` are the driver's.

    ``replicas`` are the answers of runs whose calls this one begins with.
    """
    if certify is not None:
        check_calls(certify)
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt.watched(store))
        driver = stack.enter_context(Driver.open(log_likelihood, space, store=store, interrupt=interrupt, **options))
        sampler, evaluator = driver.sampler, driver.evaluator
        if replicas:
            sampler.store.set(replicas=list(replicas))
        view = stack.enter_context(shown(sampler.recipe.stopping.max_evals, sampler.store.counts()["done"], progress))
        evaluator.finished = view.finished
        try:
            while True:
                for state in run(sampler, evaluator, asynchronous=asynchronous):
                    last = state.history[-1]
                    news = f"log Z = {last.log_evidence:.3f} ± {last.log_evidence_std:.3f}"
                    view.learned(last.n_evals, news, state.verdict.message)
                    interrupt.heard(callback(state))
                if certify is None or interrupt() or not goes_on(sampler, evaluator, certify):
                    break
        except BaseException as error:
            with suppress(StoreError):  # which may be the error itself
                driver.keep(error)
            raise
        evaluator.salvage()
        interrupt.leave()
        result = sampler.result(ended=Status.INTERRUPTED, fresh=interrupt())
        sampler.store.set(ended={"status": result.status, "n_evals": len(sampler.store.done())})
        sampler.keep(result)
        LOGGER.log(logging.INFO if result.converged else logging.WARNING, result.message)
        return result
