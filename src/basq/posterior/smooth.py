"""A smooth one-dimensional density from samples: penalised maximum likelihood on a histogram.

A kernel estimate with a bandwidth h widens the density by 1 + h² and shows the noise of its samples as waves of several
per cent. Here the log of the density is penalised for its third differences (Silverman 1982, Eilers and Marx 1996).
What costs nothing is a Gaussian: the variance is kept, and in standard space a parameter that is not constrained has
a flat density up to the hard edges of its prior. The strength of the penalty is that of the largest marginal
likelihood (Laplace's approximation).
"""

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from basq.types import FloatArray

MIN_BINS, MAX_BINS = 120, 800
ORDER = 3
"""Of the differences that are penalised."""
STRENGTHS = np.logspace(-2.0, 8.0, 16)
"""Of the penalty, among which the data choose."""
MARGIN = 0.3
"""Standard deviations beyond the outermost samples that the density reaches: further out it would be extrapolated."""
DAMPING = 1e-11
"""Of the steps, relative to the penalty, so that empty tails leave the matrix positive definite."""
DEPENDENCE = 0.5
"""Samples of a Markov chain count as so many independent ones each, in the choice of the strength."""


def log_density_1d(
    samples: FloatArray, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[FloatArray, FloatArray]:
    """Log-density of samples (n,) of one coordinate, up to a constant, on an even grid within bounds: (m,) and (m,)."""
    centre, scale = float(samples.mean()), float(samples.std()) or 1.0
    z = (samples - centre) / scale
    low = max(float(z.min()) - MARGIN, (bounds[0] - centre) / scale)
    high = min(float(z.max()) + MARGIN, (bounds[1] - centre) / scale)
    counts, edges = np.histogram(z, bins=_bins(z, high - low), range=(low, high))
    counts = DEPENDENCE * counts
    window = np.hanning(13)
    theta = np.log(np.convolve(counts, window / window.sum(), mode="same") + 0.1)
    best, log_rate = -np.inf, theta
    for strength in STRENGTHS:  # each starts where the last one ended
        score, theta = _fit(counts, strength, theta)
        if score > best:
            best, log_rate = score, theta
    return centre + scale * 0.5 * (edges[1:] + edges[:-1]), log_rate


def _bins(samples: FloatArray, span: float) -> int:
    """Eight bins or more across the narrowest part that holds a tenth of the samples."""
    ordered = np.sort(samples)
    share = max(len(ordered) // 10, 1)
    narrowest = float((ordered[share:] - ordered[:-share]).min())
    return int(np.clip(8.0 * span / max(narrowest, 1e-300 + span / MAX_BINS), MIN_BINS, MAX_BINS))


def _fit(counts: FloatArray, strength: float, theta: FloatArray) -> tuple[float, FloatArray]:
    """Log marginal likelihood of a strength, and the penalised log of the rate in every bin (m,), from a start (m,)."""
    m = len(counts)
    rate = strength * (m / MIN_BINS) ** (2 * ORDER - 1)  # the same roughness, whatever the bins
    penalty = rate * _penalty(m)
    value = _objective(counts, theta, penalty)
    for _ in range(60):
        gradient = counts - np.exp(theta) - _times(penalty, theta)
        curvature = penalty.copy()
        curvature[-1] += np.exp(theta) + DAMPING * rate
        factor = cholesky_banded(curvature)
        step = cho_solve_banded((factor, False), gradient)
        step *= min(1.0, 3.0 / max(float(np.abs(step).max()), 1e-300))
        length = 1.0
        while (new := _objective(counts, theta + length * step, penalty)) < value and length > 1e-6:
            length *= 0.5
        theta, gain, value = theta + length * step, new - value, new
        if gain < 1e-4:
            break
    log_det = 2.0 * float(np.log(factor[-1]).sum())
    return value + 0.5 * (m - ORDER) * np.log(rate) - 0.5 * log_det, theta


def _objective(counts: FloatArray, theta: FloatArray, penalty: FloatArray) -> float:
    """Poisson log-likelihood less the penalty."""
    return float(counts @ theta - np.exp(theta).sum() - 0.5 * theta @ _times(penalty, theta))


def _penalty(m: int) -> FloatArray:
    """DᵀD for third differences, its upper diagonals in the rows of a banded matrix (4, m)."""
    out = np.zeros((ORDER + 1, m))
    weights = np.array([-1.0, 3.0, -3.0, 1.0])
    for i in range(ORDER + 1):
        for j in range(i, ORDER + 1):
            out[ORDER - (j - i), j : m - ORDER + j] += weights[i] * weights[j]
    return out


def _times(banded: FloatArray, x: FloatArray) -> FloatArray:
    """Product of a symmetric banded matrix with a vector."""
    out: FloatArray = banded[-1] * x
    for k in range(1, len(banded)):
        diagonal = banded[-1 - k, k:]
        out[:-k] += diagonal * x[k:]
        out[k:] += diagonal * x[:-k]
    return out
