"""Likelihoods that do not change when labels are exchanged."""

import numpy as np
import pytest
from scipy import stats

import basq
from basq.auto.folded import FoldedMeasure, Symmetries
from basq.auto.images import likely_symmetries
from basq.auto.settings import Settings
from basq.numerics.fold import Fold, group
from basq.observations import Observations
from basq.prior import Prior

MIXTURE = {
    "mean1": stats.norm(0, 10),
    "mean2": stats.norm(0, 10),
    "sd1": stats.halfnorm(scale=2),
    "sd2": stats.halfnorm(scale=2),
    "share": stats.beta(5, 5),
}
SETTINGS = Settings().exploration


def symmetric(x):
    """Two equal hills of the first two parameters; the third is a share."""
    a = (
        stats.norm.logpdf(x[:, 0], 2.0, 0.1)
        + stats.norm.logpdf(x[:, 1], -1.0, 0.2)
        + stats.norm.logpdf(x[:, 2], 0.3, 0.1)
    )
    b = (
        stats.norm.logpdf(x[:, 1], 2.0, 0.1)
        + stats.norm.logpdf(x[:, 0], -1.0, 0.2)
        + stats.norm.logpdf(x[:, 2], 0.7, 0.1)
    )
    return np.logaddexp(a, b)


PRIOR = {"a": stats.norm(0, 2), "b": stats.norm(0, 2), "share": (0.0, 1.0)}


def test_labels_are_exchanged_all_at_once_and_only_even_priors_turn_round():
    every = likely_symmetries(Prior(MIXTURE), 8)
    assert [i.place.tolist() for i in every] == [[1, 0, 3, 2, 4]] * 2
    assert [i.sign.tolist() for i in every] == [[1.0] * 5, [1.0, 1.0, 1.0, 1.0, -1.0]]


def test_coefficients_of_a_regression_are_no_labels():
    assert likely_symmetries(Prior({f"b{k}": stats.norm(0, 1) for k in range(5)}), 8) == ()


def observations(prior, likelihood, u):
    x = prior.from_standard(u)
    n, zeros = len(u), np.zeros(len(u))
    return Observations(x, u, likelihood(x), zeros, zeros, np.ones(n, dtype=bool), np.zeros(n, dtype=np.intp))


def played(likelihood, prior):
    """What is known when all wanted images have been called."""
    u = np.random.default_rng(0).normal(size=(12, prior.n_dim))
    for batch in range(6):
        seen = observations(prior, likelihood, u)
        seen.batch[12:] = 1 + batch
        known = Symmetries.of(seen, prior, SETTINGS)
        if not len(known.wanted):
            return known, len(u) - 12
        assert not len(known.due(known.wanted))
        u = np.concatenate([u, known.wanted])
    raise AssertionError


def test_a_symmetry_is_found_by_few_calls():
    known, n_calls = played(symmetric, Prior(PRIOR))
    assert len(known.found) == 1
    assert known.found[0].sign.tolist() == [1.0, 1.0, -1.0]
    assert n_calls == 2
    fold = known.fold(None, np.array([1.0, -0.5, 0.2]))
    assert "a and b exchanged and share reflected: one of 2 equal parts" in known.note(fold)


def test_what_is_nearly_symmetric_is_not():
    known, _ = played(lambda x: symmetric(x) + 1e-6 * x[:, 0], Prior(PRIOR))
    assert known.found == ()
    assert known.fold(None, np.ones(3)) is None


def test_a_floor_is_no_symmetry():
    known, _ = played(lambda x: np.where(x[:, 0] > 3.0, x[:, 0], -1e3), Prior(PRIOR))
    assert known.found == ()


def test_noisy_values_show_nothing():
    seen = observations(Prior(PRIOR), symmetric, np.random.default_rng(0).normal(size=(12, 3)))
    seen.noise[:] = 0.1
    assert not len(Symmetries.of(seen, Prior(PRIOR), SETTINGS).wanted)


def test_the_measure_of_a_part_stands_for_all():
    prior = Prior(PRIOR)
    fold = Fold(group(likely_symmetries(prior, 8)), np.array([1.0, -1.0, 0.5]))
    measure = FoldedMeasure(prior.measure, fold)
    rng = np.random.default_rng(0)
    u = rng.normal(size=(200_000, 3))
    assert np.exp(measure.log_pdf(u) - prior.measure.log_pdf(u)).mean() == pytest.approx(1.0, abs=0.01)
    assert np.isfinite(measure.log_pdf(measure.sample(100, rng))).all()


def test_a_posterior_of_two_equal_parts_is_learned_as_one():
    truth = np.log(2.0) + stats.norm.logpdf(2.0, 0, np.hypot(2, 0.1)) + stats.norm.logpdf(-1.0, 0, np.hypot(2, 0.2))
    truth += np.log(stats.norm.cdf(7.0) - stats.norm.cdf(-3.0))
    result = basq.infer(symmetric, PRIOR, vectorized=True, seed=0, progress=False)
    assert result.converged
    assert result.log_evidence == pytest.approx(truth, abs=0.05)
    assert "one of 2 equal parts was learned" in result.message
    x = result.sample(2000, seed=0)
    assert np.mean(x[:, 0] > x[:, 1]) == pytest.approx(0.5, abs=0.05)
    assert np.corrcoef(x[:, 0] > x[:, 1], x[:, 2])[0, 1] < -0.8


def test_a_fold_whose_centre_is_badly_placed_is_placed_anew():
    prior = Prior(PRIOR)
    known, _ = played(symmetric, prior)
    old = known.fold(None, np.array([0.1, 0.0, 0.0]))
    well, badly = np.array([1.0, -0.5, -0.5]), np.array([0.5, 0.5, 0.4])
    assert known.fold(old, np.array([0.2, 0.0, 0.0])) is old
    moved = known.fold(old, badly)
    assert moved is not old
    assert moved.same_group(old)
    assert known.fold(Fold(old.maps, well), well).centre is well
