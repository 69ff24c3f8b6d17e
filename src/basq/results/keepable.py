"""A result in the form that a file can hold, and what was drawn before."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from basq.method import Posterior
from basq.plain import Absent, NotPlainError, pack
from basq.posterior.parameters import N_SUMMARY, ParameterPosterior
from basq.posterior.sampled import SampledPosterior

if TYPE_CHECKING:
    from basq.results.result import Result


def keepable(result: "Result") -> "Result":
    """The result, with samples in the place of a posterior that cannot be written as plain data."""
    posterior, known = result.standard_posterior, drawn(result)
    if posterior is None or is_plain(posterior, result.prior.parts):
        return with_drawn(replace(result), known)
    return with_drawn(replace(result, standard_posterior=_samples_of(posterior)), known)


def _samples_of(posterior: Posterior) -> SampledPosterior:
    """Equal-weight samples that stand for a posterior; its density is gone."""
    points = np.ascontiguousarray(posterior.sample(N_SUMMARY, np.random.default_rng(0)), dtype=float)
    equal = np.full(len(points), -np.log(len(points)))
    return SampledPosterior(Absent.of(posterior), points, equal, 0, 0)


def drawn(result: "Result") -> dict[str, Any] | None:
    """What was drawn and computed of the posterior in the user's parameters; None if there is none."""
    if result.standard_posterior is None:
        return None
    posterior, prior = result._posterior, result.prior
    known = {name: getattr(posterior, name) for name in ParameterPosterior.plain_cached}
    travels = prior.affine is not None or prior.absent or is_plain(prior)  # the map, or it is lost already
    return known if travels else known | {"lines": posterior.own_lines}


def is_plain(value: Any, but: Sequence[Any] = ()) -> bool:
    """Whether a file can hold all of it, but for some parts."""
    try:
        pack(value, but)
    except NotPlainError:
        return False
    return True


def with_drawn(result: "Result", known: dict[str, Any] | None) -> "Result":
    """A result with what was drawn before."""
    if known is not None and result.standard_posterior is not None:
        result._posterior.__dict__.update(known)
    return result
