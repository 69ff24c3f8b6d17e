"""Other tools for evidence and posteriors under one interface: a problem, a seed, a limit of calls; an answer.

Every tool gets the likelihood as a black box in the coordinates in which it works best: nested samplers in the unit
cube, those with surrogates in standard space, where the prior is N(0, I). It runs with its defaults to its own stop.
Calls are counted by us; seconds are those of the processor, less the likelihood's.
"""

import importlib.metadata
import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import gaussian_kde

import basq
from basq.problems.base import Problem

LogPdf = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Answer:
    """What a tool found: log Z, its error, calls, overhead, and the log-density of its posterior where it has one."""

    log_evidence: float
    sd: float
    calls: int
    seconds: float
    converged: bool
    log_pdf: LogPdf | None = None


@dataclass
class Counted:
    """A log-likelihood in standard space that counts its points and its own time."""

    problem: Problem
    calls: int = 0
    seconds: float = 0.0
    started: float = field(default_factory=time.process_time)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        start = time.process_time()
        points = np.atleast_2d(np.asarray(u, dtype=float))
        values = np.asarray(self.problem.log_likelihood(self.problem.prior.from_standard(points)), dtype=float)
        self.calls += len(points)
        self.seconds += time.process_time() - start
        return np.maximum(values, -1e100)  # several tools cannot take −inf

    @property
    def overhead(self) -> float:
        return time.process_time() - self.started - self.seconds


@dataclass(frozen=True)
class Tool:
    """A tool: the distribution and the module that it comes in, and how it is run."""

    distribution: str
    module: str
    solve: Callable[[Counted, int, int | None], dict[str, Any]]

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.distribution)

    def run(self, problem: Problem, seed: int, most: int | None) -> Answer:
        """Solve a problem, with at most so many calls where the tool can be told."""
        importlib.import_module(self.module)  # imports are not counted
        log_likelihood = Counted(problem)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.solve(log_likelihood, seed, most)
        seconds = log_likelihood.overhead
        return Answer(calls=log_likelihood.calls, seconds=seconds, **found)


def installed(name: str) -> bool:
    """Whether a tool is there."""
    return importlib.util.find_spec(TOOLS[name].module) is not None


def _cube(log_likelihood: Counted) -> Callable[[np.ndarray], Any]:
    """The log-likelihood of points of the unit cube."""
    return lambda cube: log_likelihood(ndtri(np.clip(cube, 1e-15, 1.0 - 1e-15)))


def _density(problem: Problem, u: np.ndarray, weights: np.ndarray) -> LogPdf:
    """A kernel density estimate of weighted samples in standard space, as a density of the parameters."""
    effective = weights > 1e-12 * weights.max()
    kde = gaussian_kde(u[effective].T, weights=weights[effective] / weights[effective].sum())

    def log_pdf(x: np.ndarray) -> np.ndarray:
        at, prior = problem.prior.to_standard(x), problem.prior
        return np.log(np.maximum(kde(at.T), 1e-300)) + prior.log_pdf(x) - prior.measure.log_pdf(at)

    return log_pdf


def engine(log_likelihood: Counted, seed: int, most: int | None) -> dict[str, Any]:
    problem = log_likelihood.problem

    def in_parameters(x: np.ndarray) -> np.ndarray:
        return log_likelihood(problem.prior.to_standard(x))

    result = basq.infer(in_parameters, problem.prior, max_evals=most, vectorized=True, seed=seed, progress=False)
    return {"log_evidence": result.log_evidence, "sd": result.log_evidence_std, "converged": result.converged,
            "log_pdf": result.log_pdf}  # fmt: skip


def dynesty(log_likelihood: Counted, seed: int, most: int | None, *, dynamic: bool = False) -> dict[str, Any]:
    import dynesty as package

    kind = package.DynamicNestedSampler if dynamic else package.NestedSampler
    at = _cube(log_likelihood)
    sampler = kind(
        lambda c: float(at(c)[0]), lambda c: c, log_likelihood.problem.n_dim, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(print_progress=False, maxcall=most)
    found = sampler.results
    log_w = np.asarray(found.logwt) - found.logz[-1]
    density = _density(log_likelihood.problem, ndtri(np.clip(found.samples, 1e-15, 1 - 1e-15)), np.exp(log_w))
    return {
        "log_evidence": float(found.logz[-1]),
        "sd": float(found.logzerr[-1]),
        "converged": True,
        "log_pdf": density,
    }


def dynesty_dynamic(log_likelihood: Counted, seed: int, most: int | None) -> dict[str, Any]:
    return dynesty(log_likelihood, seed, most, dynamic=True)


def ultranest(log_likelihood: Counted, seed: int, most: int | None) -> dict[str, Any]:
    import logging

    import ultranest as package

    np.random.seed(seed)  # noqa: NPY002  it draws from NumPy's global state
    logging.getLogger("ultranest").setLevel(logging.ERROR)
    names = [f"x{i}" for i in range(log_likelihood.problem.n_dim)]
    sampler = package.ReactiveNestedSampler(names, _cube(log_likelihood), lambda c: c, vectorized=True)
    found = sampler.run(show_status=False, viz_callback=False, max_ncalls=most)
    points = found["weighted_samples"]
    density = _density(log_likelihood.problem, ndtri(np.clip(points["points"], 1e-15, 1 - 1e-15)), points["weights"])
    return {"log_evidence": float(found["logz"]), "sd": float(found["logzerr"]), "converged": True, "log_pdf": density}


def nautilus(log_likelihood: Counted, seed: int, most: int | None) -> dict[str, Any]:
    from nautilus import Sampler

    d = log_likelihood.problem.n_dim
    sampler = Sampler(lambda c: c, _cube(log_likelihood), n_dim=d, vectorized=True, pass_dict=False, seed=seed)
    finished = sampler.run(verbose=False, n_like_max=np.inf if most is None else most)
    points, log_w, _ = sampler.posterior()
    u = ndtri(np.clip(points, 1e-15, 1 - 1e-15))
    density = _density(log_likelihood.problem, u, np.exp(log_w - log_w.max()))
    sd = 1.0 / np.sqrt(max(sampler.n_eff, 1.0))
    return {"log_evidence": float(sampler.log_z), "sd": sd, "converged": bool(finished), "log_pdf": density}


def pyvbmc(log_likelihood: Counted, seed: int, most: int | None) -> dict[str, Any]:
    from pyvbmc import VBMC

    np.random.seed(seed)  # noqa: NPY002  it draws from NumPy's global state
    problem, d = log_likelihood.problem, log_likelihood.problem.n_dim

    def log_joint(u: np.ndarray) -> float:
        return float(log_likelihood(u)[0] + problem.prior.measure.log_pdf(np.atleast_2d(u))[0])

    box = [np.full((1, d), v) for v in (-np.inf, np.inf, -1.0, 1.0)]
    options = {"display": "off"} | ({} if most is None else {"max_fun_evals": most})
    posterior, found = VBMC(log_joint, np.zeros((1, d)), *box, options=options).optimize()

    def log_pdf(x: np.ndarray) -> np.ndarray:
        at = problem.prior.to_standard(x)
        own = np.asarray(posterior.pdf(at, log_flag=True)).ravel()
        return own + problem.prior.log_pdf(x) - problem.prior.measure.log_pdf(at)

    return {"log_evidence": float(found["elbo"]), "sd": float(found["elbo_sd"]),
            "converged": bool(found["success_flag"]), "log_pdf": log_pdf}  # fmt: skip


def bobe(log_likelihood: Counted, seed: int, most: int | None) -> dict[str, Any]:
    from BOBE import BOBE

    d, at = log_likelihood.problem.n_dim, _cube(log_likelihood)

    def one(cube: np.ndarray) -> float:
        return float(at(np.asarray(cube, dtype=float).reshape(1, d))[0])

    with TemporaryDirectory() as directory:
        run = BOBE(one, [f"x{i}" for i in range(d)], np.tile([[0.0], [1.0]], d), save_dir=directory, save=False,
                   seed=seed, verbosity="ERROR")  # fmt: skip
        found = run.run(**({} if most is None else {"max_evals": most}))
    log_z = found["logz"] if isinstance(found, dict) and "logz" in found else {}
    return {"log_evidence": float(log_z.get("mean", np.nan)), "sd": float(log_z.get("std", np.nan)), "converged": True}


TOOLS: dict[str, Tool] = {
    "basq": Tool("basq", "basq", engine),
    "dynesty, static": Tool("dynesty", "dynesty", dynesty),
    "dynesty, dynamic": Tool("dynesty", "dynesty", dynesty_dynamic),
    "UltraNest": Tool("ultranest", "ultranest", ultranest),
    "nautilus": Tool("nautilus-sampler", "nautilus", nautilus),
    "PyVBMC": Tool("pyvbmc", "pyvbmc", pyvbmc),
    "BOBE": Tool("BOBE", "BOBE", bobe),
}
