"""Calls as observations."""

import numpy as np

from basq.evaluation.calls import Calls
from basq.observations import Observations
from basq.prior import Prior
from basq.settings import OnError


def observed(seen: Observations, calls: Calls, prior: Prior, on_error: OnError) -> Observations:
    """Add calls to the observations, the failed ones by the user's rule."""
    failed, usable = np.isnan(calls.log_likelihood), ~calls.silent(on_error)
    values, noise = np.where(failed, -np.inf, calls.log_likelihood), np.where(failed, 0.0, calls.noise)
    u = calls.u[usable]
    return seen.append(
        calls.x[usable],
        u,
        values[usable],
        prior.log_weight(u),
        noise=noise[usable],
        explores=calls.explores[usable],
        batch=calls.batch[usable],
    )
