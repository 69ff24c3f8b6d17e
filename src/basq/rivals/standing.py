"""How rival models stand: what the errors of their log-evidences leave open about their probabilities."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.types import FloatArray

N_DRAWS = 8192
"""Draws behind the probabilities and their errors."""
WIDER = 3.0
"""Factor on the error of a log-evidence that has not converged."""
LEAST = 0.5
"""Least error of one that has not converged, in nats: a second mode of the same size may be missing."""
NEGLIGIBLE = 0.01
"""A model whose probability lies below this for (nearly) certain is out of the race."""
UPPER = 0.999
"""How certain that is."""
SCALE = (
    (1.0, "no evidence worth more than a bare mention"),
    (3.0, "positive"),
    (5.0, "strong"),
    (np.inf, "very strong"),
)
"""Kass and Raftery (1995): upper end of the log Bayes factor, and what such a factor is called."""


def spread(std: float, converged: bool, log_values: FloatArray, n_dim: int) -> float:
    """Standard deviation of log Z to reckon with.

    Infinite while fewer values (n,) are above zero likelihood than a parabola along every axis needs: whatever a
    surrogate claims then, nothing says how far above them the peak is.
    """
    if converged:
        return std
    if np.isfinite(log_values).sum() < 2 * n_dim + 1:
        return float("inf")
    return float(np.hypot(WIDER * std, LEAST))


@dataclass(frozen=True)
class Standing:
    """Log-evidences with errors, and the probabilities of the models that they give.

    Attributes
    ----------
    log_evidence : (k,) array
        −inf where no mass was found yet.
    spread : (k,) array
        Their standard deviations; infinite where nothing is known.
    log_odds : (k,) array
        Logarithms of the prior odds.
    """

    log_evidence: FloatArray
    spread: FloatArray
    log_odds: FloatArray

    @property
    def known(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Which models have a log-evidence at all."""
        return np.isfinite(self.log_evidence) & np.isfinite(self.spread)

    @cached_property
    def _normals(self) -> FloatArray:
        """Two independent sets of draws (2, n, k); always the same ones, so that a standing is one answer."""
        return np.random.default_rng(0).standard_normal((2, N_DRAWS, len(self.log_evidence)))

    def _probabilities(self, normals: FloatArray) -> FloatArray:
        """Model probabilities for draws of the log-evidences (n, k)."""
        known = self.known
        if not known.any():
            return np.full(normals.shape, 1.0 / len(known))
        log_p = np.where(known, self.log_evidence + self.log_odds, -np.inf)
        log_p = log_p + np.where(known, self.spread, 0.0) * normals
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    @cached_property
    def draws(self) -> FloatArray:
        """Model probabilities (n, k), as uncertain as the log-evidences make them."""
        return self._probabilities(self._normals[0])

    @property
    def probability(self) -> FloatArray:
        """Mean probability of each model (k,)."""
        return self.draws.mean(axis=0)

    @property
    def probability_std(self) -> FloatArray:
        """Standard deviation of each probability (k,)."""
        return np.where(self.known, self.draws.std(axis=0), np.inf)

    def known_to(self, dprob: float) -> bool:
        """Whether all probabilities are known to a standard deviation."""
        return bool(self.probability_std.max() <= dprob)

    @property
    def in_race(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Models that may still matter (k,)."""
        return ~self.known | (np.quantile(self.draws, UPPER, axis=0) > NEGLIGIBLE)

    def gain(self) -> FloatArray:
        """How much of the variance of all probabilities would go if the log-evidence of one model were known (k,).

        Notes
        -----
        The first-order index of Sobol: Var E[p | log Z_j], summed over the probabilities, from two sets of draws
        that share nothing but log Z_j.
        """
        first, second = self._normals
        centred = self.draws - self.draws.mean(axis=0)
        out = np.full(len(self.log_evidence), np.inf)
        for j in np.flatnonzero(self.known):
            mixed = second.copy()
            mixed[:, j] = first[:, j]
            other = self._probabilities(mixed)
            out[j] = max(float(np.sum(centred * (other - other.mean(axis=0))) / N_DRAWS), 0.0)
        return out
