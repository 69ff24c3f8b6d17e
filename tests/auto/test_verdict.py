"""The verdict: each fact by itself, and the words for it."""

from dataclasses import replace

import numpy as np
import pytest

from basq.auto.error import unseen
from basq.auto.settings import Settings
from basq.auto.verdict import Facts, converged, doubts, missing, unexplored
from basq.method import Audit

SETTINGS = Settings()
AGREES = Audit(64, 10, 1.0, 0.1, 0.0, False)
FINE = Facts(
    n_dim=2,
    now=(-3.0, 0.03),
    before=(-3.01, 0.04),
    monte_carlo=0.01,
    least=0.013,
    effective=1000.0,
    resolved=True,
    audits=(AGREES, AGREES),
    n_modes=1,
    unseen=0.0,
    explored=20,
    climbing=0,
    n_outlying=0,
)
"""Nothing speaks against this one: 20 = 16 + 2 d exploration points."""


def test_everything_in_favour():
    assert converged(FINE, 0.1, SETTINGS) == (
        True,
        "sd of log Z 0.03 (Monte Carlo 0.01) is below dlogz = 0.1, the last batches agree with their prediction, and "
        "20 exploration points found nothing new",
    )
    assert FINE.log_evidence == -3.0
    assert FINE.log_evidence_std == 0.03


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resolved": False}, "the surrogate does not resolve the posterior yet"),
        ({"now": (-3.0, 0.2)}, "sd of log Z 0.2 is above dlogz = 0.1"),
        ({"now": (-3.0, np.nan)}, "sd of log Z nan is above dlogz = 0.1"),
        ({"effective": 199.0}, "the evidence integral is uncertain"),
        ({"audits": ()}, "no batch has tested the surrogate yet"),
        ({"before": None}, "no batch has tested the surrogate yet"),
        ({"audits": (replace(AGREES, z2=6.25),)}, "the last batches were 2.5 sd off their prediction"),
        # agrees on average, but the last one alone does not
        ({"audits": (replace(AGREES, n_inside=50), replace(AGREES, z2=8.5))}, "the last batches were 1.6 sd off"),
        ({"audits": (AGREES, replace(AGREES, rms=1.6))}, "the last batch was 1.6 nats off its prediction"),
        ({"before": (-3.2, 0.04)}, "log Z moved by +0.2 with the last batch"),
        ({"before": (-2.4, 0.9)}, "log Z moved by -0.6 with the last batch"),
        ({"explored": 19}, "only 19 exploration points since the last surprise"),
        ({"explored": 1}, "only 1 exploration point since the last surprise"),
        ({"explored": 0}, "no exploration point since the last surprise"),
        ({"n_outlying": 1}, "1 observation suggests another mode"),
        ({"n_outlying": 2}, "2 observations suggest another mode"),
        ({"climbing": 1}, "1 search for a mode is still climbing"),
        ({"climbing": 3}, "3 searches for modes are still climbing"),
        ({"n_modes": 2, "unseen": 0.2}, "2 modes were found, and a further one would add sd 0.2"),
    ],
)
def test_each_fact_alone_holds_it_up(change, said):
    found, why = converged(replace(FINE, **change), 0.1, SETTINGS)
    assert not found
    assert why.startswith(said)


def test_two_reasons_are_enough_and_a_target_is_given_up_only_where_nothing_else_is_missing():
    vague = replace(FINE, now=(-3.0, 0.03), least=0.02)
    said = "more calls do not lower 0.02 of it: give dlogz = 0.03 or more)"
    assert converged(vague, 0.01, SETTINGS)[1].endswith(said)
    many = replace(vague, resolved=False, explored=3, climbing=2)
    assert converged(many, 0.01, SETTINGS)[1] == (
        "the surrogate does not resolve the posterior yet; sd of log Z 0.03 is above dlogz = 0.01"
    )


def test_a_batch_outside_the_posterior_says_nothing():
    nothing = Audit(80, 0, np.nan, np.nan, np.nan, False)
    assert doubts(replace(FINE, audits=(AGREES, nothing)), 0.1, SETTINGS) == []
    # but none that says anything at all is no agreement
    assert doubts(replace(FINE, audits=(nothing,)), 0.1, SETTINGS) != []


def test_signs_of_a_second_mode_are_given_up_after_two_quotas_while_there_is_one_mode():
    tired = replace(FINE, explored=40, n_outlying=5, climbing=2)
    assert unexplored(tired, 0.1, SETTINGS) == []
    assert len(unexplored(replace(tired, explored=39), 0.1, SETTINGS)) == 2
    assert len(unexplored(replace(tired, n_modes=2), 0.1, SETTINGS)) == 2


def test_modes_not_found_yet_are_part_of_the_error_but_no_doubt():
    several = replace(FINE, n_modes=2, unseen=0.04)
    assert several.log_evidence_std == pytest.approx(0.05)
    assert converged(several, 0.1, SETTINGS)[0]
    assert doubts(replace(several, unseen=1.0), 0.1, SETTINGS) == []
    assert not converged(replace(several, unseen=1.0), 0.1, SETTINGS)[0]


def test_one_mode_and_enough_that_looked_for_others_in_vain():
    assert missing(FINE, 40, SETTINGS) == 0.0
    assert missing(replace(FINE, n_modes=2), 40, SETTINGS) == unseen(2, 40, 2, SETTINGS.error)


def test_before_the_first_batch_nobody_was_asked_to_look():
    assert missing(replace(FINE, before=None, explored=0), 0, SETTINGS) == 0.0


def test_until_enough_have_looked_another_mode_may_be_missing():
    few, fewer = (missing(replace(FINE, explored=n), 40, SETTINGS) for n in (19, 5))
    assert 0.0 < few < fewer
    assert fewer == unseen(1, 5, 2, SETTINGS.error)


@pytest.mark.parametrize("hint", [{"n_outlying": 1}, {"climbing": 2}])
def test_what_suggests_another_mode_counts_whatever_has_looked_in_vain(hint):
    assert missing(replace(FINE, **hint), 40, SETTINGS) == unseen(1, 0, 2, SETTINGS.error)
    assert missing(replace(FINE, **hint), 40, SETTINGS) > np.log(2.0)
