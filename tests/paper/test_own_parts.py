"""A model, a kernel and a proposal that basq has never heard of."""

import pickle
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import cloudpickle
import numpy as np
import pytest

import basq
from basq.errors import AbsentError, InputError
from basq.gp.kernels.base import Stationary
from basq.gp.kernels.stationary import RBF, Matern52, RationalQuadratic
from basq.paper import Candidates, Paper, Surrogate
from basq.paper.blocks import Blocks, constant
from basq.paper.models import Vanilla

PROBLEM = basq.problems.mixture(2)
SMALL = {"n_candidates": 1000, "n_nystrom": 60}


def run(problem=PROBLEM, max_evals=32, **options):
    return basq.infer(
        problem.log_likelihood,
        problem.prior,
        method=Paper(**{**SMALL, **options}),
        batch_size=8,
        max_evals=max_evals,
        dlogz=0.0,
        vectorized=True,
        seed=1,
        progress=False,
    )


def same(a, b):
    np.testing.assert_array_equal(a.observations.x, b.observations.x)
    assert (a.log_evidence, a.log_evidence_std) == (b.log_evidence, b.log_evidence_std)
    np.testing.assert_array_equal(a.sample(50, seed=1), b.sample(50, seed=1))


# --- models -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exponential(Surrogate):
    """ℓ = exp(process) − shift, with its exact moments; it knows no integral."""

    SHIFT: ClassVar[float] = 0.05

    @classmethod
    def fit(cls, data, train, previous, measure, rng):
        noise = data.noise / (data.values + cls.SHIFT)
        return cls(train(data.u, np.log(data.values + cls.SHIFT), previous and previous.gp, noise))

    def mean(self, p):
        return np.exp(p.mean + 0.5 * p.var) - self.SHIFT

    def var(self, p):
        return np.exp(2.0 * p.mean + p.var) * np.expm1(p.var)

    def cov(self, p, q):
        a, b = np.exp(p.mean + 0.5 * p.var), np.exp(q.mean + 0.5 * q.var)
        return a[:, None] * np.expm1(self.gp.cov(p, q)) * b


@dataclass(frozen=True)
class Plain(Surrogate):
    """Vanilla once more, with its closed forms."""

    def mean(self, p):
        return p.mean

    def var(self, p):
        return p.var

    def cov(self, p, q):
        return self.gp.cov(p, q)

    @property
    def has_closed_form(self):
        return self.gp.kernel.gaussian

    def evidence(self, measure):
        b = Blocks(self.gp, measure)
        return self.gp.mean + b.z @ self.gp.weights, b.double(b.kernel) - b.z @ self.gp.precision @ b.z

    def expansion(self, measure):
        b = Blocks(self.gp, measure)
        for single, mu, sigma in zip(b.singles, measure.means, measure.covs, strict=True):
            yield [constant(self.gp.mean, mu, sigma), single.times(self.gp.weights)]


@dataclass(frozen=True)
class Capped:
    """A model with a setting: likelihoods are cut at a level first."""

    level: float
    needs_gaussian: bool = False

    def fit(self, data, train, previous, measure, rng):
        values = np.minimum(data.values, self.level)
        return Plain(train(data.u, values, previous.gp if previous else None, data.noise))


@pytest.mark.parametrize("selection", ["recombination", "local-penalisation"])
def test_a_model_without_closed_forms(selection):
    found = run(model=Exponential, mean="constant", selection=selection, max_evals=64)
    assert found.n_evals == 64
    assert found.log_evidence == pytest.approx(PROBLEM.log_evidence, abs=0.1)
    assert found.log_evidence_std > 0.0
    assert found.sample(100, seed=1).shape == (100, 2)
    np.testing.assert_allclose(found.mean, run(model="wsabi-m", mean="constant", max_evals=64).mean, atol=0.2)


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_a_model_with_a_setting_and_closed_forms(kernel):
    own, ours = run(model=Capped(2.0), kernel=kernel), run(model="vanilla", kernel=kernel)
    np.testing.assert_array_equal(own.observations.x, ours.observations.x)
    assert own.log_evidence == pytest.approx(ours.log_evidence, abs=1e-6)
    assert own.log_evidence_std == pytest.approx(ours.log_evidence_std, rel=1e-4)
    np.testing.assert_array_equal(own.sample(50, seed=1), ours.sample(50, seed=1))
    assert run(model=Capped(0.5), kernel=kernel).log_evidence < own.log_evidence - 0.01


def test_a_model_of_the_table_may_be_given_as_an_object():
    same(run(model=Vanilla), run(model="vanilla"))


class Shapeless:
    """No class method: an object of it is needed."""

    needs_gaussian = False

    def fit(self, data, train, previous, measure, rng):
        return train(data.u, data.values, None, data.noise)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (object(), r"model=builtins.object\(\).*'wsabi-l'.*lacks needs_gaussian and fit"),
        (Plain, "Plain.*lacks fit"),
        (lambda data: None, "lambda.*lacks needs_gaussian and fit"),
        (Shapeless, r"takes other arguments; give an object, .*Shapeless\(\), not its class"),
        (["wsabi-l"], r"\['wsabi-l'\].*lacks"),
    ],
)
def test_what_is_no_model_is_refused_at_once(model, said):
    with pytest.raises(InputError, match=said):
        Paper(model=model)


def test_a_model_that_gives_no_surrogate_is_refused():
    with pytest.raises(InputError, match=r"Shapeless\(\)\): fit gave a .*GP, which is no basq.paper.Surrogate"):
        run(model=Shapeless())


def test_a_model_may_need_a_gaussian_kernel():
    needy = Capped(1.0, needs_gaussian=True)
    assert run(model=needy, max_evals=16).n_evals == 16
    with pytest.raises(InputError, match=r"model=Capped\(level=1.0.*kernel='matern32'.*RBF"):
        Paper(model=needy, kernel="matern32")


# --- kernels ----------------------------------------------------------------------------------------------------------


class FixedShape(Stationary):
    """κ = 1/(1 + r²/2): a rational quadratic whose shape is not learned."""

    def profile(self, r2):
        k = 1.0 / (1.0 + 0.5 * r2)
        return k, k * k


class Smooth(Stationary):
    """The RBF once more, as slow as it can be."""

    gaussian = True

    def profile(self, r2):
        k = np.exp(-0.5 * r2)
        return k, k


def wide(variance, lengthscale):
    return RationalQuadratic(variance, 3.0 * lengthscale)


@pytest.mark.parametrize("model", ["vanilla", "wsabi-m"])
@pytest.mark.parametrize("options", [{}, {"selection": "local-penalisation"}, {"proposal": "igb"}])
def test_a_kernel_of_ones_own(model, options):
    found = run(kernel=FixedShape, model=model, mean="constant", **options)
    assert found.log_evidence == pytest.approx(PROBLEM.log_evidence, abs=0.3)


@pytest.mark.parametrize("model", ["vanilla", "wsabi-l", "wsabi-m", "bbq"])
def test_a_gaussian_kernel_of_ones_own_has_the_closed_forms(model):
    ours, own = run(model=model, max_evals=8), run(model=model, kernel=Smooth, max_evals=8)
    assert own.log_evidence == pytest.approx(ours.log_evidence, abs=1e-3)
    assert own.log_evidence_std == pytest.approx(ours.log_evidence_std, rel=0.02)


@pytest.mark.parametrize(("kernel", "name"), [(Matern52, "matern52"), (partial(RBF, isotropic=True), "rbf-iso")])
def test_kernels_of_the_table_may_be_given_as_factories(kernel, name):
    same(run(kernel=kernel), run(kernel=name))


def test_a_function_may_make_the_kernel():
    assert run(kernel=wide, max_evals=16).n_evals == 16


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (3.0, r"kernel=3.0\).*'rbf'.*this is none"),
        (object, r"kernel=builtins.object\).*raised TypeError"),
        (
            lambda variance, lengthscale: variance,
            "what this one makes lacks variance, lengthscale, theta.*with_gradient",
        ),
        (RBF(1.0, np.ones(2)), "a kernel already; give basq.gp.kernels.stationary.RBF"),
        (Stationary, "raised TypeError.*abstract"),
    ],
)
def test_what_makes_no_kernel_is_refused_at_once(kernel, said):
    with pytest.raises(InputError, match=said):
        Paper(kernel=kernel)


class NoGradient:
    """A kernel without a gradient in its input."""

    def __init__(self, variance, lengthscale):
        self._kernel = RBF(variance, lengthscale)

    def __getattr__(self, name):
        if name in ("input_gradient", "_kernel"):
            raise AttributeError(name)
        return getattr(self._kernel, name)

    def __call__(self, a, b):
        return self._kernel(a, b)


def test_what_a_kernel_cannot_do_is_said_at_once():
    with pytest.raises(InputError, match=r"'fourier', kernel=.*FixedShape\).*sample_frequencies"):
        Paper(kernel=FixedShape, test_functions="fourier")
    with pytest.raises(InputError, match=r"'local-penalisation', kernel=.*NoGradient\).*input_gradient"):
        Paper(kernel=NoGradient, selection="local-penalisation")
    assert Paper(kernel=NoGradient).kernel is NoGradient


# --- proposals --------------------------------------------------------------------------------------------------------


def half_as_wide(target, measure, r, n, rng):
    """Half of the candidates from a narrower Gaussian about the prior's centre."""
    x = np.concatenate([measure.sample(n - n // 2, rng), 0.5 * measure.sample(n // 2, rng)])
    narrow = 2.0 ** x.shape[1] * np.exp(measure.log_pdf(2.0 * x) - measure.log_pdf(x))
    p = target.surrogate.gp.predict(x)
    weights = target.interest(p.mean) / (0.5 + 0.5 * narrow)
    return Candidates(p, weights / weights.sum(), sampler="narrow")


@dataclass(frozen=True)
class Scaled:
    """A proposal with a setting."""

    factor: float

    def __call__(self, target, measure, r, n, rng):
        x = self.factor * measure.sample(n, rng)
        log_g = measure.log_pdf(x / self.factor) - x.shape[1] * np.log(self.factor)
        p = target.surrogate.gp.predict(x)
        weights = target.interest(p.mean) * np.exp(measure.log_pdf(x) - log_g)
        return Candidates(p, weights / weights.sum())


@pytest.mark.parametrize("proposal", [half_as_wide, Scaled(1.5)])
@pytest.mark.parametrize("selection", ["recombination", "herding", "samples"])
def test_a_proposal_of_ones_own(proposal, selection):
    found = run(proposal=proposal, selection=selection, model="wsabi-m", mean="constant")
    assert found.log_evidence == pytest.approx(PROBLEM.log_evidence, abs=0.3)
    assert found.history[-1].info["sampler"] == ("narrow" if proposal is half_as_wide else "none")


@pytest.mark.parametrize(
    ("proposal", "said"),
    [
        (0.5, r"proposal=0.5\).*'ivr'.*\(target, measure, r, n, rng\).*this is none"),
        (lambda target, n: None, "takes other arguments"),
        (Scaled, "takes other arguments"),
    ],
)
def test_what_is_no_proposal_is_refused_at_once(proposal, said):
    with pytest.raises(InputError, match=said):
        Paper(proposal=proposal)


# --- the configuration ------------------------------------------------------------------------------------------------

OWN = Paper(model=Exponential, kernel=FixedShape, proposal=half_as_wide)


def test_the_configuration_shows_what_was_given():
    text = repr(OWN)
    assert f"model={__name__}.Exponential, " in text
    assert f"kernel={__name__}.FixedShape, " in text
    assert f"proposal={__name__}.half_as_wide, " in text
    assert "0x" not in text
    assert "model=Capped(level=0.5, needs_gaussian=False)" in repr(Paper(model=Capped(0.5)))
    assert "isotropic=True" in repr(Paper(kernel=partial(RBF, isotropic=True)))
    assert repr(Paper()).startswith("Paper(model='wsabi-l', mean='zero', kernel='rbf', proposal='ivr', r=0.5, ")


@pytest.mark.parametrize("method", [Paper(), OWN, Paper(model=Capped(0.5), proposal=Scaled(2.0))])
def test_the_configuration_is_pickled_by_name_and_can_be_a_key(method):
    for packed in (pickle.dumps(method), cloudpickle.dumps(method)):
        again = pickle.loads(packed)
        assert again == method
        assert repr(again) == repr(method)
        assert {method: 1}[again] == 1


def test_a_run_with_parts_of_ones_own_is_resumed_from_its_store(tmp_path):
    options = {"method": OWN, "batch_size": 8, "seed": 1, "progress": False, "vectorized": True, "dlogz": 0.0}
    whole = basq.infer(PROBLEM.log_likelihood, PROBLEM.prior, max_evals=24, **options)
    store = tmp_path / "run.sqlite"
    basq.infer(PROBLEM.log_likelihood, PROBLEM.prior, max_evals=16, store=store, **options)
    found = basq.infer(PROBLEM.log_likelihood, PROBLEM.prior, max_evals=24, store=store, **options)
    np.testing.assert_array_equal(found.observations.x, whole.observations.x)
    with pytest.raises(AbsentError, match=r"made with the method Paper\(.*Exponential.* give it again, as .*method=…"):
        basq.Sampler.open(store)
    with pytest.raises(basq.StoreError, match="is of another problem: it has method="):
        basq.Sampler.open(store, method="paper")
    assert basq.Sampler.open(store, method=OWN).result().log_evidence == pytest.approx(whole.log_evidence)
