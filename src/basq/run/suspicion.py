"""Values that look as if they were no log-likelihoods: what users most often return instead."""

import numpy as np

from basq.observations import Observations

ENOUGH = 16
"""Values from which something can be said."""
EDGE = 1.5
"""Distance from the prior's middle, in standard space, from which a point is at its edge."""


def suspicions(seen: Observations) -> tuple[str, ...]:
    """What the values look like, if not like log-likelihoods: a sentence that says what to do, or nothing."""
    values = seen.log_likelihood[np.isfinite(seen.log_likelihood)]
    if len(values) < ENOUGH or values.min() < 0.0 or np.ptp(values) == 0.0:
        return ()
    if values.max() <= 1.0:
        return (
            f"All {len(values)} log-likelihoods lie between 0 and 1, as likelihoods do: log_likelihood has to return "
            "the natural logarithm.",
        )
    if np.abs(seen.u[np.argmax(seen.log_likelihood)]).max() < EDGE:
        return ()
    return (
        f"All {len(values)} log-likelihoods are positive and the best is at the edge of the prior, as if a misfit were "
        "maximised: instead of χ² return -χ²/2, instead of a negative log-likelihood its opposite.",
    )
