"""Runs that a certificate is made for: of a Gaussian in a box, and of a method that is too sure of itself."""

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import basq
from basq.evaluation import store as store_module
from basq.evaluation.store import Store
from helpers.small import PRIOR, gauss

LOG_Z = float(np.log(2.0 * np.pi * 0.1 / 36.0))  # whose mass beyond the box is far below any error
OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 64, "progress": False}
WRONG = 0.4
"""Nats that the hasty method is off by."""


class Counted:
    """The Gaussian, which keeps where it was called; and what can go wrong with it, as in a world that changes."""

    def __init__(self):
        self.world = SimpleNamespace(off=0.0, fails=None, interrupts=None)
        self.points = []

    def __call__(self, x):
        self.points.append(tuple(x))
        if len(self.points) == self.world.interrupts:
            signal.raise_signal(signal.SIGINT)
        if self.world.fails is not None and self.world.fails(x):
            raise ValueError("no convergence")
        return gauss(x) + self.world.off

    @property
    def n(self):
        return len(self.points)


def infer(function, **options):
    return basq.infer(function, PRIOR, **{**OPTIONS, **options})


@contextmanager
def quick_stores():
    """Write stores without waiting for the disk: no machine crashes here, and each call would cost 20 ms."""

    def prepare(store, connection, n_dim):
        before(store, connection, n_dim)
        connection.execute("PRAGMA synchronous = OFF")

    before = store_module.prepare
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "prepare", prepare)
        yield


def counts(path):
    """How many calls a store has, done, failed and pending."""
    with Store(path) as store:
        return tuple(store.counts().values())


def opened(store, method=None):
    """What a store knows, without a call."""
    return basq.Sampler.open(store, method=method).result()


def same(one, other):
    """Whether results, or certificates, say the same to the last bit."""
    return all(getattr(one, name) == getattr(other, name) for name in ("log_evidence", "log_evidence_std", "message"))


@dataclass(frozen=True)
class SureFit(basq.Fit):
    """A fit whose log Z is off, and which believes in it."""

    inner: Any
    off: float

    @property
    def log_evidence(self):
        return self.inner.log_evidence + self.off

    @property
    def log_evidence_std(self):
        return 0.02

    @property
    def posterior(self):
        return self.inner.posterior

    def converged(self, dlogz):
        return (True, "it is sure of itself") if self.off else self.inner.converged(dlogz)


@dataclass(frozen=True, repr=False)
class Hasty(basq.Auto):
    """Converges at once, and to a wrong answer; with some more calls it is right."""

    def __repr__(self):
        return "Hasty()"

    def fit(self, observations, prior, previous, rng):
        inner = super().fit(observations, prior, previous and previous.inner, rng)
        return SureFit(inner, WRONG if len(observations) < 60 else 0.0)

    def select(self, fitted, batch_size, rng, *, cost_ratio, taken):
        return super().select(fitted.inner, batch_size, rng, cost_ratio=cost_ratio, taken=taken)
