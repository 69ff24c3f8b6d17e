"""What users may rely on when they give a model, and what they are told when something is wrong with it."""

import re

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import basq
from helpers.models import CHEAP, DATA, OPTIONS, PRIOR, T, gauss, gauss_many, infer, line, model


def same(one, other):
    np.testing.assert_array_equal(one.observations.x, other.observations.x)
    np.testing.assert_array_equal(one.observations.log_likelihood, other.observations.log_likelihood)
    assert one.log_evidence == other.log_evidence
    np.testing.assert_array_equal(one.sample(100, seed=1), other.sample(100, seed=1))


def integral(output):
    """The likelihood of an output, integrated over sigma by other means."""
    top = max(gauss(output, s) for s in np.geomspace(0.01, 100.0, 400))
    value, _ = quad(lambda s: np.exp(gauss(output, s) - top) * CHEAP["sigma"].pdf(s), 0.0, 50.0, limit=500)
    return np.log(value) + top


# --- what a run gives -------------------------------------------------------------------------------------------------


def test_the_values_are_integrals_and_the_result_is_over_all_parameters():
    found = infer(model(), max_evals=160)
    assert found.converged
    assert found.names == ("a", "b", "sigma")
    assert found.cheap == ("sigma",)
    assert found.expensive == ("a", "b")
    assert found.sample(10).shape == (10, 3)
    assert len(found.outputs) == found.n_evals
    for i, output in enumerate(found.outputs.load()[:5]):
        np.testing.assert_array_equal(output, line(found.observations.x[i, :2]))
        assert found.observations.log_likelihood[i] == pytest.approx(integral(output), abs=0.01)
    noise = found.summary()["sigma"]
    assert noise.low < 0.2 < noise.high


def test_a_likelihood_that_takes_many_values_gives_the_same_run():
    one, many = infer(model(log_likelihood=gauss)), infer(model(log_likelihood=gauss_many))
    np.testing.assert_allclose(one.observations.x, many.observations.x, rtol=1e-6)
    assert one.log_evidence == pytest.approx(many.log_evidence, abs=1e-6)


@pytest.mark.parametrize("cheap", [CHEAP, {**CHEAP, "offset": stats.norm(0.0, 0.1)}])
def test_the_same_seed_gives_the_same_run_whoever_evaluates(cheap):
    def log_likelihood(output, sigma, offset=0.0):
        return -0.5 * ((DATA - output - np.transpose([offset])) ** 2).sum(axis=-1) / sigma**2 - 20.0 * np.log(sigma)

    given = model(log_likelihood=log_likelihood, cheap=cheap)
    same(infer(given, max_evals=24), infer(given, max_evals=24, pool=2))


def test_outputs_may_be_dicts_numbers_and_lists():
    plain = infer(model())
    named = infer(model(lambda x: {"curve": line(x), "n": 3}, lambda output, sigma: gauss(output["curve"], sigma)))
    assert named.log_evidence == pytest.approx(plain.log_evidence, abs=1e-6)
    first = named.outputs.load()[0]
    np.testing.assert_array_equal(first["curve"], line(named.observations.x[0]))
    assert first["n"] == 3
    same(infer(model(lambda x: line(x).tolist())), plain)
    number = infer(model(lambda x: float(x[0]), lambda output, sigma: gauss(output + 0.0 * T, sigma)))
    assert number.outputs.load()[0] == number.observations.x[0, 0]


def test_a_simulator_may_take_names():
    same(infer(model(lambda p: p["a"] + p["b"] * T, pass_dict=True)), infer(model()))


def test_what_is_kept_is_what_the_likelihood_gets():
    found = infer(model(lambda x: {"curve": line(x), "waste": np.zeros(1000)}, keep=lambda output: output["curve"]))
    same(found, infer(model()))
    assert found.outputs.load()[0].shape == (20,)


def test_a_model_needs_no_cheap_parameters():
    found = infer(basq.Model(line, lambda output: gauss(output, 0.2), PRIOR))
    plain = basq.infer(lambda x: gauss(line(x), 0.2), PRIOR, **OPTIONS)
    same(found, plain)
    assert found.cheap == ()
    assert found.names == ("a", "b")
    np.testing.assert_array_equal(found.outputs.load()[0], line(found.observations.x[0]))


def test_parameters_may_have_any_name():
    def log_likelihood(output, **cheap):
        return gauss(output, cheap["noise (sd)"])

    assert infer(model(log_likelihood=log_likelihood, cheap={"noise (sd)": CHEAP["sigma"]})).names[-1] == "noise (sd)"


# --- failures ---------------------------------------------------------------------------------------------------------


def failing(x):
    if x[0] > 2.0:
        raise RuntimeError("diverged")
    return line(x)


def picky(output, sigma):
    if output[0] > 2.0:
        raise RuntimeError("no such curve")
    return gauss_many(output, sigma)


def test_a_simulator_that_fails_is_told_from_a_likelihood_that_fails():
    simulator, likelihood = infer(model(failing)), infer(model(log_likelihood=picky))
    pattern = r"simulate raised RuntimeError: diverged \(test_model.py, line \d+\) at a = 2.\d+, b = -?\d.\d+\."
    assert all(re.fullmatch(pattern, failure.error) for failure in simulator.failures)
    pattern = (
        r"log_likelihood raised RuntimeError: no such curve \(test_model.py, line \d+\) at the output at a = 2.*\."
    )
    assert all(re.fullmatch(pattern, failure.error) for failure in likelihood.failures)
    assert simulator.n_failed == likelihood.n_failed > 0
    assert "def picky" not in simulator.failures[0].traceback
    assert "picky" in likelihood.failures[0].traceback
    assert len(likelihood.failures[0].x) == 2


@pytest.mark.parametrize("pool", [None, 2])
def test_an_output_on_which_the_likelihood_fails_is_stored_and_not_simulated_again(pool, tmp_path):
    calls = tmp_path / "calls"

    def counted(x):
        with calls.open("a") as file:
            file.write("x")
        return line(x)

    found = infer(model(counted, picky), store=tmp_path / "run.sqlite", retries=3, pool=pool)
    sampler = basq.Sampler.open(tmp_path / "run.sqlite")
    failed = found.failures[0]
    assert failed.attempts == 1
    assert len(calls.read_text()) == 40
    assert len(sampler.store.with_outputs()) == 40
    output = basq.outputs.outputs.unpack(sampler.store.outputs(np.array([failed.id]))[0])[0]
    np.testing.assert_array_equal(output, line(failed.x))


def test_a_simulator_that_fails_is_tried_again():
    tried = {}

    def flaky(x):
        tried[x.tobytes()] = tried.get(x.tobytes(), 0) + 1
        if tried[x.tobytes()] == 1 and x[0] > 1.0:
            raise RuntimeError("no licence")
        return line(x)

    found = infer(model(flaky), retries=1)
    assert found.n_failed == 0
    same(found, infer(model()))


def test_failures_can_count_as_zero_or_end_the_run():
    found = infer(model(log_likelihood=picky), on_error="zero")
    assert found.n_evals == 40
    assert len(found.outputs) == 40
    assert found.n_failed > 0
    assert np.isneginf(found.observations.log_likelihood[found.observations.x[:, 0] > 2.0]).all()
    with pytest.raises(basq.EvaluationError, match=r"^log_likelihood raised RuntimeError: no such curve"):
        infer(model(log_likelihood=picky), on_error="raise")


def test_a_likelihood_that_always_fails_is_mended_without_a_new_simulation(tmp_path):
    calls = []

    def counted(x):
        calls.append(x)
        return line(x)

    def broken(output, sigma):
        raise RuntimeError("not yet")

    path = tmp_path / "run.sqlite"
    with pytest.raises(basq.EvaluationError, match="All 16 calls have failed"):
        infer(model(counted, broken), store=path)
    found = infer(model(counted), store=path)
    assert len(calls) == found.n_evals == 40
    same(found, infer(model()))


def test_a_simulator_that_is_mended_is_called_again(tmp_path):
    def broken(output, sigma):
        raise RuntimeError("not yet")

    path = tmp_path / "run.sqlite"
    with pytest.raises(basq.EvaluationError):
        infer(model(lambda x: 1000.0 + line(x), broken), store=path)
    same(infer(model(), store=path), infer(model()))


def test_zero_likelihood_for_all_cheap_values():
    some = infer(model(log_likelihood=lambda output, sigma: gauss(output, sigma) if output[0] < 1.2 else -np.inf))
    zero = some.observations.x[:, 0] > 1.2
    assert zero.any()
    assert np.isneginf(some.observations.log_likelihood[zero]).all()
    assert some.outputs.draws()[int(np.argmax(zero))] is None
    assert some.sample(10).shape == (10, 3)
    none = infer(model(log_likelihood=lambda output, sigma: -np.inf))
    assert none.log_evidence == -np.inf
    assert "all 40 likelihood values so far are zero" in none.message
    assert none.names == ("a", "b", "sigma")


def test_time_that_is_over_is_not_blamed_on_the_likelihood():
    def slow(x):
        import time

        time.sleep(30.0 if x[0] > 2.0 else 0.0)
        return line(x)

    found = infer(model(slow), timeout=0.5, pool=2, max_evals=24)
    assert found.failures[0].error.startswith("The call took longer than timeout = 0.5 s at a = 2.")


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (object(), r"simulate returned object \(output\); allowed are arrays of numbers and dicts of them. Give keep="),
        (None, "simulate returned NoneType"),
        ([[1.0, 2.0], [3.0]], "simulate returned list"),
        ({"curve": object()}, r"simulate returned object \(output\['curve'\]\)"),
        (np.broadcast_to(0.0, (3000, 3000)), "simulate returned 69 MiB; at most 64 MiB are stored with a call"),
    ],
)  # fmt: skip
def test_outputs_that_cannot_be_stored(output, message):
    with pytest.raises(basq.EvaluationError, match=rf"All 16 calls have failed.*{message}.*, at a = "):
        infer(model(lambda x: output))


def test_a_likelihood_cannot_change_an_output():
    def hostile(output, sigma):
        output -= 1.0
        return gauss(output, sigma)

    with pytest.raises(basq.EvaluationError, match=r"log_likelihood raised ValueError: .*read-only"):
        infer(model(log_likelihood=hostile))


def test_a_simulator_may_give_the_same_array_again_and_again():
    buffer = np.empty(20)

    def reusing(x):
        buffer[:] = line(x)
        return buffer

    same(infer(model(reusing)), infer(model()))


def test_outputs_of_different_shapes_are_noted():
    found = infer(
        model(lambda x: np.append(line(x), 0.0) if x[0] > 2.0 else line(x), lambda o, sigma: gauss(o[:20], sigma))
    )
    assert found.notes == ("The simulator's outputs have different shapes: (20,) in 34 calls, (21,) in 6 calls.",)
    assert found.notes[0] in str(found)
    broken = infer(model(lambda x: line(x)[:-1] if x[0] > 2.0 else line(x)))
    assert "shapes (20,) (19,)" in broken.failures[0].error


def test_a_cheap_parameter_without_effect_is_noted():
    cheap = {**CHEAP, "nothing": (0.0, 1.0)}
    found = infer(model(log_likelihood=lambda output, sigma, nothing: gauss_many(output, sigma), cheap=cheap))
    assert found.notes == ("nothing has no visible effect: at every call its posterior is its prior.",)
    assert found.summary()["nothing"].mean == pytest.approx(0.5, abs=0.05)
    assert infer(model()).notes == ()


# --- wrong arguments --------------------------------------------------------------------------------------------------


BY_SAMPLES = basq.Prior.from_density(stats.norm(0.0, 1.0).logpdf, np.linspace(-2.0, 2.0, 50)[:, None])


def never(*_, **__):
    raise AssertionError("called")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, gauss, PRIOR, CHEAP), "simulate=1.0.: give a function"),
        ((never, None, PRIOR, CHEAP), "log_likelihood=None.: give a function"),
        ((never, gauss, PRIOR, CHEAP, 3), "keep=3.: give a function"),
        ((never, lambda output, s: 0.0, PRIOR, CHEAP), "by name, sigma; it takes s"),
        ((never, gauss, PRIOR), "of which there are none; it takes sigma"),
        ((never, lambda output: 0.0, PRIOR, CHEAP), "it takes nothing besides the output"),
        ((lambda x, y: 0.0, gauss, PRIOR, CHEAP), r"simulate\(x, y\) cannot be called with a point"),
        ((never, gauss, PRIOR, {"a": (0, 1)}), "a is both an expensive and a cheap parameter; choose one"),
        ((never, gauss, PRIOR, {"sigma": (0, np.inf)}), "improper"),
        ((never, gauss, PRIOR, {"sigma": stats.uniform(0, np.inf)}), "not a proper distribution"),
        ((never, gauss, PRIOR, {"sigma": "positive"}), "of type str; allowed are"),
        ((never, gauss, BY_SAMPLES, CHEAP), "known by samples only"),
    ],
)  # fmt: skip
def test_wrong_models_cost_no_simulation(arguments, message):
    with pytest.raises(basq.InputError, match=message):
        basq.Model(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": PRIOR}, "A Model has its prior"),
        ({"prior_transform": never, "n_dim": 2}, "A Model has its prior"),
        ({"vectorized": True}, "a Model has a pass_dict of its own"),
        ({"pass_dict": True}, "a Model has a pass_dict of its own"),
    ],
)
def test_wrong_options_cost_no_simulation(options, message):
    with pytest.raises(basq.InputError, match=message):
        infer(model(never), **options)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "log_likelihood returned nan at sigma = .*, at the output at a = "),
        (np.inf, "log_likelihood returned inf at sigma = "),
        (None, "log_likelihood returned None; it must return a number, at the output at a = "),
        ("a", "log_likelihood returned 'a'; it must return a number"),
        (1j, "log_likelihood returned 1j; it must return a number"),
        (True, "log_likelihood returned True; it must return a number"),
        (np.ma.masked, "log_likelihood returned masked; it must return a number"),
        (np.datetime64("2020-01-01"), "log_likelihood returned .*datetime64.*; it must return a number"),
        ("1.5", "log_likelihood returned '1.5'; it must return a number"),
        (DATA, r"log_likelihood returned array\(.*; it must return a number"),
    ],
)
def test_wrong_values_of_the_likelihood(value, message):
    with pytest.raises(basq.EvaluationError, match=message):
        infer(model(log_likelihood=lambda output, sigma: value))


# --- ask and tell -----------------------------------------------------------------------------------------------------


def test_outputs_are_told_and_added():
    sampler = basq.Sampler(model(), seed=1, batch_size=8, max_evals=40)
    while not sampler.verdict.stop:
        batch = sampler.ask()
        sampler.tell(batch, outputs=[line(x) for x in batch.x])
        sampler.learn()
    same(sampler.result(), infer(model()))
    sampler.add([[1.0, 0.5]], outputs=[line([1.0, 0.5])])
    result = sampler.result()
    assert result.n_evals == 41
    np.testing.assert_array_equal(result.outputs.load()[-1], line([1.0, 0.5]))


def test_given_values_say_nothing_about_cheap_parameters():
    x = np.random.default_rng(1).uniform(-3.0, 3.0, (20, 2))
    given = x, np.array([model().marginal(line(row), row).log_likelihood for row in x])
    sampler = basq.Sampler(model(), seed=1, evaluations=given)
    nothing = sampler.result()
    assert nothing.notes == ("No call has an output, so nothing is known about sigma.",)
    with pytest.raises(basq.InputError, match="no posterior"):
        nothing.sample(10)
    found = infer(model(), evaluations=given, max_evals=60)
    assert found.outputs.load()[:20] == [None] * 20
    assert found.sample(10).shape == (10, 3)


def test_values_and_outputs_are_not_mixed_up(tmp_path):
    path = tmp_path / "run.sqlite"
    sampler = basq.Sampler(model(), seed=1, store=path)
    batch = sampler.ask(4)
    with pytest.raises(basq.InputError, match="integrates over sigma at every call: give outputs=, not values"):
        sampler.tell(batch, np.zeros(4))
    with pytest.raises(basq.InputError, match="give outputs=, not values"):
        sampler.add([[0.0, 0.0]], [1.0])
    with pytest.raises(basq.InputError, match="4 calls and 3 outputs"):
        sampler.tell(batch, outputs=[line(x) for x in batch.x[:3]])
    opened = basq.Sampler.open(path)
    with pytest.raises(basq.InputError, match=r"open the run with Sampler.open\(path, model\)"):
        opened.tell(batch, outputs=[line(x) for x in batch.x])
    opened = basq.Sampler.open(path, model())
    opened.tell(batch.ids[:1], state="failed", error="spilled")
    opened.tell(batch.ids[1:], outputs=[line(x) for x in batch.x[1:]])
    assert opened.result().n_evals == 3
    with pytest.raises(basq.StoreError, match="holds values of another log-likelihood"):
        basq.Sampler.open(path, model(failing))
    with pytest.raises(basq.StoreError, match="cheap parameters"):
        basq.Sampler.open(path, model(cheap={"sigma": stats.halfcauchy(scale=2.0)}))
