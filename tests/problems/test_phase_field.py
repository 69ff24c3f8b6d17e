"""The phase-field simulator against conservation laws, linear theory and refinement; the case built on it."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from basq import problems
from basq.errors import InputError
from basq.problems.cases.phase_field import CahnHilliard

TRUTH = (673.0, 20500.0, 2.22, 2e-15)


@pytest.fixture(scope="module")
def simulator():
    return CahnHilliard(*TRUTH, size=16)


@pytest.fixture(scope="module")
def initial():
    noise = np.random.default_rng(3).uniform(-0.02, 0.02, (16, 16))
    return 0.4 + noise - noise.mean()


@pytest.fixture(scope="module")
def small():
    return problems.phase_field(size=16, n_frames=6)


def smooth_field(size, amplitude):
    """A sum of three waves, the same function on every grid over the same square."""
    x = 2.0 * np.pi * np.arange(size) / size
    row, column = x[:, None], x[None, :]
    waves = np.cos(row) + np.sin(2.0 * row + column) + np.cos(column - 0.4)
    return 0.4 + amplitude * waves


# --- the dynamics ----------------------------------------------------------------------------------------------------


def test_chemical_potential_is_the_gradient_of_the_free_energy(simulator, initial):
    direction = np.random.default_rng(0).standard_normal(initial.shape)
    h = 1e-5
    slope = (simulator.free_energy(initial + h * direction) - simulator.free_energy(initial - h * direction)) / (2 * h)
    assert slope == pytest.approx(np.mean(simulator.chemical_potential(initial) * direction), rel=1e-6)


def test_conserves_mass_and_never_gains_energy(simulator, initial):
    frames = simulator.run(initial, np.arange(1.0, 201.0))
    np.testing.assert_allclose(frames.mean(axis=(1, 2)), initial.mean(), rtol=0, atol=1e-14)
    energies = np.array([simulator.free_energy(c) for c in [initial, *frames]])
    assert (np.diff(energies) < 0.0).all()


def test_decomposes_and_coarsens():
    noise = np.random.default_rng(1).uniform(-0.02, 0.02, (32, 32))
    simulator = CahnHilliard(*TRUTH, size=32, time_step=0.2)
    mixed, early, late = simulator.run(0.4 + noise, [40.0, 120.0, 400.0])
    k = np.sqrt(simulator.square_wavenumbers)

    def wavelength(c):
        power = np.abs(np.fft.rfft2(c - c.mean())) ** 2
        return 2.0 * np.pi * power.sum() / (power * k).sum()

    assert mixed.std() < 0.02
    # two phases close to the ends of the miscibility gap, 0.09 and 0.94
    assert np.quantile(late, 0.05) == pytest.approx(0.11, abs=0.03)
    assert np.quantile(late, 0.95) == pytest.approx(0.94, abs=0.03)
    assert late.std() > early.std() > 0.2
    assert wavelength(late) > 1.05 * wavelength(early)


@pytest.mark.parametrize("waves", [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0)])
def test_small_waves_grow_at_the_rate_of_linear_theory(waves):
    simulator = CahnHilliard(*TRUTH, size=24, time_step=0.02)
    x = 2.0 * np.pi * np.arange(24) / 24
    wave = np.cos(waves[0] * x[:, None] + waves[1] * x[None, :])
    k = 2.0 * np.pi * np.hypot(*waves) / (24 * simulator.pixel)
    start, end = simulator.run(0.4 + 1e-6 * wave, [1.0, 6.0])
    rate = np.log(np.sum((end - 0.4) * wave) / np.sum((start - 0.4) * wave)) / 5.0
    assert rate == pytest.approx(simulator.growth_rate(k), rel=2e-3, abs=2e-5)


def test_growth_rates_change_sign_where_they_should(simulator):
    cutoff = np.sqrt(-simulator.alloy.curvature(np.array(0.4)) / simulator.stiffness)
    assert simulator.growth_rate(0.99 * cutoff) > 0.0 > simulator.growth_rate(1.01 * cutoff)
    # nothing grows outside the spinodal
    assert (replace(simulator, mean_composition=0.2).growth_rate(np.linspace(0.1, 3.0, 30)) < 0.0).all()


def test_time_steps_converge_at_second_order(simulator):
    start = smooth_field(16, amplitude=0.05)
    runs = [replace(simulator, time_step=h).run(start, [16.0])[0] for h in (0.2, 0.1, 0.05, 0.025)]
    coarse, middle, fine = (np.sqrt(np.mean((a - b) ** 2)) for a, b in pairwise(runs))
    assert fine < 1e-3
    assert np.log2(coarse / middle) > 1.6
    assert np.log2(middle / fine) > 1.8


def grid_errors(sizes, amplitude, time):
    """Root-mean-square errors on square grids over 12 nm, against one of 48 pixels a side, and that field."""
    runs = {
        size: CahnHilliard(*TRUTH, size=size, pixel=12.0 / size).run(smooth_field(size, amplitude), [time])[0]
        for size in (*sizes, 48)
    }
    errors = [np.sqrt(np.mean((runs[size] - runs[48][:: 48 // size, :: 48 // size]) ** 2)) for size in sizes]
    return errors, runs[48]


def test_grids_converge_fast_below_the_curie_temperature():
    errors, fine = grid_errors((8, 12, 16, 24), amplitude=0.02, time=5.0)
    assert 0.45 < fine.max() < 0.57  # beyond linear growth, short of the kink of the potential at c = 0.585
    assert all(b < a / 15.0 for a, b in pairwise(errors))
    assert errors[-1] < 1e-8


def test_default_pixels_resolve_the_interfaces():
    errors, fine = grid_errors((12, 16, 24), amplitude=0.03, time=20.0)
    assert fine.max() > 0.9
    assert all(b < a / 2.0 for a, b in pairwise(errors))
    assert errors[-1] < 3e-3  # pixels of 0.5 nm


def test_leaving_the_unit_interval_is_an_error(initial):
    with pytest.raises(ArithmeticError, match=r"left \(0, 1\) at time"):
        CahnHilliard(400.0, 20500.0, 2.22, 2e-15, size=16, time_step=2.0).run(initial, [400.0])


def test_saved_frames_do_not_depend_on_each_other(simulator, initial):
    every = simulator.run(initial, [5.0, 10.0, 15.0])
    np.testing.assert_array_equal(simulator.run(initial, [15.0])[0], every[2])


# --- the case --------------------------------------------------------------------------------------------------------


def test_truth_and_prior_are_the_papers(small):
    np.testing.assert_allclose(small.truth, TRUTH, rtol=1e-6)
    assert small.n_dim == 4
    u = small.prior.to_standard(small.truth)
    assert (np.abs(u) < 0.25).all()
    ups = np.log(small.prior.from_standard(np.eye(4)) / small.prior.from_standard(np.zeros((1, 4))))
    np.testing.assert_allclose(np.diag(ups) ** 2, [3e-4, 6e-5, 1e-4, 1e-4], rtol=1e-6)


def test_log_likelihood_is_the_gaussian_density_of_the_noise(small):
    likelihood = small.log_likelihood
    clean = CahnHilliard(*small.truth, size=16).run(likelihood.initial, likelihood.times)
    residuals = (likelihood.frames - clean) / 0.01
    assert residuals.std() == pytest.approx(1.0, abs=0.1)
    expected = -0.5 * np.sum(residuals**2) - residuals.size * np.log(0.01 * np.sqrt(2.0 * np.pi))
    value = likelihood(small.truth)
    assert isinstance(value, float)
    assert value == pytest.approx(expected, rel=1e-12)


def test_truth_is_more_likely_than_its_neighbours(small):
    peak = small.log_likelihood(small.truth)
    u = small.prior.to_standard(small.truth)
    for shift in np.diag([1.0, -1.0, 1.0, -1.0]):
        assert small.log_likelihood(small.prior.from_standard(u + 0.5 * shift)) < peak - 10.0


def test_far_points_of_the_prior_can_be_simulated(small):
    for corner in ([-6.0, 6.0, -6.0, -6.0], [6.0, -6.0, 6.0, 6.0], [-6.0, -6.0, -6.0, -6.0]):
        assert np.isfinite(small.log_likelihood(small.prior.from_standard(np.array(corner))))


def test_frames_and_pixels_can_be_those_of_the_paper():
    # the paper's: one image a second, pixels of 1 nm; here fewer and smaller ones
    case = problems.phase_field(8, 30, frame_interval=1.0, pixel=1.0, time_step=1.0)
    likelihood = case.log_likelihood
    assert likelihood.frames.shape == (30, 8, 8)
    np.testing.assert_array_equal(likelihood.times, np.arange(1.0, 31.0))
    clean = CahnHilliard(*case.truth, size=8, pixel=1.0, time_step=1.0).run(likelihood.initial, likelihood.times)
    assert (likelihood.frames - clean).std() == pytest.approx(0.01, rel=0.1)
    assert likelihood(case.truth) > likelihood.frames.size * 2.5
    finer = problems.phase_field(8, 30, frame_interval=1.0, time_step=1.0).log_likelihood
    assert (finer.frames != likelihood.frames).any()


def test_seed_decides_the_data():
    one, same, other = (problems.phase_field(8, 1, seed=seed).log_likelihood for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.frames, same.frames)
    assert (one.initial != other.initial).any()
    assert one.initial.mean() == pytest.approx(0.4, abs=1e-15)


def test_log_likelihood_survives_pickling():
    case = problems.phase_field(8, 1)
    copy = pickle.loads(pickle.dumps(case.log_likelihood))
    assert copy(case.truth) == case.log_likelihood(case.truth)


@pytest.mark.parametrize(
    "arguments",
    [{"size": 3}, {"size": 16.0}, {"n_frames": 0}, {"n_frames": True}, {"frame_interval": 0.0}, {"pixel": -1.0}],
)
def test_bad_case_is_refused(arguments):
    with pytest.raises(InputError):
        problems.phase_field(**arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.0},
        {"interaction": np.nan},
        {"bohr_magnetons": -1.0},
        {"gradient_energy": np.inf},
        {"size": 2},
        {"pixel": "1"},
        {"time_step": -0.1},
        {"mean_composition": 1.0},
    ],
)
def test_bad_simulator_is_refused(simulator, change):
    with pytest.raises(InputError, match=next(iter(change))):
        replace(simulator, **change)


@pytest.mark.parametrize("times", [[], [0.0], [2.0, 1.0], [0.15], [np.nan], 3.0])
def test_bad_times_are_refused(simulator, initial, times):
    with pytest.raises(InputError, match="times"):
        simulator.run(initial, times)


def test_bad_fields_and_points_are_refused(simulator, initial, small):
    with pytest.raises(InputError, match="shape"):
        simulator.run(initial[:8], [1.0])
    with pytest.raises(InputError, match="inside"):
        simulator.run(initial - 0.4, [1.0])
    with pytest.raises(InputError, match="shape"):
        small.log_likelihood([673.0])
    with pytest.raises(InputError, match="temperature"):
        small.log_likelihood([-673.0, *TRUTH[1:]])
