"""One call of a model: simulate, integrate over the cheap parameters, keep the output."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from basq.cheap.model import Model
from basq.evaluation.call import Call, Outcome, guarded, place
from basq.evaluation.store import Store
from basq.outputs.outputs import as_stored, pack, unpack
from basq.types import FloatArray


@dataclass(frozen=True)
class ModelCall(Call):
    """A simulator, whose output is judged at once; see `of`.

    Attributes
    ----------
    model : Model
    """

    model: Model = field(kw_only=True)

    @classmethod
    def of(cls, model: Model) -> "ModelCall":
        """The call of a model."""
        return cls(model.run, model.prior.names, model=model)

    def attempt(self, x: FloatArray) -> list[Outcome]:
        """Evaluate points (n, d); a failure is an outcome, not an exception."""
        return [self._simulated(row) for row in x]

    def _simulated(self, x: FloatArray) -> Outcome:
        start, output = time.perf_counter(), None
        with guarded("simulate", place(self.names, x)) as failed:
            output = self.model.run(x)
        outcome = failed[0] if failed else judged(self.model, output, x)
        return replace(outcome, seconds=time.perf_counter() - start)


def judge_waiting(store: Store, model: Model) -> None:
    """Judge the outputs of calls that have no value yet: their likelihood had failed, and was mended."""
    waiting = store.pending()
    found = zip(waiting.ids, waiting.x, store.outputs(waiting.ids), strict=True)
    store.finish([(int(i), judged(model, unpack(blob)[0], x)) for i, x, blob in found if blob is not None])


def judged(model: Model, output: Any, x: FloatArray) -> Outcome:
    """The outcome of an output at a point (d,); where the likelihood fails the output is kept all the same."""
    where = place(model.prior.names, x)
    with guarded("simulate", where) as unstorable:
        blob, stored = pack(output, np.empty((0, 0))), as_stored(output)
    if unstorable:
        return _placed(unstorable[0], where)
    with guarded("log_likelihood", f"the output at {where}") as failed:
        found = model.marginal(stored, x)
    if failed:
        return replace(_placed(failed[0], f"the output at {where}"), output=blob)
    return Outcome(found.log_likelihood, found.error, output=pack(stored, found.draws))


def _placed(failure: Outcome, where: str) -> Outcome:
    """A failure that says where it was, whoever noticed it."""
    error = failure.error or ""
    return failure if where in error else replace(failure, error=f"{error.removesuffix('.')}, at {where}.")
