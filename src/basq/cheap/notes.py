"""What outputs and conditionals show that users should know."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from basq.errors import counted
from basq.prior import Prior
from basq.types import FloatArray

FEWEST = 8
"""Calls before anything is said about cheap parameters."""
SHIFT, SPREAD = 0.35, 0.3
"""How far mean and standard deviation of so many draws may be off those of the prior, in its standard deviations."""


def notes(shapes: Sequence[str], draws: Sequence[FloatArray], cheap: Prior) -> tuple[str, ...]:
    """A sentence for each thing that is probably not meant.

    Parameters
    ----------
    shapes : sequence of str
        Of the outputs.
    draws : sequence of (m, k) arrays
        Of the cheap parameters in standard space, at every call where there are some.
    cheap : Prior
    """
    out = []
    if not shapes:
        out.append(f"No call has an output, so nothing is known about {', '.join(cheap.names)}.")
    counts = Counter(shapes).most_common()
    if len(counts) > 1:
        listed = ", ".join(f"{shape} in {counted(n, 'call')}" for shape, n in counts)
        out.append(f"The simulator's outputs have different shapes: {listed}.")
    if len(draws) >= FEWEST:
        out += [
            f"{name} has no visible effect: at every call its posterior is its prior." for name in _idle(draws, cheap)
        ]
    return tuple(out)


def _idle(draws: Sequence[FloatArray], cheap: Prior) -> list[str]:
    """Parameters whose conditional posterior is their prior wherever it is known."""
    mean, sd = (np.stack([f(own, axis=0) for own in draws]) for f in (np.mean, np.std))
    same = (np.abs(mean) < SHIFT).all(axis=0) & (np.abs(sd - 1.0) < SPREAD).all(axis=0)
    return [name for name, idle in zip(cheap.names, same, strict=True) if idle]
