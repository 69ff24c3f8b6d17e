"""Models of other fields: distances in cosmology, Gaussian processes, change points, occupancy of sites."""

from functools import partial

import numpy as np
from scipy import special, stats

from basq.numerics.gaussians import LOG_2PI
from basq.problems.zoo.base import ZooProblem, columns, half_normal, inverse_gamma, log_normal, log_poisson
from basq.types import FloatArray

GROUP = "science"


def _moduli(x: FloatArray, z: FloatArray) -> FloatArray:
    """Distance moduli but for a constant in a flat universe with dark energy of constant w, (n, m)."""
    omega, w = (x[:, i, None, None] for i in (0, 1))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    scale = 1.0 + 0.5 * z[:, None] * (nodes + 1.0)
    speed = np.sqrt(omega * scale**3 + (1.0 - omega) * scale ** (3.0 * (1.0 + w)))
    return 5.0 * np.log10((1.0 + z) * 0.5 * z * (weights / speed).sum(axis=2))


def _supernovae(x: FloatArray, z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    return log_normal(y - x[:, 2:3] - _moduli(x, z), np.hypot(error, x[:, 3:4])).sum(axis=1)


def supernovae(seed: int = 0) -> ZooProblem:
    """Forty supernovae in a flat universe: matter and dark energy along a bent valley, absolute magnitude, scatter."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.25, 0.35), rng.uniform(-1.2, -0.8), rng.normal(0, 0.5), rng.uniform(0.05, 0.15)])
    z, error = np.sort(rng.uniform(0.02, 1.2, 40)), rng.uniform(0.08, 0.2, 40)
    y = truth[2] + _moduli(truth[None], z)[0] + np.hypot(error, truth[3]) * rng.standard_normal(40)
    prior = {"omega": (0.0, 1.0), "w": (-3.0, 0.0), "magnitude": stats.norm(0, 2), "scatter": stats.loguniform(1e-3, 1)}
    return ZooProblem("supernovae", GROUP, seed, prior, truth, partial(_supernovae, z=z, y=y, error=error))


def _gram(x: FloatArray, t: FloatArray) -> FloatArray:
    """Covariances of noisy values of a process with a squared-exponential kernel, (n, m, m)."""
    length, height, noise = (x[:, i, None, None] for i in range(3))
    distance = (t[:, None] - t) / length
    return height**2 * np.exp(-0.5 * distance**2) + (noise**2 + 1e-8 * height**2 + 1e-100) * np.eye(len(t))


def _process(x: FloatArray, t: FloatArray, y: FloatArray) -> FloatArray:
    root = np.linalg.cholesky(_gram(x, t))
    white = np.linalg.solve(root, (y - x[:, 3:4])[:, :, None])[:, :, 0]
    log_det = np.log(np.einsum("nii->ni", root)).sum(axis=1)
    return -0.5 * (white**2).sum(axis=1) - log_det - 0.5 * len(t) * LOG_2PI


def process_hyperparameters(seed: int = 0) -> ZooProblem:
    """Length, height, noise and mean of a Gaussian process: smooth and noiseless, or all noise."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.5, 2.0), rng.uniform(0.7, 2.0), rng.uniform(0.1, 0.5), rng.normal(0, 1)])
    t = np.sort(rng.uniform(0.0, 10.0, 25))
    y = truth[3] + np.linalg.cholesky(_gram(truth[None], t)[0]) @ rng.standard_normal(25)
    prior = {"length": inverse_gamma(5, 5), "height": half_normal(2), "noise": half_normal(1), "mean": stats.norm(0, 3)}
    return ZooProblem("process_hyperparameters", GROUP, seed, prior, truth, partial(_process, t=t, y=y))


def _change_point(x: FloatArray, year: FloatArray, y: FloatArray) -> FloatArray:
    early, late, change = columns(x)
    return log_poisson(y, np.where(year < change, early, late)).sum(axis=1)


def change_point(seed: int = 0) -> ZooProblem:
    """Accidents a year with a rate that changes once: the likelihood is a staircase in the year of the change."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(2, 4), rng.uniform(0.5, 1.5), rng.uniform(20, 60)])
    year = np.arange(80.0) + 0.5
    y = rng.poisson(np.where(year < truth[2], truth[0], truth[1])).astype(float)
    prior = {"early": stats.expon(), "late": stats.expon(), "change": (0.0, 80.0)}
    return ZooProblem("change_point", GROUP, seed, prior, truth, partial(_change_point, year=year, y=y))


def _occupancy(x: FloatArray, forest: FloatArray, wind: FloatArray, seen: FloatArray) -> FloatArray:
    """Sites by forest cover; wind and detections are (sites, visits)."""
    score = x[:, :1] + x[:, 1:2] * forest
    detect = x[:, 2, None, None] + x[:, 3, None, None] * wind
    visits = special.log_expit(np.where(seen == 1.0, detect, -detect)).sum(axis=2)
    present = special.log_expit(score) + visits
    return np.where(seen.any(axis=1), present, np.logaddexp(present, special.log_expit(-score))).sum(axis=1)


def occupancy(seed: int = 0) -> ZooProblem:
    """A bird at 60 sites on four visits (MacKenzie et al. 2002): absent, or there and missed."""
    rng = np.random.default_rng(seed)
    forest, wind = rng.standard_normal(60), rng.standard_normal((60, 4))
    truth = np.array([rng.normal(0, 0.5), rng.normal(1, 0.5), rng.normal(-0.5, 0.5), rng.normal(-0.5, 0.3)])
    present = rng.random(60) < special.expit(truth[0] + truth[1] * forest)
    seen = (present[:, None] & (rng.random((60, 4)) < special.expit(truth[2] + truth[3] * wind))).astype(float)
    prior = {name: stats.t(7.76, 0, 1.57) for name in ("site", "forest", "visit", "wind")}
    return ZooProblem("occupancy", GROUP, seed, prior, truth, partial(_occupancy, forest=forest, wind=wind, seen=seen))


def _recapture(x: FloatArray, released: FloatArray, again: FloatArray) -> FloatArray:
    """Cormack–Jolly–Seber by first recaptures: again[i, j] of those released at i are seen next at i + 1 + j."""
    survival, capture = x[:, :1, None], x[:, 1:2, None]
    first, gap = np.indices(again.shape)
    possible = first + gap < len(again)
    log_seen = (gap + 1) * np.log(survival) + gap * np.log1p(-capture) + np.log(capture)
    log_seen = np.where(possible, log_seen, -np.inf)
    never = 1.0 - np.exp(log_seen).sum(axis=2)
    lost = released - again.sum(axis=1)
    return np.where(possible, again * log_seen, 0.0).sum(axis=(1, 2)) + special.xlogy(lost, never).sum(axis=1)


def recapture(seed: int = 0) -> ZooProblem:
    """Dippers caught, marked and caught again in seven years (Lebreton et al. 1992): survival and capture."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform([0.4, 0.4], [0.8, 0.9])
    released, again = rng.integers(15, 50, 6).astype(float), np.zeros((6, 6))
    for i in range(6):
        gaps = np.arange(6 - i)
        p = truth[0] ** (gaps + 1) * (1.0 - truth[1]) ** gaps * truth[1]
        again[i, : 6 - i] = rng.multinomial(int(released[i]), [*p, 1.0 - p.sum()])[:-1]
    prior = {"survival": stats.beta(1, 1), "capture": stats.beta(1, 1)}
    return ZooProblem("recapture", GROUP, seed, prior, truth, partial(_recapture, released=released, again=again))


MODELS = (supernovae, process_hyperparameters, change_point, occupancy, recapture)
