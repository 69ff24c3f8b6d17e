"""Model probabilities and what the errors of log-evidences leave open, against quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from basq.rivals.standing import LEAST, WIDER, Standing, spread


def two(difference, a, b, odds=1.0):
    return Standing(np.array([difference, 0.0]), np.array([a, b]), np.log([odds, 1.0]))


@pytest.mark.parametrize(
    ("difference", "a", "b", "odds"), [(0.0, 0.1, 0.2, 1.0), (2.0, 0.5, 1.0, 3.0), (-1e4, 2, 3, 1)]
)
def test_probability_of_one_of_two_models_is_a_logistic_normal_mean(difference, a, b, odds):
    standing = two(difference, a, b, odds)
    centre, sd = difference + np.log(odds), np.hypot(a, b)

    def moment(k):
        return quad(lambda t: expit(centre + sd * t) ** k * norm.pdf(t), -9, 9)[0]

    mean, second = moment(1), moment(2)
    assert standing.probability[0] == pytest.approx(mean, abs=0.01)
    assert standing.probability.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(standing.probability_std, np.sqrt(max(second - mean**2, 0.0)), atol=0.01)


def test_gain_is_the_part_of_the_variance_that_a_model_explains():
    # for small errors p is linear in log Z: Var E[p_k | log Z_j] = (dp_k / d log Z_j)² s_j²
    log_z, s = np.array([0.0, -0.4, -1.5]), np.array([0.05, 0.02, 0.08])
    standing = Standing(log_z, s, np.zeros(3))
    p = np.exp(log_z) / np.exp(log_z).sum()
    slope = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(standing.gain(), (slope**2).sum(axis=0) * s**2, rtol=0.1)


def test_a_hopeless_model_is_out_of_the_race_and_gains_nothing():
    standing = Standing(np.array([0.0, -0.5, -40.0]), np.array([0.3, 0.3, 3.0]), np.zeros(3))
    np.testing.assert_array_equal(standing.in_race, [True, True, False])
    assert standing.gain()[2] < 0.02 * standing.gain()[0]


def test_a_model_that_is_far_behind_but_unsure_stays_in_the_race():
    assert Standing(np.array([0.0, -40.0]), np.array([0.1, 20.0]), np.zeros(2)).in_race.all()


def test_a_model_without_a_value_above_zero_stays_in_the_race():
    standing = Standing(np.array([0.0, -np.inf]), np.array([0.1, np.inf]), np.zeros(2))
    assert standing.in_race.all()
    assert np.isinf(standing.probability_std[1])
    assert np.isinf(standing.gain()[1])
    np.testing.assert_array_equal(standing.probability, [1.0, 0.0])


def test_nothing_known_gives_no_preference():
    standing = Standing(np.full(2, -np.inf), np.full(2, np.inf), np.zeros(2))
    np.testing.assert_array_equal(standing.probability, [0.5, 0.5])


def test_errors_that_are_not_to_be_relied_on_are_widened():
    values = np.zeros(5)
    assert spread(0.1, True, values[:0], 2) == 0.1
    assert spread(0.1, False, values, 2) == pytest.approx(np.hypot(WIDER * 0.1, LEAST))


def test_too_few_values_above_zero_say_nothing():
    values = np.array([0.0, -np.inf, -np.inf, -1.0, -2.0, -3.0])
    assert spread(0.1, False, values, 1) < np.inf
    assert spread(0.1, False, values, 2) == np.inf
