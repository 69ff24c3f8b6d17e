"""The error of log Z: every term by hand."""

import numpy as np
import pytest

from basq.auto.cells import Total
from basq.auto.error import fixed_terms, out_of_reach, standard_deviation, unseen
from basq.auto.settings import Settings
from basq.method import Audit

SETTINGS = Settings()
NOTHING = {"jensen": 0.0, "taken_off": 0.0, "surrogate_var": 0.0, "monte_carlo": 0.0, "wall": 0.0, "tamed": 0.0}


def total(**terms):
    return Total(log_mean=-3.0, effective=1000.0, shares=np.ones(1), **NOTHING | terms)


def audited(*z2):
    return tuple(Audit(16 * k, 10, value, 0.1, 0.0, False) for k, value in enumerate(z2))


CALIBRATED = audited(1.0)


def sd(found, audits=CALIBRATED, before=(-3.0, 0.1)):
    return standard_deviation(found, audits, before, SETTINGS)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({}, 0.0),
        ({"jensen": 0.1}, 0.04),
        ({"monte_carlo": 0.05}, 0.06),
        ({"wall": 0.02}, 0.03),
        ({"tamed": 0.07}, 0.07),
        ({"surrogate_var": 0.09}, 0.3),
    ],
)
def test_every_term_with_the_floor(terms, expected):
    assert sd(total(**terms)) == pytest.approx(np.hypot(expected, 0.005))


def test_terms_add_up_in_squares():
    found = total(jensen=0.1, monte_carlo=0.05, wall=0.02, tamed=0.07, surrogate_var=0.09)
    parts = [0.04, 0.06, 0.03, 0.07, 0.3, 0.005, 0.5 * 0.2]
    assert sd(found, before=(-2.8, 0.1)) == pytest.approx(np.linalg.norm(parts))


def test_audits_multiply_the_surrogates_variance_alone():
    found = total(surrogate_var=0.01, monte_carlo=0.05)
    # the newest of three counts most: (1 · 7 + 0.7 · 3 + 0.49 · 1) / 2.19
    factor = (7.0 + 0.7 * 3.0 + 0.49) / 2.19
    assert sd(found, audited(100.0, 1.0, 3.0, 7.0)) == pytest.approx(np.linalg.norm([0.1 * factor**0.5, 0.06, 0.005]))
    assert sd(found, audited(0.1)) == sd(found, audited(1.0))  # an error is never made smaller
    assert sd(found, audited(400.0)) == pytest.approx(np.linalg.norm([0.5, 0.06, 0.005]))  # 25 at most
    assert sd(found, ()) == pytest.approx(np.linalg.norm([0.2, 0.06, 0.005]))  # 4 before the first


def test_before_the_second_fit_nothing_has_moved():
    assert sd(total(), before=None) == pytest.approx(0.005)


def test_what_calls_do_not_lower():
    assert fixed_terms(total(monte_carlo=0.01), SETTINGS.error) == (pytest.approx(0.012), 0.005)
    assert out_of_reach(0.013, 0.1) == ""
    assert out_of_reach(0.013, 0.0) == ""  # spend all calls: nothing is in vain
    assert out_of_reach(0.013, 0.01) == " (more calls do not lower 0.013 of it: give dlogz = 0.02 or more)"


def test_modes_not_found_yet():
    def more(n_modes, n_explored, n_dim):
        return unseen(n_modes, n_explored, n_dim, SETTINGS.error)

    # one basin from 23 starts: 1 · 2 / (23 − 3) more, each a change of log 2
    assert more(1, 23, 2) == pytest.approx(np.sqrt(0.1) * np.log(2.0))
    # two basins from 104 starts: 2 · 3 / (104 − 4) more, each a change of log(3/2)
    assert more(2, 104, 3) == pytest.approx(np.sqrt(0.06) * np.log(1.5))
    assert more(2, 312, 5) == more(2, 104, 3)
    assert more(3, 50, 2) > more(3, 500, 2)
    assert unseen(2, 104, 3, SETTINGS.changed({"error.unseen": False}).error) == 0.0
