"""How much of a new problem the calls of an earlier run have seen."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from basq.errors import InputError, counted
from basq.evaluation.calls import Calls
from basq.method import Posterior
from basq.prior import Prior
from basq.types import BoolArray, FloatArray

N_DRAWS = 1000
"""Draws of the priors that are looked at."""
NEAR = 0.9
"""Share of the old prior that counts as explored by its run: the part with the nearest calls."""
STRANGE = 0.2
"""Share of a new prior that may be farther from all calls, twice what it is for the old one."""
BULK = 0.99
"""Share of a posterior, where it is densest, that calls count as within."""


def placed(prior: Prior, x: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Which points x (n, d) have a place in a prior's standard space, (n,), and their places, (m, d)."""
    low, high = prior.bounds[prior.periodic].T
    x = x.copy()
    x[:, prior.periodic] = low + (x[:, prior.periodic] - low) % (high - low)  # a circle has a place for everything
    inside = np.asarray(prior.in_support(x))
    u = prior.to_standard(x[inside])
    finite = np.isfinite(u).all(axis=1)
    inside[inside] = finite
    return inside, u[finite]


def unexplored(old: Prior, new: Prior, calls: Calls) -> float:
    """Share of a new prior that calls made under an old one have not explored.

    A place is explored if a call is as near as one is for `NEAR` of the old prior: in the old standard space, which
    decides for narrower priors, or in the new one, which decides for wider ones.
    """
    rng = np.random.default_rng(0)
    before, after = old.measure.sample(N_DRAWS, rng), new.measure.sample(N_DRAWS, rng)
    there, here = KDTree(calls.u), KDTree(placed(new, calls.x)[1])
    reach = float(np.quantile(there.query(before)[0], NEAR))
    far = np.asarray(here.query(after)[0] > reach)
    with suppress(InputError):  # the old prior is a transform without an inverse: only the new space can tell then
        inside, u = placed(old, new.from_standard(after))
        far[inside] &= there.query(u)[0] > reach
    return float(far.mean())


def within(posterior: Posterior | None, prior: Prior, calls: Calls, log_evidence: float) -> int:
    """How many calls lie within a posterior: where its density is not below that of all but a little of its mass."""
    if posterior is None or not np.isfinite(log_evidence):
        return 0
    draws = posterior.sample(N_DRAWS, np.random.default_rng(0))
    level = float(np.quantile(posterior.log_pdf(draws), 1.0 - BULK))
    u = calls.u
    log_density = calls.log_likelihood + prior.log_weight(u) + prior.measure.log_pdf(u) - log_evidence
    return int((log_density >= level).sum())


@dataclass(frozen=True)
class Coverage:
    """What the calls of an earlier run are worth for a new problem.

    Attributes
    ----------
    n_dim : int
        Of the expensive parameters.
    n_calls : int
        Of the earlier run that can be used.
    n_within : int
        How many of them lie within the new posterior,
    n_before : int
        and how many of all lay within the old one,
    share_before : float
        as a share of its calls.
    unexplored : float
        Share of the new prior that was not explored.
    n_explored : int
        Calls of the earlier run that explored.
    batch_size : int
    """

    n_dim: int
    n_calls: int
    n_within: int
    n_before: int
    share_before: float
    unexplored: float
    n_explored: int
    batch_size: int

    @property
    def strange(self) -> bool:
        """Whether much of the new prior was not explored."""
        return self.unexplored > STRANGE

    @property
    def empty(self) -> bool:
        """Whether fewer calls lie within the new posterior than within the old one, and than make a quadratic."""
        return self.n_within < min((self.n_dim + 1) * (self.n_dim + 2) // 2, self.n_before)

    @property
    def missing(self) -> int:
        """About how many calls the new answer lacks, in whole batches.

        As many within the posterior as the earlier run had, at the share of calls that came to lie there; and for the
        part of the prior that was not explored as many as explored the old one.
        """
        inside = max(self.n_before - self.n_within, 0) / max(self.share_before, 0.1)
        calls = inside + (self.unexplored * self.n_explored if self.strange else 0.0)
        return self.batch_size * max(int(np.ceil(calls / self.batch_size)), 1)

    def doubts(self) -> list[str]:
        """What speaks against an answer from these calls alone, in clauses."""
        out = []
        if self.strange:
            out.append(f"{self.unexplored:.0%} of the new prior lies outside what was explored")
        if self.empty or 2 * self.n_within < self.n_before:
            few = counted(self.n_within, "call lies", "calls lie")
            out.append(
                f"the new posterior lies outside what was explored: {few} within it, {self.n_before} lay within the "
                "old one"
            )
        return out

    def advice(self) -> str:
        """How to go on, in a clause."""
        missing = counted(self.missing, "call is", "calls are")
        return f"about {missing} missing: go on with again(..., max_evals={self.n_calls + self.missing})"
