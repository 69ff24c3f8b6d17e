"""Priors of every kind as plain data: the same numbers again, or the name of what is missing."""

import numpy as np
import pytest
from scipy import stats

import basq
from basq.errors import AbsentError
from basq.plain import pack, unpack
from basq.prior import Prior

DRAWS = np.random.default_rng(3).gamma(2.0, size=400)
COV = [[1.0, 0.4], [0.4, 2.0]]

WHOLE = {
    "pairs": {"a": (0, 1), "b": (-2.5, 3)},
    "frozen": {"a": stats.norm(0.1, 2), "b": stats.gamma(2.0, scale=0.3), "c": stats.lognorm(s=0.5)},
    "shaped": {"a": stats.beta(2, 5, loc=-1, scale=4), "b": stats.truncnorm(-1.0, 2.0), "c": stats.t(3)},
    "numpy numbers": {"a": stats.expon(np.float64(0.5), np.float64(2.0)), "b": stats.weibull_min(np.array(1.5))},
    "periodic": {"a": basq.periodic(0, 2 * np.pi), "b": (0, 1)},
    "histogram": {"a": stats.rv_histogram(np.histogram(DRAWS, bins=30), density=False)()},
    "newer": {"a": stats.Normal(mu=0.5, sigma=2.0), "b": stats.Uniform(a=0.0, b=3.0), "c": stats.Logistic()},
    "newer, changed": {"a": stats.truncate(stats.Normal(), lb=0.0), "b": 2.0 * stats.Logistic() + 1.0},
    "a list": [stats.norm(), (0, 1)],
    "multivariate": stats.multivariate_normal([0.5, -1.0], COV),
    "joined": Prior({"a": (0, 1)}).joined(Prior(stats.multivariate_normal([0.0, 0.0], COV), names=["b", "c"])),
    "part": Prior({"a": (0, 1), "b": stats.gumbel_r(), "c": stats.norm()}).only([2, 1]),
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_priors_of_scipys_distributions_are_the_same_again(kind):
    prior = Prior(WHOLE[kind])
    found = unpack(pack(prior))
    assert repr(found) == repr(prior)
    assert found.names == prior.names
    u = np.random.default_rng(1).standard_normal((50, prior.n_dim)) * 2.0
    x = prior.from_standard(u)
    assert np.array_equal(found.from_standard(u), x)
    assert np.array_equal(found.to_standard(x), prior.to_standard(x))
    assert np.array_equal(found.log_pdf(x), prior.log_pdf(x))
    assert np.array_equal(found.bounds, prior.bounds)
    assert np.array_equal(found.sample(5, np.random.default_rng(0)), prior.sample(5, np.random.default_rng(0)))
    assert found.periodic.tolist() == prior.periodic.tolist()
    assert not found.absent


def transform(cube):
    return 6.0 * cube - 3.0


def coupled(cube):
    return np.array([cube[0], cube[0] + cube[1]])


class OwnFamily(stats.rv_continuous):
    def _pdf(self, x):
        return 2.0 * x


class NotGamma(type(stats.gamma)):
    """Named as one of scipy's, and not the same."""


def own_density(x):
    return stats.norm.logpdf(x).sum(axis=-1)


LACKING = {
    "transform": (Prior.from_transform(transform, 2), r"function plain\.test_priors\.transform"),
    "coupled": (Prior.from_transform(coupled, 2), r"test_priors\.coupled"),
    "lambda": (Prior.from_transform(lambda cube: 2 * cube, 2), r"<lambda>"),
    "part": (Prior.from_transform(transform, 2).only([1]), r"test_priors\.transform"),
    "own family": (Prior({"a": OwnFamily(a=0.0, b=1.0, name="own")(), "b": (0, 1)}), r"test_priors\.OwnFamily"),
    "in disguise": (Prior({"a": NotGamma(a=0.0, name="gamma")(2.0)}), r"class plain\.test_priors\.NotGamma"),
    "newer, own": (Prior({"a": stats.make_distribution(stats.halfcauchy)()}), r"CustomDistribution"),
    "joined": (Prior.from_transform(transform, 2).joined(Prior([(0, 1)], names=["y"])), r"test_priors\.transform"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LACKING)
def test_code_of_a_prior_is_asked_for_by_name_when_it_is_needed(kind):
    prior, name = LACKING[kind]
    found = unpack(pack(prior, strict=False))
    assert found.names == prior.names
    assert len(found.absent) == 1
    assert np.array_equal(found.bounds, prior.bounds)
    assert not found.is_separable
    assert isinstance(repr(found), str)
    with pytest.raises(AbsentError, match=name):
        found.from_standard(np.zeros(prior.n_dim))
    with pytest.raises(AbsentError, match=name):
        found.sample(1, np.random.default_rng(0))


def test_a_density_keeps_all_but_its_function():
    samples = np.random.default_rng(0).standard_normal((300, 2))
    prior = Prior.from_density(own_density, samples)
    found = unpack(pack(prior, strict=False))
    u = samples[:5]
    assert np.array_equal(found.from_standard(u), prior.from_standard(u))
    assert np.array_equal(found.measure.log_pdf(u), prior.measure.log_pdf(u))
    assert all(np.array_equal(a, b) for a, b in zip(found.affine, prior.affine, strict=True))
    with pytest.raises(AbsentError, match=r"test_priors\.own_density"):
        found.log_pdf(u)
