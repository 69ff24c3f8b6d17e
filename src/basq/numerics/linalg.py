"""Dense linear algebra with one jitter policy, shared by everything above it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController

from basq.errors import FitError
from basq.types import FloatArray

JITTERS = (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
"""Jitter tried in turn, relative to the scale of the matrix."""

SMALL = 1000
"""Observations up to which one BLAS thread is faster than several, whose hand-over costs more than they save."""

BLOCK = 32_768
"""Numbers that are worked on at a time."""


@contextmanager
def blas_threads(n: int) -> Iterator[None]:
    """Use one BLAS thread while matrices are of the order of a small n."""
    with _libraries().limit(limits=1 if n <= SMALL else None, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS of NumPy and SciPy; looking for them takes milliseconds, every time."""
    return ThreadpoolController()


def cholesky(a: FloatArray, scale: float | None = None, *, plus: FloatArray | float = 0.0) -> tuple[FloatArray, float]:
    """Factorise a symmetric matrix, with the least jitter that works.

    Parameters
    ----------
    a : (n, n) array
        Symmetric, positive definite up to rounding; only its upper triangle is read. Not modified.
    scale : float, optional
        What the jitter is relative to; the mean of the diagonal by default. A Schur complement, whose diagonal may
        be all rounding, needs the scale of the matrix that it came from.
    plus : float or (n,) array
        Added to the diagonal.

    Returns
    -------
    L : (n, n) array
        Lower Cholesky factor of ``a + jitter * I``.
    jitter : float
        What was added to the diagonal; 0 when nothing was needed.

    Raises
    ------
    FitError
        If the matrix is not finite, or is indefinite beyond rounding.
    """
    jitter = 0.0
    for relative in JITTERS:
        if relative > 0.0:
            scale = float(np.mean(np.diag(a) + plus)) if scale is None else scale
            jitter = relative * scale
        b = np.array(a.T, order="F")  # what is above the diagonal by rows is below it by columns
        diagonal(b)[:] += plus + jitter
        factor, info = linalg.lapack.dpotrf(b, lower=1, overwrite_a=1, clean=1)
        if info == 0 and np.isfinite(diagonal(factor).sum()):
            return factor, jitter
        if not np.isfinite(np.triu(a)).all():
            raise FitError("Cholesky of a matrix with NaN or inf entries.")
    raise FitError(f"A {a.shape} matrix is not positive definite, even with {JITTERS[-1]:g} of its diagonal added.")


def diagonal(a: FloatArray) -> FloatArray:
    """Return the diagonal of a matrix in Fortran order, (n, n) -> (n,), to read or to change."""
    return a.T.reshape(-1)[:: len(a) + 1]


def solve_lower(factor: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``L⁻¹ b`` for a lower-triangular ``L``."""
    out, info = linalg.lapack.dtrtrs(factor, b, lower=1)  # scipy's wrapper costs more than small solves
    if info != 0:
        raise FitError("Solve with a singular triangular matrix.")
    return out


def inverse_lower(factor: FloatArray) -> FloatArray:
    """Return ``L⁻¹`` for a lower-triangular ``L``, in Fortran order."""
    out, info = linalg.lapack.dtrtri(factor, lower=1)
    if info != 0:
        raise FitError("Inverse of a singular triangular matrix.")
    return out


def product_lower(lower: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``A b`` for a lower-triangular ``A`` and a matrix b (n, m), in half the time of a full product."""
    out: FloatArray = linalg.blas.dtrmm(1.0, lower, b, lower=1)
    return out


def cho_solve(factor: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``(L Lᵀ)⁻¹ b`` for a lower-triangular ``L``."""
    out, _ = linalg.lapack.dpotrs(factor, b, lower=1)
    return out


def cho_inverse(factor: FloatArray) -> FloatArray:
    """Return ``(L Lᵀ)⁻¹`` as a full symmetric matrix."""
    upper = cho_inverse_upper(np.array(factor, order="F"))
    out: FloatArray = upper.T + upper
    out[np.diag_indices(len(out))] *= 0.5
    return out


def cho_inverse_upper(factor: FloatArray) -> FloatArray:
    """Return the upper triangle of ``(L Lᵀ)⁻¹``, with zeros below it, in the place of ``L``."""
    inverse, info = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    if info != 0:
        raise FitError("Inverse from a singular Cholesky factor.")
    out: FloatArray = inverse.T
    return out


def log_det(a: FloatArray) -> float:
    """Return log |det a|."""
    return float(np.linalg.slogdet(a)[1])


def whiten(cov: FloatArray, x: FloatArray) -> FloatArray:
    """Map rows of x to coordinates in which the metric ``cov⁻¹`` is Euclidean.

    Parameters
    ----------
    cov : (d, d) array
    x : (n, d) array

    Returns
    -------
    (n, d) array
    """
    return solve_lower(cholesky(cov)[0], x.T).T


def square_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared Euclidean distances between rows, by one matrix product.

    Parameters
    ----------
    a : (n, d) array
    b : (m, d) array

    Returns
    -------
    (n, m) array, never negative
    """
    out = half_square_distances(a, b)
    out *= 2.0
    return np.maximum(out, 0.0, out=out)


def half_square_distances(a: FloatArray, b: FloatArray, plus: float = 0.0) -> FloatArray:
    """½ |a − b|² + plus between rows, with nothing but one matrix product: (n, m); rounding may leave it below plus."""
    centre = b.mean(axis=0) if len(b) else np.zeros(b.shape[1])
    out: FloatArray = distance_left(a, centre, plus) @ distance_right(b, centre).T
    return out


def distance_left(a: FloatArray, centre: FloatArray, plus: float = 0.0) -> FloatArray:
    """Left factor of `half_square_distances`: (n, d + 2).

    A centre inside the cloud keeps the cancellation small when it is far from the origin.
    """
    out, d = np.empty((len(a), a.shape[1] + 2)), a.shape[1]
    shifted = np.subtract(centre, a, out=out[:, :d])
    out[:, d] = 0.5 * np.einsum("ij,ij->i", shifted, shifted) + plus
    out[:, d + 1] = 1.0
    return out


def distance_right(b: FloatArray, centre: FloatArray) -> FloatArray:
    """Right factor of `half_square_distances`: (m, d + 2)."""
    out, d = np.empty((len(b), b.shape[1] + 2)), b.shape[1]
    shifted = np.subtract(b, centre, out=out[:, :d])
    out[:, d] = 1.0
    out[:, d + 1] = 0.5 * np.einsum("ij,ij->i", shifted, shifted)
    return out


def upper_blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows, and their columns from the diagonal on, that cover the upper triangle of an (n, n) matrix.

    Each fits into the processor's cache, and has about as much below the diagonal as a square on it.
    """
    first = 0
    while first < n:
        last = min(n, first + max(1, BLOCK // (n - first)))
        yield slice(first, last), slice(first, n)
        first = last


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Blocks of rows of a large matrix that fit into the processor's cache, so that passes over them cost little."""
    step = max(1, BLOCK // max(n_columns, 1))
    return (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))
