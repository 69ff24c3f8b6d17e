"""The contract of an inference method."""

import json
import pickle
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import cloudpickle
import numpy as np

from basq.errors import InputError
from basq.inference import infer
from basq.method import Audit, Batch, Density, Fit, Method, Posterior
from basq.observations import Observations
from basq.prior import Prior
from basq.run.arguments import as_batch, as_fit, as_method
from basq.testing.clauses import demand, during, same
from basq.testing.easy import easy, easy_log_likelihood, log_evidence
from basq.types import FloatArray

WRONG = 0.5
"""Error of log Z of the easy problem that is too large for any method."""


def check_method(method: Method[Any]) -> None:
    """Check an inference method against the contract of `basq.Method`.

    Its form; fits to an easy problem in one and two dimensions, also with zero likelihood and noise among the values,
    or with nothing but zeros; the answers of the fits; the batches; that equal random numbers give equal answers and
    that no argument is changed; and a short run.

    Parameters
    ----------
    method : Method
        As given to `infer`.

    Raises
    ------
    AssertionError
    """
    with during("method: taking it for a run"):
        method = as_method(method)
    sizes = _check_form(method)
    for n_dim in (1, 2):
        prior, values = easy(n_dim, max(48 * n_dim, method.initial_size(n_dim)))
        fitted = _check_fit(method, prior, values)
        demand(np.isfinite(fitted.log_evidence), "fit: log_evidence of an easy problem is finite", fitted.log_evidence)
        _check_posterior(fitted.posterior, n_dim)
        _check_select(method, fitted, prior, sizes)
        noisy = replace(values, noise=np.where(np.arange(len(values)) % 2, 0.1, np.nan))
        walls = replace(noisy, log_likelihood=np.where(values.x[:, 0] > 1.5, -np.inf, values.log_likelihood))
        for other in (noisy, walls):
            _check_select(method, _check_fit(method, prior, other, fitted), prior, sizes)
        _check_blind(method, prior, replace(values, log_likelihood=np.full(len(values), -np.inf)), sizes)
    _check_run(method, max(sizes))


def _check_form(method: Method[Any]) -> list[int]:
    """Check what can be asked without data; returns batch sizes that it takes."""
    for n_dim in (1, 2, 10):
        size = method.initial_size(n_dim)
        whole = isinstance(size, int | np.integer) and size >= 1
        demand(whole, f"initial_size({n_dim}) is a whole number of at least 1", repr(size))
    sizes = []
    for size in (1, 8):
        with during(f"check({size}), unless it raises InputError,"):
            try:
                method.check(size)
                sizes.append(size)
            except InputError:
                continue
    demand(sizes, "check allows batches of 1 or of 8 points", "InputError for both")
    with during("pickling the method, as for a store,"):
        copy = pickle.loads(cloudpickle.dumps(method))
    clause = "repr of a method shows its options and nothing else, so that a store recognises it"
    demand(repr(copy) == repr(method), clause, f"{method!r}, and {copy!r} for a copy")
    return sizes


def _check_fit(method: Method[Any], prior: Prior, values: Observations, previous: Fit | None = None) -> Fit:
    """Fit twice, and look at everything but the posterior."""
    kept = [getattr(values, field.name).copy() for field in fields(values)]
    before = None if previous is None else (previous.log_evidence, previous.log_evidence_std)
    with during(f"fit to {len(values)} values in {prior.n_dim}-D"):
        fits = [as_fit(method.fit(values, prior, previous, np.random.default_rng(1)), method) for _ in range(2)]
        first, second = ((f.log_evidence, f.log_evidence_std) for f in fits)
    changed = [f.name for f, old in zip(fields(values), kept, strict=True) if not same(getattr(values, f.name), old)]
    demand(not changed, "fit changes none of its arguments", f"other observations.{', '.join(changed)}")
    after = None if previous is None else (previous.log_evidence, previous.log_evidence_std)
    demand(before == after or same(before, after), "fit leaves the previous fit as it was", f"{before}, then {after}")
    demand(same(first, second), "equal observations and random numbers give equal fits", f"log Z {first} and {second}")
    with during("the answers of a fit"):
        _check_answers(fits[0], values)
    return fits[0]


def _check_answers(fitted: Fit, values: Observations) -> None:
    for name in ("log_evidence", "log_evidence_std"):
        demand(isinstance(getattr(fitted, name), float), f"{name} is a float", repr(getattr(fitted, name)))
    demand(not fitted.log_evidence_std < 0.0, "log_evidence_std is not negative", fitted.log_evidence_std)
    for dlogz in (0.0, 0.1):
        said = fitted.converged(dlogz)
        fine = isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], bool) and isinstance(said[1], str)
        demand(fine, f"converged({dlogz}) gives (bool, str)", repr(said))
        clause = f"converged({dlogz}) says why in a clause without a full stop"
        demand(said[1] and not said[1].endswith("."), clause, repr(said[1]))
    demand(not fitted.converged(0.0)[0], "converged(0) is False: the whole budget is wanted", "True")
    audits = isinstance(fitted.audits, tuple) and all(isinstance(a, Audit) for a in fitted.audits)
    demand(audits, "audits is a tuple of basq.Audit", repr(fitted.audits))
    demand(fitted.noise is None or isinstance(fitted.noise, float), "noise is a float or None", repr(fitted.noise))
    times = isinstance(fitted.seconds, Mapping) and all(t >= 0.0 for t in fitted.seconds.values())
    demand(times, "seconds maps names of stages to seconds", repr(fitted.seconds))
    if fitted.log_surrogate is not None:
        band = fitted.log_surrogate.band(values.u)
        clause = "log_surrogate.band gives mean − 2 sd, mean and mean + 2 sd at m points: (3, m), in ascending order"
        demand(np.shape(band) == (3, len(values)) and (band[:-1] <= band[1:]).all(), clause, band)


def _check_posterior(posterior: Posterior, n_dim: int) -> None:
    """Check a posterior against itself: samples, moments, marginals, conditionals, other coordinates."""
    with during("pickling the posterior, as for result.save,"):
        posterior = pickle.loads(cloudpickle.dumps(posterior))
    demand(posterior.n_dim == n_dim, f"posterior.n_dim is {n_dim}", posterior.n_dim)
    with during("posterior.sample and its densities"):
        x, again = (posterior.sample(2000, np.random.default_rng(2)) for _ in range(2))
        demand(x.shape == (2000, n_dim), f"posterior.sample(2000, rng) has shape (2000, {n_dim})", x.shape)
        demand(np.isfinite(x).all(), "posterior.sample gives finite points", x)
        demand(same(x, again), "posterior.sample gives the same for equal random numbers", "different points")
        log_pdf, pdf = posterior.log_pdf(x), posterior.pdf(x)
        demand(log_pdf.shape == (2000,), "posterior.log_pdf gives one number a row", log_pdf.shape)
        demand(np.isfinite(log_pdf).all(), "posterior.log_pdf is finite where samples are", log_pdf.min())
        demand(np.allclose(np.exp(log_pdf), pdf), "posterior.pdf is exp of posterior.log_pdf", "other values")
        mean, cov = posterior.moments()
        shapes = (np.shape(mean), np.shape(cov))
        demand(shapes == ((n_dim,), (n_dim, n_dim)), "posterior.moments gives mean (d,) and covariance (d, d)", shapes)
    sd = np.sqrt(np.diag(cov))
    off = np.abs(x.mean(axis=0) - mean) / sd
    demand((off < 0.3).all(), "posterior.moments agrees with posterior.sample", f"means {off.max():.2g} sd apart")
    with during("posterior.marginal, conditional and affine"):
        for k in range(n_dim):
            marginal = posterior.marginal([k])
            _check_line(marginal, f"marginal([{k}])")
            off = abs(marginal.moments()[0][0] - mean[k]) / sd[k]
            demand(off < 0.3, f"the mean of marginal([{k}]) is the posterior's", f"{off:.2g} sd apart")
        if n_dim > 1:
            line = posterior.conditional([0], mean[:1])
            _check_line(line, "conditional([0], value)")
            ends = np.column_stack([np.full(2, mean[0]), mean[1] + sd[1] * np.array([-0.5, 0.5])])
            ours, theirs = np.diff(line.log_pdf(ends[:, 1])), np.diff(posterior.log_pdf(ends))
            clause = "posterior.conditional is proportional to the density along a line"
            demand(abs(ours - theirs) < 0.1, clause, f"log ratios {ours} and {theirs}")
        a, b = np.eye(n_dim) + np.triu(np.ones((n_dim, n_dim))), np.arange(1.0, n_dim + 1.0)
        moved = posterior.affine(a, b)
        difference = moved.log_pdf(x @ a.T + b) + np.linalg.slogdet(a)[1] - log_pdf
        clause = "posterior.affine(a, b) is the density of a x + b"
        demand(np.abs(difference).max() < 1e-3, clause, f"log-densities off by {np.abs(difference).max():.2g}")
        demand(np.allclose(moved.moments()[0], a @ mean + b), f"{clause}, with its moments", moved.moments()[0])


def _check_line(line: Density, name: str) -> None:
    """Check a density of one coordinate."""
    demand(line.n_dim == 1, f"posterior.{name} of two or one coordinates has one", line.n_dim)
    levels = np.linspace(0.005, 0.995, 400)
    t = line.ppf(levels)
    demand((np.diff(t) > 0.0).all(), f"quantiles of posterior.{name} ascend", t)
    off = np.abs(line.cdf(t) - levels).max()
    demand(off < 0.02, f"cdf and ppf of posterior.{name} are inverse to each other", f"off by {off:.2g}")
    even = np.linspace(t[0], t[-1], 1000)
    mass = float(np.trapezoid(line.pdf(even), even))
    demand(abs(mass - 0.99) < 0.05, f"pdf and ppf of posterior.{name} agree: 99 % between quantiles", f"{mass:.3g}")
    drawn = line.sample(7, np.random.default_rng(3))
    demand(len(drawn) == 7 and np.isfinite(drawn).all(), f"posterior.{name}.sample(7, rng) gives 7 points", drawn)


def _check_select(method: Method[Any], fitted: Fit, prior: Prior, sizes: list[int]) -> None:
    """Choose batches twice, and then away from the points just chosen."""
    for size in sizes:
        none = np.empty((0, prior.n_dim))
        first, second = (_selected(method, fitted, size, prior, none, 4) for _ in range(2))
        demand(same(first.u, second.u), "select gives the same for equal random numbers", "different points")
        taken = first.u.copy()
        third = _selected(method, fitted, size, prior, taken, 5)
        demand(same(taken, first.u), "select leaves taken as it was", "other points")
        gap = np.abs(third.u[:, None] - taken).max(axis=2).min()
        demand(gap > 1e-9, "select chooses no point that is taken already", f"a gap of {gap:.2g}")


def _selected(method: Method[Any], fitted: Fit, size: int, prior: Prior, taken: FloatArray, seed: int) -> Batch:
    with during(f"select of {size} with {len(taken)} points taken"):
        batch = method.select(fitted, size, np.random.default_rng(seed), cost_ratio=1.0, taken=taken)
        batch = as_batch(batch, prior.n_dim, method)
        json.dumps(batch.info, default=float)
    demand(len(batch.u) == size, f"select of {size} gives as many points", len(batch.u))
    demand(len(np.unique(batch.u, axis=0)) == size, "select chooses different points", batch.u)
    demand(len(batch.weights) in (0, size), "a batch has no weights, or one for every point", batch.weights)
    demand(np.shape(batch.explores) in ((), (size,)), "explores is for all points, or for each", batch.explores)
    return batch


def _check_blind(method: Method[Any], prior: Prior, zeros: Observations, sizes: list[int]) -> None:
    """Check what comes of values that are all zero."""
    fitted = _check_fit(method, prior, zeros)
    clause = "log_evidence is −inf while every value is zero"
    demand(fitted.log_evidence == -np.inf, clause, fitted.log_evidence)
    demand(not fitted.converged(10.0)[0], "a fit to zeros alone has not converged", "True")
    with during("posterior of zeros alone, unless it raises InputError,"), suppress(InputError):
        _ = fitted.posterior
    _check_select(method, fitted, prior, sizes)


def _check_run(method: Method[Any], batch_size: int) -> None:
    prior, _ = easy(2, 1)
    most = method.initial_size(2) + 64
    with during("a run on an easy problem"):
        result = infer(
            easy_log_likelihood, prior, method=method, batch_size=batch_size, max_evals=most, seed=1, progress=False
        )
        str(result)
        drawn = result.sample(10, seed=1)
    demand(drawn.shape == (10, 2), "a result gives samples of its posterior", drawn.shape)
    truth = log_evidence(2)
    off, answer = abs(result.log_evidence - truth), f"{result.log_evidence:.3f} ± {result.log_evidence_std:.3f}"
    clause = f"a run on an easy problem gives log Z = {truth:.3f} within {WRONG} after {most} calls"
    demand(off <= WRONG, clause, answer)
