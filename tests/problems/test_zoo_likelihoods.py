"""Log-likelihoods of the zoo against others that share no code with them: scipy.stats, solve_ivp, dense covariances."""

import numpy as np
import pytest
from scipy import integrate, linalg, optimize, signal, special, stats

from basq.problems import zoo
from basq.problems.zoo.psychometrics import _rasch


def solved(slope, start, times):
    """States at times, (k, m), by an adaptive solver."""
    return integrate.solve_ivp(slope, (0.0, times[-1]), start, t_eval=times, rtol=1e-9, atol=1e-11).y


def nbinom(y, mean, size):
    return stats.nbinom.logpmf(y, size, size / (size + mean)).sum()


def normal_regression(x, design, y):
    return stats.norm.logpdf(y, design @ x[:-1], x[-1]).sum()


def student_regression(x, u, y):
    return stats.t.logpdf(y, x[3], x[0] + x[1] * u, x[2]).sum()


def contaminated_regression(x, u, y, error):
    good = stats.norm.pdf(y, x[1] + x[0] * u, error)
    bad = stats.norm.pdf(y, x[3], np.sqrt(error**2 + x[4] ** 2))
    return np.log((1.0 - x[2]) * good + x[2] * bad).sum()


def heteroscedastic_regression(x, u, y):
    return stats.norm.logpdf(y, x[0] + x[1] * u, np.exp(x[2] + x[3] * u)).sum()


def errors_in_variables(x, u, y, error):
    a, b, scatter, centre, width = x
    factor = np.array([[1.0, error, 0.0], [b, 0.0, scatter]]) * np.array([width, 1.0, 1.0])
    return stats.multivariate_normal([centre, a + b * centre], factor @ factor.T).logpdf(np.column_stack([u, y])).sum()


def logistic_regression(x, design, sign):
    return stats.bernoulli.logpmf(sign > 0, special.expit(design @ x)).sum()


def poisson_regression(x, design, y, exposure):
    return stats.poisson.logpmf(y, exposure * np.exp(design @ x)).sum()


def negative_binomial_regression(x, design, y):
    return nbinom(y, np.exp(design @ x[:-1]), x[-1])


def probit_regression(x, design, sign):
    return stats.bernoulli.logpmf(sign > 0, stats.norm.cdf(design @ x)).sum()


def ordinal_regression(x, design, grade):
    cuts = np.array([-np.inf, x[0], x[0] + x[1], x[0] + x[1] + x[2], np.inf])
    cdf = stats.logistic.cdf(cuts - (design @ x[3:])[:, None])
    return np.log([np.diff(row)[int(k)] for row, k in zip(cdf, grade, strict=True)]).sum()


def zero_inflated_poisson(x, u, y):
    pmf = stats.poisson.pmf(y, np.exp(x[0] + x[1] * u))
    return np.log(x[2] * (y == 0) + (1.0 - x[2]) * pmf).sum()


def ar1(x, y):
    cov = x[2] ** 2 / (1.0 - x[1] ** 2) * linalg.toeplitz(x[1] ** np.arange(len(y)))
    return stats.multivariate_normal(np.full(len(y), x[0]), cov).logpdf(y)


def ar2(x, y):
    return stats.norm.logpdf(signal.lfilter([1.0, -x[1], -x[2]], [1.0], y)[2:], x[0], np.sqrt(x[3])).sum()


def arma11(x, y):
    mu, phi, theta, sigma = x
    before = np.append(mu, y[:-1])
    error = signal.lfilter([1.0], [1.0, theta], y - mu - phi * before)
    return stats.norm.logpdf(error, 0.0, sigma).sum()


def garch11(x, y):
    total, variance = 0.0, x[1] / (1.0 - x[2] - x[3])
    for t, value in enumerate(y):
        if t > 0:
            variance = x[1] + x[2] * (y[t - 1] - x[0]) ** 2 + x[3] * variance
        total += stats.norm.logpdf(value, x[0], variance**0.5)
    return total


def egarch(x, y):
    mu, omega, alpha, leverage, beta = x
    total, log_h = 0.0, omega
    for value in y:
        sd = np.exp(log_h / 2)
        total += stats.norm.logpdf(value, mu, sd)
        z = (value - mu) / sd
        log_h = omega + beta * (log_h - omega) + alpha * (abs(z) - stats.halfnorm.mean()) + leverage * z
    return total


def local_level(x, y):
    i = np.arange(1, len(y) + 1)
    cov = x[1] ** 2 * np.minimum(i[:, None], i) + x[2] ** 2 * np.eye(len(y))
    return stats.multivariate_normal(np.full(len(y), x[0]), cov).logpdf(y)


def sir(x, y, people):
    beta, gamma, first, size = x
    path = solved(
        lambda t, s: [-beta * s[0] * s[1] / people, beta * s[0] * s[1] / people - gamma * s[1]],
        [people - first, first],
        np.arange(len(y) + 1.0),
    )
    return nbinom(y, -np.diff(path[0]), size)


def seir(x, y, people):
    beta, sigma, gamma, reported, first, size = x

    def slope(t, s):
        new = beta * s[0] * s[2] / people
        return [-new, new - sigma * s[1], sigma * s[1] - gamma * s[2], sigma * s[1]]

    path = solved(slope, [people - first, 0.0, first, 0.0], 7.0 * np.arange(len(y) + 1.0))
    return nbinom(y, reported * np.diff(path[3]), size)


def predator_prey(x, log_y):
    alpha, beta, gamma, delta = x[:4]
    path = solved(
        lambda t, s: [alpha * s[0] - beta * s[0] * s[1], delta * s[0] * s[1] - gamma * s[1]],
        x[4:6],
        np.arange(log_y.shape[1] + 0.0),
    )
    return stats.lognorm.logpdf(np.exp(log_y), x[6:, None], scale=path).sum()


def fitzhugh_nagumo(x, y):
    a, b, c = x[:3]
    path = solved(
        lambda t, s: [c * (s[0] - s[0] ** 3 / 3 + s[1]), -(s[0] - a + b * s[1]) / c],
        [-1.0, 1.0],
        0.5 * np.arange(y.shape[1]),
    )
    return stats.norm.logpdf(y, path, x[3:, None]).sum()


def consecutive_reaction(x, t, y):
    k1, k2, amount, sigma = x
    path = solved(lambda _, s: [-k1 * s[0], k1 * s[0] - k2 * s[1]], [amount, 0.0], np.append(0.0, t))[1, 1:]
    return stats.norm.logpdf(y, path, sigma).sum()


def one_compartment(x, t, y, dose):
    ka, clearance, volume, additive, proportional = x
    slope = np.array([[-ka, 0.0], [ka, -clearance / volume]])
    path = np.array([(linalg.expm(slope * time) @ [dose, 0.0])[1] for time in t]) / volume
    return stats.norm.logpdf(y, path, np.sqrt(additive**2 + (proportional * path) ** 2)).sum()


def two_compartment(x, t, log_y, dose):
    clearance, volume1, flow, volume2, sigma = x
    slope = np.array([[-(clearance + flow) / volume1, flow / volume2], [flow / volume1, -flow / volume2]])
    path = np.array([(linalg.expm(slope * time) @ [dose, 0.0])[0] for time in t]) / volume1
    return stats.lognorm.logpdf(np.exp(log_y), sigma, scale=path).sum()


def saturating_elimination(x, log_y, dose):
    """Closed form by Lambert's W: C/K exp(C/K) = C₀/K exp((C₀ − V t)/K)."""
    fastest, half, volume, sigma = x
    start, t = dose / volume / half, 2.0 * np.arange(1, len(log_y) + 1)
    path = half * special.lambertw(start * np.exp(start - fastest * t / half)).real
    return stats.lognorm.logpdf(np.exp(log_y), sigma, scale=path).sum()


def sinusoid(x, t, y):
    wave = (x[1] * np.exp(1j * (2 * np.pi * t / x[2] + x[3]))).imag
    return stats.norm.logpdf(y, x[0] + wave, x[4]).sum()


def damped_oscillation(x, t, y):
    wave = (x[0] * np.exp((-x[1] + 2j * np.pi * x[2]) * t + 1j * x[3])).real
    return stats.norm.logpdf(y, wave, x[4]).sum()


def circular_orbit(x, t, y, error):
    wave = (x[0] * np.exp(1j * (2 * np.pi * t / x[1] + x[2]))).real
    return stats.norm.logpdf(y, x[3] + wave, np.sqrt(error**2 + x[4] ** 2)).sum()


def eccentric_orbit(x, t, y, error):
    speed, period, phase, e, omega, offset, jitter = x
    path = []
    for mean in np.mod(2 * np.pi * t / period + phase, 2 * np.pi):
        anomaly = optimize.brentq(lambda a, m=mean: a - e * np.sin(a) - m, -0.1, 2 * np.pi + 0.1, xtol=1e-14)
        true = np.angle(np.cos(anomaly) - e + 1j * np.sqrt(1 - e**2) * np.sin(anomaly))
        path.append(speed * (np.cos(true + omega) + e * np.cos(omega)))
    return stats.norm.logpdf(y, offset + np.array(path), np.sqrt(error**2 + jitter**2)).sum()


def two_planets(x, t, y, error):
    wave = sum((x[i] * np.exp(1j * (2 * np.pi * t / x[i + 1] + x[i + 2]))).real for i in (0, 3))
    return stats.norm.logpdf(y, x[6] + wave, np.sqrt(error**2 + x[7] ** 2)).sum()


def centred_schools(x, y, error):
    return stats.norm.logpdf(x[2:], x[0], x[1]).sum() + stats.norm.logpdf(y, x[2:], error).sum()


def noncentred_schools(x, y, error):
    return stats.norm.logpdf(y, x[0] + x[1] * x[2:], error).sum()


def varying_intercepts(x, group, u, y):
    means = [x[0] + x[1] * x[4 + int(g)] + x[2] * v for g, v in zip(group, u, strict=True)]
    return stats.norm.logpdf(y, means, x[3]).sum()


def pumps(x, hours, y):
    return stats.nbinom.logpmf(y, x[0], x[1] / (x[1] + hours)).sum()


def two_normals(x, y):
    return np.log(x[4] * stats.norm.pdf(y, x[0], x[2]) + (1 - x[4]) * stats.norm.pdf(y, x[1], x[3])).sum()


def three_normals(x, y):
    shares = np.array([x[4], (1 - x[4]) * x[5], (1 - x[4]) * (1 - x[5])])
    return np.log(stats.norm.pdf(y[:, None], x[:3], x[3]) @ shares).sum()


def two_poissons(x, y):
    return np.log(x[2] * stats.poisson.pmf(y, x[0]) + (1 - x[2]) * stats.poisson.pmf(y, x[1])).sum()


def censored(law, time, death):
    return np.where(death == 1, law.logpdf(time), law.logsf(time)).sum()


def exponential_survival(x, design, time, death):
    return censored(stats.expon(scale=np.exp(-design @ x)), time, death)


def weibull_survival(x, design, time, death):
    return censored(stats.weibull_min(x[0], scale=np.exp(design @ x[1:])), time, death)


def cure_model(x, time, death):
    law = stats.weibull_min(x[0], scale=x[1])
    return np.log(np.where(death == 1, (1 - x[2]) * law.pdf(time), x[2] + (1 - x[2]) * law.sf(time))).sum()


def psychometric(x, level, n, y):
    p = x[2] + (1 - x[2] - x[3]) * stats.logistic.cdf(level, x[0], 1 / x[1])
    return stats.binom.logpmf(y, n, p).sum()


def reinforcement_learning(x, choice, reward):
    value, total = [0.5, 0.5], 0.0
    for c, r in zip(choice.astype(int), reward, strict=True):
        odds = np.exp(x[1] * np.array(value))
        total += np.log(odds[c] / odds.sum())
        value[c] += x[0] * (r - value[c])
    return total


def dose_response(x, log_dose, y):
    curve = x[0] + (x[1] - x[0]) / (1 + (10.0 ** (x[2] - log_dose)) ** x[3])
    return stats.norm.logpdf(y, curve, x[4]).sum()


def logistic_growth(x, t, y):
    path = solved(lambda _, s: x[1] * s * (1 - s / x[0]), [x[2]], t)[0]
    return stats.lognorm.logpdf(y, x[3], scale=path).sum()


def gompertz_growth(x, t, y):
    path = solved(lambda _, s: x[2] * s * np.log(x[0] / s), [x[0] * np.exp(-x[1])], t)[0]
    return stats.norm.logpdf(y, path, x[3]).sum()


def supernovae(x, z, y, error):
    def speed(a):
        return np.sqrt(x[0] * (1 + a) ** 3 + (1 - x[0]) * (1 + a) ** (3 * (1 + x[1])))

    far = np.array([integrate.quad(lambda a: 1 / speed(a), 0, end)[0] for end in z])
    return stats.norm.logpdf(y, x[2] + 5 * np.log10((1 + z) * far), np.sqrt(error**2 + x[3] ** 2)).sum()


def process_hyperparameters(x, t, y):
    cov = x[1] ** 2 * np.exp(-0.5 * ((t[:, None] - t) / x[0]) ** 2) + x[2] ** 2 * np.eye(len(t))
    return stats.multivariate_normal(np.full(len(t), x[3]), cov).logpdf(y)


def change_point(x, year, y):
    return sum(stats.poisson.logpmf(k, x[0] if when < x[2] else x[1]) for when, k in zip(year, y, strict=True))


def occupancy(x, forest, wind, seen):
    total = 0.0
    for site, (cover, gusts) in enumerate(zip(forest, wind, strict=True)):
        p = special.expit(x[2] + x[3] * gusts)
        here = special.expit(x[0] + x[1] * cover)
        total += np.log(here * stats.bernoulli.pmf(seen[site], p).prod() + (1 - here) * (not seen[site].any()))
    return total


def recapture(x, released, again):
    """Multinomials but for their coefficients, which have no parameters."""
    total = 0.0
    for i, n in enumerate(released):
        counts = again[i, : len(again) - i]
        p = [x[0] ** (k + 1) * (1 - x[1]) ** k * x[1] for k in range(len(counts))]
        full = [*counts, n - counts.sum()]
        constant = stats.multinomial.logpmf(full, int(n), np.ones(len(full)) / len(full)) + n * np.log(len(full))
        total += stats.multinomial.logpmf(full, int(n), [*p, 1 - sum(p)]) - constant
    return total


interaction_regression = normal_regression
BY_QUADRATURE = {"rasch"}
# Fixed steps against an adaptive solver, and the process's jitter.
TOLERANCE = {"sir": 3e-3, "seir": 3e-3, "predator_prey": 1e-3, "fitzhugh_nagumo": 1e-2, "saturating_elimination": 1e-3,
             "consecutive_reaction": 1e-5, "logistic_growth": 1e-5, "gompertz_growth": 1e-5, "supernovae": 1e-6,
             "process_hyperparameters": 1e-5}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in zoo.MODELS if name not in BY_QUADRATURE])
@pytest.mark.parametrize("seed", [0, 1])
def test_log_likelihood_against_another(name, seed):
    problem = zoo.MODELS[name](seed)
    near = problem.truth * np.random.default_rng(seed).uniform(0.97, 1.03, (3, problem.n_dim))
    for x in [problem.truth, *near]:
        other = globals()[name](x, **problem.rows.keywords)
        assert problem.log_likelihood(x) == pytest.approx(other, abs=TOLERANCE.get(name, 1e-7))


def test_rasch_against_an_integral_over_abilities():
    x, patterns = np.array([-1.0, 0.3, 0.8, 1.5]), np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    total = 0.0
    for pattern in patterns:
        people = np.eye(4)[int(pattern.sum())]
        log_p = _rasch(x[None], pattern, people, nodes, np.log(weights / weights.sum()))[0]

        def density(a, pattern=pattern):
            return stats.norm.pdf(a) * stats.bernoulli.pmf(pattern, special.expit(x[3] * a - x[:3])).prod()

        assert np.exp(log_p) == pytest.approx(integrate.quad(density, -8, 8)[0], rel=1e-4)
        total += np.exp(log_p)
    assert total == pytest.approx(1.0, rel=1e-6)
