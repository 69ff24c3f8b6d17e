"""Signed Gaussian mixtures: the closed-form posterior, its marginals, conditionals, moments and samples.

Eqs. (73) to (77) of the paper (Adachi et al. 2022), corrected: docs/maths.md, section 5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from basq.errors import InputError
from basq.numerics.gaussians import LOG_2PI, log_normal_pdf
from basq.numerics.linalg import cholesky, log_det, square_distances, whiten
from basq.numerics.metropolis import metropolis
from basq.types import FloatArray, IntArray

MIN_ACCEPTANCE = 0.02
"""Below this, rejection sampling gives way to importance resampling with Metropolis moves."""

NEGLIGIBLE = 1e-15
"""Components of less than this share of the total absolute weight are left out of sums over pairs."""

MAX_EXPONENT = 600.0
"""Largest exponent that the factored form of a density may take."""


@dataclass(frozen=True)
class Group:
    """Components with weights ``sign · exp(log_weight)``, means left_i + right_j and one covariance.

    Attributes
    ----------
    sign : (n, m) array
        Any real factor; carries the sign.
    log_weight : (n, m) array
    left : (n, d) array
    right : (m, d) array
    cov : (d, d) array
    """

    sign: FloatArray
    log_weight: FloatArray
    left: FloatArray
    right: FloatArray
    cov: FloatArray

    @cached_property
    def weights(self) -> FloatArray:
        out: FloatArray = self.sign * np.exp(self.log_weight)
        return out

    def pdf(self, x: FloatArray, *, absolute: bool = False) -> FloatArray:
        """Sum of the weighted densities at x (k, d): (k,).

        Uses |x − l − r|² = ½|x − 2l|² + ½|x − 2r|² − |l − r|²: one product of (k, n), (n, m) and (m, k) instead of
        k n m exponentials. The growing exponent is joined with the weight's before it is taken.
        """
        left, right, at = whiten(self.cov, self.left), whiten(self.cov, self.right), whiten(self.cov, x)
        sign = np.abs(self.sign) if absolute else self.sign
        middle = self.log_weight + 0.5 * square_distances(left, right)
        if middle.max(initial=0.0, where=sign != 0.0) > MAX_EXPONENT:
            return self._pdf_directly(x, sign)
        np.exp(middle, out=middle, where=sign != 0.0)
        middle *= sign
        e_left = np.exp(-0.25 * square_distances(at, 2.0 * left))
        same = self.left is self.right or np.array_equal(self.left, self.right)
        e_right = e_left if same else np.exp(-0.25 * square_distances(at, 2.0 * right))
        norm = np.exp(-0.5 * (log_det(self.cov) + x.shape[1] * LOG_2PI))
        return norm * np.einsum("ij,ij->i", e_left @ middle, e_right)

    def _pdf_directly(self, x: FloatArray, sign: FloatArray) -> FloatArray:
        """Sum over the components one by one: for pairs so far apart that the factored form overflows."""
        i, j = np.nonzero(np.abs(self.weights) > NEGLIGIBLE * np.abs(self.weights).sum())
        means, w = whiten(self.cov, self.left[i] + self.right[j]), sign[i, j] * np.exp(self.log_weight[i, j])
        norm = np.exp(-0.5 * (log_det(self.cov) + x.shape[1] * LOG_2PI))
        parts = np.array_split(whiten(self.cov, x), max(1, len(x) * len(w) // 10**7))
        return norm * np.concatenate([np.exp(-0.5 * square_distances(p, means)) @ w for p in parts])

    def cdf(self, t: FloatArray) -> FloatArray:
        """Sum of the weighted one-dimensional distribution functions at t (k,): (k,)."""
        i, j = np.nonzero(np.abs(self.weights) > NEGLIGIBLE * np.abs(self.weights).sum())
        w, means = self.weights[i, j], self.left[i, 0] + self.right[j, 0]
        sd = np.sqrt(self.cov[0, 0])
        return np.array([float(w @ ndtr((s - means) / sd)) for s in t])

    def raw_moments(self, centre: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Total weight, Σ w E[x] and Σ w E[x xᵀ], of x less a centre (d,)."""
        shift = 0.5 * (self.left.mean(axis=0) - self.right.mean(axis=0) + centre)
        w, l_, r = self.weights, self.left - shift, self.right - (centre - shift)
        rows, columns = w.sum(axis=1), w.sum(axis=0)
        cross = l_.T @ w @ r
        second = (l_ * rows[:, None]).T @ l_ + (r * columns[:, None]).T @ r + cross + cross.T
        total = float(rows.sum())
        return total, rows @ l_ + columns @ r, second + total * self.cov

    def marginal(self, dims: IntArray) -> "Group":
        """Law of some coordinates: their parts of all means and of the covariance, eq. (74)."""
        return Group(self.sign, self.log_weight, self.left[:, dims], self.right[:, dims], self.cov[np.ix_(dims, dims)])

    def conditional(self, free: IntArray, fixed: IntArray, value: FloatArray) -> "Group":
        """Condition every component, reweighted by its own density at the value.

        Eqs. (75) to (77), which leave the weights as they are.
        """
        c_ff = self.cov[np.ix_(fixed, fixed)]
        gain = np.linalg.solve(c_ff, self.cov[np.ix_(fixed, free)])  # (fixed, free)
        left, right = self.left[:, fixed], self.right[:, fixed]
        z = square_distances(whiten(c_ff, value - left), whiten(c_ff, right))
        log_density = -0.5 * (z + log_det(c_ff) + len(fixed) * LOG_2PI)
        return Group(
            self.sign,
            self.log_weight + log_density,
            self.left[:, free] + (0.5 * value - left) @ gain,
            self.right[:, free] + (0.5 * value - right) @ gain,
            self.cov[np.ix_(free, free)] - self.cov[np.ix_(free, fixed)] @ gain,
        )

    def affine(self, a: FloatArray, b: FloatArray) -> "Group":
        """Law of a x + b."""
        return Group(
            self.sign, self.log_weight, self.left @ a.T + 0.5 * b, self.right @ a.T + 0.5 * b, a @ self.cov @ a.T
        )

    def sample_absolute(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points from the mixture of |weights|: (n, d)."""
        cumulative = np.cumsum(np.abs(self.weights).ravel())
        flat = np.searchsorted(cumulative, rng.random(n) * cumulative[-1])
        i, j = np.unravel_index(np.minimum(flat, len(cumulative) - 1), self.sign.shape)
        noise = rng.standard_normal((n, self.left.shape[1])) @ cholesky(self.cov)[0].T
        out: FloatArray = self.left[i] + self.right[j] + noise
        return out


@dataclass(frozen=True)
class SignedMixture:
    """A density that is a sum of positive and negative Gaussians, normalised to one.

    Attributes
    ----------
    groups : tuple of Group
    density : callable, (k, d) -> (k,), optional
        The same density by a formula that costs less than the sum over all components, where one is known.
    """

    groups: tuple[Group, ...]
    density: Callable[[FloatArray], FloatArray] | None = None

    @property
    def n_dim(self) -> int:
        return self.groups[0].left.shape[1]

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at the rows of x (k, d): (k,). May be negative by rounding, or where a vanilla GP is."""
        points = _rows(x, self.n_dim)
        if self.density is not None:
            return self.density(points)
        return sum((g.pdf(points) for g in self.groups), np.zeros(len(points)))

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density, −inf where the density is not positive."""
        values = self.pdf(x)
        return np.log(values, out=np.full_like(values, -np.inf), where=values > 0)

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Distribution function of a one-dimensional mixture at t (k,): (k,)."""
        if self.n_dim != 1:
            raise InputError(f"cdf needs one parameter, this density has {self.n_dim}; take a marginal first.")
        points = np.atleast_1d(np.asarray(t, dtype=float))
        return np.clip(sum((g.cdf(points) for g in self.groups), np.zeros(len(points))), 0.0, 1.0)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles of a one-dimensional mixture at levels q (k,): (k,)."""
        levels = np.atleast_1d(np.asarray(q, dtype=float))
        if not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise InputError(f"Quantile levels must lie in [0, 1], got {levels}.")
        grid = self._grid()
        density = np.maximum(self.pdf(grid), 0.0)
        cumulative = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(grid) * (density[1:] + density[:-1]))])
        t = np.interp(levels, cumulative / max(cumulative[-1], 1e-300), grid)
        step = 2.0 * float(grid[1] - grid[0])
        for _ in range(4):  # polish with the exact distribution function, never far from the grid's answer
            slope = np.maximum(self.pdf(t), 1e-300)
            t = np.clip(t - np.clip((self.cdf(t) - levels) / slope, -step, step), grid[0], grid[-1])
        missed = np.abs(self.cdf(t) - levels) > 1e-9 + 1e-15 / self.acceptance
        if missed.any():  # components narrower than the grid
            t[missed] = self._bisect(levels[missed], grid[0], grid[-1])
        return np.where(levels == 0.0, -np.inf, np.where(levels == 1.0, np.inf, t))

    def _bisect(self, levels: FloatArray, low: float, high: float) -> FloatArray:
        """Quantiles between low and high, one bit a step."""
        lower, upper = np.full(levels.shape, low), np.full(levels.shape, high)
        for _ in range(60):
            middle = 0.5 * (lower + upper)
            below = self.cdf(middle) < levels
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        return 0.5 * (lower + upper)

    def _grid(self, n: int = 2001) -> FloatArray:
        """Grid that holds a one-dimensional mixture up to rounding."""
        mean, cov = self.moments()
        # a surrogate that goes negative can have a negative "variance": then its widest component sets the scale
        widest = max(float(g.cov[0, 0]) for g in self.groups)
        centre, reach = float(mean[0]), 10.0 * float(np.sqrt(cov[0, 0] if cov[0, 0] > 0.0 else widest))
        rounding = 1e-10 + 1e-14 / self.acceptance  # signed weights cancel to one
        for _ in range(10):
            below, above = self.cdf([centre - reach, centre + reach])
            if below <= rounding and above >= 1.0 - rounding:
                break
            reach *= 1.5
        return np.linspace(centre - reach, centre + reach, n)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d)."""
        # about a point inside: the covariance of a far-away density would cancel
        centre = self.groups[-1].left.mean(axis=0) + self.groups[-1].right.mean(axis=0)
        parts = [g.raw_moments(centre) for g in self.groups]
        total = sum(p[0] for p in parts)
        mean = sum((p[1] for p in parts), np.zeros(self.n_dim)) / total
        second = sum((p[2] for p in parts), np.zeros((self.n_dim, self.n_dim))) / total
        return centre + mean, second - np.outer(mean, mean)

    def marginal(self, dims: list[int]) -> "SignedMixture":
        """Density of some coordinates."""
        index = np.asarray(dims, dtype=np.intp)
        return SignedMixture(tuple(g.marginal(index) for g in self.groups))

    def conditional(self, fixed: list[int], value: ArrayLike) -> "SignedMixture":
        """Density of the other coordinates, given some."""
        held = np.asarray(fixed, dtype=np.intp)
        free = np.setdiff1d(np.arange(self.n_dim), held)
        at = np.asarray(value, dtype=float)
        groups = tuple(g.conditional(free, held, at) for g in self.groups)
        return normalised(groups, f"the density at {at.tolist()} is not positive, so nothing can be conditioned on it")

    def affine(self, a: FloatArray, b: FloatArray) -> "SignedMixture":
        """Law of a x + b."""
        return SignedMixture(tuple(g.affine(a, b) for g in self.groups))

    @cached_property
    def acceptance(self) -> float:
        """Share of rejection-sampling proposals that are accepted: 1 / Σ|w|."""
        return 1.0 / float(sum(np.abs(g.weights).sum() for g in self.groups))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points of the positive part of the density: (n, d).

        Exact rejection from the mixture of absolute weights where enough proposals survive. Otherwise importance
        resampling from the widest components and a Gaussian of the same moments, followed by Metropolis moves.
        """
        if self.acceptance < MIN_ACCEPTANCE:
            return self._sample_by_moves(n, rng)
        kept: list[FloatArray] = [np.empty((0, self.n_dim))]
        found = 0
        while found < n:
            x = self._sample_absolute(min(int(1.2 * (n - found) / self.acceptance) + 16, 20_000), rng)
            bound = sum((g.pdf(x, absolute=True) for g in self.groups), np.zeros(len(x)))
            kept.append(x[rng.random(len(x)) * bound < self.pdf(x)])
            found += len(kept[-1])
        return np.concatenate(kept)[:n]

    def _sample_absolute(self, n: int, rng: np.random.Generator) -> FloatArray:
        share = np.array([np.abs(g.weights).sum() for g in self.groups])
        counts = rng.multinomial(n, share / share.sum())
        parts = [g.sample_absolute(c, rng) for g, c in zip(self.groups, counts, strict=True)]
        return rng.permutation(np.concatenate(parts), axis=0)

    def _sample_by_moves(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Importance resampling from broad Gaussians, then Metropolis moves that leave the density invariant."""
        mean, cov = self.moments()
        broad = max(self.groups, key=lambda g: log_det(g.cov))
        centre = broad.left.mean(axis=0) + broad.right.mean(axis=0)
        options = [(mean, 1.5 * cov), (centre, broad.cov)]
        pool = max(4 * n, 4000)
        x = np.concatenate([m + rng.standard_normal((pool, self.n_dim)) @ cholesky(c)[0].T for m, c in options], axis=0)
        proposal = sum((0.5 * np.exp(log_normal_pdf(x, m, c)) for m, c in options), np.zeros(len(x)))
        weight = np.maximum(self.pdf(x), 0.0) / proposal
        chosen = rng.choice(len(x), size=n, p=weight / weight.sum())
        return metropolis(self.log_pdf, x[chosen], cov, rng)


def _rows(x: ArrayLike, n_dim: int) -> FloatArray:
    points = np.asarray(x, dtype=float)
    if n_dim == 1 and points.ndim < 2:
        points = points.reshape(-1, 1)
    points = np.atleast_2d(points)
    if points.shape[1] != n_dim:
        raise InputError(f"Points must have shape (k, {n_dim}), got {points.shape}.")
    return points


def normalised(groups: tuple[Group, ...], reason: str) -> SignedMixture:
    """Divide by the total weight, in logs so that a far-away condition does not underflow."""
    shift = log_total(groups, reason)
    return SignedMixture(tuple(Group(g.sign, g.log_weight - shift, g.left, g.right, g.cov) for g in groups))


def log_total(groups: tuple[Group, ...], reason: str) -> float:
    """Log of the total weight, which has to be positive."""
    top = max((float(g.log_weight.max(initial=-np.inf, where=g.sign != 0.0)) for g in groups), default=-np.inf)
    if not np.isfinite(top):
        raise InputError(f"No mass: {reason}.")
    total = sum(float(np.vdot(g.sign, np.exp(g.log_weight - top))) for g in groups)
    if total <= 0.0:
        raise InputError(f"No mass: {reason}.")
    return top + float(np.log(total))
