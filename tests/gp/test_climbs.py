"""Climbs from the best places seen, by processes of their neighbourhoods."""

import numpy as np
import pytest

from basq.gp.climbs import ClimbSettings, Place, View, climbs, peaks

SETTINGS = ClimbSettings()
PLAIN = View(np.asarray, np.asarray)
D = 4


def needle(u):
    """A needle of width 0.05 and height 60 on a broad hill; its foot, six widths out, is all that stands out of it."""
    narrow = 60.0 - 0.5 * ((u - 0.8) ** 2).sum(axis=1) / 0.05**2
    return np.logaddexp(narrow, -0.5 * (u * u).sum(axis=1))


def climbed(levels, u, views=(PLAIN,), batches=15, seed=0):
    """Points (m, d) after so many batches of eight climbing points."""
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        u = np.concatenate([u, climbs(u, levels(u), u[:0], views, 8, rng, settings=SETTINGS)])
    return u


def design(n=60, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D))


@pytest.mark.parametrize("seed", range(3))
def test_the_foot_of_a_needle_leads_to_its_top(seed):
    foot = 0.8 + 0.5 * 0.05 * np.array([[9.0, -9.0, 9.0, 9.0]])
    u = np.concatenate([design(seed=seed), foot])
    assert 0.0 < needle(foot)[0] < 30.0
    assert needle(climbed(needle, u, seed=seed)).max() > 55.0


def test_a_ridge_is_climbed_in_the_coordinates_that_explain_it():
    """Two of four directions are a thousand times narrower: a round hill in white coordinates, a ridge in others."""
    root = np.linalg.qr(np.random.default_rng(3).standard_normal((D, D)))[0] * [1.0, 1.0, 1e-3, 1e-3]
    white = View(lambda u: np.linalg.solve(root, np.asarray(u).T).T, lambda z: z @ root.T)

    def levels(u):
        return -0.5 * ((white.of(u) - 1.0) ** 2).sum(axis=1) / 0.1**2

    start = white.back(design())
    best = [levels(climbed(levels, start, views, batches=4)).max() for views in ((PLAIN,), (white,), (PLAIN, white))]
    assert best[0] < -5.0
    assert min(best[1:]) > -1.0


def test_points_under_way_are_not_asked_for_again():
    u, rng = design(), np.random.default_rng(1)
    place = Place.among(u, -np.sum(u * u, axis=1), int(np.argmin((u * u).sum(axis=1))), SETTINGS)
    first = place.upwards(1, u[:0], rng, SETTINGS)
    later = place.upwards(3, first, np.random.default_rng(1), SETTINGS)
    assert np.linalg.norm((later - first) / place.scales, axis=1).min() > 0.04 * place.reach


def test_peaks_are_higher_than_their_neighbours():
    z = np.arange(8.0)[:, None]
    levels = np.array([0.0, 3.0, 1.0, 0.5, 2.0, 1.5, 1.0, 5.0])
    assert peaks(z, levels, 2).tolist() == [7, 1, 4]
    assert peaks(z[:1], levels[:1], 3).tolist() == [0]


@pytest.mark.parametrize("n", [0, 1, 3, 8])
def test_as_many_points_as_asked_for_and_none_out_of_reach(n):
    u = design() + 5.5
    found = climbs(u, u.sum(axis=1), u[:0], (PLAIN,), n, np.random.default_rng(0), settings=SETTINGS)
    assert found.shape == (n, D)
    assert np.abs(found).max(initial=0.0) <= SETTINGS.farthest


@pytest.mark.parametrize("levels", [np.zeros(60), np.r_[np.zeros(59), 1e12], np.r_[np.full(59, -1e12), 0.0]])
def test_levels_of_any_size(levels):
    found = climbs(design(), levels, np.empty((0, D)), (PLAIN,), 4, np.random.default_rng(0), settings=SETTINGS)
    assert np.isfinite(found).all()
