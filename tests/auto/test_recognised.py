"""Noise scales in black boxes: recognised from a few further calls, and integrated out of every call."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import basq
from basq.problems import zoo

RNG = np.random.default_rng(3)
X = np.c_[np.ones(60), RNG.normal(size=(60, 2))]
Y = X @ [2.0, -1.0, 0.5] + 0.3 * RNG.normal(size=60)
NOISE = stats.halfcauchy(scale=2.5)
PRIOR = {"a": stats.norm(0, 10), "b": stats.norm(0, 10), "c": stats.norm(0, 10)}
OFF = basq.Auto(recognise=False)

FORMS = {
    "standard deviation": (lambda s: s, NOISE),
    "variance": (np.sqrt, stats.loguniform(1e-4, 1e2)),
    "precision": (lambda t: t**-0.5, stats.gamma(1.0, scale=10.0)),
}


def log_likelihood(x, sd):
    return stats.norm.logpdf(Y, X @ x[:3], sd).sum()


def truth(sd, prior):
    """Log Z with the coefficients integrated in closed form and the scale by quadrature."""
    values, vectors = np.linalg.eigh(100.0 * X @ X.T)
    rotated = vectors.T @ Y

    def integrand(t):
        var = sd(t) ** 2 + np.maximum(values, 0.0)
        return np.exp(-0.5 * np.sum(rotated**2 / var + np.log(2 * np.pi * var)) + 40.0) * prior.pdf(t)

    grid = prior.ppf(np.linspace(1e-6, 1.0 - 1e-6, 4001))
    peak = grid[int(np.argmax([integrand(t) for t in grid]))]
    parts = [peak * f for f in (1e-3, 0.2, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 4.0, 1e3)]
    return np.log(sum(quad(integrand, a, b, limit=200)[0] for a, b in pairwise(parts))) - 40.0


@pytest.mark.parametrize("form", FORMS)
def test_a_noise_scale_is_recognised_and_integrated(form):
    sd, prior = FORMS[form]
    result = basq.infer(
        lambda x: log_likelihood(x, sd(x[3])), PRIOR | {"t": prior}, seed=1, progress=False
    )  # fmt: skip
    assert result.converged
    assert result.n_evals < 200
    assert any("t was integrated" in note and "60 data" in note for note in result.notes)
    assert result.log_evidence == pytest.approx(truth(sd, prior), abs=4.0 * result.log_evidence_std + 0.01)
    assert np.median(sd(result.sample(2000, seed=0)[:, 3])) == pytest.approx(0.3, rel=0.15)


def test_a_rate_is_no_noise_scale():
    time = np.linspace(0.0, 2.0, 30)
    counts = np.random.default_rng(0).poisson(20.0 * np.exp(-0.8 * time))
    prior = {"rate": stats.gamma(2.0, scale=1.0), "shape": stats.lognorm(0.5)}

    def rates(x):
        return stats.poisson.logpmf(counts, 20.0 * np.exp(-((x[0] * time) ** x[1])) + 1e-9).sum()

    plain = basq.infer(rates, prior, method=OFF, seed=1, progress=False)
    looked = basq.infer(rates, prior, seed=1, progress=False)
    assert looked.notes == ()
    assert looked.log_evidence == pytest.approx(plain.log_evidence, abs=0.05)


def test_it_can_be_switched_off():
    assert repr(basq.Auto()) == "Auto()"
    assert repr(OFF) == "Auto(recognise=False)"


def test_large_values_far_away_do_not_spoil_what_was_integrated():
    # Two calls a point, whose difference is the misfit: at values of −10¹⁴ rounding leaves nothing of the rest.
    result = zoo_run("exponential_survival", 0)
    assert any("intercept was integrated" in note for note in result.notes)
    assert result.log_evidence == pytest.approx(zoo.MODELS["exponential_survival"](0).log_evidence, abs=0.1)


def zoo_run(model, seed):
    problem = zoo.MODELS[model](seed)
    calls = 50 * (len(problem.prior) + 2)
    return basq.infer(
        problem.log_likelihood, problem.prior, vectorized=True, max_evals=calls, seed=seed, progress=False
    )
