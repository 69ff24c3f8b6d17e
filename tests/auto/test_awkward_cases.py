"""Likelihoods and priors on which samplers and surrogates are known to fail, with the default engine.

The answer has to be right, or not converged with an honest error, or an exception that helps. The cases are those of
bug reports to other packages. Cases for which other tests exist (values of the wrong form, all zero, constant, an
excluded half) are not repeated here.
"""

import os

import numpy as np
import pytest
from scipy import integrate, special, stats

import basq
from basq.errors import EvaluationError, InputError

LARGEST = float(np.finfo(float).max)


def infer(log_likelihood, prior=None, **options):
    return basq.infer(log_likelihood, prior, **({"seed": 0, "progress": False} | options))


def box(n_dim, low, high):
    return {f"x{i + 1}": (low, high) for i in range(n_dim)}


def assert_honest(result, truth):
    """Within three declared standard deviations, or three times the default ``dlogz``."""
    assert abs(result.log_evidence - truth) <= max(0.3, 3.0 * result.log_evidence_std), str(result)


def log_gauss_integral(sd, *reach):
    """Log of ∫ exp(−t² / 2sd²) dt between the limits."""
    low, high = special.ndtr(np.array(reach) / sd)
    return float(np.log(sd * np.sqrt(2.0 * np.pi) * (high - low)))


# --- walls and holes ------------------------------------------------------------------------------------------------


def gauss_behind_a_wall(behind):
    def log_likelihood(x):
        return -0.5 * (x**2).sum() if x[0] + 0.5 * x[1] > 0.3 else behind

    return log_likelihood, np.log(2.0 * np.pi / 100.0 * stats.norm.sf(0.3 / np.sqrt(1.25)))


def test_half_excluded_by_a_huge_number():
    # UltraNest issue 77: users write −1e100 for a zero
    log_likelihood, truth = gauss_behind_a_wall(-1e100)
    assert_honest(infer(log_likelihood, box(2, -5, 5), seed=6), truth)


@pytest.mark.parametrize("behind", [-1e200, -LARGEST])
def test_half_excluded_by_a_number_whose_square_overflows(behind):
    # −1.8e308 is what numpy.nan_to_num makes of −inf
    log_likelihood, truth = gauss_behind_a_wall(behind)
    assert_honest(infer(log_likelihood, box(2, -5, 5)), truth)


@pytest.mark.parametrize(
    "behind",
    [
        -np.inf,
        -1e100,
    ],
)
@pytest.mark.parametrize("n_dim", [1, 2])
def test_flat_likelihood_cut_off(n_dim, behind):
    result = infer(lambda x: 0.0 if x[0] < 0.3 else behind, box(n_dim, 0, 1), max_evals=120)
    assert_honest(result, np.log(0.3))


def test_huge_numbers_everywhere():
    result = infer(lambda x: -1e300 * (1.0 + x[0]), box(1, 0, 1), max_evals=48)
    assert not result.converged


def test_zero_in_a_shell_inside_the_posterior():
    def log_likelihood(x):
        r = np.hypot(*x)
        return -np.inf if 0.8 < r < 1.4 else -0.5 * r**2

    truth = np.log(2.0 * np.pi / 100.0 * (1.0 - np.exp(-0.32) + np.exp(-0.98)))
    assert_honest(infer(log_likelihood, box(2, -5, 5)), truth)


def test_zero_except_in_a_shell():
    def log_likelihood(x):
        r = np.hypot(*x)
        return -0.5 * r**2 if 1.0 < r < 1.5 else -np.inf

    truth = np.log(2.0 * np.pi / 36.0 * (np.exp(-0.5) - np.exp(-1.125)))
    assert_honest(infer(log_likelihood, box(2, -3, 3)), truth)


def test_zero_but_for_two_per_cent():
    def log_likelihood(x):
        square = ((x - [1.0, -1.0]) ** 2).sum()
        return -square / 0.18 if square < 0.64 else -np.inf

    result = infer(log_likelihood, box(2, -5, 5))
    assert_honest(result, np.log(0.18 * np.pi * (1.0 - np.exp(-0.64 / 0.18)) / 100.0))
    assert result.converged


def test_zero_but_for_a_tenth_of_a_per_cent():
    # dynesty issue 412, where the answer was 6.2 ± 0.2
    half_width = 5.0 / np.sqrt(0.001)

    def log_likelihood(x):
        square = (x**2).sum()
        return -0.5 * square - np.log(2.0 * np.pi) + 2.0 * np.log(2.0 * half_width) if square < 25.0 else -np.inf

    result = infer(log_likelihood, box(2, -half_width, half_width))
    assert_honest(result, np.log1p(-np.exp(-12.5)))
    if result.log_evidence == -np.inf:  # nothing was found, and that is said
        assert not result.converged
        assert "zero" in result.message


# --- plateaus and spikes --------------------------------------------------------------------------------------------


def test_raised_disc_on_a_plane():
    # dynesty issue 414
    result = infer(lambda x: np.log(10.0) if np.hypot(*x) < 1.0 else -1e-6 * np.hypot(*x), box(2, -3, 3))
    assert_honest(result, np.log(1.0 + 9.0 * np.pi / 36.0))


@pytest.mark.parametrize("slope", [50.0, np.inf])
def test_flat_top_with_steep_sides(slope):
    result = infer(lambda x: 0.0 if np.hypot(*x) < 1.0 else -slope * (np.hypot(*x) - 1.0), box(2, -3, 3))
    sides = 2.0 * np.pi * (1.0 / slope + 1.0 / slope**2)  # ∫ 2πr exp(−k (r − 1)) dr from 1 to ∞
    assert_honest(result, np.log((np.pi + sides) / 36.0))


@pytest.mark.parametrize(
    ("log_height", "sd", "seed"), [(6.0, 0.02, 0), (6.0, 0.02, 2), (20.0, 0.001, 0), (5.0, 0.0001, 0)]
)
def test_spike_on_a_plateau(log_height, sd, seed):
    # nobody finds the narrow ones in 200 calls; what is seen of the plateau must be right all the same
    def log_likelihood(x):
        return np.logaddexp(0.0, log_height - 0.5 * ((x - [0.3, 0.7]) ** 2).sum() / sd**2)

    result = infer(log_likelihood, box(2, 0, 1), seed=seed)
    found = result.observations.log_likelihood.max() > 0.5 * log_height
    spike = np.exp(log_height) * 2.0 * np.pi * sd**2
    assert_honest(result, np.log1p(spike if found else 0.0))


@pytest.mark.xfail(strict=False, reason="mostly converges, 1.2 too low with a claimed sd of 0.02")
@pytest.mark.parametrize("n_dim", [1, 2])
def test_pole_over_eight_decades(n_dim):
    # tests/test_pathology.py of dynesty: each decade of x₁ has the same mass
    result = infer(lambda x: -np.log(max(abs(x[0]), 1e-8)), box(n_dim, -1, 1), seed=1)
    assert_honest(result, np.log(1.0 + np.log(1e8)))


# --- the classics of nested sampling --------------------------------------------------------------------------------


def log_eggbox(x):
    return (2.0 + np.cos(x[..., 0] / 2.0) * np.cos(x[..., 1] / 2.0)) ** 5


def eggbox_truth(low, high):
    """The trapezoidal rule, which is exact to rounding over whole periods."""
    t = np.linspace(low, high, 1001)
    values = log_eggbox(np.stack(np.meshgrid(t, t), axis=-1))
    peak = values.max()
    evidence = np.trapezoid(np.trapezoid(np.exp(values - peak), t), t) / (high - low) ** 2
    return peak + np.log(evidence)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (0.0, 4.0)], ids=["two modes", "a mode and four corners"])
def test_eggbox(low, high):
    truth = eggbox_truth(low * np.pi, high * np.pi)
    assert truth == pytest.approx(235.85594, abs=1e-4)
    assert_honest(infer(log_eggbox, box(2, low * np.pi, high * np.pi), vectorized=True), truth)


@pytest.mark.parametrize("seed", [0, 1])
def test_eighteen_modes_are_more_than_it_resolves_and_it_says_so(seed):
    result = infer(log_eggbox, box(2, 0.0, 10.0 * np.pi), vectorized=True, seed=seed)
    assert not result.converged
    assert "modes were found" in result.message


def test_gaussian_shells():
    def log_likelihood(x):
        radii = np.hypot(x[0] - np.array([-3.5, 3.5]), x[1])
        return special.logsumexp(stats.norm.logpdf(radii, 2.0, 0.1))

    assert_honest(infer(log_likelihood, box(2, -6, 6)), np.log(2.0 * 2.0 * np.pi * 2.0 / 144.0))


def test_log_gamma():
    # four modes with long tails on one side; the cube cuts off 2e-5 of the mass
    gamma = stats.loggamma(1.0, loc=np.array([1.0, 2.0]) / 3.0, scale=1.0 / 30.0)
    normal = stats.norm(np.array([1.0, 2.0]) / 3.0, 1.0 / 30.0)

    def log_likelihood(x):
        return special.logsumexp(gamma.logpdf(x[0])) + special.logsumexp(normal.logpdf(x[1])) - np.log(4.0)

    assert_honest(infer(log_likelihood, box(2, 0, 1)), -2.27e-5)


# --- priors ---------------------------------------------------------------------------------------------------------

LOG_ACROSS = log_gauss_integral(0.1, -0.5, 0.5)


@pytest.mark.parametrize(("centre", "sd"), [(0.0, 0.1), (0.7, 0.05)], ids=["at the edge", "away from it"])
def test_prior_with_a_pole_at_its_edge(centre, sd):
    # Beta(0.1, 1) has 79 % of its mass below 0.1; its quantile function is q¹⁰
    def log_likelihood(x):
        return -0.5 * ((x[0] - centre) / sd) ** 2 - 0.5 * ((x[1] - 0.5) / 0.1) ** 2

    result = infer(log_likelihood, {"a": stats.beta(0.1, 1.0), "b": (0, 1)})
    factor = integrate.quad(lambda q: np.exp(-0.5 * ((q**10 - centre) / sd) ** 2), 0, 1, points=[0.9, 0.95, 0.99])[0]
    assert_honest(result, np.log(factor) + LOG_ACROSS)
    assert result.converged


def test_transform_with_point_masses_at_both_edges():
    def transform(cube):
        return np.array([np.clip(2.0 * cube[0] - 0.5, 0.0, 1.0), cube[1]])

    def log_likelihood(x):
        return -0.5 * ((x - [0.2, 0.5]) ** 2).sum() / 0.01

    result = infer(log_likelihood, prior_transform=transform, n_dim=2)
    masses = 0.25 * np.exp(-2.0) + 0.25 * np.exp(-32.0)
    between = 0.5 * np.exp(log_gauss_integral(0.1, -0.2, 0.8))
    assert_honest(result, np.log(masses + between) + LOG_ACROSS)
    assert np.mean(result.sample(2000, seed=0)[:, 0] == 0.0) == pytest.approx(
        0.25 * np.exp(-2.0) / (masses + between), abs=0.05
    )


def test_density_that_ends_where_it_is_highest():
    samples = np.random.default_rng(0).exponential(0.2, (2000, 2))
    prior = basq.Prior.from_density(
        lambda x: np.where((x >= 0.0).all(axis=-1), -x.sum(axis=-1) / 0.2 - 2.0 * np.log(0.2), -np.inf), samples
    )
    result = infer(lambda x: -50.0 * (x**2).sum(), prior, max_evals=120)
    factor = integrate.quad(lambda t: 5.0 * np.exp(-5.0 * t - 50.0 * t**2), 0, 2)[0]
    assert_honest(result, 2.0 * np.log(factor))


class HalfAtom(stats.rv_continuous):
    """Half of the mass at 0, half of it uniform on [0, 1]."""

    def _pdf(self, x):
        return np.full(np.shape(x), 0.5)

    def _cdf(self, x):
        return 0.5 + 0.5 * x

    def _ppf(self, q):
        return np.maximum(2.0 * q - 1.0, 0.0)


def test_marginal_with_a_point_mass_is_refused():
    with pytest.raises(InputError, match=r"'a'.*point mass"):
        infer(lambda x: pytest.fail("a call was spent"), {"a": HalfAtom(a=0.0, b=1.0, name="atom")()})


def test_density_that_lacks_the_point_mass_of_its_samples_is_refused():
    rng = np.random.default_rng(0)
    samples = np.where(rng.random((2000, 1)) < 0.5, 0.0, rng.normal(0.0, 1.0, (2000, 1)))
    with pytest.raises(InputError, match="integrates to exp"):
        basq.Prior.from_density(lambda x: np.log(0.5) + stats.norm.logpdf(x[..., 0]), samples)


@pytest.mark.parametrize("decades", [10, 30])
def test_log_uniform_prior_over_many_decades(decades):
    law = stats.loguniform(10.0**-decades, 10.0**decades)
    result = infer(lambda x: -0.5 * ((np.log(x) - [3.0, -2.0]) ** 2).sum(), {"a": law, "b": law})
    assert_honest(result, np.log(2.0 * np.pi / (2.0 * decades * np.log(10.0)) ** 2))
    assert result.converged


# --- scales and dimensions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-1e8, 1e8])
def test_large_offset(offset):
    result = infer(lambda x: offset - 50.0 * ((x - 0.3) ** 2).sum(), box(2, 0, 1))
    assert result.converged
    error = (result.log_evidence - offset) - 2.0 * log_gauss_integral(0.1, -0.3, 0.7)
    assert abs(error) <= max(0.05, 3.0 * result.log_evidence_std)


def test_twenty_parameters():
    rng = np.random.default_rng(5)
    axes = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    sds = np.exp(rng.uniform(np.log(0.1), np.log(0.5), 20))
    centre, cov = 0.5 * rng.standard_normal(20), (axes * sds**2) @ axes.T
    likelihood = stats.multivariate_normal(centre, cov)
    prior = stats.multivariate_normal(np.zeros(20), np.eye(20))
    result = infer(likelihood.logpdf, prior, max_evals=150)
    truth = stats.multivariate_normal(np.zeros(20), cov + np.eye(20)).logpdf(centre)
    if result.converged:
        assert_honest(result, truth)
    else:
        assert result.log_evidence_std > 0.1


# --- failing calls --------------------------------------------------------------------------------------------------


def log_gauss(x):
    return -0.5 * (x**2).sum()


LOG_GAUSS_TRUTH = 2.0 * log_gauss_integral(1.0, -5.0, 5.0) - np.log(100.0)


def test_nan_for_a_tenth_of_the_calls():
    rng = np.random.default_rng(1)
    result = infer(lambda x: np.nan if rng.random() < 0.1 else log_gauss(x), box(2, -5, 5))
    assert_honest(result, LOG_GAUSS_TRUTH)
    assert result.n_failed > 0
    assert "nan at x1 = " in result.failures[0].error


@pytest.mark.parametrize("on_error", ["record", "zero"])
def test_exceptions_in_a_region(on_error):
    def crash(x):
        if x[0] > 2.0:
            raise ArithmeticError("no steady state")
        return log_gauss(x)

    result = infer(crash, box(2, -5, 5), on_error=on_error)
    assert result.n_failed > 0
    # with zero, what fails is left out of Z; with record, Z is continued smoothly from what is known (2 % of it)
    assert_honest(result, LOG_GAUSS_TRUTH)


def test_exception_in_a_region_and_the_way_out():
    def crash(x):
        if x[0] > 4.0:
            raise ArithmeticError("no steady state")
        return log_gauss(x)

    def repaired(x):
        return log_gauss(x) if x[0] <= 4.0 else -np.inf

    known = basq.Prior(box(2, -5, 5)).sample(40, np.random.default_rng(0))
    known = known[known[:, 0] <= 4.0]
    with pytest.raises(EvaluationError, match=r"ArithmeticError: no steady state \(.*\) at x1 = ") as caught:
        infer(crash, box(2, -5, 5), evaluations=(known, [log_gauss(x) for x in known]), on_error="raise")
    paid = caught.value.observations
    assert len(paid) >= len(known)
    result = infer(repaired, box(2, -5, 5), evaluations=(paid.x, paid.log_likelihood))
    np.testing.assert_array_equal(result.observations.x[: len(paid)], paid.x)
    assert_honest(result, LOG_GAUSS_TRUTH)  # the region has 3e-5 of the mass


@pytest.mark.parametrize("vectorized", [False, True])
def test_complex_numbers_of_numpy_are_refused(vectorized):
    with pytest.raises(EvaluationError, match=r"All \d+ calls have failed.*j"):
        infer(lambda x: np.sum(x, axis=-1) * np.complex128(1.0 + 2.0j), box(2, 0, 1), vectorized=vectorized)


def dies(x):
    if x[0] > 4.0:
        os._exit(1)
    return log_gauss(x)


def test_killed_worker():
    result = infer(dies, box(2, -5, 5), pool=2)
    assert_honest(result, LOG_GAUSS_TRUTH)
    assert all("worker process died with exit code 1 at x1 = " in f.error for f in result.failures)
    assert all(f.attempts == 2 for f in result.failures)
    assert result.n_failed > 0


# --- shapes ---------------------------------------------------------------------------------------------------------


def test_heavy_tails_in_six_dimensions_hide_a_high_peak():
    # hardly any sample comes near the peak: without a look at the summit, log Z was far too low, and converged
    problem = basq.problems.heavy(6, seed=1)
    result = infer(problem.log_likelihood, problem.prior, vectorized=True, max_evals=320)
    assert_honest(result, problem.log_evidence)


def test_a_sharp_gaussian_in_a_box_takes_few_calls():
    # a thin banana in standard space, where most such runs do not converge
    problem = basq.problems.boxed(7, seed=1)
    result = infer(problem.log_likelihood, problem.prior, vectorized=True, max_evals=200)
    assert result.converged
    assert_honest(result, problem.log_evidence)


@pytest.mark.parametrize("width", [1e-3, 1e-4, 1e-5])
def test_a_wall_through_a_very_narrow_posterior(width):
    def log_likelihood(x):
        inside = x[:, 0] < 0.3 + 0.5 * width
        return np.where(inside, -0.5 * (((x - 0.3) / width) ** 2).sum(axis=1), -np.inf)

    result = infer(log_likelihood, [stats.norm(), stats.norm()], vectorized=True)
    truth = 2.0 * np.log(width) - 0.09 + stats.norm.logcdf(0.5)
    assert_honest(result, truth)


@pytest.mark.parametrize("n_dim", [1, 2])
def test_a_posterior_at_the_very_edge_of_a_huge_box(n_dim):
    """A scale parameter with a uniform prior up to 10¹⁰ that is of order one."""
    prior = {"scale": (0.0, 1e10), "other": stats.norm()}

    def log_likelihood(x):
        return -0.5 * (np.log(np.maximum(x[0], 1e-300)) / 0.3) ** 2

    result = infer(log_likelihood, dict(list(prior.items())[:n_dim]))
    assert_honest(result, np.log(0.3 * np.sqrt(2.0 * np.pi)) + 0.5 * 0.3**2 - np.log(1e10))
