"""Test functions from random Fourier features."""

import numpy as np

from basq.errors import InputError
from basq.gp.gp import Prediction
from basq.gp.kernels.base import Spectral
from basq.numerics.linalg import cho_solve, cholesky
from basq.paper.target import Target
from basq.selection.nystrom import Features, exact_eigenpairs


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
    elif not target.factorised:
        features *= np.sqrt(target.var(p) / np.maximum(p.var, 1e-300))[:, None]
    _, vectors = exact_eigenpairs(features.T @ features / len(features), min(n_features, n_frequencies))
    features = features @ vectors
    return Features(features, target, p)
