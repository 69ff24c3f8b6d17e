"""What `infer`, `compare`, `Sampler` and the command line take for granted, each once; nothing heavy is imported."""

from typing import Literal

OnError = Literal["record", "zero", "raise"]
"""What a failed call means: nothing is known there, the likelihood is zero there, or the run ends."""

Shown = bool | Literal["log"]
"""Whether a run shows how far it is; with "log", as lines of `logging`."""

BATCH_SIZE = 16
"""Points chosen and evaluated together."""
CALLS_PER_DIMENSION = 50
"""Default budget: 50 (d + 2) calls, the habit of surrogate-based samplers."""
DLOGZ = 0.1
"""Target standard deviation of log Z."""
DPROB = 0.05
"""Target standard deviation of the probabilities of rival models."""
CERTIFY = 64
"""Calls of a certificate."""
RETRIES = 0
"""How often a failed call is tried again."""
ON_ERROR: OnError = "record"
"""What a failed call means if nothing is said."""


def budget(n_dim: int) -> int:
    """Likelihood calls that a run of so many parameters may make by default."""
    return CALLS_PER_DIMENSION * (n_dim + 2)
