"""Test functions from random Fourier features."""

import numpy as np

from basq.errors import InputError
from basq.gp.gp import Prediction
from basq.gp.kernels.base import Spectral
from basq.numerics.linalg import cho_solve, cholesky
from basq.paper.target import Target
from basq.selection.nystrom import Features, exact_eigenpairs
from basq.types import FloatArray


def fourier_features(
    target: Target, p: Prediction, n_features: int, n_frequencies: int, rng: np.random.Generator
) -> Features:
    """Test functions from random Fourier features of the prior kernel, conditioned on the data.

    The kernel is approximated by ψ(x)ᵀψ(x′) with random cosines (Rahimi & Recht 2007); the data shrink the weights'
    covariance to S = (I + ΨᵀΨ/σ²)⁻¹, and the leading directions of S over the candidates are the test functions.
    """
    gp = target.surrogate.gp
    if not isinstance(gp.kernel, Spectral):
        raise InputError(
            f"Random Fourier features need a stationary kernel, not {type(gp.kernel).__name__}; "
            "use test_functions='nystrom'."
        )
    frequencies = gp.kernel.sample_frequencies(n_frequencies, rng)
    phases = rng.uniform(0.0, 2.0 * np.pi, n_frequencies)
    scale = np.sqrt(2.0 * gp.kernel.variance / n_frequencies)
    at_data = scale * np.cos(gp.x @ frequencies.T + phases)
    at_points = scale * np.cos(p.x @ frequencies.T + phases)
    # the cosines explain the kernel only to about 1/√n_frequencies: treat that as noise, or S becomes singular
    noise = gp.noise.mean() + gp.kernel.variance / n_frequencies
    factor, _ = cholesky(np.eye(n_frequencies) + at_data.T @ at_data / noise)
    root, _ = cholesky(cho_solve(factor, np.eye(n_frequencies)))
    features = at_points @ root
    if target.follows_mean:
        features *= np.sign(p.mean)[:, None]
    elif not target.uses_process:
        features = _of_square(features, target, p, rng)
    _, vectors = exact_eigenpairs(features.T @ features / len(features), min(n_features, n_frequencies))
    features = features @ vectors
    return Features(features, target, p)


def _of_square(features: FloatArray, target: Target, p: Prediction, rng: np.random.Generator) -> FloatArray:
    """Features of the covariance of ½ ℓ̃² from those of ℓ̃: m̃ C̃ m̃′, and ½ C̃² where the model has it.

    m̃ keeps its sign. What the model's variance has beyond m̃² C̃ is a multiple of C̃², whose features are products of two:
    of random signed sums, since those of all pairs would be too many.
    """
    linear = features * p.mean[:, None]
    beyond = target.var(p) - p.mean**2 * p.var
    share = np.sqrt(np.maximum(beyond, 0.0)) / np.maximum(p.var, 1e-300)
    if share.max() < 1e-2:  # WSABI-L, up to rounding
        return linear
    n = features.shape[1]
    one, other = rng.choice([-1.0, 1.0], size=(2, n, n))
    products = share[:, None] * (features @ one) * (features @ other) / np.sqrt(n)
    return np.concatenate([linear, products], axis=1)
