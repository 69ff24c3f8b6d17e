"""The truths of curved test problems and of those with boundaries, against quadrature without shared code."""

import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from basq import problems
from basq.errors import InputError
from helpers.problems import check_moments, check_points_and_rows

# Each problem with the log-evidence that its docstring states.
STATED = {
    "ring": (problems.ring, -1.7914735),
    "shell-2": (lambda: problems.shell(2), -2.2744004),
    "shell-3": (problems.shell, -1.8235601),
    "shell-5": (lambda: problems.shell(5), -1.5520911),
    "funnel-2": (lambda: problems.funnel(2), -1.8576419),
    "funnel-4": (problems.funnel, -5.3031751),
    "funnel-5": (lambda: problems.funnel(5), -6.9598863),
    "skew-2": (lambda: problems.skew(2), 0.0),
    "skew-3": (problems.skew, 0.0),
    "eggbox": (problems.eggbox, 2.4057276),
    "wall-3": (problems.wall, -6.1272765),
    "edge-2": (lambda: problems.edge(2), -5.0173960),
    "edge-5": (problems.edge, -13.4675606),
    "banana-and-gauss": (problems.banana_and_gauss, -3.1753769),
}
# The square that holds the mass, ℓ π > 1e-14 of its peak.
SQUARE = {
    "ring": (-3.0, 3.0),
    "shell-2": (-4.0, 4.0),
    "eggbox": (-9.0, 9.0),
    "edge-2": (-9.0, 9.0),
    "banana-and-gauss": (-6.0, 6.0),
}
SAMPLED = ["skew-2", "skew-3", "wall-3", "edge-2", "edge-5"]


def log_prior(x: np.ndarray) -> np.ndarray:
    return -0.5 * (x**2).sum(axis=1) - 0.5 * x.shape[1] * np.log(2.0 * np.pi)


def gauss_legendre(low: float, high: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return low + (high - low) * (nodes + 1.0) / 2.0, weights * (high - low) / 2.0


def trapezoid(low: float, high: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(low, high, n), np.full(n, (high - low) / (n - 1))


def product(*rules: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, d) and weights (n,) of the product of rules on lines."""
    points = np.stack(np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij"), axis=-1)
    weights = np.stack(np.meshgrid(*(weights for _, weights in rules), indexing="ij"), axis=-1)
    return points.reshape(-1, len(rules)), weights.reshape(-1, len(rules)).prod(axis=1)


def assert_truths(problem, x, weights, tolerance=1e-9):
    """Compare evidence and posterior moments with a sum over weighted points."""
    mass = weights * np.exp(problem.log_likelihood(x) + log_prior(x))
    evidence = mass.sum()
    assert problem.log_evidence == pytest.approx(np.log(evidence), abs=tolerance)
    if problem.posterior_mean is None:
        assert problem.posterior_cov is None
        return
    mean = mass @ x / evidence
    cov = ((x - mean) * mass[:, None]).T @ (x - mean) / evidence
    np.testing.assert_allclose(problem.posterior_mean, mean, atol=tolerance)
    np.testing.assert_allclose(problem.posterior_cov, cov, atol=tolerance)


@pytest.mark.parametrize("name", STATED)
def test_evidence_is_the_stated_one(name):
    make, log_evidence = STATED[name]
    problem = make()
    assert problem.name == name
    assert isinstance(problem.log_evidence, float)
    assert problem.log_evidence == pytest.approx(log_evidence, abs=6e-8)


@pytest.mark.parametrize("name", SQUARE)
def test_planar_truths_agree_with_trapezoidal_rule(name):
    line = trapezoid(*SQUARE[name], 701)
    assert_truths(STATED[name][0](), *product(line, line))


def test_skew_truths_agree_with_quadrature_from_its_corner():
    # x = t² − ½ takes away the root at the corner
    t, w = gauss_legendre(0.0, 3.0, 200)
    line = (t**2 - 0.5, 2.0 * t * w)
    assert_truths(problems.skew(2), *product(line, line))


@pytest.mark.parametrize(("n_dim", "n_nodes"), [(1, 200), (2, 100), (3, 50)])
@pytest.mark.parametrize("seed", [0, 4])
def test_wall_truths_agree_with_quadrature_in_front_of_it(n_dim, n_nodes, seed):
    rng = np.random.default_rng(seed)
    centre, normal = 0.5 * rng.normal(size=n_dim), rng.normal(size=n_dim)
    normal /= np.linalg.norm(normal)
    axes = np.linalg.qr(np.column_stack([normal, np.eye(n_dim)]))[0]
    axes *= np.sign(axes[:, 0] @ normal)
    across = gauss_legendre(-1.5, 0.075, n_nodes)
    along = gauss_legendre(-1.5, 1.5, n_nodes)
    z, weights = product(across, *[along] * (n_dim - 1))
    problem = problems.wall(n_dim, seed=seed)
    assert_truths(problem, centre + z @ axes.T, weights)
    behind = centre + (z + 2.0 * (0.075 - z[:, :1]) * (np.arange(n_dim) == 0)) @ axes.T
    assert (problem.log_likelihood(behind) == -np.inf).all()


@pytest.mark.parametrize("n_dim", [2, 3, 5, 20, 100])
def test_shell_truths_agree_with_the_chi_distribution_of_the_radius(n_dim):
    problem = problems.shell(n_dim)
    direction = np.random.default_rng(0).normal(size=n_dim)
    direction /= np.linalg.norm(direction)

    def log_integrand(r):
        return problem.log_likelihood(np.outer(r, direction)) + stats.chi(n_dim).logpdf(r)

    grid = np.linspace(0.5, 8.0, 2001)
    top = grid[np.argmax(log_integrand(grid))]
    r, weights = gauss_legendre(top - 1.5, top + 1.5, 200)
    values = log_integrand(r)
    peak = values.max()
    mass = weights * np.exp(values - peak)
    evidence, second = mass.sum(), mass @ r**2
    assert problem.log_evidence == pytest.approx(peak + np.log(evidence), abs=1e-9)
    np.testing.assert_allclose(problem.posterior_cov, np.eye(n_dim) * second / evidence / n_dim, rtol=1e-9)


@pytest.mark.parametrize("n_dim", [2, 4, 9])
def test_funnel_truths_agree_with_nested_quadrature(n_dim):
    # given the neck, the others are independent and alike: powers of integrals over the plane (neck, one other)
    v, v_weights = trapezoid(-8.0, 8.0, 241)
    t, t_weights = trapezoid(-9.0, 9.0, 10_001)  # the funnel narrows as exp(−0.8 v)
    x = np.stack(np.meshgrid(v, t, indexing="ij"), axis=-1).reshape(-1, 2)
    inner = np.exp(problems.funnel(2).log_likelihood(x)).reshape(len(v), len(t)) * t_weights * stats.norm.pdf(t)
    zeroth, first, second = (inner @ t**k for k in range(3))
    mass = v_weights * stats.norm.pdf(v) * zeroth ** (n_dim - 1)
    evidence = mass.sum()
    problem = problems.funnel(n_dim)
    assert problem.log_evidence == pytest.approx(np.log(evidence), abs=1e-9)

    def expect(values):
        return mass @ values / evidence

    mean, other = expect(v), expect(first / zeroth)
    np.testing.assert_allclose(problem.posterior_mean, [mean] + [other] * (n_dim - 1), atol=1e-9)
    cov = np.full((n_dim, n_dim), expect((first / zeroth) ** 2) - other**2)
    np.fill_diagonal(cov, expect(second / zeroth) - other**2)
    cov[0] = cov[:, 0] = expect(v * first / zeroth) - mean * other
    cov[0, 0] = expect(v**2) - mean**2
    np.testing.assert_allclose(problem.posterior_cov, cov, atol=1e-9)


@pytest.mark.parametrize("n_dim", [1, 3, 5, 8])
def test_products_agree_with_adaptive_quadrature_of_their_factors(n_dim):
    log_edge = 0.0
    for rate in np.linspace(5, 30, n_dim):
        factor = integrate.quad(lambda u, k=rate: np.exp(-k * stats.norm.cdf(u)) * stats.norm.pdf(u), -12, 12)[0]
        log_edge += np.log(factor)
    assert problems.edge(n_dim).log_evidence == pytest.approx(log_edge, abs=1e-7)
    log_skew = 0.0
    for shape in np.linspace(1.5, 4, n_dim):
        gamma = stats.gamma(shape, loc=-0.5, scale=0.15)
        log_skew += np.log(integrate.quad(gamma.pdf, -0.5, 6.0)[0])
    assert problems.skew(n_dim).log_evidence == pytest.approx(log_skew, abs=1e-7)


def test_log_likelihoods_follow_their_definition():
    x = np.random.default_rng(4).normal(size=(40, 4))
    radius = np.linalg.norm(x[:, :2], axis=1)
    ring = stats.norm.logpdf(radius, 1.5, 0.12) - stats.norm.logpdf(0, 0, 0.12) + x[:, 0] / 2
    np.testing.assert_allclose(problems.ring().log_likelihood(x[:, :2]), ring, rtol=1e-11, atol=1e-11)
    shell = -((np.linalg.norm(x, axis=1) - 2) ** 2) / (2 * 0.15**2)
    np.testing.assert_allclose(problems.shell(4).log_likelihood(x), shell, rtol=1e-11, atol=1e-11)
    funnel = -sum((x[:, i] * np.exp(0.8 * x[:, 0]) - 0.7) ** 2 for i in (1, 2, 3)) / (2 * 0.25**2)
    np.testing.assert_allclose(problems.funnel(4).log_likelihood(x), funnel, rtol=1e-11)
    eggbox = 2.5 * (np.cos(2.2 * (x[:, 0] + x[:, 1])) + np.cos(2.2 * (x[:, 0] - x[:, 1])))
    np.testing.assert_allclose(problems.eggbox().log_likelihood(x[:, :2]), eggbox, rtol=1e-11, atol=1e-11)
    edge = -stats.norm.cdf(x) @ np.linspace(5, 30, 4)
    np.testing.assert_allclose(problems.edge(4).log_likelihood(x), edge, rtol=1e-11)
    inside = np.abs(x)
    skew = sum(
        stats.gamma(a, loc=-0.5, scale=0.15).logpdf(inside[:, i]) - stats.norm.logpdf(inside[:, i])
        for i, a in enumerate(np.linspace(1.5, 4, 4))
    )
    np.testing.assert_allclose(problems.skew(4).log_likelihood(inside), skew, rtol=1e-11, atol=1e-11)
    near = [0.0, -1.0] + 0.3 * x[:, :2]
    banana = np.exp(-50 * (near[:, 1] - 1.2 * near[:, 0] ** 2 + 1) ** 2 - (near[:, 0] - 0.3) ** 2 / 0.72)
    blob = np.exp(0.5 - ((near - [1.6, -1.2]) ** 2).sum(axis=1) / 0.045)
    np.testing.assert_allclose(
        np.exp(problems.banana_and_gauss().log_likelihood(near)), banana + blob, rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_come_from_the_posterior(name):
    problem = STATED[name][0]()
    n = 20_000
    x = problem.sample_posterior(n, np.random.default_rng(7))
    assert x.shape == (n, problem.n_dim)
    assert np.isfinite(x).all()
    assert np.isfinite(problem.log_likelihood(x)).all()
    assert problem.sample_posterior(0, np.random.default_rng(7)).shape == (0, problem.n_dim)
    if problem.posterior_mean is None:
        level = stats.norm.cdf(x)
        for i, rate in enumerate(np.linspace(5, 30, problem.n_dim)):
            law = stats.truncexpon(rate, scale=1 / rate)
            assert stats.kstest(level[:, i], law.cdf).pvalue > 1e-4
        return
    check_moments(problem, x)


@pytest.mark.parametrize("name", STATED)
def test_points_and_rows_agree_and_inputs_stay_untouched(name):
    problem = STATED[name][0]()
    x = np.random.default_rng(0).uniform(-2, 2, (40, problem.n_dim))
    x[:10] = 0.0
    check_points_and_rows(problem, x)


@pytest.mark.parametrize("name", STATED)
def test_prior_is_standard_normal(name):
    problem = STATED[name][0]()
    x = np.random.default_rng(0).uniform(-2, 2, (20, problem.n_dim))
    assert problem.prior.n_dim == problem.n_dim
    np.testing.assert_allclose(problem.prior.log_pdf(x), log_prior(x), rtol=1e-12)


@pytest.mark.parametrize("name", STATED)
@pytest.mark.parametrize("far", [-1e3, 1e3])
def test_far_away_points_give_numbers_without_warnings(name, far):
    problem = STATED[name][0]()
    value = problem.log_likelihood(np.full(problem.n_dim, far))
    assert not np.isnan(value)
    assert value < np.inf


def test_zero_likelihood_is_minus_infinity():
    skew = problems.skew(2).log_likelihood
    np.testing.assert_array_equal(skew([[-0.5, 0.0], [0.0, -0.5], [-0.6, 0.0], [-1.0, -1.0]]), np.full(4, -np.inf))
    assert np.isfinite(skew([-0.499, -0.499]))


@pytest.mark.parametrize("name", STATED)
def test_log_likelihood_can_be_sent_to_a_worker(name):
    problem = STATED[name][0]()
    x = np.full(problem.n_dim, -0.25)
    assert pickle.loads(pickle.dumps(problem.log_likelihood))(x) == problem.log_likelihood(x)


def test_wall_depends_on_its_seed_only():
    first, again, other = (problems.wall(3, seed=seed).log_evidence for seed in (0, 0, 1))
    assert first == again
    assert first != other


@pytest.mark.parametrize("make", [problems.shell, problems.funnel, problems.skew, problems.wall, problems.edge])
def test_wrong_dimensions_are_refused(make):
    for n_dim in (0, -1, 2.5):
        with pytest.raises(InputError, match="n_dim"):
            make(n_dim)


@pytest.mark.parametrize("make", [problems.shell, problems.funnel])
def test_shell_and_funnel_need_two_dimensions(make):
    with pytest.raises(InputError, match="at least 2"):
        make(1)
