"""The truths of the test problems, against quadrature that shares no code with them."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import logsumexp

from basq import problems
from basq.errors import InputError
from helpers.problems import check_moments, check_points_and_rows

# Each problem in a small dimension, with the half-width of a square that holds the posterior.
PLANAR = {
    "mixture": (lambda: problems.mixture(2, seed=3), 12.0),
    "branin_hoo": (problems.branin_hoo, 12.0),
    "ackley": (problems.ackley, 12.0),
    "oscillatory": (problems.oscillatory, 12.0),
    "gauss": (lambda: problems.gauss(2, seed=1), None),
    "boxed": (lambda: problems.boxed(2, seed=1), None),
    "twisted": (lambda: problems.twisted(2, seed=1), 1.0),
    "heavy": (lambda: problems.heavy(2, seed=2), 5.0),
    "lumpy": (lambda: problems.lumpy(2, seed=1), 3.0),
    "student": (lambda: problems.student(2), 10.0),
    "cigar": (lambda: problems.cigar(2, seed=1), 5.0),
    "bimodal": (lambda: problems.bimodal(2), 5.0),
    "narrow_modes": (lambda: problems.narrow_modes(2, seed=1), 6.0),
}
# The cone of the "Ackley" limits the trapezoidal rule; the truncation of the cigar is left out of its truth.
TOLERANCE = {"ackley": 3e-7, "cigar": 2e-5, "student": 1e-4, "heavy": 1e-5}
BOX = {"student": 10.0, "cigar": 5.0, "rosen": 4.0, "boxed": 1.0, "twisted": 1.0}
NORMAL_VARIANCE = {"mixture": 2.0, "branin_hoo": 2.0, "ackley": 2.0, "oscillatory": 2.0}

ALL = {name: make for name, (make, _) in PLANAR.items()} | {
    "mixture-10": problems.mixture,
    "gauss-6": problems.gauss,
    "lumpy-4": problems.lumpy,
    "student-4": problems.student,
    "cigar-4": problems.cigar,
    "rosen-2": problems.rosen,
    "rosen-4": lambda: problems.rosen(4),
    "bimodal-3": problems.bimodal,
    "narrow_modes-4": problems.narrow_modes,
    "boxed-5": problems.boxed,
    "twisted-4": problems.twisted,
    "heavy-4": problems.heavy,
    "gauss-1": lambda: problems.gauss(1),
    "student-1": lambda: problems.student(1),
}


def log_prior(name: str, x: np.ndarray) -> np.ndarray:
    """Log-density of the prior from its definition, (n, d) -> (n,)."""
    family = name.partition("-")[0]
    if family in BOX:
        inside = (np.abs(x) <= BOX[family]).all(axis=1)
        return np.where(inside, -x.shape[1] * np.log(2.0 * BOX[family]), -np.inf)
    sd = np.sqrt(NORMAL_VARIANCE.get(family, 1.0))
    return stats.norm.logpdf(x, scale=sd).sum(axis=1)


def trapezoid_moments(name: str, n_grid: int = 1201) -> tuple[float, np.ndarray, np.ndarray]:
    """Evidence and posterior moments of a planar problem by the trapezoidal rule."""
    make, half_width = PLANAR[name]
    problem = make()
    centre, reach = np.zeros(2), np.full(2, half_width)
    if half_width is None:
        centre, reach = problem.posterior_mean, 10.0 * np.sqrt(np.diag(problem.posterior_cov))
    axes = [np.linspace(c - r, c + r, n_grid) for c, r in zip(centre, reach, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    edge = np.ones(n_grid)
    edge[[0, -1]] = 0.5
    log_integrand = problem.log_likelihood(x) + log_prior(name, x)
    log_scale = log_integrand.max()
    mass = np.exp(log_integrand - log_scale) * np.outer(edge, edge).ravel()
    log_cell = np.log([axis[1] - axis[0] for axis in axes]).sum()
    log_evidence = log_scale + np.log(mass.sum()) + log_cell
    weights = mass / mass.sum()
    mean = weights @ x
    offset = x - mean
    return log_evidence, mean, (weights[:, None] * offset).T @ offset


@pytest.mark.parametrize("name", PLANAR)
def test_planar_truths_agree_with_trapezoidal_rule(name):
    problem = PLANAR[name][0]()
    tolerance = TOLERANCE.get(name, 1e-9)
    log_evidence, mean, cov = trapezoid_moments(name)
    sds = np.sqrt(np.diag(cov))
    assert problem.log_evidence == pytest.approx(log_evidence, abs=tolerance)
    np.testing.assert_allclose((problem.posterior_mean - mean) / sds, 0.0, atol=tolerance)
    np.testing.assert_allclose((problem.posterior_cov - cov) / np.outer(sds, sds), 0.0, atol=tolerance)


def test_student_truths_agree_with_adaptive_quadrature():
    problem = problems.student(3)
    log_evidence, variances = 0.0, []
    for dof in (2.5, 3.5, 4.5):
        mass, second = (
            integrate.quad(lambda t, k=k, dof=dof: t**k * stats.t(dof).pdf(t), -10, 10, epsabs=1e-13)[0] for k in (0, 2)
        )
        log_evidence += np.log(mass / 20.0)
        variances.append(second / mass)
    assert problem.log_evidence == pytest.approx(log_evidence, abs=1e-11)
    np.testing.assert_allclose(problem.posterior_cov, np.diag(variances), rtol=1e-10)


def rosen_messages(n_dim):
    """Gauss-Legendre nodes and weights, the transfer matrix, and the integrals over all coordinates after each."""
    # the terms couple neighbours only, so the integral is a product of transfer matrices
    nodes, weights = np.polynomial.legendre.leggauss(600)
    t, w = 4.0 * nodes, weights / 2.0
    transfer = np.exp(-10.0 * (t[None, :] - t[:, None] ** 2) ** 2 - 0.5 * (1.0 - t[:, None]) ** 2)
    messages = [np.ones(len(t))]
    for _ in range(n_dim - 1):
        messages.insert(0, transfer @ (w * messages[0]))
    return t, w, transfer, messages


@pytest.mark.parametrize("n_dim", [2, 4, 5, 6])
def test_rosen_evidence_agrees_with_chain_of_one_dimensional_quadratures(n_dim):
    _, w, _, messages = rosen_messages(n_dim)
    assert problems.rosen(n_dim).log_evidence == pytest.approx(np.log(w @ messages[0]), abs=1e-6)


@pytest.mark.parametrize("n_dim", [2, 4, 5, 6])
def test_rosen_samples_agree_with_chain_of_one_dimensional_quadratures(n_dim):
    n = 40_000
    problem = problems.rosen(n_dim)
    x = problem.sample_posterior(n, np.random.default_rng(7))
    assert x.shape == (n, n_dim)
    assert (np.abs(x) <= 4.0).all()
    assert problem.sample_posterior(0, np.random.default_rng(7)).shape == (0, n_dim)
    t, w, transfer, messages = rosen_messages(n_dim)
    past = w
    for i in range(n_dim - 1):  # the joint law of each pair of neighbours
        law = past[:, None] * transfer * (w * messages[i + 1])
        law /= law.sum()
        before, after = x[:, i], x[:, i + 1]
        for draws, truth in (
            (before, law.sum(axis=1) @ t),
            (before**2, law.sum(axis=1) @ t**2),
            (after, t @ law.sum(axis=0)),
            (after**2, t**2 @ law.sum(axis=0)),
            (before * after, t @ law @ t),
            (before**2 * after, t**2 @ law @ t),
        ):
            assert abs(draws.mean() - truth) < 4.5 * draws.std() / np.sqrt(n)
        past = w * (past @ transfer)


def redraw_mixture(n_dim, seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(10, 16)
    means, variances, u = rng.uniform(-3, 3, (k, n_dim)), rng.uniform(1, 4, k), rng.random(k)
    log_overlap = [
        stats.multivariate_normal(cov=v + 2, mean=np.zeros(n_dim)).logpdf(m)
        for m, v in zip(means, variances, strict=True)
    ]
    return np.log(u / u.sum()) - log_overlap, means, np.repeat(variances[:, None], n_dim, axis=1)


def redraw_shared_mixture(n_dim, seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(10, 16)
    means, variances = rng.uniform(-3, 3, (k, n_dim)), rng.uniform(1, 4, n_dim)
    law = stats.multivariate_normal(np.zeros(n_dim), np.diag(variances + 2))
    return -np.log(k) - np.array([law.logpdf(m) for m in means]), means, np.tile(variances, (k, 1))


def redraw_lumpy(n_dim, seed):
    rng = np.random.default_rng(seed)
    means, sds = rng.random((12, n_dim)), rng.uniform(0.2, 0.6, (12, n_dim))
    return np.log(rng.dirichlet(np.ones(12))), means, sds**2


def redraw_narrow_modes(n_dim, seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(2, 5)
    centres, log_sds = rng.normal(size=(k, n_dim)), rng.uniform(np.log(0.08), np.log(0.3), k)
    weights = rng.dirichlet(2.0 * np.ones(k))
    return np.log(weights), centres, np.repeat(np.exp(2 * log_sds)[:, None], n_dim, axis=1)


def mixture_log_pdf(x, log_weights, means, variances):
    terms = [
        w + stats.multivariate_normal(m, np.diag(v)).logpdf(x)
        for w, m, v in zip(log_weights, means, variances, strict=True)
    ]
    return logsumexp(terms, axis=0)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("n_dim", [2, 7])
@pytest.mark.parametrize(
    ("make", "redraw", "scale", "shift"),
    [
        (problems.mixture, redraw_mixture, 1.0, 0.0),
        (partial(problems.mixture, shared=True), redraw_shared_mixture, 1.0, 0.0),
        (problems.lumpy, redraw_lumpy, 2.0, 0.5),
        (problems.narrow_modes, redraw_narrow_modes, 1.0, 0.0),
    ],
)
def test_mixture_families_follow_their_definition(make, redraw, scale, shift, n_dim, seed):
    x = np.random.default_rng(3).normal(size=(50, n_dim))
    expected = mixture_log_pdf(shift + scale * x, *redraw(n_dim, seed))
    np.testing.assert_allclose(make(n_dim, seed=seed).log_likelihood(x), expected, rtol=1e-11)


def test_mixture_posterior_is_normalised_in_ten_dimensions():
    # ℓ π = Z p with Z = 1 at every point, p the mixture of the products of each component with the prior
    problem = problems.mixture(10, seed=0)
    log_weights, means, variances = redraw_mixture(10, 0)
    u = np.exp(
        log_weights + [stats.norm.logpdf(m, 0, np.sqrt(v + 2)).sum() for m, v in zip(means, variances, strict=True)]
    )
    precision = 1 / variances + 0.5
    x = problem.sample_posterior(100, np.random.default_rng(1))
    log_posterior = mixture_log_pdf(x, np.log(u), means / variances / precision, 1 / precision)
    log_joint = problem.log_likelihood(x) + log_prior("mixture", x)
    np.testing.assert_allclose(log_joint, log_posterior, rtol=1e-10)


def test_shared_mixture_has_evidence_one_and_its_posterior():
    problem = problems.mixture(2, seed=1, shared=True)
    grid = np.stack(np.meshgrid(*2 * [np.linspace(-9, 9, 361)]), axis=-1).reshape(-1, 2)
    density = np.exp(problem.log_likelihood(grid) + log_prior("mixture", grid)) * 0.05**2
    assert density.sum() == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(density @ grid, problem.posterior_mean, atol=1e-5)
    assert problem.name == "mixture-2-shared"


def test_divergence_is_zero_of_the_truth_and_closed_of_a_shifted_gaussian():
    problem = problems.gauss(3, seed=2)
    truth = stats.multivariate_normal(problem.posterior_mean, problem.posterior_cov)
    np.testing.assert_allclose(problem.kl_divergence(truth.logpdf), (0.0, 0.0), atol=1e-8)
    sd = np.sqrt(np.diag(problem.posterior_cov))
    shift = 0.5 * sd * np.array([1.0, 0.0, 0.0])
    moved = stats.multivariate_normal(problem.posterior_mean + shift, problem.posterior_cov)
    exact = 0.5 * shift @ np.linalg.solve(problem.posterior_cov, shift)
    found, without = problem.kl_divergence(moved.logpdf)
    assert abs(found - exact) < 4.0 * np.sqrt(2.0 * exact / 10_000)
    assert without == 0.0


def test_divergence_says_where_the_estimate_has_no_density():
    problem = problems.mixture(2, seed=0)

    def half(x):
        return np.where(x[:, 0] > problem.posterior_mean[0], problem.log_posterior(x), -np.inf)

    found, without = problem.kl_divergence(half)
    assert found == pytest.approx(0.0, abs=1e-12)
    assert 0.3 < without < 0.7
    assert problem.kl_divergence(lambda x: np.full(len(x), np.nan)) == (np.inf, 1.0)
    with pytest.raises(InputError, match="no exact posterior samples"):
        replace(problem, sample_posterior=None).kl_divergence(half)


@pytest.mark.parametrize(("n_dim", "seed"), [(1, 0), (6, 0), (10, 3)])
def test_gauss_follows_its_definition_and_bayes_theorem(n_dim, seed):
    rng = np.random.default_rng(seed)
    centre = 0.7 * rng.normal(size=n_dim)
    q, _ = np.linalg.qr(rng.normal(size=(n_dim, n_dim)))
    cov = q @ np.diag((0.02 * np.exp(0.7 * rng.normal(size=n_dim))) ** 2) @ q.T
    problem = problems.gauss(n_dim, seed=seed)
    x = problem.sample_posterior(20, np.random.default_rng(1))
    expected = [-0.5 * (row - centre) @ np.linalg.solve(cov, row - centre) - 1e4 for row in x]
    np.testing.assert_allclose(problem.log_likelihood(x), expected, atol=1e-7)
    posterior = stats.multivariate_normal(problem.posterior_mean, problem.posterior_cov)
    log_evidence = problem.log_likelihood(x) + log_prior("gauss", x) - posterior.logpdf(x)
    np.testing.assert_allclose(log_evidence, problem.log_evidence, atol=1e-7)


@pytest.mark.parametrize("n_dim", [3, 6])
@pytest.mark.parametrize("family", ["bimodal", "narrow_modes", "lumpy"])
def test_mixture_evidence_agrees_with_sampling_the_likelihood(family, n_dim):
    # ∫ ℓ π = (∫ ℓ) E[π], the expectation under the normalised likelihood
    if family == "bimodal":
        log_weights, means = np.log([0.5, 0.5]), np.outer([1.2, -1.2], np.ones(n_dim))
        variances = np.outer([0.15**2, 0.3**2], np.ones(n_dim))
        problem = problems.bimodal(n_dim)
    else:
        redraw = {"lumpy": redraw_lumpy, "narrow_modes": redraw_narrow_modes}[family]
        log_weights, means, variances = redraw(n_dim, 0)
        problem = getattr(problems, family)(n_dim, seed=0)
    rng = np.random.default_rng(2)
    k = rng.choice(len(means), size=200_000, p=np.exp(log_weights))
    x = rng.normal(means[k], np.sqrt(variances[k]))
    # lumpy is a density in ½ + 2u, the prior of which is N(½, 4I)
    mean, sd = (0.5, 2.0) if family == "lumpy" else (0.0, 1.0)
    prior = stats.norm(mean, sd).pdf(x).prod(axis=1)
    error = prior.std() / np.sqrt(len(x))
    assert abs(prior.mean() - np.exp(problem.log_evidence)) < 4.0 * error
    assert error < 0.01 * prior.mean()


def test_student_cigar_and_rosen_follow_their_definition():
    rng = np.random.default_rng(4)
    x = rng.uniform(-4, 4, (30, 4))
    student = sum(stats.t(dof).logpdf(x[:, i]) for i, dof in enumerate(np.linspace(2.5, 4.5, 4)))
    np.testing.assert_allclose(problems.student(4).log_likelihood(x), student, rtol=1e-12)
    q, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))
    cigar = stats.multivariate_normal(cov=q @ np.diag([1, 0.01, 0.01, 0.01]) @ q.T).logpdf(x)
    np.testing.assert_allclose(problems.cigar(4, seed=2).log_likelihood(x), cigar, rtol=1e-10)
    rosen = -sum(10 * (x[:, i + 1] - x[:, i] ** 2) ** 2 + (1 - x[:, i]) ** 2 / 2 for i in range(3))
    np.testing.assert_allclose(problems.rosen(4).log_likelihood(x), rosen, rtol=1e-12)


def test_paper_functions_follow_their_definition():
    x = np.random.default_rng(5).normal(0, 1.4, (200, 2))
    branin_hoo = ((np.sin(x) + np.cos(3 * x) / 2) ** 2 / ((x / 2) ** 2 + 0.3)).prod(axis=1)
    ackley = -20 * np.exp(-0.2 * np.sqrt((x**2).sum(axis=1) / 2)) + 20
    ackley += np.exp(np.cos(2 * np.pi * x).sum(axis=1) / 2)
    oscillatory = np.cos(2 * np.pi + 5 * x.sum(axis=1)) + 1
    for problem, likelihood in (
        (problems.branin_hoo(), branin_hoo),
        (problems.ackley(), ackley),
        (problems.oscillatory(), oscillatory),
    ):
        np.testing.assert_allclose(np.exp(problem.log_likelihood(x)), likelihood, rtol=1e-9, atol=1e-13)


# rosen has no closed moments: its samples are compared with quadrature above
@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("rosen")])
def test_samples_have_the_moments_of_the_posterior(name):
    problem = ALL[name]()
    n = 20_000
    x = problem.sample_posterior(n, np.random.default_rng(7))
    assert x.shape == (n, problem.n_dim)
    assert np.isfinite(problem.log_likelihood(x)).all()
    assert np.isfinite(log_prior(name, x)).all()
    check_moments(problem, x)
    assert problem.sample_posterior(0, np.random.default_rng(7)).shape == (0, problem.n_dim)


@pytest.mark.parametrize("name", ALL)
def test_points_and_rows_agree_and_inputs_stay_untouched(name):
    problem = ALL[name]()
    x = np.random.default_rng(0).uniform(-2, 2, (20, problem.n_dim))
    check_points_and_rows(problem, x)


@pytest.mark.parametrize("name", ALL)
def test_prior_has_the_stated_density(name):
    problem = ALL[name]()
    x = np.random.default_rng(0).uniform(-2, 2, (20, problem.n_dim))
    assert problem.prior.n_dim == problem.n_dim
    assert list(problem.prior.names) == [f"x{i + 1}" for i in range(problem.n_dim)]
    np.testing.assert_allclose(problem.prior.log_pdf(x), log_prior(name, x), rtol=1e-12)


@pytest.mark.parametrize("name", ["mixture-10", "gauss-6", "lumpy-4", "bimodal-3", "student-4", "rosen-4"])
def test_far_away_points_stay_finite(name):
    problem = ALL[name]()
    assert np.isfinite(problem.log_likelihood(np.full(problem.n_dim, 1e3)))


def test_zeros_of_the_likelihood_give_no_warning():
    root = optimize.brentq(lambda t: np.sin(t) + 0.5 * np.cos(3 * t), -1.0, 1.0, xtol=1e-15)
    assert problems.branin_hoo().log_likelihood([root, 0.0]) < -60.0  # −inf if the root is exact
    assert problems.oscillatory().log_likelihood([np.pi / 5, 0.0]) < -60.0
    assert problems.oscillatory().log_likelihood([0.0, 0.0]) == pytest.approx(np.log(2.0))


def test_random_problems_depend_on_their_seed_only():
    for make in (problems.mixture, problems.gauss, problems.lumpy, problems.cigar, problems.narrow_modes):
        x = np.full(3, 0.25)
        first, again, other = (make(3, seed=seed).log_likelihood(x) for seed in (0, 0, 1))
        assert first == again
        assert first != other


@pytest.mark.parametrize("name", ALL)
def test_log_likelihood_can_be_sent_to_a_worker(name):
    log_likelihood = ALL[name]().log_likelihood
    x = np.full(ALL[name]().n_dim, 0.25)
    assert pickle.loads(pickle.dumps(log_likelihood))(x) == log_likelihood(x)


def test_wrong_arguments_are_refused():
    log_likelihood = problems.gauss(3).log_likelihood
    for x in (0.5, np.zeros(2), np.zeros((5, 2)), np.zeros((2, 2, 3))):
        with pytest.raises(InputError, match="shape"):
            log_likelihood(x)
    with pytest.raises(InputError, match="known for 2, 4, 5, 6"):
        problems.rosen(3)
    for n_dim in (0, -1, 2.5):
        with pytest.raises(InputError, match="n_dim"):
            problems.lumpy(n_dim)
