"""The contract suites: what is ours passes them, and what breaks a clause is told which."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import basq
from basq.gp.kernels import KERNELS
from basq.gp.kernels.polynomial import Polynomial
from basq.gp.kernels.trend import TrendKernel
from basq.testing import check_kernel, check_method, check_pool

SCALES = np.array([0.6, 1.3, 2.1])


def paper(**options):
    return basq.Paper(**{"n_candidates": 2000, "n_nystrom": 50} | options)


# --- ours -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        basq.Auto(),
        paper(),
        paper(model="wsabi-m", mean="constant"),
        paper(model="vanilla", kernel="matern52", proposal="optimal"),
        paper(selection="samples", proposal="prior"),
        paper(selection="local-penalisation"),
        paper(kernel="rq", test_functions="fourier"),
        paper(recombination="lp", proposal="ub", factorised=False),
        paper(proposal="igb", noise="fit", selection="herding"),
    ],
    ids=repr,
)
def test_our_methods(method):
    check_method(method)


@pytest.mark.parametrize("name", KERNELS)
def test_our_kernels(name):
    check_kernel(KERNELS[name](1.7, np.full(3, 0.8) if name == "rbf-iso" else SCALES + 0.5))


@pytest.mark.parametrize("axes", [np.eye(3) + 0.2, np.empty((0, 3))], ids=["with bends", "without"])
def test_our_trend_kernel(axes):
    check_kernel(TrendKernel(SCALES, 1.7, np.array([0.4, 0.9, 0.3]), 0.8, axes))


@pytest.mark.parametrize("pool", [None, 1, 2])
def test_our_pools(pool):
    check_pool(pool)


def test_threads():
    with ThreadPoolExecutor(3) as pool:
        check_pool(pool)


def test_dask():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install basq[dask])")
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with distributed.Client(**options, protocol="inproc://") as client:
        check_pool(client)


# --- methods that break a clause --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Changed(basq.Paper):
    """The paper's method with something wrong."""

    n_candidates: int = 2000
    n_nystrom: int = 50


class NoSize(Changed):
    def initial_size(self, n_dim):
        return 2.5


class Stateful(Changed):
    def __repr__(self):
        return object.__repr__(self)


class ChangesValues(Changed):
    def fit(self, observations, prior, previous, rng):
        observations.log_likelihood[:] -= 1.0
        return super().fit(observations, prior, previous, rng)


def shifted(fitted, nats):
    if fitted.evidence is None:  # every value is zero
        return fitted
    return replace(fitted, evidence=replace(fitted.evidence, log_scale=fitted.evidence.log_scale + nats))


class GlobalNumbers(Changed):
    def fit(self, observations, prior, previous, rng):
        fitted = super().fit(observations, prior, previous, rng)
        return shifted(fitted, np.random.default_rng().random())


class NoFit(Changed):
    def fit(self, observations, prior, previous, rng):
        return observations


class Fails(Changed):
    def fit(self, observations, prior, previous, rng):
        raise ZeroDivisionError("by zero")


class TooFew(Changed):
    def select(self, fitted, batch_size, rng, *, cost_ratio, taken):
        batch = super().select(fitted, batch_size, rng, cost_ratio=cost_ratio, taken=taken)
        return replace(batch, u=batch.u[:1])


class Twice(Changed):
    def select(self, fitted, batch_size, rng, *, cost_ratio, taken):
        return basq.Batch(np.tile(rng.standard_normal(fitted.measure.n_dim), (batch_size, 1)))


class Ignores(Changed):
    def select(self, fitted, batch_size, rng, *, cost_ratio, taken):
        return basq.Batch(fitted.measure.sample_quasi(batch_size, np.random.default_rng(0)))


class WrongEvidence(Changed):
    def fit(self, observations, prior, previous, rng):
        fitted = super().fit(observations, prior, previous, rng)
        return shifted(fitted, 1.0)


BROKEN = {
    NoSize: r"initial_size\(1\) is a whole number of at least 1; seen: 2.5",
    Stateful: "repr of a method shows its options",
    ChangesValues: "fit changes none of its arguments; seen: other observations.log_likelihood",
    GlobalNumbers: "equal observations and random numbers give equal fits",
    NoFit: "its fit returned Observations, which is no subclass of basq.Fit",
    Fails: "fit to 48 values in 1-D must work; seen: ZeroDivisionError: by zero",
    TooFew: "select of 8 gives as many points; seen: 1",
    Twice: "select chooses different points",
    Ignores: "select chooses no point that is taken already; seen: a gap of 0",
    WrongEvidence: "a run on an easy problem gives log Z = -3.132 within 0.5",
}


@pytest.mark.parametrize("wrong", BROKEN, ids=lambda c: c.__name__)
def test_a_broken_method(wrong):
    with pytest.raises(AssertionError, match=BROKEN[wrong]):
        check_method(wrong())


# --- fits that break a clause -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers(basq.Fit):
    """Another fit, with some answers replaced."""

    inner: object
    said: dict

    def __getattribute__(self, name):
        said = object.__getattribute__(self, "said")
        own = name.startswith("__") or name in ("inner", "said")
        return said[name] if name in said else object.__getattribute__(self, name) if own else getattr(self.inner, name)

    def converged(self, dlogz):
        raise NotImplementedError


for answer in ("log_evidence", "log_evidence_std", "posterior"):
    setattr(Answers, answer, None)


@dataclass(frozen=True)
class Answering(Changed):
    """The paper's method, whose fits say something else."""

    said: tuple = field(default=(), repr=False)

    def fit(self, observations, prior, previous, rng):
        inner = super().fit(observations, prior, getattr(previous, "inner", None), rng)
        return Answers(inner, dict(self.said))

    def select(self, fitted, batch_size, rng, *, cost_ratio, taken):
        return super().select(fitted.inner, batch_size, rng, cost_ratio=cost_ratio, taken=taken)


@pytest.mark.parametrize(
    ("said", "clause"),
    [
        ({"log_evidence": 3}, "log_evidence is a float; seen: 3"),
        ({"log_evidence_std": -1.0}, "log_evidence_std is not negative"),
        ({"converged": lambda dlogz: True}, r"converged\(0.0\) gives \(bool, str\); seen: True"),
        ({"converged": lambda dlogz: (False, "Not yet.")}, "without a full stop"),
        ({"converged": lambda dlogz: (True, "so it is")}, r"converged\(0\) is False"),
        ({"audits": [1]}, "audits is a tuple of basq.Audit"),
        ({"noise": "much"}, "noise is a float or None"),
        ({"seconds": 3.0}, "seconds maps names of stages to seconds"),
        ({"log_evidence": -2.0}, "log_evidence is −inf while every value is zero"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_a_broken_answer(said, clause):
    with pytest.raises(AssertionError, match=clause):
        check_method(Answering(said=tuple(said.items())))


# --- kernels that break a clause --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrongKernel(Polynomial):
    wrong: str = ""

    def __call__(self, a, b):
        k = super().__call__(a, b)
        return -k if self.wrong == "sign" else k + a[:, :1] if self.wrong == "symmetry" else k

    def diagonal(self, x):
        return super().diagonal(x) * (-1.0 if self.wrong == "sign" else 1.1 if self.wrong == "diagonal" else 1.0)

    def with_theta(self, theta):
        return super().with_theta(theta[::-1] if self.wrong == "theta" else theta)

    def weighted_sum(self, data, weights):
        return super().weighted_sum(data, weights + (self.wrong == "sum"))

    def with_gradient(self, x):
        k, contract = super().with_gradient(x)
        return k, (lambda g: 2.0 * contract(g)) if self.wrong == "gradient" else contract


@pytest.mark.parametrize(
    ("wrong", "clause"),
    [
        ("sign", "positive semi-definite"),
        ("symmetry", "transpose"),
        ("diagonal", r"diagonal\(x\) is the diagonal"),
        ("theta", r"with_theta\(theta\).theta is theta again"),
        ("sum", r"weighted_sum\(data, w\)\(x\) is kernel\(x, data\) @ w"),
        ("gradient", "as finite differences do"),
    ],
)
def test_a_broken_kernel(wrong, clause):
    with pytest.raises(AssertionError, match=clause):
        check_kernel(WrongKernel(0.7, SCALES, 3, wrong))


# --- pools that break a clause ----------------------------------------------------------------------------------------


class Backwards:
    """Calls its points from the end, and forgets to turn the values round."""

    def map(self, function, points):
        numbers, xs = zip(*points, strict=True)
        return list(map(function, zip(numbers, reversed(xs), strict=True)))


class Forgets:
    """Gives fewer answers than it was asked for."""

    def map(self, function, points):
        return list(map(function, points))[:-1]


class Silent(Executor):
    """Never answers."""

    def submit(self, function, /, *args):
        return Future()


def test_a_pool_that_mixes_up_points():
    with pytest.raises(AssertionError, match=r"the value at point|a call that"):
        check_pool(Backwards())


def test_a_pool_that_forgets():
    with pytest.raises(AssertionError, match="gave no answer for 1 of its calls"):
        check_pool(Forgets())


def test_a_pool_that_never_answers(monkeypatch):
    monkeypatch.setattr("basq.testing.pool.PATIENCE", 0.5)
    with pytest.raises(AssertionError, match=r"12 calls come back within 0\.5 s; seen: 0 did"):
        check_pool(Silent())


def test_what_is_no_pool():
    with pytest.raises(AssertionError, match="allowed are None, a number of worker processes"):
        check_pool(object())
