"""Proper priors whose quantiles leave the range of floating-point numbers."""

import numpy as np
import pytest
from scipy import special, stats

import basq
from basq.errors import InputError

WIDE = [
    stats.gamma(1e-5),
    stats.gamma(1e-4),
    stats.gamma(1e-3, scale=1e3),
    stats.gamma(1e-3, loc=5),
    stats.gamma(1e-3, scale=1e5),
    stats.invgamma(1e-3, scale=1e-3),
    stats.invgamma(1e-4),
    stats.chi2(1e-3),
    stats.halfcauchy(scale=1e5),
    stats.halfcauchy(scale=1e300),
    stats.cauchy(0, 1e5),
    stats.lognorm(20),
    stats.lognorm(400),
    stats.weibull_min(1e-3),
    stats.pareto(1e-3),
    stats.fisk(0.01),
    stats.beta(1e-3, 1e-3),
    stats.beta(1, 1e-4),
    stats.f(1e-3, 1e-3),
    stats.norm(0, 1e200),
    stats.norm(0, 1e-200),
]


def said(dist):
    return f"{dist.dist.name} {dist.args} {dist.kwds}"


@pytest.mark.parametrize("dist", WIDE, ids=said)
def test_wide_priors_map_everything(dist):
    prior = basq.Prior({"x": dist})
    u = np.linspace(-10.0, 10.0, 401)[:, None]
    x = prior.from_standard(u)
    assert np.isfinite(x).all()
    assert (x[1:] >= x[:-1]).all()
    assert prior.in_support(x).all()
    assert np.isfinite(prior.log_pdf(x)).all()
    assert np.isfinite(prior.log_jacobian(u)).all()
    assert isinstance(bool(prior.flat[0]), bool)


@pytest.mark.parametrize("dist", WIDE[:3], ids=said)
def test_wide_priors_are_right_where_there_are_numbers(dist):
    prior = basq.Prior({"x": dist})
    x = np.array([1e-250, 1e-30, 1e-3, 1.0, 5.0])[:, None]
    u = prior.to_standard(x)
    assert special.ndtr(u[:, 0]) == pytest.approx(dist.cdf(x[:, 0]), rel=1e-9)
    assert np.log(prior.from_standard(u)) == pytest.approx(np.log(x), rel=1e-6)
    density = stats.norm.logpdf(u[:, 0]) - prior.log_jacobian(u)
    assert density == pytest.approx(prior.log_pdf(x), rel=1e-6)


def test_infinite_quantiles_by_mistake_are_refused():
    with pytest.raises(InputError, match="quantiles"):
        basq.Prior({"x": stats.genlogistic(0.001)})  # scipy 1.17: +inf in the lower tail


def test_a_law_without_width_is_refused():
    with pytest.raises(InputError, match="point mass"):
        basq.Prior({"x": stats.gamma(1e300)})


def precision_model(a, b, n=30):
    """Normal data of mean zero, and the log-evidence of their precision under a gamma prior."""
    square = float((np.random.default_rng(3).normal(0.0, 2.0, n) ** 2).sum())

    def log_likelihood(x):
        return 0.5 * n * np.log(x[0] / (2.0 * np.pi)) - 0.5 * x[0] * square

    grown = special.gammaln(a + 0.5 * n) - special.gammaln(a)
    return log_likelihood, grown - 0.5 * n * np.log(2 * np.pi) + a * np.log(b) - (a + 0.5 * n) * np.log(
        b + 0.5 * square
    )


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e-3), (1e-4, 1.0)])
def test_evidence_under_a_vague_prior_of_a_precision(a, b):
    log_likelihood, truth = precision_model(a, b)
    result = basq.infer(log_likelihood, {"tau": stats.gamma(a, scale=1.0 / b)}, seed=1, progress=False)
    assert result.converged
    assert result.log_evidence == pytest.approx(truth, abs=0.05)
    assert str(result)
    assert result.sample(100, seed=0).min() > 0.01


@pytest.mark.parametrize("recognise", [True, False])
def test_evidence_under_a_vague_prior_of_a_variance(recognise):
    a, y = 1e-3, np.random.default_rng(3).normal(0.0, 2.0, 30)

    def log_likelihood(x):
        return -0.5 * ((y - x[0]) ** 2).sum() / x[1] - 0.5 * len(y) * np.log(2.0 * np.pi * x[1])

    mean = np.linspace(-8.0, 8.0, 4001)
    square = ((y[:, None] - mean) ** 2).sum(axis=0)
    terms = stats.norm.logpdf(mean, 0, 3) - (a + 15.0) * np.log(a + 0.5 * square)
    truth = special.logsumexp(terms) + np.log(mean[1] - mean[0]) - 15.0 * np.log(2.0 * np.pi)
    truth += special.gammaln(a + 15.0) - special.gammaln(a) + a * np.log(a)
    prior = {"mean": stats.norm(0, 3), "variance": stats.invgamma(a, scale=a)}
    result = basq.infer(log_likelihood, prior, seed=1, progress=False, method=basq.Auto(recognise=recognise))
    assert result.log_evidence == pytest.approx(truth, abs=max(0.05, 3.0 * result.log_evidence_std))
    assert result.converged
