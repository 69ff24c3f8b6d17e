"""What every model of the zoo has to keep, and its references against quadrature."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from basq.prior import Prior
from basq.problems import zoo
from basq.problems.zoo.references import LEVELS, rows
from helpers.problems import check_points_and_rows

ALL = pytest.mark.parametrize("name", zoo.MODELS)


def draws(problem, n, seed=0):
    """Draws of the prior, (n, d), by scipy and not by the prior's own map."""
    rng = np.random.default_rng(seed)
    laws = [stats.uniform(p[0], p[1] - p[0]) if isinstance(p, tuple) else p for p in problem.prior.values()]
    return np.column_stack([law.rvs(n, random_state=rng) for law in laws])


def test_the_zoo_is_large_and_every_model_is_in_one_group():
    grouped = [name for names in zoo.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(zoo.MODELS)
    assert len(zoo.MODELS) >= 30
    assert min(map(len, zoo.GROUPS.values())) >= 3
    dims = {make().n_dim for make in zoo.MODELS.values()}
    assert min(dims) == 2
    assert max(dims) == 12


@ALL
def test_name_is_the_functions(name):
    problem = zoo.MODELS[name](4)
    assert (problem.name, problem.seed) == (name, 4)
    assert name in zoo.GROUPS[problem.group]
    assert zoo.MODELS[name]().seed == 0
    assert len(problem.truth) == problem.n_dim == len(problem.names)


@ALL
def test_points_and_rows_agree_and_prior_draws_never_give_nan(name):
    problem = zoo.MODELS[name](3)
    check_points_and_rows(problem, draws(problem, 30))
    values = problem.log_likelihood(draws(problem, 2000, seed=1))
    assert not np.isnan(values).any()
    assert (values < np.inf).all()
    assert np.mean(values > -np.inf) > 0.2


@ALL
def test_likelihood_is_finite_at_the_truth(name):
    problems = [zoo.MODELS[name](seed) for seed in range(10)]
    assert all(np.isfinite(problem.log_likelihood(problem.truth)) for problem in problems)
    assert Prior(dict(problems[0].prior)).in_support(np.array([problem.truth for problem in problems])).all()


@ALL
def test_a_seed_is_a_problem(name):
    first, again, other = (zoo.MODELS[name](seed) for seed in (5, 5, 6))
    x = draws(first, 20)
    np.testing.assert_array_equal(first.log_likelihood(x), again.log_likelihood(x))
    np.testing.assert_array_equal(first.truth, again.truth)
    assert (first.log_likelihood(x) != other.log_likelihood(x)).any()
    assert (first.truth != other.truth).any()


@ALL
def test_survives_the_way_to_a_worker(name):
    problem = zoo.MODELS[name](2)
    back = pickle.loads(pickle.dumps(problem))
    assert back.log_likelihood(problem.truth) == problem.log_likelihood(problem.truth)


@ALL
def test_references_belong_to_the_data(name):
    prior = Prior(dict(zoo.MODELS[name]().prior))
    for row in (row for row in rows() if row["model"] == name):
        problem = zoo.MODELS[name](row["seed"])
        assert problem.log_likelihood(problem.truth) == pytest.approx(row["log_likelihood_at_truth"], rel=1e-9)
        assert row["agree"] == (problem.log_evidence is not None)
        if row["agree"]:
            assert abs(row["log_z"] - row["log_z_bridge"]) < 0.02
            assert problem.log_evidence_std < 0.01
            assert problem.quantiles.shape == (problem.n_dim, len(LEVELS))
            assert (np.diff(problem.quantiles, axis=1) >= 0.0).all()
            assert prior.in_support(problem.quantiles.T).all()
        else:
            assert problem.quantiles is None
            assert problem.log_evidence_std is None


def test_no_reference_is_none():
    problem = zoo.MODELS["ar1"](10**6)
    assert problem.reference is None
    assert problem.log_evidence is None


def grid_log_evidence(problem, n=400):
    """Log Z of two parameters, by the midpoint rule over both priors' probabilities."""
    p = (np.arange(n) + 0.5) / n
    first, second = (law.ppf(p) for law in problem.prior.values())
    x = np.column_stack([np.repeat(first, n), np.tile(second, n)])
    values = np.concatenate([problem.log_likelihood(piece) for piece in np.array_split(x, 100)])
    return logsumexp(values) - np.log(len(x))


@pytest.mark.parametrize("name", ["pumps", "reinforcement_learning", "recapture"])
def test_references_in_two_dimensions_against_quadrature(name):
    problem = zoo.MODELS[name](0)
    assert problem.log_evidence == pytest.approx(grid_log_evidence(problem), abs=0.01)


@pytest.mark.parametrize("name", ["centred_schools", "noncentred_schools"])
def test_references_of_schools_against_quadrature_over_mean_and_spread(name):
    """Given both, the effects integrate out: y is N(mu, tau² + error²)."""
    problem = zoo.MODELS[name](0)
    y, error = (problem.rows.keywords[k] for k in ("y", "error"))
    p = (np.arange(600) + 0.5) / 600
    mu, tau = (problem.prior[k].ppf(p) for k in ("mu", "tau"))
    sd = np.hypot(error, tau[:, None])
    terms = [stats.norm.logpdf(y, m, sd).sum(axis=1) for m in mu]
    boxes = len(y) * np.log(200.0) if name == "centred_schools" else 0.0
    log_z = logsumexp(terms) - np.log(600**2) - boxes
    assert problem.log_evidence == pytest.approx(log_z, abs=0.01)
