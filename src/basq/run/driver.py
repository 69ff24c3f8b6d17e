"""A run that this process drives: its sampler, and the evaluator of its calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from basq.cheap.call import ModelCall
from basq.cheap.model import Model
from basq.errors import InputError, StoreError, counted
from basq.evaluation.backends import open_pool
from basq.evaluation.call import Call
from basq.evaluation.evaluator import Evaluator
from basq.evaluation.place import StoreGoneError
from basq.observations import Observations
from basq.prior import Prior
from basq.run.arguments import as_retries
from basq.run.interrupt import Interrupt
from basq.run.sampler import Sampler
from basq.settings import OnError
from basq.types import LogLikelihood


@dataclass(frozen=True)
class Driver:
    """Who chooses the calls of a store and has them evaluated.

    Attributes
    ----------
    sampler : Sampler
    evaluator : Evaluator
    """

    sampler: Sampler
    evaluator: Evaluator

    @classmethod
    @contextmanager
    def open(
        cls,
        log_likelihood: LogLikelihood | Model,
        prior: Prior,
        *,
        vectorized: bool,
        pass_dict: bool,
        pool: Any,
        timeout: float | None,
        retries: int,
        on_error: OnError,
        interrupt: Interrupt,
        retry_failed: bool = False,
        **options: Any,
    ) -> Iterator["Driver"]:
        """Start what a run needs, and let go of it in the end; ``options`` are the sampler's."""
        tries = as_retries(retries)
        if retry_failed and options.get("store") is None:
            raise InputError("retry_failed=True makes the failed calls of a store again: give store.")
        call = call_of(log_likelihood, prior, vectorized=vectorized, pass_dict=pass_dict)
        with open_pool(call, pool, timeout) as workers:
            sampler = Sampler(prior, on_error=on_error, log_likelihood=log_likelihood, **options)
            with sampler.store as store, store.driving():
                if retry_failed and store.counts()["failed"]:
                    store.begin_again(simulate=False)  # what was learned from their failing is learned without it
                    store.set(begun={})
                evaluator = Evaluator(
                    workers, store, vectorized=vectorized, retries=tries, raises=on_error == "raise",
                    interrupted=interrupt,
                )  # fmt: skip
                yield cls(sampler, evaluator)

    def salvage(self) -> Observations:
        """Take in what has finished meanwhile: everything that was paid for."""
        self.evaluator.salvage()
        return self.sampler.observations()

    def rescue(self, error: BaseException) -> Observations:
        """The same after an error, which may be that of a store that takes nothing."""
        try:
            self.evaluator.salvage()
        except StoreError as other:
            error.add_note(str(other))
        if isinstance(error, StoreGoneError):
            error.args = (f"{error} What was in it, and what has come since, is in {self.evaluator.rescued()}.",)
        return self.sampler.observations()

    def keep(self, error: BaseException) -> None:
        """Hang everything that was paid for on an error that leaves the run."""
        observations = error.observations = self.rescue(error)  # type: ignore[attr-defined]  # whatever error it is
        self.sampler.keep()
        if len(observations):
            what = counted(len(observations), "evaluation is", "evaluations are")
            error.add_note(f"{what} in this error's attribute `observations`.")
        if self.sampler.store.path is not None and not isinstance(error, StoreGoneError):
            error.add_note(f"The run is in {self.sampler.store.path}: the same command goes on from there.")


def call_of(log_likelihood: LogLikelihood | Model, prior: Prior, *, vectorized: bool, pass_dict: bool) -> Call:
    """What workers are to call."""
    if not isinstance(log_likelihood, Model):
        return Call(log_likelihood, prior.names, pass_dict=pass_dict, vectorized=vectorized)
    if vectorized or pass_dict:
        raise InputError("vectorized and pass_dict are for log-likelihoods; a Model has a pass_dict of its own.")
    return ModelCall.of(log_likelihood)
