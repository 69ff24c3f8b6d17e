"""The evidence of a log-model by importance sampling, with all its errors."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from basq.auto.log_model import LogModel
from basq.auto.settings import Integration
from basq.gp.gp import Prediction
from basq.numerics.gaussians import Measure
from basq.numerics.linalg import log_det
from basq.numerics.student import StudentMixture
from basq.types import FloatArray


@dataclass(frozen=True)
class Estimate:
    """log E[Z] of a log-model and the parts of its error.

    Attributes
    ----------
    log_mean : float
        log E[Z] = log ∫ exp(m + C/2) over the measure.
    jensen : float
        What C/2 adds to the plug-in value.
    surrogate_var : float
        Variance of log Z under the process, before calibration.
    monte_carlo : float
        Standard error of the importance sampling.
    effective : float
        Effective number of draws.
    bulk_var : float
        Mean variance of log ℓ under the posterior (capped).
    wall : float
        Posterior mass that may lie where the likelihood is zero.
    tamed : float
        Nats by which the surrogate's mean exceeds what is believed, on average over the posterior.
    u, log_weights : arrays
        The weighted draws, (n, d) and (n,), normalised.
    heavy : (k, d) array
        Draws that weigh more than their neighbours: mass which the posterior samples have missed, or dreamt of.
    """

    log_mean: float
    jensen: float
    surrogate_var: float
    monte_carlo: float
    effective: float
    bulk_var: float
    wall: float
    tamed: float
    u: FloatArray
    log_weights: FloatArray
    heavy: FloatArray


def estimate(
    model: LogModel,
    measure: Measure,
    points: FloatArray,
    rng: np.random.Generator,
    settings: Integration,
    *,
    error: float = np.inf,
) -> Estimate:
    """Integrate exp(log-likelihood) over the measure by importance sampling about posterior samples.

    Parameters
    ----------
    points : (n, d) array
        Samples of the surrogate's posterior.
    error : float
        Monte Carlo error to reach by more draws, where the surrogate's own is small enough for it to matter.
    """
    proposal, n_draws = Proposal.about(model, points, rng, settings), settings.draws(model.n_dim)
    u = proposal.sample(n_draws, rng)
    found = model.integrand(u)
    p, log_ratio = found.prediction, measure.log_pdf(u) - proposal.log_pdf(u)
    plain, terms = found.plug_in + log_ratio, found.expected + log_ratio
    log_plain, log_full = logsumexp(plain), logsumexp(terms)
    w_plain, log_w = np.exp(plain - log_plain), terms - log_full
    w = np.exp(log_w)
    log_mean, monte_carlo = float(log_full) - float(np.log(n_draws)), _error(w)
    surrogate_var = _surrogate_variance(model, p, w, w_plain, settings.pairs, rng=rng)
    heavy = u[w > settings.heavy / n_draws]
    if error < monte_carlo < settings.hopeless and surrogate_var < settings.settled_var:
        # less those that are there
        wanted = min(int(n_draws * (settings.spare * (monte_carlo / error) ** 2 - 1.0)), settings.most_draws)
        known, threshold = found.mean + log_ratio, float(log_full) + np.log(settings.heavy / n_draws)
        further = proposal.sample(wanted, rng)
        log_further = measure.log_pdf(further) - proposal.log_pdf(further)
        log_mean, monte_carlo, further = _refine(model, known, terms, further, log_further, threshold=threshold)
        heavy = np.concatenate([heavy, further])
    capped = np.minimum(p.var * model.scale.slope(p.mean) ** 2, model.settings.bonus_cap**2)
    return Estimate(
        log_mean=log_mean + model.scale.top,
        jensen=float(log_full - log_plain),
        surrogate_var=surrogate_var,
        monte_carlo=monte_carlo,
        effective=float(1.0 / (w @ w)),
        bulk_var=float(w_plain @ capped),
        wall=float(w @ (1.0 - model.feasibility(u))),
        tamed=float(w @ found.tamed),
        u=u,
        log_weights=log_w,
        heavy=heavy[: settings.most_heavy],
    )


@dataclass(frozen=True)
class Proposal:
    """A mixture of t distributions about posterior samples, in coordinates in which their ridges are straight.

    Attributes
    ----------
    mixture : StudentMixture
    model : LogModel
        In whose coordinates it is.
    """

    mixture: StudentMixture
    model: LogModel

    @classmethod
    def about(cls, model: LogModel, points: FloatArray, rng: np.random.Generator, settings: Integration) -> "Proposal":
        return cls(StudentMixture.of(model.straighten(points), rng, settings.mixture), model)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.model.unstraighten(self.mixture.sample(n, rng))

    def log_pdf(self, u: FloatArray) -> FloatArray:
        return self.mixture.log_pdf(self.model.straighten(u)) - log_det(self.model.chart.root)


def _error(w: FloatArray) -> float:
    """Standard error of the log of a mean, from its normalised terms."""
    return float(np.sqrt(max(float(w @ w) - 1.0 / len(w), 0.0)))


def _refine(
    model: LogModel,
    known: FloatArray,
    log_terms: FloatArray,
    further: FloatArray,
    log_ratio: FloatArray,
    *,
    threshold: float,
) -> tuple[float, float, FloatArray]:
    """Log of the integral, its Monte Carlo error and heavy draws (k, d), by further draws, most by their mean alone.

    The integral of the exponentiated mean has nearly all of the error, and a mean costs a fraction of a variance. What
    the process's uncertainty adds to it, the first draws know well, by their mean alone (n,) and in full (n,). Not so
    where further draws (m, d), with log_ratio (m,) of measure to proposal, weigh much by their mean alone: above a
    threshold they may lie where nothing is known, and are computed in full.
    """
    log_mean = model.mean(further) + log_ratio
    heavy, light = log_mean > threshold, (known <= threshold) & np.isfinite(known)
    log_w, log_factor = known[light] - logsumexp(known[light]), log_terms[light] - known[light]
    log_mean_factor = float(logsumexp(log_w + log_factor))
    log_mean += log_mean_factor
    log_mean[heavy] = model.integrand(further[heavy]).expected + log_ratio[heavy]
    everything = np.concatenate([log_terms, log_mean])
    total = float(logsumexp(everything))
    spread = float(np.linalg.norm(np.exp(log_w + log_factor - log_mean_factor) - np.exp(log_w)))
    monte_carlo = float(np.hypot(_error(np.exp(everything - total)), spread))
    return total - float(np.log(len(everything))), monte_carlo, further[log_mean > threshold]


def _surrogate_variance(
    model: LogModel, p: Prediction, w: FloatArray, w_plain: FloatArray, n: int, *, rng: np.random.Generator
) -> float:
    """Σ vᵢ vⱼ Cᵢⱼ over distinct pairs of draws: the process's variance of the log of its integral."""
    mixed = 0.5 * (w + w_plain)
    chosen = rng.choice(len(w), n, p=mixed / mixed.sum())
    v = w[chosen] / mixed[chosen]
    pairs = np.outer(v, v)
    np.fill_diagonal(pairs, 0.0)
    part = p[chosen]
    return max(float(np.vdot(pairs, model.cov(part, part)) / pairs.sum()), 0.0)
