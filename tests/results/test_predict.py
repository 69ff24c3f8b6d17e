"""Posterior predictive from stored outputs: against closed forms, and against the simulator itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import basq
from basq.errors import InputError, NumericsWarning

Q = [0.025, 0.16, 0.5, 0.84, 0.975]
TIMES = np.arange(1.0, 16.0)


def infer(*arguments, **options):
    return basq.infer(basq.Model(*arguments), seed=1, progress=False, **options)


def logistic(x):
    """Growth up to a capacity, x = (rate, capacity), by an integrator: a curved function of both."""
    solved = solve_ivp(lambda _, n: x[0] * n * (1.0 - n / x[1]), (0.0, 15.0), [0.5], t_eval=TIMES, rtol=1e-8)
    return {"count": solved.y[0], "half": float(np.log(x[1] / 0.5 - 1.0) / x[0]), "source": "integrator"}


COUNTS = logistic([0.7, 12.0])["count"] + 0.8 * np.random.default_rng(2).standard_normal(len(TIMES))


def of_counts(output, sigma):
    return stats.norm.logpdf(COUNTS, output["count"], sigma).sum()


@pytest.fixture(scope="module")
def growth():
    prior = {"rate": stats.lognorm(0.7), "capacity": (5.0, 30.0)}
    return infer(logistic, of_counts, prior, {"sigma": stats.halfcauchy(scale=1.0)})


@pytest.fixture(scope="module")
def linear():
    """y = A x + 1 with known noise, under a normal prior: the posterior of A x + 1 is normal."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((10, 3))
    data = a @ [0.3, -0.2, 1.0] + 1.0 + 0.5 * rng.standard_normal(10)
    found = infer(
        lambda x: a @ x + 1.0,
        lambda output: stats.norm.logpdf(data, output, 0.5).sum(),
        {name: stats.norm() for name in "abc"},
    )
    cov = np.linalg.inv(a.T @ a / 0.25 + np.eye(3))
    mean = cov @ a.T @ (data - 1.0) / 0.25
    return found, a @ mean + 1.0, a @ cov @ a.T


def test_a_linear_simulator_has_the_bands_of_the_closed_form(linear):
    found, mean, cov = linear
    exact = mean + np.sqrt(np.diag(cov)) * stats.norm.ppf(Q)[:, None]
    bands = found.predict(Q, n=4000)
    assert bands.shape == (5, 10)
    assert (np.abs(bands - exact) < 0.05 * (exact[-1] - exact[0])).all()
    assert found.emulator.error < 0.01


def test_noise_makes_bands_of_data(linear):
    found, mean, cov = linear
    exact = mean + np.sqrt(np.diag(cov) + 0.25) * stats.norm.ppf(Q)[:, None]
    bands = found.predict(Q, n=4000, noise=lambda output, rng: output + 0.5 * rng.standard_normal(output.shape))
    assert (np.abs(bands - exact) < 0.05 * (exact[-1] - exact[0])).all()


def test_a_derived_quantity_of_a_linear_simulator(linear):
    found, mean, cov = linear
    total = found.derived(np.sum, "total")
    assert float(total.mean) == pytest.approx(mean.sum(), rel=0.02)
    assert float(total.sd) == pytest.approx(np.sqrt(cov.sum()), rel=0.02)
    row = total.summary()["total"]
    assert (row.mean, row.median) == (pytest.approx(float(total.mean)), pytest.approx(float(total.quantiles(0.5))))
    assert "total" in repr(total)
    assert "total" in total._repr_html_()


def test_a_curved_simulator_against_runs_of_it(growth):
    bands, drawn = growth.predict(Q, n=1000, seed=3), growth.predict(n=1000, seed=3)
    x = growth.sample(1000, seed=3)
    runs = [logistic(row[:2]) for row in x]
    assert set(bands) == set(drawn) == {"count", "half"}
    assert drawn["count"].shape == (1000, 15)
    assert drawn["half"].shape == (1000,)
    for key in ("count", "half"):
        true = np.stack([run[key] for run in runs])
        exact = np.quantile(true, Q, axis=0)
        assert (np.abs(bands[key] - exact) < 0.05 * (exact[-1] - exact[0])).all()
        assert (np.sqrt(np.mean((drawn[key] - true) ** 2, axis=0)) < 0.05 * true.std(axis=0)).all()
    assert growth.emulator.error < 0.05


def test_derived_quantities_of_a_curved_simulator_against_runs_of_it(growth):
    def latest(output, rate):
        return np.array([output["count"][-1], output["half"] * rate])

    found = growth.derived(latest, n=1000, seed=3)
    true = np.stack([latest(logistic(row[:2]), row[0]) for row in growth.sample(1000, seed=3)])
    np.testing.assert_allclose(found.mean, true.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(found.sd, true.std(axis=0), rtol=0.02)
    assert found.samples.shape == (1000, 2)
    assert found.quantiles([0.1, 0.9]).shape == (2, 2)
    assert found.summary().names == ("latest[0]", "latest[1]")


def test_the_space_in_which_the_output_is_smoother_is_taken():
    """Towards the edge of a box it is smooth in the parameters, of any size; over decades in their logarithms."""
    box = infer(lambda x: 1e14 * np.array([x[0] + x[1], 1e14 * x[0] * x[1]]), lambda output: -5.0 * float(output[0]),
                {"a": (0, 3e-14), "b": (0, 3e-14)})  # fmt: skip
    decades = infer(np.log, lambda output: -0.5 * float(output @ output) / 9.0,
                    {"a": stats.lognorm(5.0), "b": stats.lognorm(5.0)})  # fmt: skip
    assert (box.emulator.standard, decades.emulator.standard) == (False, True)
    for found, sizes in ((box, lambda x: 1e14 * x.sum(axis=1)), (decades, lambda x: np.log(x[:, 0]))):
        drawn, exact = found.predict(seed=1)[:, 0], sizes(found.sample(1000, seed=1))
        assert np.sqrt(np.mean((drawn - exact) ** 2)) < 0.02 * exact.std()


def test_cheap_parameters_belong_to_their_samples(growth):
    x = growth.sample(500, seed=4)
    sigma = x[:, growth.names.index("sigma")]
    taken = []

    def noise(output, rng, **cheap):
        taken.append(cheap)
        return {"count": output["count"] + cheap["sigma"] * rng.standard_normal(15), "half": output["half"]}

    noisy, plain = growth.predict(n=500, seed=4, noise=noise), growth.predict(n=500, seed=4)
    assert [list(cheap) for cheap in taken] == [["sigma"]] * 500
    np.testing.assert_allclose([cheap["sigma"] for cheap in taken], sigma)
    residual = (noisy["count"] - plain["count"]) / sigma[:, None]
    assert residual.std() == pytest.approx(1.0, abs=0.05)
    np.testing.assert_array_equal(noisy["half"], plain["half"])
    ratio = growth.derived(lambda output, sigma: output["count"][-1] / sigma, n=500, seed=4)
    np.testing.assert_allclose(ratio.samples, plain["count"][:, -1] / sigma)
    rate = growth.derived(lambda output, **parameters: parameters["rate"], n=500, seed=4)
    np.testing.assert_array_equal(rate.samples, x[:, 0])


def test_answers_are_the_same_every_time(growth, tmp_path):
    np.testing.assert_array_equal(growth.predict(0.5)["count"], growth.predict([0.5])["count"][0])
    growth.save(tmp_path / "growth.basq")
    again = basq.Result.load(tmp_path / "growth.basq")
    np.testing.assert_array_equal(again.predict(Q)["count"], growth.predict(Q)["count"])


def test_outputs_of_a_store_are_read_when_they_are_needed(tmp_path):
    found = infer(lambda x: x * np.ones(2), lambda output: -0.5 * float(output @ output), {"a": (-3, 3)},
                  store=tmp_path / "run.sqlite", max_evals=24)  # fmt: skip
    assert found.predict(0.5).shape == (2,)


def test_a_run_without_outputs_says_what_to_do():
    plain = basq.infer(lambda x: -float(x @ x), {"a": (-2, 2)}, seed=1, max_evals=16, progress=False)
    for method in (plain.predict, plain.plot_predictive, lambda: plain.derived(np.sum)):
        with pytest.raises(InputError, match=r"no outputs.*basq\.Model\(simulate"):
            method()


def test_outputs_that_change_their_shape_name_the_calls():
    found = infer(lambda x: np.ones(2 if x[0] < 0.9 else 3) * x[0], lambda output: -float(output[0] ** 2),
                  {"a": (-1, 1)}, max_evals=24)  # fmt: skip
    strange = found.outputs.ids[found.observations.x[:, 0] >= 0.9]
    assert len(strange)
    with pytest.raises(InputError, match=rf"simulate does not always.*\(2,\) mostly.* calls? {strange[0]}\b"):
        found.predict()
    assert found.derived(lambda output: output[0]).samples.shape == (4000,)


def test_a_simulator_that_jumps_is_warned_about():
    found = infer(lambda x: np.array([x[0], float(np.sin(40.0 * x[0]) > 0.0)]), lambda output: -float(output[0] ** 2),
                  {"a": (-2, 2)}, max_evals=32)  # fmt: skip
    with pytest.warns(NumericsWarning, match=r"the output is known to \d+ % of its posterior spread"):
        assert found.emulator.error > 0.3
    with pytest.warns(NumericsWarning, match="jumps is known"):
        found.derived(lambda output: output[1], "jumps")
    assert found.derived(lambda output: output[0]).error < 0.01


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda r: r.predict([1.5]), "between 0 and 1"),
        (lambda r: r.predict(n=0), "positive whole number"),
        (lambda r: r.predict(noise=lambda output, rng, tau: output), "takes tau; besides output and rng"),
        (lambda r: r.predict(noise=lambda output, rng: 0.0), "noise returned a number"),
        (lambda r: r.derived(lambda output, tau: 0.0), "takes tau; besides the output"),
        (lambda r: r.derived(lambda output: output), "give a number or an array"),
        (lambda r: r.derived(lambda output: np.nan), "NaN or infinite numbers at every call"),
        (lambda r: r.derived(3.0), "give a function"),
        (lambda r: replace(r, standard_posterior=None).predict(), "no posterior"),
    ],
)
def test_wrong_arguments_are_told(growth, call, told):
    with pytest.raises(InputError, match=told):
        call(growth)


def test_an_error_of_the_users_function_says_where(growth):
    with pytest.raises(KeyError) as raised:
        growth.derived(lambda output: output["weight"])
    assert "at output 0" in raised.value.__notes__[0] or "at output 1" in raised.value.__notes__[0]
