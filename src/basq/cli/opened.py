"""The run of a store that a command looks at or goes on with."""

from typing import Any

from basq.cli.model import Model
from basq.run.sampler import Sampler


def opened(options: Any) -> Sampler:
    """The run, with the model of ``--model`` where the store lacks code of it, as the function of a prior."""
    model = None if getattr(options, "model", None) is None else Model.load(options.model)
    if model is None:
        return Sampler.open(options.store, allow_pickle=options.trust)
    if model.simulates:
        return Sampler.open(options.store, model.log_likelihood, allow_pickle=options.trust)
    return Sampler.open(options.store, prior=model.prior, allow_pickle=options.trust)
