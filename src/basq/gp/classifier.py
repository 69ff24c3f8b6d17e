"""Where the likelihood is zero: a Gaussian process that classifies.

Its logarithm is −inf there, which no process of values can follow, so a process of its own learns the two labels: a
probit model by expectation propagation (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, §3.6).
Laplace's approximation would be simpler, but doubts a point amid hundreds of its own label. The kernel has a quadratic
trend, for at the scale of a posterior a wall is nearly straight or evenly bent, and departures from it.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import erfcx, log_ndtr

from basq.gp.kernels.trend import TrendKernel
from basq.numerics.linalg import cholesky, inverse_lower, product_lower
from basq.types import BoolArray, FloatArray

Four = tuple[float, float, float, float]


@dataclass(frozen=True)
class ClassifierSettings:
    """Numbers of the classifier.

    Hyperparameters are the variances of linear and quadratic trend and of departures, and the lengthscale over √d.
    """

    first: Four = (30.0, 3.0, 3.0, 2.0)
    """Hyperparameters to begin with,"""
    steps: Four = (10.0, 10.0, 10.0, 2.0)
    """by how much each is multiplied or divided in the search for better ones,"""
    lower: Four = (1e-2, 1e-3, 1e-2, 0.25)
    """and how far down"""
    upper: Four = (1e5, 1e4, 1e3, 8.0)
    """and up."""
    better: float = 0.1
    """Nats of evidence that make a change worth while."""
    farthest: float = 100.0
    """Distance from the origin to which points farther away are moved: what they say is said there too, and the trend's
    square would leave no digits for the rest."""
    damping: float = 0.8
    """Step of all sites at once,"""
    most_rounds: int = 40
    """most of such steps,"""
    settled: float = 1e-3
    """and the change of the evidence, in nats, that ends them."""


@dataclass(frozen=True)
class Sites:
    """Gaussian stand-ins for the labels' likelihoods, exp(−½ precision f² + shift f) each: (n,) arrays."""

    precision: FloatArray
    shift: FloatArray


@dataclass(frozen=True)
class Feasibility:
    """A classifier of points by whether their likelihood is zero.

    Attributes
    ----------
    x : (n, d) array
        Points, none of them farther than ``settings.farthest``.
    theta : (4,) array
        Logarithms of the variances of linear and quadratic trend and of departures, and of the lengthscale over √d.
    sites : Sites
    weights : (n,) array
        The latent process's mean is K(·, x) weights.
    inverse_factor : (n, n) array
        L⁻¹ S, with S the root of the sites' precisions and L the Cholesky factor of I + S K S.
    log_evidence : float
        Log marginal likelihood of the labels.
    turn : int
        The hyperparameter that was looked at last.
    settings : ClassifierSettings
    """

    x: FloatArray
    theta: FloatArray
    sites: Sites
    weights: FloatArray
    inverse_factor: FloatArray
    log_evidence: float
    turn: int = 0
    settings: ClassifierSettings = ClassifierSettings()

    @classmethod
    def learn(
        cls,
        x: FloatArray,
        finite: BoolArray,
        previous: "Feasibility | None" = None,
        settings: ClassifierSettings = ClassifierSettings(),
    ) -> "Feasibility":
        """Learn from points (n, d) and whether their likelihood was finite (n,).

        The first search goes on until no change of a hyperparameter is for the better; later ones, which begin with the
        last answer, look at one hyperparameter each, in turn.
        """
        x, steps, lower, upper = nearer(x, settings.farthest), *np.log([settings.steps, settings.lower, settings.upper])
        best = cls.at(x, finite, np.log(settings.first) if previous is None else previous.theta, settings=settings)
        turn = 0 if previous is None else (previous.turn + 1) % len(steps)
        looked_at = range(len(steps)) if previous is None else [turn]
        while True:
            ways = [sign * np.diag(steps)[i] for i in looked_at for sign in (1.0, -1.0)]
            tried = [np.clip(best.theta + way, lower, upper) for way in ways]
            better = max((cls.at(x, finite, t, best.sites, settings) for t in tried), key=lambda o: o.log_evidence)
            if not better.log_evidence - best.log_evidence >= settings.better:
                return replace(best, turn=turn)
            best = better

    @classmethod
    def at(
        cls,
        x: FloatArray,
        finite: BoolArray,
        theta: FloatArray,
        sites: Sites | None = None,
        settings: ClassifierSettings = ClassifierSettings(),
    ) -> "Feasibility":
        """Expectation propagation for given hyperparameters, beginning with the sites of similar ones."""
        sign, k = np.where(finite, 1.0, -1.0), kernel(theta, x.shape[1])(x, x)
        sites, last = sites or Sites(np.full(len(x), 1e-6), np.zeros(len(x))), -np.inf
        for _ in range(settings.most_rounds):
            root = np.sqrt(sites.precision)
            factor, _ = cholesky(root[:, None] * k * root, plus=1.0)
            scaled = np.asfortranarray(inverse_lower(factor) * root)
            half = product_lower(scaled, k)
            var = np.maximum(k.diagonal() - np.einsum("ij,ij->j", half, half), 1e-12)
            weights = sites.shift - scaled.T @ (half @ sites.shift)
            log_evidence, new = _matched(sign, k @ weights, var, sites, settings.damping)
            log_evidence -= float(np.log(factor.diagonal()).sum())
            found = cls(x, theta, sites, weights, scaled, log_evidence, settings=settings)
            if abs(log_evidence - last) < settings.settled:
                break
            sites, last = new, log_evidence
        return found

    @cached_property
    def kernel(self) -> TrendKernel:
        return kernel(self.theta, self.x.shape[1])

    def log_probability(self, x: FloatArray) -> FloatArray:
        """Log-probability that the likelihood is not zero at points (m, d): (m,)."""
        x = nearer(x, self.settings.farthest)
        cross = self.kernel(self.x, x)
        half = product_lower(self.inverse_factor, cross)
        var = np.maximum(self.kernel.diagonal(x) - np.einsum("ij,ij->j", half, half), 0.0)
        out: FloatArray = log_ndtr(self.weights @ cross / np.sqrt(1.0 + var))
        return out


def nearer(x: FloatArray, farthest: float) -> FloatArray:
    """Points (n, d) moved towards the origin until none is farther than this."""
    distance = np.linalg.norm(x, axis=1)
    return x if not (distance > farthest).any() else x * np.minimum(1.0, farthest / np.maximum(distance, 1.0))[:, None]


def kernel(theta: FloatArray, n_dim: int) -> TrendKernel:
    """The latent process's kernel."""
    linear, quadratic, variance, lengthscale = np.exp(theta)
    scales, none = np.full(n_dim, np.sqrt(n_dim) * lengthscale), np.empty((0, n_dim))
    return TrendKernel(scales, variance, np.array([linear, linear, quadratic]), 0.0, none)


def _matched(sign: FloatArray, mean: FloatArray, var: FloatArray, sites: Sites, damping: float) -> tuple[float, Sites]:
    """Match each site to its label, given the latent marginals (n,): log evidence but for log det L, and new sites."""
    # the cavity: the marginal without its own site
    precision = np.maximum(1.0 / var - sites.precision, 1e-10)
    cavity_var = 1.0 / precision
    cavity_mean = (mean / var - sites.shift) * cavity_var
    # moments of cavity times label
    scale = np.sqrt(1.0 + cavity_var)
    t = sign * cavity_mean / scale
    log_p = log_ndtr(t)
    ratio = np.sqrt(2.0 / np.pi) / erfcx(-t / np.sqrt(2.0))  # φ(t) / Φ(t)
    matched_mean = cavity_mean + sign * cavity_var * ratio / scale
    matched_var = cavity_var * (1.0 - cavity_var * np.clip(ratio * (t + ratio), 0.0, 1.0) / (1.0 + cavity_var))
    wanted = Sites(
        np.maximum(1.0 / np.maximum(matched_var, 1e-12) - precision, 1e-10),
        matched_mean / np.maximum(matched_var, 1e-12) - cavity_mean * precision,
    )
    both = precision + sites.precision
    log_evidence = float(
        log_p.sum()
        + 0.5 * np.log1p(sites.precision * cavity_var).sum()
        + 0.5 * (sites.shift @ mean - (sites.shift**2 / both).sum())
        + 0.5 * (cavity_mean * precision / both * (sites.precision * cavity_mean - 2.0 * sites.shift)).sum()
    )
    new = Sites(
        (1.0 - damping) * sites.precision + damping * wanted.precision,
        (1.0 - damping) * sites.shift + damping * wanted.shift,
    )
    return log_evidence, new
