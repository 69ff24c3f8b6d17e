"""How c of a noise scale's form depends on the other parameters: from a few points with two calls, for all."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import basq
from basq.auto.following import following
from basq.auto.form import form_at
from basq.auto.reduction import Reduction
from basq.auto.scales import Axis, scale_along
from basq.auto.settings import Settings
from basq.observations import Observations
from basq.problems import zoo
from basq.problems.zoo.references import LEVELS

RNG = np.random.default_rng(5)
Z = RNG.normal(size=40)
COUNTS = RNG.poisson(np.exp(1.0 + 0.7 * Z))
PRIOR = {"intercept": stats.norm(0, 3), "slope": stats.norm(0, 2)}


def counts(x):
    """Poisson regression: along the intercept, a scale; its c is linear in the slope."""
    return stats.poisson.logpmf(COUNTS, np.exp(x[0] + x[1] * Z)).sum()


def wavy(x):
    """The same with a c that is no quadratic."""
    return counts(x) + np.sin(3.0 * x[1])


def followed(function, n):
    """The form of a function that n points with two calls each tell, after four along its scale."""
    prior, own, rng = basq.Prior(PRIOR), Settings().recognition, np.random.default_rng(0)
    first = 0.5 * rng.standard_normal((n, 2))
    line = np.c_[np.array([-1.0, 0.0, 1.0, 2.0]) / 3.0, np.full(4, 0.3)]
    u = np.concatenate([line, np.stack([first, first + [0.4, 0.0]], axis=1).reshape(-1, 2)])
    x, zeros, rows = prior.from_standard(u), np.zeros(len(u)), np.arange(4)
    values = np.array([function(p) for p in x])
    seen = Observations(x, u, values, zeros, zeros, zeros.astype(bool), zeros.astype(np.intp))
    scale = scale_along(Axis(0, True), x[rows, 0], values[rows], np.zeros(4), own)
    form = replace(form_at(seen, 0, [scale], [rows], prior), constant=None)
    return following(Reduction.of(form, seen, prior, None, own), prior, own)


def test_c_is_followed_exactly():
    form = followed(counts, 8)
    assert form is not None
    assert form.n_calls == 1
    assert not form.same
    x = np.c_[np.zeros(5), np.linspace(-3.0, 3.0, 5)]
    expected = (COUNTS * Z).sum() * x[:, 1] - gammaln(COUNTS + 1.0).sum()
    np.testing.assert_allclose(form.constants(x), expected, atol=1e-5)


def test_too_few_points_tell_nothing():
    assert followed(counts, 3) is None


def test_a_c_that_is_no_quadratic_is_not_followed():
    assert followed(wavy, 12) is None


@pytest.mark.parametrize("model", ["poisson_regression", "exponential_survival"])
def test_regressions_on_a_logarithmic_scale_take_one_call_a_point(model):
    problem = zoo.MODELS[model](2)
    result = basq.infer(problem.log_likelihood, problem.prior, vectorized=True, seed=2, progress=False)
    assert result.converged
    assert result.n_evals <= 192
    assert any("intercept was integrated" in note for note in result.notes)
    assert result.log_evidence == pytest.approx(problem.log_evidence, abs=0.05)
    middle = problem.quantiles[:, len(LEVELS) // 2]
    assert np.median(result.sample(4000, seed=0), axis=0) == pytest.approx(middle, abs=0.1)
