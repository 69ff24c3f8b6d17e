"""Recombination: few weighted points with the same moments as many.

Given N points with non-negative weights and m test functions, Carathéodory's theorem says that m + 1 of the
points, with new non-negative weights, have the same total weight and the same m moments. Two ways to find
them: a divide-and-conquer tree (fast) and a linear programme (a reference, and the best for an objective).
"""

import operator
import warnings
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize

from basq.errors import FitError, InputError, NumericsWarning
from basq.numerics.linalg import blas_threads
from basq.selection.caratheodory import TINY, standardise, thin
from basq.types import FloatArray, IntArray

Method = Literal["tree", "lp"]

MOMENT_TOLERANCE = 1e-10
"""Moment error above which the linear programme's answer is not used."""
ROUNDING = 1e-13
"""Moment error below which there is nothing to correct."""
LP_SECONDS = 60.0
"""Time after which the linear programme gives up."""


@dataclass(frozen=True)
class Recombination:
    """A few of the candidates, with weights that keep the total and the moments.

    Attributes
    ----------
    index : (k,) int array
        Rows of the chosen candidates, sorted, each once.
    weights : (k,) array
        Positive; their sum is that of the given weights.
    method : str
        The method that made this answer, ``"tree"`` or ``"lp"``.
    fallback : str or None
        What fell back to what, and why; None when nothing did.
    moment_error : float
        Largest error of the total and of the moments, the total relative to itself and each moment relative
        to ``sum(weights * abs(feature))``, so that a moment that cancels to 0 has a scale too.
    """

    index: IntArray
    weights: FloatArray
    method: Method
    fallback: str | None
    moment_error: float


def recombine(
    features: ArrayLike,
    weights: ArrayLike,
    *,
    n_points: int | None = None,
    objective: ArrayLike | None = None,
    method: Method = "tree",
) -> Recombination:
    """Choose few of many weighted points so that total and moments stay.

    Parameters
    ----------
    features : (N, m) array
        Test functions at the candidates, without a column of ones: the total is always kept.
    weights : (N,) array
        Non-negative, not all zero, of any total. Candidates of weight 0 are never chosen.
    n_points : int, optional
        The most points wanted. Only the first ``n_points - 1`` features are used; default ``m + 1``.
    objective : (N,) array, optional
        Asks for a *proper* recombination: ``new_weights @ objective[index] <= weights @ objective``, up to
        rounding. The square root of the diagonal that the features leave unexplained is the usual one, and what
        Theorem 1, eq. (12), asks for.
    method : {"tree", "lp"}
        Divide and conquer in O(N m + m³ log(N / m)), or a linear programme that minimises the objective.
        When the linear programme fails, the tree takes over with a `NumericsWarning`.

    Returns
    -------
    Recombination
        With at most ``m + 1`` points, fewer if the features are linearly dependent. Candidates that are no
        more than ``m + 1`` to begin with come back as they are.

    Raises
    ------
    InputError
        For wrong shapes, negative or non-finite values, weights that are all zero, an unknown method.

    Notes
    -----
    Deterministic: no random numbers, so the same input gives the same points.

    References
    ----------
    Tchernychova 2015, "Carathéodory cubature measures"; Hayakawa, Oberhauser and Lyons 2022, "Positively
    weighted kernel quadrature via subsampling"; Adachi et al. 2022, Algorithm 1, lines 7 to 10.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 1001)
    >>> rule = recombine(np.stack([x, x**2, x**3], axis=1), np.ones(1001))
    >>> len(rule.index) <= 4, bool(np.isclose(rule.weights @ x[rule.index] ** 2, np.sum(x**2)))
    (True, True)
    """
    phi, given = check_candidates(features, weights)
    cost = _check_objective(objective, len(given))
    if method not in get_args(Method):
        raise InputError(f"method is {method!r}; allowed are {', '.join(map(repr, get_args(Method)))}.")
    phi = phi[:, : _check_n_points(n_points, phi.shape[1]) - 1]
    index = np.flatnonzero(given)
    if len(index) <= phi.shape[1] + 1:
        return Recombination(index, given[index], method, None, 0.0)

    total = float(given.sum())
    # what would underflow relative to the total has no part in any moment
    index = np.flatnonzero(given > TINY * total)
    if len(index) < len(given):
        phi, cost = phi[index], None if cost is None else cost[index]
    start = given[index] / total
    with blas_threads(2 * (phi.shape[1] + 1)):
        moments = _Moments.of(phi, start)
        chosen, shares, method, fallback = _solve(phi, start, cost, moments, method)
    return Recombination(index[chosen], shares * total, method, fallback, moments.error(phi[chosen], shares))


def check_candidates(features: ArrayLike, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return features (N, m) and weights (N,) as float arrays, or say what is wrong with them.

    Raises
    ------
    InputError
        For wrong shapes, non-finite or negative values, or a total that is not positive and finite.
    """
    phi = np.ascontiguousarray(features, dtype=np.float64)
    mass = np.ascontiguousarray(weights, dtype=np.float64)
    if phi.ndim != 2 or mass.shape != phi.shape[:1]:
        raise InputError(
            f"features have shape {phi.shape} and weights {mass.shape}; needed are (N, m) and (N,): "
            "one row and one weight per candidate."
        )
    wrong = ~(np.isfinite(mass) & (mass >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"weights[{row}] is {mass[row]}; weights must be finite and not negative.")
    if not np.isfinite(phi).all():
        row, column = np.argwhere(~np.isfinite(phi))[0]
        raise InputError(f"features[{row}, {column}] is {phi[row, column]}; all features must be finite.")
    with np.errstate(over="ignore"):
        total = mass.sum()
    if not 0.0 < total < np.inf:
        raise InputError(
            f"The {len(mass)} weights sum to {total}; a positive, finite total is needed. "
            "If they come from log-weights, subtract the largest before taking exp."
        )
    return phi, mass


def _check_objective(objective: ArrayLike | None, n_candidates: int) -> FloatArray | None:
    if objective is None:
        return None
    cost = np.asarray(objective, dtype=np.float64)
    if cost.shape != (n_candidates,) or not np.isfinite(cost).all():
        raise InputError(
            f"objective has shape {cost.shape} and {np.sum(~np.isfinite(cost))} non-finite values; "
            f"needed are {n_candidates} finite numbers, one per candidate."
        )
    return cost


def _check_n_points(n_points: int | None, n_features: int) -> int:
    if n_points is None:
        return n_features + 1
    try:
        wanted = operator.index(n_points)
    except TypeError:
        raise InputError(f"n_points is {n_points!r}; it must be a whole number.") from None
    if wanted < 1:
        raise InputError(f"n_points is {wanted}; it must be at least 1.")
    return min(wanted, n_features + 1)


def _solve(
    phi: FloatArray, weights: FloatArray, cost: FloatArray | None, moments: "_Moments", method: Method
) -> tuple[IntArray, FloatArray, Method, str | None]:
    """Run the method, and the tree in place of a linear programme that fails; weights (N,) sum to 1."""
    fallback = None
    if method == "lp":
        try:
            return *_linear_programme(phi, weights, cost, moments), "lp", None
        except FitError as error:
            fallback = f"lp to tree: {error}"
            warnings.warn(f"Recombination fell back from {fallback}", NumericsWarning, stacklevel=3)
    index, shares = _tree(phi, weights, cost)
    return index, _polish(phi[index], shares, moments), "tree", fallback


# --- Moments: what has to be kept, and the last correction towards it ---------------------------------------


@dataclass(frozen=True)
class _Moments:
    """Moments (m,) of weights that sum to 1, and the size (m,) that errors are measured by."""

    mean: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, phi: FloatArray, weights: FloatArray) -> "_Moments":
        # the mean of |phi| and not the root mean square: squares of large features overflow
        return cls(weights @ phi, weights @ np.abs(phi))

    def residual(self, phi: FloatArray, weights: FloatArray) -> FloatArray:
        """Relative errors (m + 1,) of the total and the moments of other points (k, m) and weights (k,)."""
        size = np.where(self.size > 0.0, self.size, 1.0)
        return np.append(1.0 - weights.sum(), (self.mean - weights @ phi) / size)

    def error(self, phi: FloatArray, weights: FloatArray) -> float:
        return float(np.abs(self.residual(phi, weights)).max())


def _polish(phi: FloatArray, weights: FloatArray, moments: _Moments) -> FloatArray:
    """Solve for the weights (k,) on their final points (k, m) once more, to remove accumulated rounding."""
    if moments.error(phi, weights) <= ROUNDING:
        # a solve would add the noise of its own conditioning, which the objective can see
        return weights
    size = np.where(moments.size > 0.0, moments.size, 1.0)
    # unknowns are relative changes: the least-squares solution then leaves small weights small and positive
    system = weights * np.vstack([np.ones(len(weights)), (phi / size).T])
    residual = moments.residual(phi, weights)
    change = linalg.lstsq(system, residual, lapack_driver="gelsy", check_finite=False)[0]
    polished: FloatArray = weights * (1.0 + change)
    if polished.min() > 0.0 and moments.error(phi, polished) < moments.error(phi, weights):
        return polished
    return weights


# --- Divide and conquer -------------------------------------------------------------------------------------


def _tree(phi: FloatArray, weights: FloatArray, cost: FloatArray | None) -> tuple[IntArray, FloatArray]:
    """Reduce to at most m + 1 points: each round removes half of 2(m + 1) groups, the last one single points.

    Parameters
    ----------
    phi : (N, m) array
    weights : (N,) array
        Positive, of sum 1.
    cost : (N,) array or None

    Returns
    -------
    index : (k,) int array, sorted
    weights : (k,) array, positive
    """
    index = np.arange(len(weights))
    while True:
        n_groups = min(2 * (phi.shape[1] + 1), len(index))
        mass = _group_sums(weights, np.ones((len(index), 1)), n_groups)[:, 0]
        centres = _group_sums(weights, phi, n_groups) / mass[:, None]
        group_cost = None if cost is None else _group_sums(weights, cost[:, None], n_groups)[:, 0]
        factor = np.repeat(thin(centres, mass, group_cost), _group_sizes(len(index), n_groups))
        single = n_groups == len(index)
        weights = weights * factor
        keep = np.flatnonzero(weights)
        index, weights, phi = index[keep], weights[keep], phi.take(keep, axis=0)
        cost = None if cost is None else cost[keep]
        if single:
            return index, weights


def _group_sizes(n_points: int, n_groups: int) -> IntArray:
    size, n_larger = divmod(n_points, n_groups)
    return np.repeat([size + 1, size], [n_larger, n_groups - n_larger])


def _group_sums(weights: FloatArray, values: FloatArray, n_groups: int) -> FloatArray:
    """Sum weights (n,) times values (n, m) over runs of consecutive rows, to (n_groups, m)."""
    # two stacks of equal runs, so that BLAS does the sums; np.add.reduceat takes six times as long
    size, n_larger = divmod(len(weights), n_groups)
    cut = n_larger * (size + 1)

    def sums(part: slice, count: int, length: int) -> FloatArray:
        stack = values[part].reshape(count, length, values.shape[1])
        out: FloatArray = (weights[part].reshape(count, 1, length) @ stack)[:, 0]
        return out

    larger = sums(slice(0, cut), n_larger, size + 1)
    return np.concatenate([larger, sums(slice(cut, None), n_groups - n_larger, size)])


# --- Linear programme ---------------------------------------------------------------------------------------


def _linear_programme(
    phi: FloatArray, weights: FloatArray, cost: FloatArray | None, moments: _Moments
) -> tuple[IntArray, FloatArray]:
    """Minimise the cost over non-negative weights with the given moments, at a vertex.

    Parameters
    ----------
    phi : (N, m) array
    weights : (N,) array
        Positive, of sum 1.
    cost : (N,) array or None
        None stands for a fixed sequence: any cost will do, but a constant one makes every vertex optimal.

    Returns
    -------
    index : (k,) int array, sorted
    weights : (k,) array, positive

    Raises
    ------
    FitError
        If the solver fails, or its answer has too many points or wrong moments.
    """
    limit = phi.shape[1] + 1
    if cost is None:
        cost = np.modf(np.arange(1, len(weights) + 1) * (np.sqrt(5.0) - 1.0) / 2.0)[0]
    # undo the weights: the programme's variables are the weights themselves, with a mean of 1 at a vertex
    rows = (standardise(phi, weights) / np.sqrt(weights)[:, None]).T
    options = {"primal_feasibility_tolerance": 1e-10, "time_limit": LP_SECONDS}
    answer = optimize.linprog(
        cost / max(float(np.abs(cost).max()), TINY),
        A_eq=rows,
        b_eq=limit * (rows @ weights),
        bounds=(0.0, None),
        method="highs-ds",
        options=options,
    )
    if answer.status != 0 or answer.x is None:
        raise FitError(f"the linear programme failed ({answer.message})")
    index = np.flatnonzero(answer.x > 0.0)
    if not 0 < len(index) <= limit:
        raise FitError(f"the linear programme chose {len(index)} points where {limit} are allowed")
    shares = _polish(phi[index], answer.x[index] / limit, moments)
    error = moments.error(phi[index], shares)
    if not error <= MOMENT_TOLERANCE:
        raise FitError(f"the linear programme's moments are off by {error:.1e}")
    return index, shares
