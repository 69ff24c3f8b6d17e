"""compare: runs in stores, and models that are run together."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from basq.cli.model import Model
from basq.cli.output import check_outputs, say, writing
from basq.cli.parser import DONE, INTERRUPTED, NOT_CONVERGED
from basq.errors import InputError
from basq.rivals.compare import compare as compare_models
from basq.run.sampler import Sampler
from basq.status import Status


def compare(options: Any) -> int:
    """Compare what was named, and say by the exit code whether it is decided."""
    modules: dict[Path, ModuleType] = {}  # models of one file share its simulator
    models = dict(_named(text, modules) for text in options.models)
    if len(models) < len(options.models):
        raise InputError("compare: two models have the same name; give others, such as a=first/run.sqlite.")
    for path in (model for model in models.values() if options.trust and isinstance(model, Path)):
        Sampler.open(path, allow_pickle=True).store.close()  # which migrates it
    runs = any(not isinstance(model, Path) for model in models.values())
    check_outputs(
        [options.output],
        [model if isinstance(model, Path) else options.store / f"{name}.sqlite" for name, model in models.items()],
    )
    found = compare_models(
        models, prior_odds=_odds(options.odds, tuple(models)), max_evals=options.max_evals, max_time=options.max_time,
        dprob=options.dprob, batch_size=options.batch_size, pool=options.pool, asynchronous=options.asynchronous,
        timeout=options.timeout, retries=options.retries, store=options.store if runs else None, seed=options.seed,
        progress=options.progress,
    )  # fmt: skip
    say(found)
    if options.output is not None:
        print()
        with writing(options.output, "picture"):
            found.plot().savefig(options.output, dpi=150)
    if found.status is Status.INTERRUPTED:
        print("basq: the same command goes on", file=sys.stderr)
        return INTERRUPTED
    return DONE if found.decided else NOT_CONVERGED


def _named(text: str, modules: dict[Path, ModuleType]) -> tuple[str, Any]:
    """A model and its name: ``name=place``, or a place that gives the name."""
    name, equals, place = text.partition("=")
    if not equals or Path(text).exists():
        name, place = "", text
    if place.partition(":")[0].endswith(".py"):
        model = Model.load(place, modules)
        given = model.log_likelihood if model.simulates else (model.log_likelihood, model.prior)
        return name or place.rpartition(":")[2].removesuffix(".py"), given
    if not Path(place).is_file():
        raise InputError(f"{place}: there is no such store; give run.sqlite files, or models such as model.py:name.")
    return name or Path(place).stem, Path(place)


def _odds(texts: list[str] | None, names: tuple[str, ...]) -> dict[str, float]:
    """Prior odds given as ``name=number``."""
    odds = {}
    for text in texts or ():
        name, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError as error:
            raise InputError(f"--odds {text}: give name=number, such as --odds a=2.") from error
        if name not in names:
            raise InputError(f"--odds {text}: there is no model {name!r}; there are {', '.join(names)}.")
        odds[name] = value
    return odds
