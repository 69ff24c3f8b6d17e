"""Kernel herding: a greedy choice of points whose plain average stands for a weighted measure."""

import operator

import numpy as np
from numpy.typing import ArrayLike

from basq.errors import InputError
from basq.selection.recombination import check_candidates
from basq.types import IntArray


def herd(features: ArrayLike, weights: ArrayLike, n_points: int) -> IntArray:
    """Choose distinct candidates whose equal-weight mean is near the measure's.

    Parameters
    ----------
    features : (N, m) array
        Finite features of the kernel, ``k(x, y) ≈ phi(x) @ phi(y)``, at the candidates.
    weights : (N,) array
        Non-negative, not all zero, of any total. Candidates of weight 0 are never chosen.
    n_points : int
        How many to choose; all candidates of positive weight if there are no more than that.

    Returns
    -------
    (k,) int array
        Rows in the order of choice, each once: the first j of them are the herd of j points.

    Raises
    ------
    InputError
        For wrong shapes, negative or non-finite values, weights that are all zero, ``n_points`` below 1.

    Notes
    -----
    With μ the mean embedding of the weights, the next point after t of them maximises
    ⟨μ, φ(x)⟩ - Σ_s k(x, x_s) / (t + 1). The cost is O(N m n_points). For a kernel whose diagonal is constant
    this lowers the maximum mean discrepancy greedily; otherwise large φ(x) are favoured, as herding does.

    References
    ----------
    Chen, Welling and Smola 2010, "Super-samples from kernel herding", eq. 8.

    Examples
    --------
    >>> herd(np.eye(4), [4.0, 1.0, 0.0, 2.0], 2).tolist()
    [0, 3]
    """
    phi, mass = check_candidates(features, weights)
    wanted = operator.index(n_points)
    if wanted < 1:
        raise InputError(f"n_points is {wanted}; it must be at least 1.")
    attraction = phi @ (phi.T @ (mass / mass.sum()))
    # chosen and weightless candidates lose every comparison
    attraction[mass == 0.0] = -np.inf
    repulsion = np.zeros(len(phi))
    chosen = np.empty(min(wanted, int(np.count_nonzero(mass))), dtype=np.intp)
    for t in range(len(chosen)):
        best = int(np.argmax(attraction - repulsion / (t + 1)))
        chosen[t] = best
        attraction[best] = -np.inf
        repulsion += phi @ phi[best]
    return chosen
