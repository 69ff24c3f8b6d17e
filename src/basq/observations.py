"""What has been evaluated so far."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from basq.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, repr=False)
class Observations:
    """Likelihood values at points, in the order of evaluation.

    Attributes
    ----------
    x : (n, d) array
        The user's parameters.
    u : (n, d) array
        The same points in standard space.
    log_likelihood : (n,) array
        −inf where the likelihood is zero.
    log_weight : (n,) array
        Prior over measure at the points; zero except for a prior known by its density.
    noise : (n,) array
        Standard deviation of each value of a noisy likelihood; zero where it is exact, NaN where it is not known.
    explores : (n,) bool array
        Whether a point was chosen to look for something new (the initial design too) rather than to integrate.
    batch : (n,) int array
        Which batch each point came with.
    """

    x: FloatArray
    u: FloatArray
    log_likelihood: FloatArray
    log_weight: FloatArray
    noise: FloatArray
    explores: BoolArray
    batch: IntArray

    @classmethod
    def empty(cls, n_dim: int) -> "Observations":
        none = np.empty((0, n_dim))
        numbers = np.empty(0)
        return cls(none, none, numbers, numbers, numbers, np.empty(0, dtype=bool), np.empty(0, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.log_likelihood)

    def since(self, n: int) -> "Observations":
        """Only what came after the first n."""
        return Observations(*(getattr(self, field.name)[n:] for field in fields(self)))

    def where(self, mask: BoolArray) -> "Observations":
        """Only some of them."""
        return Observations(*(getattr(self, field.name)[mask] for field in fields(self)))

    def at(self, rows: Sequence[int] | IntArray) -> "Observations":
        """Only some of them, by their places, in this order."""
        index = np.asarray(rows, dtype=np.intp)
        return Observations(*(getattr(self, field.name)[index] for field in fields(self)))

    def __repr__(self) -> str:
        if not len(self):
            return "<Observations: none>"
        low, high = self.log_likelihood.min(), self.log_likelihood.max()
        many = f"{len(self)} points, log-likelihoods from {low:.4g} to {high:.4g}"
        return f"<Observations: {many if len(self) > 1 else f'1 point, log-likelihood {high:.4g}'}>"

    @property
    def log_values(self) -> FloatArray:
        """Log of the integrand relative to the measure: (n,)."""
        return self.log_likelihood + self.log_weight

    def append(
        self,
        x: FloatArray,
        u: FloatArray,
        log_likelihood: FloatArray,
        log_weight: FloatArray,
        *,
        noise: FloatArray | float = 0.0,
        explores: BoolArray | bool = False,
        batch: IntArray | int = 0,
    ) -> "Observations":
        """Return these and more."""
        return Observations(
            np.concatenate([self.x, x]),
            np.concatenate([self.u, u]),
            np.concatenate([self.log_likelihood, log_likelihood]),
            np.concatenate([self.log_weight, log_weight]),
            np.concatenate([self.noise, np.broadcast_to(noise, len(x))]),
            np.concatenate([self.explores, np.broadcast_to(explores, len(x))]),
            np.concatenate([self.batch, np.broadcast_to(batch, len(x))]),
        )


class Best(NamedTuple):
    """The best of the evaluated points."""

    x: FloatArray
    log_likelihood: float


@dataclass(frozen=True)
class Failure:
    """A call that has failed for good.

    Attributes
    ----------
    id : int
    x : (d,) array
        Where.
    error : str
        Why.
    traceback : str or None
        Where in the user's code, if it raised.
    attempts : int
        How often it was tried.
    """

    id: int
    x: FloatArray
    error: str
    traceback: str | None
    attempts: int
