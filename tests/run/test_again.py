"""Answers from the calls of a run: against runs from scratch, without one new simulation."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import basq
from basq.evaluation.call import Outcome
from basq.evaluation.calls import Calls
from basq.run.coverage import unexplored
from basq.run.past import joined

TIME = np.linspace(0.0, 5.0, 25)
PRIOR = {"a": stats.lognorm(1.0), "k": (0, 3)}
SIGMA = stats.halfcauchy(scale=0.5)
SIMULATED: list[np.ndarray] = []


def curve(x):
    """Absorption and elimination: the closed form of a two-compartment ODE."""
    return x[0] * (np.exp(-x[1] * TIME) - np.exp(-2.5 * TIME))


DATA = curve([2.0, 0.6]) + 0.1 * np.random.default_rng(3).standard_normal(len(TIME))


def simulate(x):
    SIMULATED.append(x)
    return curve(x)


def _column(value):
    return np.asarray(value)[..., None]


def gauss(output, sigma):
    z = (DATA - output) / _column(sigma)
    return np.sum(-0.5 * z**2 - np.log(_column(sigma)) - 0.5 * np.log(2 * np.pi), axis=-1)


def student(output, sigma, nu):
    sigma, nu = _column(sigma), _column(nu)
    log_norm = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - 0.5 * np.log(np.pi * nu) - np.log(sigma)
    return np.sum(log_norm - (nu + 1) / 2 * np.log1p(((DATA - output) / sigma) ** 2 / nu), axis=-1)


def offset(output, sigma, shift):
    return gauss(output + _column(shift), sigma)


def student4(output, sigma):
    return student(output, sigma, 4.0)


def shifted(output, shift):
    return offset(output, 0.1, shift)


def far(output, sigma):
    """The same noise, and data that lie elsewhere."""
    return gauss(output - 4.0, sigma)


def plain(x):
    SIMULATED.append(x)
    return float(gauss(curve(x), 0.1))


def other(x):
    return -float(np.sum(x**2))


MODEL = basq.Model(simulate, gauss, PRIOR, cheap={"sigma": SIGMA})


@pytest.fixture(scope="module")
def runs():
    return [basq.infer(MODEL, seed=seed, progress=False) for seed in range(8)]


@pytest.fixture(scope="module")
def first(runs):
    return well_explored(runs)


@pytest.fixture(scope="module")
def first_plain():
    return well_explored([basq.infer(plain, PRIOR, seed=seed, progress=False) for seed in range(8)])


def well_explored(runs):
    """Of some runs the one that has looked for other modes most: others want some calls more for the answers below."""
    return max(runs, key=lambda run: run.observations.explores.sum())


@pytest.fixture(autouse=True)
def _count():
    SIMULATED.clear()


def agrees(result, truth):
    sd = np.hypot(result.log_evidence_std, truth.log_evidence_std)
    return abs(result.log_evidence - truth.log_evidence) < 3.0 * sd


def test_with_nothing_changed_the_answer_is_the_same(first):
    again = first.again()
    assert (again.log_evidence, again.log_evidence_std) == (first.log_evidence, first.log_evidence_std)
    assert again.message == first.message
    assert np.array_equal(again.mean, first.mean)
    assert not SIMULATED


LIKELIHOODS = {
    "gauss": {"cheap": {"sigma": stats.halfnorm(scale=0.3)}},
    "student4": {"log_likelihood": student4},
    "shifted": {"log_likelihood": shifted, "cheap": {"shift": stats.norm(0.0, 0.3)}},
    "student": {"log_likelihood": student, "cheap": {"sigma": SIGMA, "nu": stats.gamma(2.0, scale=10.0)}},
    "offset": {"log_likelihood": offset, "cheap": {"sigma": SIGMA, "shift": stats.norm(0.0, 0.3)}},
}
SLOW = ("student", "offset")
PRIORS = {
    "wide": {"a": stats.lognorm(2.0), "k": (0, 3)},
    "narrow": {"a": stats.lognorm(0.5)},
    "elsewhere": {"a": stats.lognorm(0.1, scale=2.0)},
    "other kinds": {"a": stats.norm(2.0, 1.0), "k": stats.lognorm(1.0)},
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in LIKELIHOODS])
def test_other_likelihoods(first, name):
    change = LIKELIHOODS[name]
    again = first.again(**change)
    assert not SIMULATED
    assert again.converged
    cheap = change.get("cheap", {"sigma": SIGMA})
    assert again.names == ("a", "k", *cheap)
    model = basq.Model(simulate, change.get("log_likelihood", gauss), PRIOR, cheap=cheap)
    scratch = basq.infer(model, seed=2, progress=False)
    assert agrees(again, scratch)
    sd = np.sqrt(np.diag(scratch.cov))
    assert (np.abs(again.mean - scratch.mean) < 0.3 * sd).all()


@pytest.mark.parametrize("name", PRIORS)
def test_other_priors(runs, name):
    """Some runs want a few calls more, and say so; their answers are right all the same."""
    answers = [run.again(prior=PRIORS[name]) for run in runs]
    assert not SIMULATED
    assert sum(again.converged for again in answers) >= len(runs) // 2
    scratch = basq.infer(replace(MODEL, prior=PRIOR | PRIORS[name]), seed=2, progress=False)
    assert all(agrees(again, scratch) for again in answers)
    assert all(again.converged or "calls are missing" in again.why for again in answers)


def test_other_priors_of_a_plain_run(first_plain):
    again = first_plain.again(prior={"a": stats.lognorm(2.0)})
    assert not SIMULATED
    assert again.converged
    assert agrees(again, basq.infer(plain, PRIOR | {"a": stats.lognorm(2.0)}, seed=2, progress=False))


def test_the_prior_of_a_cheap_parameter(first):
    cheap = {"sigma": stats.halfnorm(scale=0.3)}
    assert first.again(prior=cheap).log_evidence == first.again(cheap=cheap).log_evidence


def test_no_cheap_parameter(first):
    again = first.again(log_likelihood=lambda output: float(gauss(output, 0.1)), cheap={})
    assert again.names == ("a", "k")
    assert again.converged


def test_far_from_what_was_explored_it_is_not_converged_and_can_go_on(first, tmp_path):
    again = first.again(log_likelihood=far)
    assert again.status is basq.Status.NOT_CONVERGED
    assert not again.sound
    assert "lies outside what was explored" in again.why
    assert "calls are missing: go on with again(..., max_evals=" in again.why
    assert not SIMULATED
    store = tmp_path / "run.sqlite"
    on = first.again(log_likelihood=far, max_evals=300, store=store, progress=False)
    assert on.converged
    assert on.n_evals == first.n_evals + len(SIMULATED)
    assert len(on.outputs) == on.n_evals
    model = MODEL.with_likelihood(far, cheap={"sigma": SIGMA})
    assert agrees(on, basq.infer(model, seed=2, progress=False))
    SIMULATED.clear()
    resumed = basq.infer(model, store=store, progress=False)
    assert resumed.log_evidence == on.log_evidence
    assert not SIMULATED


def test_a_wider_prior_that_was_not_explored_is_said_so(first):
    wide = {"k": (0, 6)}
    again = first.again(prior=wide)
    assert not again.converged
    assert "of the new prior lies outside what was explored" in again.why
    assert again.log_evidence == pytest.approx(first.log_evidence - np.log(2.0), abs=0.1)
    assert not SIMULATED
    on = first.again(prior=wide, max_evals=300, progress=False)
    assert on.converged
    assert 0 < len(SIMULATED) < first.n_evals
    assert any(x[1] > 3.0 for x in SIMULATED)


def test_going_on_is_what_the_run_would_have_done():
    short = basq.infer(MODEL, seed=1, max_evals=64, progress=False)
    on = short.again(max_evals=96, progress=False)
    whole = basq.infer(MODEL, seed=1, max_evals=96, progress=False)
    assert np.array_equal(on.observations.x, whole.observations.x)


def test_calls_outside_the_new_support_are_left_out(first):
    again = first.again(prior={"k": (0, 1)})
    assert again.n_evals == int((first.observations.x[:, 1] <= 1.0).sum())
    assert again.log_evidence == pytest.approx(first.log_evidence + np.log(3.0), abs=0.1)


def test_going_on_with_a_plain_run(first_plain):
    wide = {"k": (0, 6)}
    on = first_plain.again(prior=wide, log_likelihood=plain, max_evals=300, progress=False)
    assert on.converged
    assert on.n_evals == first_plain.n_evals + len(SIMULATED)


def test_outputs_that_the_likelihood_failed_on_come_back():
    def picky(output, sigma):
        if output.max() > 1.5:
            raise ValueError("too high")
        return gauss(output, sigma)

    run = basq.infer(replace(MODEL, log_likelihood=picky), seed=1, max_evals=48, progress=False)
    again = run.again(log_likelihood=gauss)
    assert run.n_failed > 0
    assert again.n_failed == 0
    assert again.n_evals == run.n_evals + run.n_failed


def test_values_without_an_output_are_left_out_and_said_so(first):
    x = first.observations.x[:5, :2]
    known = MODEL.with_likelihood(lambda output: gauss(output, 0.1))  # a value says nothing about cheap parameters
    run = basq.infer(known, seed=1, max_evals=48, evaluations=(x, np.full(5, -50.0)), progress=False)
    again = run.again(log_likelihood=far, cheap=MODEL.cheap)
    assert again.n_evals == run.n_evals - 5
    assert "5 values without an output were left out" in again.why


def test_saved_and_pickled(first, tmp_path):
    cheap = {"sigma": stats.halfnorm(scale=0.3)}
    first.save(tmp_path / "result")
    wanted = first.again(cheap=cheap).log_evidence
    assert pickle.loads(pickle.dumps(first)).again(cheap=cheap).log_evidence == wanted
    loaded = basq.Result.load(tmp_path / "result")  # which holds no functions
    assert loaded.again(cheap=cheap, model=MODEL).log_evidence == wanted
    assert loaded.again(cheap=cheap, log_likelihood=MODEL.log_likelihood).log_evidence == wanted
    with pytest.raises(basq.InputError, match="give log_likelihood=, or model="):
        loaded.again(cheap=cheap)


def test_what_cannot_be_pickled_is_asked_for(first):
    lock = (i for i in ())  # generators cannot be pickled

    def held(output, sigma):
        assert lock is not None
        return gauss(output, sigma)

    run = basq.infer(replace(MODEL, log_likelihood=held), seed=1, max_evals=32, progress=False)
    copy = pickle.loads(pickle.dumps(run))
    assert copy.again(prior={"a": stats.lognorm(2.0)}).n_evals == 32
    with pytest.raises(basq.InputError, match="not known to this result"):
        copy.again(cheap={"sigma": stats.halfnorm(scale=0.3)})


def test_from_a_store(tmp_path):
    path = tmp_path / "run.sqlite"
    run = basq.infer(MODEL, seed=1, store=path, max_evals=64, progress=False)
    opened = basq.Sampler.open(path).result()
    SIMULATED.clear()
    wide, cheap = {"a": stats.lognorm(2.0)}, {"sigma": stats.halfnorm(scale=0.3)}
    assert opened.again(prior=wide).log_evidence == run.again(prior=wide).log_evidence
    assert opened.again(model=MODEL, cheap=cheap).log_evidence == run.again(cheap=cheap).log_evidence
    assert opened.again(log_likelihood=far).n_evals == 64
    with pytest.raises(basq.InputError, match="give log_likelihood=, or model="):
        opened.again(cheap=cheap)
    with pytest.raises(basq.InputError, match="give model="):
        opened.again(prior=wide, max_evals=100)
    assert not SIMULATED
    assert opened.again(model=MODEL, prior=wide, max_evals=80, progress=False).n_evals == 80


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": {"b": (0, 1)}}, "no parameter 'b'; the run has a, k, sigma"),
        ({"prior": basq.Prior({"a": (0, 1)})}, "has a; the run has a, k"),
        ({"cheap": {"tau": SIGMA}}, "tau"),
        ({"log_likelihood": student}, "nu"),
        ({"model": basq.Model(simulate, gauss, {"b": (0, 1)}, cheap={"sigma": SIGMA})}, "parameters b; the run has"),
        ({"model": gauss}, r"give a basq\.Model"),
        ({"prior": {"k": (50, 60)}}, "None of the"),
        ({"max_evals": 20}, "leaves no call"),
    ],
)
def test_wrong_names_are_refused(first, change, message):
    with pytest.raises(basq.InputError, match=message):
        first.again(progress=False, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_likelihood": plain}, "can change its prior only"),
        ({"cheap": {"sigma": SIGMA}}, "can change its prior only"),
        ({"max_evals": 300}, "needs log_likelihood="),
        ({"log_likelihood": other, "max_evals": 300}, "cannot be mixed"),
    ],
)
def test_plain_runs_have_no_outputs(first_plain, change, message):
    with pytest.raises(basq.InputError, match=message):
        first_plain.again(**change)


def test_a_result_without_calls_cannot_be_asked():
    nothing = basq.Result.nothing(basq.Prior(PRIOR), basq.Status.FAILED, "", ())
    with pytest.raises(basq.InputError, match="no calls"):
        nothing.again()


# --- families ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def family(first):
    return first.sensitivity(
        {"a": [stats.lognorm(0.5), stats.lognorm(2.0)], "sigma": [stats.halfnorm(scale=0.3)]}
        | {"k to 6": {"prior": {"k": (0, 6)}}, "far": {"log_likelihood": far}}
    )


def test_sensitivity(first, family):
    labels = ["as run", "a ~ lognorm(0.5)", "a ~ lognorm(2)", "sigma ~ halfnorm(scale=0.3)", "k to 6", "far"]
    assert [row.label for row in family] == labels
    wide = family["a ~ lognorm(2)"]
    assert wide.log_bayes_factor == wide.log_evidence - first.log_evidence
    assert wide.mean["k"] == pytest.approx(first.mean[1], abs=0.02)
    assert family["k to 6"].status is basq.Status.NOT_CONVERGED
    assert family.results["far"].n_evals == first.n_evals


def test_sensitivity_for_people(family):
    text = str(family)
    assert text.splitlines()[0].split() == ["log", "Z", "ln", "B", "a", "k", "sigma", "status"]
    assert "far: Not converged" in text
    frame = family.to_pandas()
    assert frame.loc["a ~ lognorm(2)", "log_bayes_factor"] == family["a ~ lognorm(2)"].log_bayes_factor
    assert list(frame["status"])[-1] == "not converged"
    figure = family.plot()
    assert [axis.get_xlabel() for axis in figure.axes] == ["log Z ± 2 sd", "a ± sd", "k ± sd", "sigma ± sd"]
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give {label"),
        ({"b": [(0, 1)]}, "'b' has"),
        ({"wide": {"priors": {}}}, "allowed are a dict of log_likelihood, cheap, prior, model"),
        ({"as run": {}}, "choose another one"),
    ],
)
def test_strange_families_are_refused(first, given, message):
    with pytest.raises(basq.InputError, match=message):
        first.sensitivity(given)


def test_members_of_one_name_are_told_apart(first):
    family = first.sensitivity({"k": [(0, 2.5), (0, 2.5)]})
    assert [row.label for row in family][1:] == ["k ~ uniform(0, 2.5)", "k ~ uniform(0, 2.5) (2)"]
    with pytest.raises(basq.InputError, match="No 'wide' in this family"):
        family["wide"]


# --- what calls are worth ---------------------------------------------------------------------------------------------


def calls_at(prior, n):
    u = prior.measure.sample_quasi(n, np.random.default_rng(0))
    return Calls(np.concatenate([np.zeros((n, 5)), prior.from_standard(u), u], axis=1))


def test_what_is_explored():
    old = basq.Prior({"a": (0, 1), "b": stats.norm(0, 1)})
    calls = calls_at(old, 48)
    assert unexplored(old, old, calls) == pytest.approx(0.1, abs=0.03)
    assert unexplored(old, basq.Prior({"a": (0.4, 0.6), "b": stats.norm(0, 0.1)}), calls) < 0.05
    assert unexplored(old, basq.Prior({"a": (0, 4), "b": stats.norm(0, 1)}), calls) > 0.5
    assert unexplored(old, basq.Prior({"a": (0, 1), "b": stats.norm(10, 1)}), calls) > 0.9


def test_a_prior_without_an_inverse_can_be_the_old_one():
    old = basq.Prior.from_transform(lambda c: np.array([c[0] + c[1], c[0] - c[1]]), names=["a", "b"])
    new = basq.Prior({"a": (0, 2), "b": (-1, 1)})
    assert unexplored(old, new, calls_at(old, 48)) < 0.5


def test_the_first_steps_make_a_first_model():
    def step(n):
        return Calls(np.zeros((n, 7))), [Outcome(0.0)] * n

    assert [len(c) for c, _ in joined([step(0), step(3), step(0), step(4), step(2), step(0), step(5)], 6)] == [7, 2, 5]
