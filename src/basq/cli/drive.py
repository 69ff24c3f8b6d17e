"""run and resume: a model of a file, evaluated here, every call in a store."""

import sys
from pathlib import Path
from typing import Any

from basq.cli.model import Model, split
from basq.cli.output import check_outputs, say, writing
from basq.cli.parser import DONE, INTERRUPTED, NOT_CONVERGED
from basq.errors import InputError, counted
from basq.evaluation.call import Call
from basq.evaluation.store import Store
from basq.extras import registered
from basq.inference import infer
from basq.prior import as_prior
from basq.run import identity
from basq.run.arguments import as_method
from basq.run.certify import check_calls
from basq.run.sampler import Sampler
from basq.run.stopping import Stopping
from basq.status import Status

CALLS = ("pool", "asynchronous", "timeout", "retries", "vectorized", "pass_dict")
"""How calls are made: what a store remembers for `resume`, beside its own settings."""


def run(options: Any) -> int:
    """Start a run, or go on with the one in the store."""
    if options.certify is not None:
        check_calls(options.certify)
    path, name = split(options.model)
    store = options.store or Path(f"{path.stem}-{name}.sqlite" if name else f"{path.stem}.sqlite")
    budget = {
        "method": options.method, "batch_size": options.batch_size, "max_evals": options.max_evals,
        "dlogz": options.dlogz, "on_error": options.on_error,
    }  # fmt: skip
    calls = {key: getattr(options, key) for key in CALLS}
    return _drive(Model.load(options.model), store, budget, calls, options, seed=options.seed)


def resume(options: Any) -> int:
    """Go on with the run of a store, with its settings where no others are given."""
    with Store(options.store) as store:
        _, own, _ = identity.load(store, allow_pickle=options.trust)
        method = identity.chosen(store, own, options.method and as_method(options.method))
        command = store.get("command") or {}
        budget = {key: store.get(key) for key in ("batch_size", "max_evals", "dlogz", "on_error")} | {"method": method}
    place = options.model or command.get("model")
    if place is None:
        raise InputError(f"{options.store} does not say where its model is; add --model model.py.")
    if options.model is None and not Path(place).is_file() and not Path(place.rpartition(":")[0]).is_file():
        raise InputError(f"The model of {options.store} was in {place}, which is gone; add --model model.py.")
    calls = {key: command.get(key) for key in CALLS}
    calls |= {key: value for key in CALLS if (value := getattr(options, key, None)) is not None}
    budget |= {key: value for key in ("max_evals", "dlogz") if (value := getattr(options, key)) is not None}
    return _drive(Model.load(place), options.store, budget, calls, options)


def _drive(
    model: Model, path: Path, budget: dict[str, Any], calls: dict[str, Any], options: Any, *, seed: int | None = None
) -> int:
    """Run, print what came out, and say by the exit code whether it is good."""
    check_outputs([options.report], [path, split(model.place)[0]])
    if not model.simulates:
        names = as_prior(model.prior).names
        Call(model.log_likelihood, names, pass_dict=bool(calls["pass_dict"]))  # can be called at all
    if isinstance(calls["pool"], str):
        registered("basq.pools", calls["pool"].partition(":")[0])  # can be found at all
    # made before the first call, so that the store knows its model whatever happens
    sampler = Sampler(model.prior, store=path, log_likelihood=model.log_likelihood, seed=seed, **budget)
    again = getattr(options, "retry_failed", False)
    with sampler.store as store, store.driving():
        store.set(command={"model": model.place, **calls})
        ended, words = _standing(store, sampler.recipe.stopping)
        n_failed = store.counts()["failed"]
        if again and n_failed:
            ended, words = False, f"{counted(n_failed, 'failed call')} to be made again"
    say(f"basq: {path}, {words}", sys.stderr)
    given = {key: value for key, value in calls.items() if value is not None}
    try:
        result = infer(
            model.log_likelihood, model.prior, store=path, max_time=options.max_time,
            certify=getattr(options, "certify", None), retry_failed=again,
            progress=not ended and options.progress, **budget, **given,
        )  # fmt: skip
    except SystemExit:  # by a signal
        print(f"basq: go on with: basq resume {path}", file=sys.stderr)
        raise
    say(result)
    code = DONE if result.converged else NOT_CONVERGED
    if result.status is Status.INTERRUPTED:
        code = INTERRUPTED
    if options.report is not None:
        print()
        with writing(options.report, "report"):
            result.report(options.report)
    return code


def _standing(store: Store, target: Stopping) -> tuple[bool, str]:
    """Whether a run has ended, by its last step; and where it stands, with the targets that its store keeps."""
    n_done, n_asked = store.counts()["done"], store.n_calls
    targets = f"at most {target.max_evals} calls, dlogz = {target.dlogz:g}"
    if not n_asked:
        return False, f"a new run: {targets}"
    if not (len(store.pending()) or len(store.news())):
        last = store.last_record()
        if last and last["status"] == Status.CONVERGED and last["log_evidence_std"] <= target.dlogz:
            return True, f"already converged after {n_done} calls (dlogz = {target.dlogz:g}); lower --dlogz to go on"
        if n_asked >= target.max_evals:
            return True, f"all {target.max_evals} calls of --max-evals are spent; allow more to go on"
    return False, f"going on after {n_done} calls: {targets}"
