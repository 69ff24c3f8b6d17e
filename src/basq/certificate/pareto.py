"""How heavy the tail of importance weights is, and what to do about it: Pareto-smoothed importance sampling.

Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine Learning Research 25 (72); the fit of the generalised
Pareto law is that of Zhang and Stephens (2009), Technometrics 51 (3).
"""

import numpy as np

from basq.types import FloatArray

LARGEST = 0.7
"""Shape above which weights are too heavy for their mean, and its error, to be believed."""
FEWEST = 5
"""Weights that a tail must have for its shape to be known."""


def shape(log_weights: FloatArray) -> float:
    """k̂ of weights (n,): their moments of order 1/k̂ and more are infinite; inf where there are too few to tell."""
    tail, _ = _tail(log_weights)
    return np.inf if len(tail) < FEWEST else _fit(tail)[0]


def smoothed(log_weights: FloatArray) -> FloatArray:
    """The weights, normalised, with the largest ones replaced by expected order statistics of their law: (n,)."""
    tail, order = _tail(log_weights)
    out = np.exp(log_weights - log_weights.max())
    if len(tail) >= FEWEST:
        k, scale = _fit(tail)
        levels = (np.arange(len(tail)) + 0.5) / len(tail)
        excess = np.expm1(-k * np.log1p(-levels)) * scale / k if abs(k) > 1e-12 else -np.log1p(-levels) * scale
        out[order] = np.minimum(out[order[0]] - tail[0] + excess, 1.0)
    return out / out.sum()


def _tail(log_weights: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """What the largest weights exceed the others by, increasing, in units of the largest, and where they are."""
    w, n = np.exp(log_weights - log_weights.max()), len(log_weights)
    order = np.argsort(w, kind="stable")
    n_tail = int(min(0.2 * n, 3.0 * np.sqrt(n)))
    order = order[n - n_tail :]
    excess = w[order] - np.sort(w)[n - n_tail - 1]
    return excess[excess > 0.0], order[excess > 0.0]


def _fit(excess: FloatArray) -> tuple[float, float]:
    """Shape and scale of the generalised Pareto law of excesses, increasing: posterior means under a weak prior."""
    n = len(excess)
    n_grid = 30 + int(np.sqrt(n))
    quartile, largest = excess[int(n / 4 + 0.5) - 1], excess[-1]
    b = 1.0 / largest + (1.0 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))) / (3.0 * quartile)
    k = np.log1p(-b[:, None] * excess).mean(axis=1)
    log_likelihood = n * (np.log(-b / k) - k - 1.0)
    w = np.exp(log_likelihood - log_likelihood.max())
    mean_b = float(b @ w / w.sum())
    shape = float(np.log1p(-mean_b * excess).mean())
    scale = -shape / mean_b
    return (n * shape + 5.0) / (n + 10.0), scale  # towards 1/2, as where little is known
