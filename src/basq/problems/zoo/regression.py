"""Regressions with an unknown scale."""

from functools import partial

import numpy as np
from scipy import special, stats

from basq.problems.zoo.base import ZooProblem, columns, gamma, half_cauchy, half_normal, log_normal
from basq.types import FloatArray

GROUP = "regression"


def _normal(x: FloatArray, design: FloatArray, y: FloatArray) -> FloatArray:
    return log_normal(y - x[:, :-1] @ design.T, x[:, -1:]).sum(axis=1)


def normal_regression(seed: int = 0) -> ZooProblem:
    """Two covariates, N(0, 10²) on the coefficients and a half-Cauchy scale."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(40), rng.standard_normal((40, 2))])
    truth = np.append(rng.normal(0.0, [4.0, 2.0, 2.0]), rng.uniform(0.5, 3.0))
    y = design @ truth[:-1] + truth[-1] * rng.standard_normal(40)
    prior = {name: stats.norm(0, 10) for name in ("intercept", "slope1", "slope2")} | {"sigma": half_cauchy(2.5)}
    return ZooProblem("normal_regression", GROUP, seed, prior, truth, partial(_normal, design=design, y=y))


def interaction_regression(seed: int = 0) -> ZooProblem:
    """Test scores by a mother's schooling, her IQ and their product, with boxes of ±200 in the place of flat priors."""
    rng = np.random.default_rng(seed)
    school, iq = (rng.random(200) < 0.75).astype(float), rng.normal(100.0, 15.0, 200)
    design = np.column_stack([np.ones(200), school, iq, school * iq])
    truth = np.array([rng.normal(-10, 10), rng.normal(40, 10), rng.normal(1, 0.1), rng.normal(-0.4, 0.1), 18.0])
    y = design @ truth[:-1] + truth[-1] * rng.standard_normal(200)
    wide, narrow = (-200.0, 200.0), (-10.0, 10.0)
    prior = {"intercept": wide, "school": wide, "iq": narrow, "both": narrow, "sigma": half_cauchy(2.5)}
    return ZooProblem("interaction_regression", GROUP, seed, prior, truth, partial(_normal, design=design, y=y))


def _student(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
    a, b, sigma, nu = columns(x)
    z = (y - a - b * u) / sigma
    constant = special.gammaln(0.5 * (nu + 1.0)) - special.gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu) - np.log(sigma)
    return (constant - 0.5 * (nu + 1.0) * np.log1p(z * z / nu)).sum(axis=1)


def student_regression(seed: int = 0) -> ZooProblem:
    """Student errors with unknown degrees of freedom, gamma(2, 0.1) as Juárez and Steel (2010) propose."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-2.0, 2.0, 50)
    truth = np.array([rng.normal(0, 3), rng.normal(0, 2), rng.uniform(0.3, 2.0), rng.uniform(2.0, 6.0)])
    y = truth[0] + truth[1] * u + truth[2] * rng.standard_t(truth[3], 50)
    prior = {"intercept": stats.norm(0, 10), "slope": stats.norm(0, 10), "sigma": half_cauchy(5), "nu": gamma(2, 0.1)}
    return ZooProblem("student_regression", GROUP, seed, prior, truth, partial(_student, u=u, y=y))


def _contaminated(x: FloatArray, u: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    slope, intercept, share, centre, width = columns(x)
    good = np.log1p(-share) + log_normal(y - intercept - slope * u, error)
    bad = np.log(share) + log_normal(y - centre, np.hypot(error, width))
    return np.logaddexp(good, bad).sum(axis=1)


def contaminated_regression(seed: int = 0) -> ZooProblem:
    """A line through points of known error, some of which belong to something else (Hogg, Bovy and Lang 2010)."""
    rng = np.random.default_rng(seed)
    u, error = rng.uniform(50.0, 250.0, 20), rng.uniform(15.0, 40.0, 20)
    truth = np.array([rng.uniform(1.5, 2.5), rng.normal(30, 20), rng.uniform(0.1, 0.25), rng.normal(400, 30), 120.0])
    outlier = rng.random(20) < truth[2]
    line = truth[1] + truth[0] * u + error * rng.standard_normal(20)
    y = np.where(outlier, truth[3] + np.hypot(error, truth[4]) * rng.standard_normal(20), line)
    prior = {
        "slope": (-10.0, 10.0),
        "intercept": (-200.0, 200.0),
        "share": stats.beta(1, 4),
        "centre": stats.norm(400, 200),
        "width": stats.loguniform(1, 1000),
    }
    return ZooProblem(
        "contaminated_regression", GROUP, seed, prior, truth, partial(_contaminated, u=u, y=y, error=error)
    )


def _heteroscedastic(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
    a, b, c, d = columns(x)
    return log_normal(y - a - b * u, np.exp(c + d * u)).sum(axis=1)


def heteroscedastic_regression(seed: int = 0) -> ZooProblem:
    """A scale that grows along the covariate, boxes of ±200 for the line."""
    rng = np.random.default_rng(seed)
    u = np.sort(rng.uniform(0.0, 3.0, 60))
    truth = np.array([rng.normal(20, 20), rng.normal(0, 5), rng.normal(0, 0.5), rng.normal(0.5, 0.3)])
    y = truth[0] + truth[1] * u + np.exp(truth[2] + truth[3] * u) * rng.standard_normal(60)
    prior = {
        "intercept": (-200.0, 200.0),
        "slope": (-200.0, 200.0),
        "log_sd": stats.norm(0, 5),
        "log_sd_slope": stats.norm(0, 2),
    }
    return ZooProblem("heteroscedastic_regression", GROUP, seed, prior, truth, partial(_heteroscedastic, u=u, y=y))


def _errors_in_variables(x: FloatArray, u: FloatArray, y: FloatArray, error: float) -> FloatArray:
    a, b, scatter, centre, width = columns(x)
    # the true covariates, N(centre, width²), are integrated out: (u, y) is normal in two dimensions
    uu, uy, yy = width**2 + error**2, b * width**2, b**2 * width**2 + scatter**2
    du, dy = u - centre, y - a - b * centre
    det = uu * yy - uy**2
    square = (yy * du**2 - 2.0 * uy * du * dy + uu * dy**2) / det
    return (-0.5 * (square + np.log(det)) - np.log(2.0 * np.pi)).sum(axis=1)


def errors_in_variables(seed: int = 0) -> ZooProblem:
    """A line whose covariate is measured with a known error, and scatter about it (Kelly 2007)."""
    rng = np.random.default_rng(seed)
    error = 0.5
    truth = np.array([rng.normal(0, 2), rng.uniform(0.5, 2.0), rng.uniform(0.2, 0.8), rng.normal(0, 1), 1.0])
    exact = rng.normal(truth[3], truth[4], 50)
    u = exact + error * rng.standard_normal(50)
    y = truth[0] + truth[1] * exact + truth[2] * rng.standard_normal(50)
    prior = {
        "intercept": stats.t(3, 0, 10),
        "slope": stats.t(3, 0, 2.5),
        "scatter": half_normal(2.5),
        "centre": stats.norm(0, 10),
        "width": half_cauchy(2.5),
    }
    return ZooProblem(
        "errors_in_variables", GROUP, seed, prior, truth, partial(_errors_in_variables, u=u, y=y, error=error)
    )


MODELS = (
    normal_regression,
    interaction_regression,
    student_regression,
    contaminated_regression,
    heteroscedastic_regression,
    errors_in_variables,
)
