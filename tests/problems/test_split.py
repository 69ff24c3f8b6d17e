"""Models with cheap parameters: their simulators and observation models against scipy's, and their closed form."""

import pickle

import numpy as np
import pytest
from scipy import integrate, signal, stats

from basq import problems
from basq.problems import noise

MODELS = {
    "regression": (problems.regression, 6, 1),
    "autoregression": (problems.autoregression, 3, 1),
    "pharmacokinetics": (problems.pharmacokinetics, 3, 2),
    "epidemic": (problems.epidemic, 3, 2),
    "predator_prey": (problems.predator_prey, 4, 2),
    "fitzhugh_nagumo": (problems.fitzhugh_nagumo, 3, 2),
    "diffusion": (problems.diffusion, 1, 3),
}
BATTERY = {
    "cell_voltage SPM": (lambda: problems.cell_voltage("SPM"), 2, 1),
    "cell_voltage SPMe": (lambda: problems.cell_voltage("SPMe"), 2, 2),
}


def read_only(x):
    x = np.array(x)
    x.flags.writeable = False
    return x


def check_parts(model, d, k):
    """Whether simulator, likelihood and black box say the same, one by one and together."""
    assert (len(model.prior), len(model.cheap), len(model.truth)) == (d, k, d + k)
    assert model.joint_prior.names == (*model.prior, *model.cheap)
    x = read_only(np.vstack([model.truth, model.joint_prior.sample(3, np.random.default_rng(0))]))
    values = model.log_likelihood_all(x)
    assert values.shape == (4,)
    assert np.isfinite(values[0])
    assert values[0] == values.max()
    for row, value in zip(x, values, strict=True):
        output = model.simulate(row[:d])
        one = model.log_likelihood(output, **dict(zip(model.cheap, map(float, row[d:]), strict=True)))
        assert np.ndim(one) == 0
        assert one == pytest.approx(value, rel=1e-12)
        assert model.log_likelihood_all(row) == pytest.approx(value, rel=1e-12)
        many = model.log_likelihood(output, **dict(zip(model.cheap, x[:, d:].T, strict=True)))
        assert many.shape == (4,)
        assert np.isclose(many, value, rtol=1e-12).any()
    again = pickle.loads(pickle.dumps(model))
    assert again.log_likelihood_all(x[0]) == values[0]


@pytest.mark.parametrize("name", MODELS)
def test_parts_and_black_box_agree(name):
    make, d, k = MODELS[name]
    check_parts(make(), d, k)
    assert make().log_likelihood_all(make().truth) == make().log_likelihood_all(make().truth)
    assert make(seed=1).log_likelihood_all(make().truth) != make().log_likelihood_all(make().truth)


@pytest.mark.parametrize("name", BATTERY)
def test_battery(name):
    pytest.importorskip("pybamm")
    make, d, k = BATTERY[name]
    check_parts(make(), d, k)


def test_regression_by_quadrature():
    model = problems.regression(n_dim=1, n_data=12)
    prior = model.joint_prior

    def density(variance, b):
        x = np.array([b, variance])
        return np.exp(model.log_likelihood_all(x) + prior.log_pdf(x))

    centre, half = model.data.mean(), 4.0
    value, _ = integrate.dblquad(density, centre - half, centre + half, 1e-3, 30.0, epsabs=0.0, epsrel=1e-6)
    assert np.log(value) == pytest.approx(model.log_evidence, abs=1e-3)


def test_regression_in_six_dimensions_by_sampling_the_posterior():
    # log Z = log ℓ + log π − log posterior at any point; the posterior from its two known laws
    model = problems.regression()
    design = model.simulate(np.eye(6)).T
    best = np.linalg.lstsq(design, model.data, rcond=None)[0]
    rest = model.data - design @ best
    variance = stats.invgamma(0.5 + 17.0, scale=0.5 + 0.5 * rest @ rest)
    for v in (0.3, 0.8):
        x = np.append(best + 0.1, v)
        log_posterior = variance.logpdf(v)
        log_posterior += stats.multivariate_normal(best, v * np.linalg.inv(design.T @ design)).logpdf(best + 0.1)
        log_joint = model.log_likelihood_all(x) + model.joint_prior.log_pdf(x)
        assert log_joint - log_posterior == pytest.approx(model.log_evidence, abs=1e-9)


def test_innovations_are_a_filter():
    model = problems.autoregression()
    series = model.simulate.args[0]
    mu, phi, theta = 0.2, 0.7, -0.4
    driven = series[1:] - mu - phi * series[:-1]
    assert model.simulate(np.array([mu, phi, theta])) == pytest.approx(signal.lfilter([1.0], [1.0, theta], driven))


def solved(slope, start, times):
    return integrate.solve_ivp(slope, (0.0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-12).y


def test_concentration_solves_its_equation():
    model = problems.pharmacokinetics()
    times = np.append(0.0, model.simulate.args[0])
    for ka, ke, volume in ((1.4, 0.09, 32.0), (0.2, 0.2, 20.0), (0.1, 0.5, 10.0)):
        gut_and_blood = solved(lambda t, y, ka=ka, ke=ke: [-ka * y[0], ka * y[0] - ke * y[1]], [320.0, 0.0], times)
        assert model.simulate(np.array([ka, ke, volume])) == pytest.approx(gut_and_blood[1, 1:] / volume, rel=1e-6)


def test_epidemic_solves_its_equation():
    contact, recovery, seeds = 1.2, 0.3, 1e-3
    y = solved(
        lambda t, y: [-contact * y[0] * y[1], contact * y[0] * y[1] - recovery * y[1]],
        [1.0 - seeds, seeds],
        np.arange(61.0),
    )
    cases = problems.epidemic().simulate(np.array([contact, recovery, seeds]))
    assert cases == pytest.approx(-1e4 * np.diff(y[0]), rel=1e-4, abs=1e-3)


def test_predator_prey_solves_its_equation():
    birth, predation, death, growth = 0.5, 0.03, 0.9, 0.02
    y = solved(
        lambda t, y: [birth * y[0] - predation * y[0] * y[1], growth * y[0] * y[1] - death * y[1]],
        [30.0, 6.0],
        np.arange(21.0),
    )
    output = problems.predator_prey().simulate(np.array([birth, predation, death, growth]))
    assert output["hares"] == pytest.approx(np.log(y[0]), abs=1e-4)
    assert output["lynxes"] == pytest.approx(np.log(y[1]), abs=1e-4)


def test_fitzhugh_nagumo_solves_its_equation():
    a, b, c = 0.3, 0.4, 3.0
    y = solved(
        lambda t, y: [c * (y[0] - y[0] ** 3 / 3.0 + y[1]), -(y[0] - a + b * y[1]) / c],
        [-1.0, 1.0],
        np.linspace(0.0, 12.0, 61),
    )
    assert problems.fitzhugh_nagumo().simulate(np.array([a, b, c])) == pytest.approx(y[0], abs=1e-4)


def test_diffusion_solves_its_equation():
    def slope(t, u, diffusivity=0.1, n=60):
        flow = np.diff(u, prepend=u[0], append=u[-1])
        return diffusivity * n**2 * np.diff(flow)

    start = (np.arange(60) < 20).astype(float)
    times = np.append(0.0, np.linspace(0.1, 4.0, 16))
    y = integrate.solve_ivp(slope, (0.0, 4.0), start, t_eval=times, method="LSODA", rtol=1e-9, atol=1e-11).y
    assert problems.diffusion().simulate(np.array([0.1])) == pytest.approx(y[[9, 29, 49], 1:].T.ravel(), abs=1e-6)


RNG = np.random.default_rng(3)
OUTPUT, DATA, COUNTS = RNG.uniform(1.0, 9.0, 20), RNG.uniform(0.0, 9.0, 20), RNG.poisson(5.0, 20).astype(float)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (noise.gaussian(DATA, OUTPUT, 2.0, 0.3), stats.norm.logpdf(DATA, OUTPUT + 0.3, 2.0)),
        (noise.gaussian_variance(DATA, OUTPUT, 2.0), stats.norm.logpdf(DATA, OUTPUT, np.sqrt(2.0))),
        (noise.student(DATA, OUTPUT, 2.0, 3.5, 0.3), stats.t.logpdf(DATA, 3.5, OUTPUT + 0.3, 2.0)),
        (noise.laplace(DATA, OUTPUT, 2.0, 0.3), stats.laplace.logpdf(DATA, OUTPUT + 0.3, np.sqrt(2.0))),
        (
            noise.additive_and_proportional(DATA, OUTPUT, 0.4, 0.1),
            stats.norm.logpdf(DATA, OUTPUT, np.sqrt(0.16 + 0.01 * OUTPUT**2)),
        ),
        (
            noise.negative_binomial(COUNTS, OUTPUT, 0.6, 0.2),
            stats.nbinom.logpmf(COUNTS, 5.0, 5.0 / (5.0 + 0.6 * OUTPUT)),
        ),
    ],
)
def test_observation_models(ours, theirs):
    assert ours == pytest.approx(theirs.sum(), rel=1e-10)


def test_overflow_has_no_likelihood():
    output = np.full(20, np.inf)
    assert noise.gaussian(DATA, output, np.ones(2)).tolist() == [-np.inf, -np.inf]
    assert noise.student(DATA, np.full(20, np.nan), 1.0, 2.0) == -np.inf
