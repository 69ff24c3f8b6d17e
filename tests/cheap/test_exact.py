"""Models with cheap parameters, whose evidence and posterior are known exactly: infer() finds both."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

import basq
from basq import problems
from basq.problems import noise

LOG_EVIDENCE = 0.02
"""Largest error of log Z."""
VARIATION = 0.05
"""Largest total variation between a marginal and the exact one."""


def normalised(grid, log_density):
    """A density (…, m) on the last axis' grid (m,), from its logarithm; and the log of its integral over everything."""
    top = log_density.max()
    density = np.exp(log_density - top)
    total = np.trapezoid(density, grid, axis=-1)
    return density / total[..., None], top + np.log(total)


def infer(model, seed=1, **options):
    return basq.infer(model, seed=seed, progress=False, **options)


def check(result, log_evidence, marginals):
    """Compare the evidence, and every marginal with its exact density (t, p(t)) on a grid."""
    assert result.converged
    assert abs(result.log_evidence - log_evidence) < LOG_EVIDENCE
    assert set(marginals) == set(result.names)
    for name, (grid, density) in marginals.items():
        assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.01)
        ours = result.marginal(name).pdf(grid)
        assert 0.5 * np.trapezoid(np.abs(ours - density), grid) < VARIATION, name


@pytest.mark.parametrize("n_dim", [1, 3])
def test_conjugate_scale(n_dim):
    case = problems.regression(n_dim, n_data=25)
    result = infer(basq.Model(case.simulate, case.log_likelihood, prior=case.prior, cheap=case.cheap))
    design = case.simulate(np.eye(n_dim)).T
    inverse = np.linalg.inv(design.T @ design)
    best = inverse @ design.T @ case.data
    a, b = 0.5 + 0.5 * (25 - n_dim), 0.5 + 0.5 * ((case.data - design @ best) ** 2).sum()
    exact = {"variance": stats.invgamma(a, scale=b)}
    for i in range(n_dim):
        exact[f"b{i + 1}"] = stats.t(2.0 * a, best[i], np.sqrt(b / a * inverse[i, i]))
    grids = {name: np.linspace(*law.ppf([1e-4, 1.0 - 1e-4]), 500) for name, law in exact.items()}
    check(result, case.log_evidence, {name: (grids[name], law.pdf(grids[name])) for name, law in exact.items()})
    # the scale is wider where the line fits worse
    x = result.sample(4000, seed=0)
    far = ((x[:, :-1] - best) @ design.T) @ design * (x[:, :-1] - best)
    excess = far.sum(axis=1)
    expected = (b + 0.5 * excess) / (a + 0.5 * n_dim - 1.0)  # mean of the conditional inverse gamma
    assert np.mean(x[:, -1] / expected) == pytest.approx(1.0, abs=0.03)
    assert abs(np.corrcoef(x[:, -1] / expected, excess)[0, 1]) < 0.1


def line_with_offset(rng):
    """Data on a line with an offset, t (n,) and y (n,)."""
    t = np.linspace(-0.2, 1.0, 15)
    return t, 1.3 * t + 0.7 + 0.3 * rng.standard_normal(15)


def test_scale_and_offset():
    t, y = line_with_offset(np.random.default_rng(5))
    model = basq.Model(
        lambda x: x[0] * t,
        partial(noise.gaussian, y),
        prior={"slope": stats.norm(0.0, 2.0)},
        cheap={"sigma": stats.loguniform(0.01, 10.0), "offset": stats.norm(0.0, 3.0)},
    )
    # given sigma, slope and offset are Gaussian
    sigma = np.geomspace(0.01, 10.0, 4000)
    design, before = np.column_stack([t, np.ones(15)]), np.diag([4.0, 9.0])
    log_l = np.array([
        stats.multivariate_normal(np.zeros(15), design @ before @ design.T + s * s * np.eye(15)).logpdf(y)
        for s in sigma
    ])  # fmt: skip
    density, log_z = normalised(sigma, log_l + stats.loguniform.logpdf(sigma, 0.01, 10.0))
    covs = np.linalg.inv(np.linalg.inv(before) + design.T @ design / sigma[:, None, None] ** 2)
    means = covs @ design.T @ y / sigma[:, None] ** 2
    marginals = {"sigma": (sigma, density)}
    for i, name in enumerate(("slope", "offset")):
        grid = np.linspace(-1.5, 3.5, 500)
        each = stats.norm.pdf(grid[:, None], means[:, i], np.sqrt(covs[:, i, i]))
        marginals[name] = (grid, np.trapezoid(each * density, sigma, axis=1))
    result = infer(model)
    check(result, log_z, marginals)
    correlation = np.corrcoef(result.sample(4000, seed=0)[:, [0, 2]].T)[0, 1]
    assert correlation == pytest.approx(covs[2000, 0, 1] / np.sqrt(covs[2000, 0, 0] * covs[2000, 1, 1]), abs=0.06)


def test_five_cheap_parameters():
    rng = np.random.default_rng(2)
    sizes, truth = (4, 5, 6, 8, 12), np.array([0.1, 0.2, 0.4, 0.8, 0.3])
    groups = [0.5 + s * rng.standard_normal(n) for n, s in zip(sizes, truth, strict=True)]
    names = [f"log_sigma{i + 1}" for i in range(5)]
    law = stats.norm(-1.0, 0.8)

    def log_likelihood(output, **cheap):
        return sum(noise.gaussian(y, output, np.exp(cheap[name])) for y, name in zip(groups, names, strict=True))

    model = basq.Model(
        lambda x: np.array([x[0]]),
        log_likelihood,
        prior={"level": stats.norm(0.0, 2.0)},
        cheap=dict.fromkeys(names, law),
    )
    # given the level, each group has its own integral
    level, log_sigma = np.linspace(-0.2, 1.2, 401), np.linspace(-5.0, 3.0, 801)
    log_density, conditionals = stats.norm.logpdf(level, 0.0, 2.0), {}
    for name, y in zip(names, groups, strict=True):
        log_l = stats.norm.logpdf(y[:, None, None], level[:, None], np.exp(log_sigma)).sum(axis=0)
        conditionals[name], log_each = normalised(log_sigma, log_l + law.logpdf(log_sigma))
        log_density = log_density + log_each
    density, log_z = normalised(level, log_density)
    marginals = {"level": (level, density)}
    for name, conditional in conditionals.items():
        marginals[name] = (log_sigma, np.trapezoid(density[:, None] * conditional, level, axis=0))
    check(infer(model), log_z, marginals)


def test_two_modes_of_a_cheap_parameter():
    data = np.array([1.8, 2.3, 2.1])

    def log_likelihood(output, shift):
        return stats.norm.logpdf(data[:, None], output + np.square(shift), 0.4).sum(axis=0).reshape(np.shape(shift))

    law, prior = stats.norm(0.2, 1.0), stats.norm(0.0, 0.7)
    model = basq.Model(lambda x: np.array([x[0]]), log_likelihood, prior={"level": prior}, cheap={"shift": law})
    level, shift = np.linspace(-3.0, 3.5, 801), np.linspace(-4.0, 4.0, 1601)
    log_l = np.array([log_likelihood(x, shift) for x in level])
    log_joint = log_l + prior.logpdf(level)[:, None] + law.logpdf(shift)
    joint, log_each = normalised(shift, log_joint)
    density, log_z = normalised(level, log_each)
    marginals = {"level": (level, density), "shift": (shift, np.trapezoid(density[:, None] * joint, level, axis=0))}
    assert marginals["shift"][1][800] < 0.3 * marginals["shift"][1].max()
    check(infer(model), log_z, marginals)
