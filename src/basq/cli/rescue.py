"""rescue: a new store with what can be saved of a damaged one."""

import sys
from typing import Any

from basq.cli.output import check_outputs, say
from basq.errors import InputError, StoreError, counted
from basq.evaluation.rescue import rebuild, salvage
from basq.run import identity


def rescue(options: Any) -> None:
    """Save every call that still is as it was written."""
    if not options.store.is_file():
        raise StoreError(f"There is no store {str(options.store)!r}.")
    if options.output.exists():
        raise InputError(f"{options.output} exists already; name a new file for what is saved.")
    check_outputs([options.output], [options.store])
    saved = salvage(options.store)
    with rebuild(saved, options.output) as store:
        n_saved, n_values = len(saved.calls), store.counts()["done"]
        lost = saved.n_asked - n_saved
        known = store.get("problem") is not None or store.get("objects") is not None
        named = not identity.is_new(store)
    said = [f"{options.output}: {counted(n_saved, 'call')} saved, {n_values} with a value"]
    said.append("none is missing" if not lost else f"{lost} lost")
    say("; ".join(said) + ".")
    if not (known and named):
        say(
            "basq: the prior or the settings were damaged: go on with the model, as basq run model.py --store "
            f"{options.output}, or Sampler(prior, store={str(options.output)!r})",
            sys.stderr,
        )
