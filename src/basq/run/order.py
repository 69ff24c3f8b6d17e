"""A certificate's calls in a store: written before they are made, apart from all that is learned from."""

import io
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from basq.certificate.certificate import Certificate
from basq.certificate.design import Design
from basq.errors import StoreError
from basq.evaluation.calls import Calls
from basq.evaluation.store import Store
from basq.method import Posterior
from basq.numerics.linalg import blas_threads
from basq.prior import Prior
from basq.results.result import Result
from basq.settings import OnError
from basq.status import Finding, Status
from basq.types import IntArray

SAME, NOISES = 1e-6, 6.0
"""Relative difference, and standard deviations of both values' noise, within which a repeated call is the same."""
NUMBERS = ("repeated", "surrogate", "target", "noise", "n_steps", "sound")
"""Of an order."""
ARRAYS = ("u", "log_prior", "log_expected", "log_drawn")
"""Of a design, one row for each point."""


@dataclass(frozen=True)
class Order:
    """What has been ordered for a certificate.

    Attributes
    ----------
    design : Design
    ids : (n + 1,) int array
        Of the calls: the first repeats one of the run, the others are those of the design, in its order.
    repeated : (float, float)
        Value and noise that the run has where the first one is made.
    surrogate : (float, float)
        log Z and its standard deviation as the run has them.
    target : float
        Standard deviation of log Z that a certified answer has at most.
    noise : float
        Standard deviation of values whose noise is not stated.
    n_steps : int
        Steps that the surrogate has learned from.
    sound : bool
        Whether the run has passed its own tests.
    """

    design: Design
    ids: IntArray
    repeated: tuple[float, float]
    surrogate: tuple[float, float]
    target: float
    noise: float
    n_steps: int
    sound: bool

    @classmethod
    def write(
        cls,
        store: Store,
        result: Result,
        posterior: Posterior,
        prior: Prior,
        calls: Calls,
        *,
        n: int,
        target: float,
        n_steps: int,
        rng: np.random.Generator,
    ) -> "Order":
        """Draw the points of n calls for a result, and write them into a store.

        Parameters
        ----------
        posterior, prior
            Of the expensive parameters.
        calls : Calls
            Of the run.
        """
        best = int(np.nanargmax(calls.log_likelihood))
        value = float(calls.log_likelihood[best])
        last = result.history[-1]  # the surrogate's word, also where a certificate has replaced it
        with blas_threads(len(calls)):
            design = Design.draw(posterior, last.log_evidence, prior, value, n - 1, rng)
        u = np.concatenate([calls.u[[best]], design.u])
        x = np.concatenate([calls.x[[best]], prior.from_standard(design.u)])
        with store.transaction():
            ids = store.add(x, u, False, store.extent()[1])
            store.set_apart(ids)
            order = cls(
                design, ids, (value, float(calls.noise[best])), (last.log_evidence, last.log_evidence_std), target,
                result.noise if result.noise is not None else 0.0, n_steps, result.converged or result.sound,
            )  # fmt: skip
            order.save(store)
        return order

    def save(self, store: Store) -> None:
        """Write what belongs to the calls, as bytes that hold no code."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        numbers |= {"log_pool": self.design.log_pool, "pool_error": self.design.pool_error}
        file = io.BytesIO()
        arrays = {name: getattr(self.design, name) for name in ARRAYS}
        np.savez(file, numbers=np.array(json.dumps(numbers)), ids=self.ids, **arrays)
        store.set(certificate=file.getvalue())

    @classmethod
    def read(cls, store: Store) -> "Order | None":
        """The order of a store; None if there is none."""
        blob = store.get("certificate")
        if blob is None:
            return None
        try:
            with np.load(io.BytesIO(blob), allow_pickle=False) as file:
                known: dict[str, Any] = json.loads(str(file["numbers"]))
                u, log_prior, log_expected, log_drawn = (file[name] for name in ARRAYS)
                ids = file["ids"]
        except Exception as error:  # whatever is in its place; nothing of it has run
            raise StoreError(f"The certificate in {store} cannot be read ({type(error).__name__}: {error}).") from error
        design = Design(u, log_prior, log_expected, log_drawn, known["log_pool"], known["pool_error"])
        return cls(
            design, ids, tuple(known["repeated"]), tuple(known["surrogate"]), known["target"], known["noise"],
            known["n_steps"], known["sound"],
        )  # fmt: skip

    def first(self, n: int) -> "Order":
        """Only the first n calls."""
        return replace(self, design=self.design.at(np.arange(n - 1)), ids=self.ids[:n])

    def certificate(self, store: Store, on_error: OnError) -> Certificate:
        """What its calls say so far."""
        calls = store.of(self.ids.tolist())
        waiting = np.isin(calls.ids, store.waiting().ids)
        values, noise = calls.log_likelihood, np.where(np.isnan(calls.noise), self.noise, calls.noise)
        zero = np.isnan(values) & ~waiting & ~calls.silent(on_error)
        values = np.where(zero, -np.inf, values)
        known = np.flatnonzero(~waiting[1:])
        doubt = None if waiting[0] else self._changed(float(values[0]), float(calls.noise[0]))
        return Certificate(
            self.design.at(known), calls.x[1:][known], values[1:][known], noise[1:][known], int(waiting.sum()),
            self.surrogate, self.target, self.sound, doubt,
        )  # fmt: skip

    def _changed(self, value: float, noise: float) -> str | None:
        """That the repeated call does not give what it gave, if so: a clause."""
        before, sd = self.repeated
        then, now_sd = (self.noise if np.isnan(each) else each for each in (sd, noise))
        if abs(value - before) <= NOISES * float(np.hypot(then, now_sd)) + SAME * max(abs(before), 1.0):
            return None
        now = "fails" if np.isnan(value) else f"is {value:.6g}"
        return f"log_likelihood {now} where it was {before:.6g} in the run: it is not the function of the run any more"


def proven(store: Store) -> Certificate | None:
    """The certificate of the last state in a store, if it has decided; without any computation of the run's."""
    order = Order.read(store)
    if order is None or order.n_steps != len(store.steps()) + bool(len(store.news())):  # which are a step to come
        return None
    found = order.certificate(store, store.get("on_error") or "record")
    return None if found.finding is Finding.UNDECIDED else found


def contradicted(store: Store) -> bool:
    """Whether the last state in a store is contradicted."""
    found = proven(store)
    return found is not None and not found.certified


def take_in(store: Store) -> None:
    """Have a run that goes on learn from the calls of its certificate, if they are of its likelihood."""
    order = Order.read(store)
    if order is None:
        return
    if order.certificate(store, store.get("on_error") or "record").doubt is None:
        store.take_in()
    else:
        store.refuse()


def certified(found: Result, store: Store, n_steps: int, on_error: OnError) -> Result:
    """A result with what the certificate's calls in a store say, if there are any for this state of the run."""
    order = Order.read(store)
    if order is None or order.n_steps != n_steps:
        return found
    return with_certificate(found, order.certificate(store, on_error))


def with_certificate(found: Result, certificate: Certificate) -> Result:
    """The final answer: the certificate's where it has decided, and the run's otherwise."""
    found = replace(found, certificate=certificate)
    if certificate.finding is Finding.UNDECIDED:
        return found
    found = replace(found, log_evidence=certificate.log_evidence, log_evidence_std=certificate.log_evidence_std)
    if certificate.certified:
        # what spoke against a sound answer was the size of its error
        return found if found.converged else replace(found, status=Status.CONVERGED, why=certificate.why)
    return replace(found, status=Status.NOT_CONVERGED, why=f"contradicted, {certificate.why}", sound=False)
