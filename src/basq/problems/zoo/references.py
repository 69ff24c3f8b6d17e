"""Brute-force answers for models of the zoo, shipped beside the code; `benchmarks.zoo_references` makes them."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from basq.types import FloatArray

FILE = Path(__file__).with_name("references.jsonl")
LEVELS = np.arange(4, 100, 4) / 100.0
"""Of the quantiles of every marginal."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What two ways found.

    Attributes
    ----------
    log_evidence, log_evidence_std : float
        By importance sampling; the other way is within 0.02.
    quantiles : (d, 24) array
        The 4, 8, …, 96 % points of every marginal.
    log_likelihood_at_truth : float
        Tells whether the data are those that the reference was made with.
    """

    log_evidence: float
    log_evidence_std: float
    quantiles: FloatArray
    log_likelihood_at_truth: float


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """All rows of the file, also those whose two ways disagree."""
    if not FILE.exists():
        return ()
    return tuple(json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines())


@cache
def reference(name: str, seed: int) -> Reference | None:
    """The reference of a model, or None where there is none to trust; the last row of a model and seed counts."""
    found = [row for row in rows() if row["model"] == name and row["seed"] == seed]
    if not found or not found[-1]["agree"]:
        return None
    row = found[-1]
    return Reference(row["log_z"], row["log_z_std"], np.array(row["quantiles"]), row["log_likelihood_at_truth"])
