"""Priors known only by a log-density and samples: a Gaussian mixture stands in, with importance weights."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from basq.errors import InputError, NumericsWarning
from basq.numerics.gaussians import GaussianMixture, log_normal_pdf
from basq.prior.maps import AffineMap
from basq.types import FloatArray

MAX_COMPONENTS = 4
MAX_FIT_SAMPLES = 2_000
N_CHECK = 4_096
TAILS = ((0.1, 3.0), (0.05, 9.0))
"""Weight and covariance factor of the broad components: g must not have lighter tails than the prior."""
MAX_REJECTION = 100.0
"""Bound on the mean number of proposals for one draw of the prior."""
MAX_PROPOSALS = 100_000
"""Proposals held in memory at once."""
MAX_LOST = 1e-3
"""Share of the prior's mass that rejection sampling may cut off where the weights are largest."""


@dataclass(frozen=True)
class Density:
    """The user's log-density, called on one point or on many."""

    function: Callable[[FloatArray], Any]
    vectorized: bool

    @classmethod
    def detect(cls, function: Callable[[FloatArray], Any], samples: FloatArray) -> "Density":
        """Try the function on several rows at once; it is vectorised if that agrees with single rows."""
        d = samples.shape[1]
        k = 2 if d != 2 else 3  # never d rows, or x[0] of a single-point function would pass for a column
        rows = samples[:k]
        try:
            with np.errstate(all="ignore"):
                together = np.asarray(function(rows.copy()), dtype=float)
        except Exception:  # a function of one point may fail in any way on a matrix
            return cls(function, False)
        if together.shape != (k,):
            return cls(function, False)
        try:
            with np.errstate(all="ignore"):
                single = [np.asarray(function(row.copy()), dtype=float) for row in rows]
        except Exception:  # and one of many points on a vector
            return cls(function, True)
        scalar = all(s.shape == () for s in single)
        return cls(function, not scalar or np.allclose(together, single, rtol=1e-8, equal_nan=True))

    def __call__(self, x: FloatArray) -> FloatArray:
        """Log-density at the rows of x, (n, d) -> (n,); -inf allowed, NaN and +inf not."""
        if self.vectorized:
            out = np.asarray(self.function(x.copy()), dtype=float)
        else:
            values = [np.asarray(self.function(row.copy()), dtype=float) for row in x]
            if any(v.size != 1 for v in values):
                shape = next(v.shape for v in values if v.size != 1)
                raise InputError(f"log_pdf returned shape {shape} for one point; it must return one number.")
            out = np.array([v.item() for v in values], dtype=float)
        if out.shape != (len(x),):
            raise InputError(f"log_pdf returned shape {out.shape} for x of shape {x.shape}; expected ({len(x)},).")
        bad = np.isnan(out) | np.isposinf(out)
        if bad.any():
            i = int(np.argmax(bad))
            raise InputError(
                f"log_pdf returned {out[i]} at x={x[i]} (row {i}); return a finite number, or -inf outside the support."
            )
        return out


@dataclass(frozen=True)
class DensityMap:
    """Whitened user space with a Gaussian-mixture measure g: ∫ ℓπ = ∫ (ℓπ/g) g, eqs. (91) and (92) of the paper.

    Attributes
    ----------
    density : Density
    affine : AffineMap
        x = b + A u, from the mean and covariance of the samples.
    measure : GaussianMixture
        g, over u.
    log_norm : float
        log ∫ exp(log_pdf), subtracted everywhere; 0 for a normalised density.
    log_bound : float
        Bound on log_weight for rejection sampling.
    """

    density: Density
    affine: AffineMap
    measure: GaussianMixture
    log_norm: float
    log_bound: float

    @classmethod
    def fit(
        cls,
        log_pdf: Callable[[FloatArray], Any],
        samples: FloatArray,
        normalised: bool,
        vectorized: bool | None,
    ) -> "DensityMap":
        """Fit g to the samples and check the density against it.

        Parameters
        ----------
        log_pdf : callable
        samples : (n, d) array, finite, n >= 10 d
        normalised : bool
            If false, the density is divided by its integral over g.
        vectorized : bool or None
            Whether log_pdf takes (n, d); None finds out.
        """
        density = Density.detect(log_pdf, samples) if vectorized is None else Density(log_pdf, vectorized)
        if not np.isfinite(density(samples)).any():
            raise InputError(
                f"log_pdf is -inf at all {len(samples)} samples; the samples must be draws from the density."
            )
        affine = AffineMap.whitening(samples.mean(axis=0), np.atleast_2d(np.cov(samples.T)), "The set of samples")
        measure = _with_tails(fit_mixture(affine.to_standard(samples)))
        draft = cls(density, affine, measure, 0.0, 0.0)
        log_w = draft.log_weight(measure.sample(N_CHECK, np.random.default_rng(0)))
        log_norm = _log_integral(log_w, normalised)
        return cls(density, affine, measure, log_norm, _rejection_bound(log_w - log_norm))

    @property
    def n_dim(self) -> int:
        return self.affine.n_dim

    @property
    def bounds(self) -> FloatArray:
        return self.affine.bounds

    @property
    def coordinates(self) -> None:
        return None

    def describe(self, names: tuple[str, ...]) -> str:
        return f"({', '.join(names)}) ~ density and samples"

    def from_standard(self, u: FloatArray) -> FloatArray:
        return self.affine.from_standard(u)

    def to_standard(self, x: FloatArray) -> FloatArray:
        return self.affine.to_standard(x)

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        return self.affine.log_jacobian(u)

    def log_pdf(self, x: FloatArray) -> FloatArray:
        return self.density(x) - self.log_norm

    def log_weight(self, u: FloatArray) -> FloatArray:
        """Log of the prior's density over u relative to g, (n,)."""
        return self.log_pdf(self.from_standard(u)) + self.affine.log_det - self.measure.log_pdf(u)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points of the prior in user space by rejection from g, (n, d).

        Rejection and not resampling: a likelihood call must never be spent twice on the same point.
        """
        kept = np.empty((0, self.n_dim))
        while len(kept) < n:
            wanted = 16 + 1.1 * (n - len(kept)) * np.exp(max(self.log_bound, 0.0))
            u = self.measure.sample(int(min(wanted, MAX_PROPOSALS)), rng)
            accept = -rng.standard_exponential(len(u)) < self.log_weight(u) - self.log_bound
            kept = np.concatenate([kept, u[accept]])
        return self.from_standard(kept[:n])


def _log_integral(log_w: FloatArray, normalised: bool) -> float:
    """Judge the density by its importance weights; return the constant to divide by."""
    w = np.exp(log_w - log_w.max()) if np.isfinite(log_w.max()) else np.zeros(len(log_w))
    if w.sum() == 0:
        raise InputError("log_pdf is -inf nearly everywhere around the samples; they must be draws from the density.")
    effective = w.sum() ** 2 / (w * w).sum()
    poor = effective < 0.01 * len(w)
    if poor:
        warnings.warn(
            f"The Gaussian mixture fitted to the prior's samples is a poor stand-in for its density: "
            f"{effective:.0f} effective of {len(w)} draws. Check that the samples come from log_pdf, or give "
            f"more of them.",
            NumericsWarning,
            stacklevel=4,
        )
    log_integral = float(logsumexp(log_w) - np.log(len(w)))
    relative_error = np.sqrt(1 / effective - 1 / len(w))
    if not normalised:
        return log_integral
    # a poor fit says nothing about the density, so the user's word stands
    if not poor and abs(log_integral) > 0.05 + 5 * relative_error:
        raise InputError(
            f"exp(log_pdf) integrates to exp({log_integral:.3f} ± {relative_error:.3f}) and not to 1, which "
            f"would shift the log-evidence. Pass normalised=False to have it divided out, or check that the "
            f"samples come from this density."
        )
    return 0.0


def _rejection_bound(log_w: FloatArray) -> float:
    """Return the least log-bound on the weights that cuts off no more than MAX_LOST of their sum.

    The largest weight itself would let one outlier in the tail decide the cost of every draw.
    """
    peak = float(log_w.max())
    w = np.sort(np.exp(log_w - peak))[::-1]
    lost = np.cumsum(w) - np.arange(1, len(w) + 1) * w
    bound = w[np.flatnonzero(lost <= MAX_LOST * w.sum())[-1]]
    return peak + float(np.log(min(bound, MAX_REJECTION * w.mean())))


def _with_tails(mixture: GaussianMixture) -> GaussianMixture:
    """Add broad components around a mixture of whitened samples, whose covariance is I."""
    d, total = mixture.n_dim, sum(weight for weight, _ in TAILS)
    return GaussianMixture(
        np.concatenate([(1 - total) * mixture.weights, [weight for weight, _ in TAILS]]),
        np.concatenate([mixture.means, np.zeros((len(TAILS), d))]),
        np.concatenate([mixture.covs, [factor * np.eye(d) for _, factor in TAILS]]),
    )


def fit_mixture(u: FloatArray) -> GaussianMixture:
    """Fit a small Gaussian mixture to whitened samples; BIC chooses the number of components.

    Parameters
    ----------
    u : (n, d) array
        Mean 0 and covariance I.
    """
    if len(u) > MAX_FIT_SAMPLES:
        u = u[np.linspace(0, len(u) - 1, MAX_FIT_SAMPLES).astype(int)]
    n, d = u.shape
    rng = np.random.default_rng(0)  # fixed: the same samples always give the same measure
    best, least = GaussianMixture.standard(d), np.inf
    for k in range(1, max(1, min(MAX_COMPONENTS, n // (10 * d))) + 1):
        penalty = 0.5 * k * (1 + d + d * (d + 1) / 2) * np.log(n)
        fits = [_expectation_maximisation(u, k, rng) for _ in range(1 if k == 1 else 2)]
        mixture, log_likelihood = max(fits, key=lambda fit: fit[1])
        if penalty - log_likelihood >= least:
            break
        best, least = mixture, penalty - log_likelihood
    return best


def _expectation_maximisation(u: FloatArray, k: int, rng: np.random.Generator) -> tuple[GaussianMixture, float]:
    resp = _initial_responsibilities(u, k, rng)
    previous = -np.inf
    for _ in range(100):
        mixture = _maximise(u, resp)
        terms = np.stack(
            [
                np.log(w) + log_normal_pdf(u, m, s)
                for w, m, s in zip(mixture.weights, mixture.means, mixture.covs, strict=True)
            ]
        )
        norm = logsumexp(terms, axis=0)
        resp = np.exp(terms - norm)
        if norm.sum() - previous < 3e-4 * len(u):
            break
        previous = norm.sum()
    return mixture, float(norm.sum())


def _initial_responsibilities(u: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Assign each sample to the nearest of k seeds, drawn apart from each other as in k-means++, (k, n)."""
    seeds = u[rng.integers(len(u), size=1)]
    for _ in range(k - 1):
        square = ((u[:, None] - seeds) ** 2).sum(axis=2).min(axis=1)
        seeds = np.concatenate([seeds, u[rng.choice(len(u), size=1, p=square / square.sum())]])
    nearest = ((u[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1)
    return np.asarray(nearest == np.arange(k)[:, None], dtype=float)


def _maximise(u: FloatArray, resp: FloatArray) -> GaussianMixture:
    """M-step, with a weak prior that keeps every weight and covariance off zero."""
    k, (n, d) = len(resp), u.shape
    counts = resp.sum(axis=1)
    means = resp @ u / np.maximum(counts, 1e-10)[:, None]
    strength, centre = d + 2.0, np.eye(d) * k ** (-2.0 / d)
    covs = []
    for r, count, mean in zip(resp, counts, means, strict=True):
        z = u - mean
        covs.append(((r[:, None] * z).T @ z + strength * centre) / (count + strength))
    return GaussianMixture((counts + 1) / (n + k), means, np.array(covs))
