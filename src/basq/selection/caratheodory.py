"""Carathéodory's reduction: drop weighted points one by one, keeping every moment, in orthogonal steps."""

import numpy as np
from scipy.linalg import blas, lapack

from basq.types import FloatArray

RANK_TOLERANCE = 2e-14
"""Share of the largest pivot below which a combination of features counts as 0; bounds the moment error."""
FAR = 1e-2
"""Ratio of the distances to both ends of a line, below which the farther one is avoided if possible."""
OUT_OF_REACH = 1e-10
"""The same, below which the farther end is lost in rounding and never used."""
TINY = float(np.finfo(np.float64).tiny)
EPS = float(np.finfo(np.float64).eps)


def thin(points: FloatArray, weights: FloatArray, cost: FloatArray | None) -> FloatArray:
    """Find factors (n,) >= 0 on the weights, most of them 0, that keep the moments of the points.

    Parameters
    ----------
    points : (n, m) array
    weights : (n,) array
        Positive.
    cost : (n,) array or None
        Weights times objective; its sum does not grow.

    Returns
    -------
    (n,) array
        With no more non-zeros than the rank of the points' features and the constant.
    """
    root = np.sqrt(weights)
    basis = _null_space(standardise(points, weights))
    return _eliminate(basis, root, None if cost is None else cost / root) / root


def standardise(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sqrt(weights) times a column of ones and the centred, scaled features that are not constant.

    Every column of the result, (n, 1 + m') with m' <= m, has unit length, so that one tolerance suits all.
    """
    peak = np.abs(points).max(axis=0, initial=0.0)
    # to [-1, 1] first: the squares below must not overflow, and a constant is one relative to its own size
    unit = points / np.where(peak > 0.0, peak, 1.0)
    share = weights / weights.sum()
    unit -= share @ unit
    columns = np.sqrt(share)[:, None] * unit
    length = np.sqrt((columns**2).sum(axis=0))
    varies = length > RANK_TOLERANCE
    return np.column_stack([np.sqrt(share), columns[:, varies] / length[varies]])


def _null_space(a: FloatArray) -> FloatArray:
    """Return an orthonormal basis (n, n - rank), in Fortran order, of the z with zᵀa = 0, for a (n, p)."""
    n, p = a.shape
    work = 64 * (n + p)
    qr, _, tau, _, _ = lapack.dgeqp3(a, lwork=work)
    pivots = np.abs(np.diag(qr))
    rank = int(np.sum(pivots > RANK_TOLERANCE * pivots[0]))
    trailing = np.zeros((n, n - rank), order="F")
    np.fill_diagonal(trailing[rank:], 1.0)
    basis: FloatArray = lapack.dormqr("L", "N", qr[:, : len(tau)], tau, trailing, work, overwrite_c=1)[0]
    return basis


def _eliminate(basis: FloatArray, start: FloatArray, cost: FloatArray | None) -> FloatArray:
    """Walk from ``start`` along null directions, each until one more coordinate is 0.

    Parameters
    ----------
    basis : (n, k) array
        Orthonormal columns, in Fortran order. Overwritten.
    start : (n,) array
        Positive.
    cost : (n,) array or None
        Its product with the coordinates does not grow.

    Returns
    -------
    (n,) array
        Non-negative, at least k of them 0, and ``start`` plus a combination of the columns.
    """
    y = start.copy()
    # what the objective may rise: rounding, and whatever it has fallen before
    slack = 0.0 if cost is None else 4.0 * EPS * float(np.abs(cost) @ start)
    for i in range(basis.shape[1]):
        z = basis[:, i]
        speed = z / y
        slope = 0.0 if cost is None else float(cost @ z)
        p = _nearest_wall(speed, slope, slack)
        slack += slope / float(speed[p])
        y -= z / speed[p]
        np.maximum(y, TINY, out=y)
        # an infinite coordinate has speed 0: it is never met again
        y[p] = np.inf
        _deflate(basis[:, i:], p)
    y[np.isinf(y) | (y <= TINY)] = 0.0
    return y


def _nearest_wall(speed: FloatArray, slope: float, slack: float) -> int:
    """Choose the coordinate (of n) that falls to 0: at the nearer end of the line, or at its downhill end.

    With the nearer end no coordinate more than doubles, so rounding is not amplified. Downhill ends can be
    far off, where light points would take over the mass of heavy ones; the nearer end then serves as long as
    the objective has slack for its rise.
    """
    near, other = int(speed.argmax()), int(speed.argmin())
    if speed[near] < -speed[other]:
        near, other = other, near
    rise = -slope / float(speed[near])
    nearness = abs(float(speed[other] / speed[near]))
    if rise <= 0.0 or nearness < OUT_OF_REACH or (nearness < FAR and rise <= slack):
        return near
    return other


def _deflate(basis: FloatArray, p: int) -> None:
    """Reflect the columns (n, k) in place so that row p is 0 in all but the first, which is spent."""
    # a Householder reflection and not Gaussian elimination: the columns stay orthonormal whatever the pivot
    h = basis[p].copy()
    h[0] += np.copysign(np.sqrt(h @ h), h[0])
    norm = float(h @ h)
    if norm > 0.0 and len(h) > 1:
        rest = basis[:, 1:]
        blas.dger(-2.0 / norm, blas.dgemv(1.0, basis, h), h[1:], a=rest, overwrite_a=1)
        rest[p] = 0.0
