"""Test functions: the leading directions of the surrogate's covariance at the candidates."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from scipy import linalg

from basq.errors import InputError
from basq.linalg import cho_solve, cholesky
from basq.selection.target import Target
from basq.surrogate.gp import Prediction
from basq.surrogate.kernels import Stationary
from basq.types import FloatArray

TestFunctions = Literal["nystrom", "nystrom-exact", "fourier"]


@dataclass(frozen=True)
class Features:
    """Test functions at the candidates, scaled so that kernel ≈ values · valuesᵀ.

    Attributes
    ----------
    values : (N, m) array
        Leading first.
    target : Covariance
    prediction : Prediction
        The candidates.
    """

    values: FloatArray
    target: "Covariance"
    prediction: Prediction

    @cached_property
    def residual(self) -> FloatArray:
        """What is left of the kernel's diagonal, (N,), never negative; costs more than all else, so only if asked."""
        explained = np.einsum("ij,ij->i", self.values, self.values)
        return np.maximum(self.target.var(self.prediction) - explained, 0.0)


class Covariance(Protocol):
    """A covariance between predicted points: a Target's, or a process's own."""

    def var(self, p: Prediction) -> FloatArray:
        """Diagonal: (m,)."""
        ...

    def cov(self, p: Prediction, q: Prediction, /) -> FloatArray:
        """Between two sets of points: (m_p, m_q)."""
        ...

    def project(self, p: Prediction, centres: Prediction, vectors: FloatArray, /) -> FloatArray:
        """``cov(p, centres) @ vectors``: (m_p, k)."""
        ...


def nystrom_features(
    target: Covariance,
    p: Prediction,
    n_features: int,
    n_nystrom: int,
    rng: np.random.Generator,
    *,
    randomised: bool = True,
    weights: FloatArray | None = None,
) -> Features:
    """Eigenfunctions of the target's kernel, by the Nyström method.

    Parameters
    ----------
    p : Prediction
        The N candidates.
    n_features : int
        m, how many test functions.
    n_nystrom : int
        M ≥ m, how many candidates the eigenfunctions are learned from.
    randomised : bool
        Randomised eigendecomposition (Halko, Martinsson & Tropp 2011) instead of the exact one.
    weights : (N,) array, optional
        Probabilities with which those candidates are drawn; even by default.
    """
    centres = p[rng.choice(len(p.x), size=min(n_nystrom, len(p.x)), replace=False, p=weights)]
    gram = target.cov(centres, centres)
    gram = 0.5 * (gram + gram.T)
    m = min(n_features, len(gram))
    values, vectors = _top_eigenpairs(gram, m, rng) if randomised else _exact_eigenpairs(gram, m)
    keep = values > 1e-13 * max(values.max(initial=0.0), 1e-300)
    vectors = vectors[:, keep] / np.sqrt(values[keep])
    return Features(target.project(p, centres, vectors), target, p)


def _exact_eigenpairs(a: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    values, vectors = linalg.eigh(a, subset_by_index=(len(a) - m, len(a) - 1))
    return values[::-1], vectors[:, ::-1]


def _top_eigenpairs(a: FloatArray, m: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Leading m eigenpairs of a symmetric matrix by a random projection and two power steps."""
    width = min(m + 10, len(a))
    basis = rng.standard_normal((len(a), width))
    for _ in range(3):
        basis, _ = np.linalg.qr(a @ basis)
    values, small = np.linalg.eigh(basis.T @ a @ basis)
    order = np.argsort(values)[::-1][:m]
    return values[order], basis @ small[:, order]


def fourier_features(
    target: Target, p: Prediction, n_features: int, n_frequencies: int, rng: np.random.Generator
) -> Features:
    """Test functions from random Fourier features of the prior kernel, conditioned on the data.

    The kernel is approximated by ψ(x)ᵀψ(x′) with random cosines (Rahimi & Recht 2007); the data shrink the weights'
    covariance to S = (I + ΨᵀΨ/σ²)⁻¹, and the leading directions of S over the candidates are the test functions.
    """
    gp = target.surrogate.gp
    if not isinstance(gp.kernel, Stationary):
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
    _, vectors = _exact_eigenpairs(features.T @ features / len(features), min(n_features, n_frequencies))
    features = features @ vectors
    return Features(features, target, p)
