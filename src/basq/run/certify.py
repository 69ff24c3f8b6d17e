"""Certificates: who draws their points, who has them evaluated, and what comes of it."""

import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from basq.certificate.certificate import FEWEST, Certificate
from basq.cheap.model import Model
from basq.errors import EvaluationError, InputError, counted
from basq.evaluation.backends import open_pool
from basq.evaluation.calls import Calls
from basq.evaluation.evaluator import Evaluator
from basq.evaluation.store import Store
from basq.results.result import Result
from basq.run import identity
from basq.run.arguments import as_retries
from basq.run.driver import call_of
from basq.run.interrupt import Interrupt
from basq.run.order import Order, take_in, with_certificate
from basq.run.points import Points
from basq.run.progress import shown
from basq.run.sampler import Sampler
from basq.run.steps import Recipe
from basq.settings import DLOGZ, OnError, Shown
from basq.status import Finding
from basq.types import is_number

if TYPE_CHECKING:
    from basq.run.again import Origin

LEAST = 32
"""Calls before which a certificate does not end early."""
CHUNK = 16
"""Calls between two looks at whether it may."""
STREAM = 3
"""Of the run's random numbers, those of its certificates."""


@dataclass(frozen=True)
class Desk:
    """Where the calls of a certificate are kept, and whose answer is certified.

    Attributes
    ----------
    store : Store
    result : Result
        Of the expensive and cheap parameters, as the run has it.
    recipe : Recipe
    on_error : str
    """

    store: Store
    result: Result
    recipe: Recipe
    on_error: OnError

    @classmethod
    def of(cls, sampler: Sampler, n: int) -> "Desk":
        """That of a run, which learns first from a certificate that is over, if n calls more are asked for."""
        check_calls(n)
        result, known = sampler.result(), Order.read(sampler.store)
        if known is not None and _over(known, _origin(result), sampler.store, n):
            take_in(sampler.store)
            result = sampler.result()
        return cls(sampler.store, result, sampler.recipe, _origin(result).on_error)

    def order(self, n: int, error: float | None = None) -> Order:
        """The certificate of the present state, as it was ordered; of n calls, if there is none yet."""
        check_calls(n)
        known = Order.read(self.store)
        if known is not None:
            return known
        origin, earlier = _origin(self.result), self.result.certificate
        if origin.posterior is None or not np.isfinite(origin.log_evidence):
            raise InputError(f"There is no posterior that could be certified yet. {self.result.message}")
        target = error or self.recipe.stopping.dlogz or DLOGZ
        fresh = 0 if earlier is None else zlib.crc32(earlier.design.u.tobytes())
        rng = self.recipe.rng(STREAM, len(origin.calls), fresh)
        return Order.write(
            self.store, self.result, origin.posterior, self.recipe.prior, origin.calls, n=int(n), target=target,
            n_steps=len(origin.steps), rng=rng,
        )  # fmt: skip

    def evaluate(self, evaluator: Evaluator, n: int, error: float | None) -> Certificate:
        """Have the calls made that have no value yet; fewer, if the error is small enough before."""
        order, names = self.order(n, error), self.recipe.prior.names
        # as many as there are workers first: they show whether the likelihood is still the same
        ends = [min(evaluator.n_workers, len(order.ids)), len(order.ids)]
        if error is not None:
            ends[1:1] = list(range(max(LEAST, ends[0]), len(order.ids), CHUNK))
        for begin, end in zip([0, *ends], ends, strict=False):
            waiting = self.store.waiting()
            calls = Calls(waiting.table[np.isin(waiting.ids, order.ids[begin:end])])
            evaluator.start(Points(calls.ids, calls.x, names))
            complete = evaluator.finish()
            found = order.first(end).certificate(self.store, self.on_error)
            if found.doubt is not None:
                self.store.refuse()
                spent = counted(end, "call was", "calls were")
                raise EvaluationError(f"The answer cannot be certified: {found.doubt}. {spent} spent.")
            if not complete:
                break
            if error is not None and end >= LEAST and found.good_to(error):
                self.store.forget()
                order.first(end).save(self.store)
                break
        present = Order.read(self.store)
        assert present is not None
        return present.certificate(self.store, self.on_error)


def _origin(result: Result) -> "Origin":
    """Every result of a sampler has one."""
    return result.source  # type: ignore[return-value]


def _over(known: Order, origin: "Origin", store: Store, n: int) -> bool:
    """Whether a certificate is of an earlier state, or complete and undecided by fewer calls than are wanted now."""
    found = known.certificate(store, origin.on_error)
    more = n > len(known.ids) and not found.n_pending and found.finding is Finding.UNDECIDED
    return known.n_steps != len(origin.steps) or more


def check_calls(n: Any) -> None:
    """Refuse a number of calls that says nothing."""
    if not (is_number(n, Integral) and n >= FEWEST + 1):
        raise InputError(f"A certificate of {n!r} calls: give a whole number, at least {FEWEST + 1}.")


def goes_on(sampler: Sampler, evaluator: Evaluator, n: int) -> bool:
    """Certify the answer of a run; whether it is contradicted, and the run goes on with what these calls say."""
    desk = Desk.of(sampler, n)
    if desk.result.standard_posterior is None:
        return False
    found = desk.evaluate(evaluator, n, None)
    if found.finding is not Finding.CONTRADICTED or not sampler.n_left:
        return False
    sampler.store.take_in()
    return True


def ordered(sampler: Sampler, n: int) -> Calls:
    """The calls of a run's certificate that have no value yet."""
    order = Desk.of(sampler, n).order(n)
    waiting = sampler.store.waiting()
    return Calls(waiting.table[np.isin(waiting.ids, order.ids)])


def certify(
    result: Result,
    origin: "Origin",
    log_likelihood: Any,
    *,
    n: int,
    error: float | None,
    pool: Any,
    timeout: float | None,
    retries: int,
    store: str | os.PathLike[str] | None,
    vectorized: bool,
    pass_dict: bool,
    progress: Shown,
) -> Result:
    """A result with its certificate, as `Result.certify` describes it."""
    check_calls(n)
    recipe = origin.recipe
    if error is not None and not (is_number(error) and error > 0.0):
        raise InputError(f"error={error!r}: give the standard deviation of log Z to reach, or None.")
    target = _target(origin, recipe, log_likelihood)
    call, tries = call_of(target, recipe.prior, vectorized=vectorized, pass_dict=pass_dict), as_retries(retries)
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt.watched(store))
        workers = stack.enter_context(open_pool(call, pool, timeout))
        desk = stack.enter_context(_desk(result, recipe, origin, store, target, n))
        evaluator = Evaluator(
            workers, desk.store, vectorized=vectorized, retries=tries, raises=origin.on_error == "raise",
            interrupted=interrupt,
        )  # fmt: skip
        view = stack.enter_context(shown(int(n), 0, progress))
        evaluator.finished = view.finished
        found = desk.evaluate(evaluator, n, error)
        return with_certificate(desk.result, found)


def _target(origin: "Origin", recipe: Recipe, given: Any) -> Any:
    """What is to be called."""
    if given is None and origin.model is not None:
        given = origin.model.get()
    if origin.outputs is not None and not isinstance(given, Model):
        raise InputError("This is the answer of a basq.Model: give certify(model), the model of the run.")
    if not (isinstance(given, Model) or callable(given)):
        raise InputError(f"certify({given!r:.60}): give log_likelihood, the function that has been run.")
    return given


@contextmanager
def _desk(
    result: Result, recipe: Recipe, origin: "Origin", path: str | os.PathLike[str] | None, target: Any, n: int
) -> Iterator[Desk]:
    """The store of the run; or one in memory."""
    if path is None:
        with Store(None, recipe.prior.n_dim) as store:
            store.set(names=list(recipe.prior.names))
            yield Desk(store, result, recipe, origin.on_error)
        return
    if not Path(path).exists():
        raise InputError(
            f"store={str(path)!r}: there is no such file. Give the store of the run; without one, result.save keeps "
            "the certificate."
        )
    model = target if isinstance(target, Model) else None
    sampler = Sampler.open(path, model, prior=None if model else recipe.prior, method=recipe.method)
    with sampler.store as store, store.driving():
        _check_same(sampler, recipe, origin, path)
        if not isinstance(target, Model):
            identity.check_function(store, target)
        yield Desk.of(sampler, n)


def _check_same(sampler: Sampler, recipe: Recipe, origin: "Origin", path: Any) -> None:
    """Refuse the store of another run."""
    mine, theirs = identity.fingerprint(recipe.prior), identity.fingerprint(sampler.recipe.prior)
    if (
        mine != theirs
        or recipe.seed != sampler.recipe.seed
        or len(origin.calls) > len(sampler.store.done()) + len(sampler.store.failures())
    ):
        raise InputError(f"store={str(path)!r} is not the store of this result.")
