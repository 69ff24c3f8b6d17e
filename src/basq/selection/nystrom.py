"""Test functions: the leading directions of the surrogate's covariance at the candidates.

Numbers of equations here and elsewhere are those of the paper (Adachi et al. 2022), as docs/maths.md counts them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import linalg

from basq.gp.gp import Prediction
from basq.types import FloatArray


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
        """What is left of the kernel's diagonal, (N,), never negative; costs more than all else, so only if asked.

        K₁(x, x) of Theorem 1, eq. (12).
        """
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
    """Eigenfunctions of the target's kernel, by the Nyström method: φᵢ of eq. (7), over √λᵢ.

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
    values, vectors = _top_eigenpairs(gram, m, rng) if randomised else exact_eigenpairs(gram, m)
    keep = values > 1e-13 * max(values.max(initial=0.0), 1e-300)
    vectors = vectors[:, keep] / np.sqrt(values[keep])
    return Features(target.project(p, centres, vectors), target, p)


def exact_eigenpairs(a: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """Leading m eigenpairs of a symmetric matrix, largest first."""
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
