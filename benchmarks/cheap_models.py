"""The models of `benchmarks.cheap`, how each is run, and what else is asked of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import stats

import basq
from basq.problems import Split, noise
from basq.problems.dynamics import two_species

P = basq.problems
MODELS: dict[str, Callable[[], Split]] = {
    "regression": P.regression,
    "autoregression": P.autoregression,
    "pharmacokinetics": P.pharmacokinetics,
    "epidemic": P.epidemic,
    "predator-prey": P.predator_prey,
    "fitzhugh-nagumo": P.fitzhugh_nagumo,
    "diffusion": P.diffusion,
    "cell SPM": lambda: P.cell_voltage("SPM"),
    "cell SPMe": lambda: P.cell_voltage("SPMe"),
}
ENGINES = {"split": basq.Auto(), "black box": basq.Auto(recognise=False)}
WAYS = tuple(ENGINES)
Noise = tuple[Any, dict[str, Any]]
"""A log-likelihood of the output and the prior of its cheap parameters."""


class Counted:
    """A simulator that counts its calls."""

    def __init__(self, simulate: Any) -> None:
        self.simulate, self.calls = simulate, 0

    def __call__(self, x: np.ndarray) -> Any:
        self.calls += 1
        return self.simulate(x)


def infer(case: Split, seed: int, way: str = "split") -> basq.Result:
    """One run of a model."""
    model: Any = basq.Model(case.simulate, case.log_likelihood, prior=dict(case.prior), cheap=dict(case.cheap))
    function, prior = (model, None) if way == "split" else (case.log_likelihood_all, case.joint_prior)
    return basq.infer(
        function, prior, method=ENGINES[way], batch_size=16, max_evals=budget(case), seed=seed, progress=False
    )


def budget(case: Split) -> int:
    return 50 * (case.joint_prior.n_dim + 2)


def other_noises(model: str, case: Split) -> dict[str, Noise]:
    """Three other observation models of the same output."""
    freedom = {"nu": stats.gamma(2.0, scale=10.0)}
    if model == "epidemic":
        reported = {"reported": case.cheap["reported"]}
        roots = reported | {"sigma": stats.halfcauchy(scale=2.0)}
        return {
            "other dispersion": (case.log_likelihood, reported | {"dispersion": stats.loguniform(1e-3, 10.0)}),
            "roots": (partial(of_roots, noise.gaussian, case.data), roots),
            "student": (partial(of_roots, noise.student, case.data), roots | freedom),
        }
    if model == "predator-prey":
        common = {"sigma": stats.halfcauchy(scale=1.0)}
        both = {name: stats.halfcauchy(scale=1.0) for name in case.cheap}
        return {
            "other scales": (partial(two_species, case.data), both),
            "one scale": (partial(of_both, noise.gaussian, case.data), common),
            "student": (partial(of_both, noise.student, case.data), common | freedom),
        }
    scale = float(np.std(case.data - case.simulate(case.truth[: len(case.prior)])))
    scales: dict[str, Any] = {"sigma": stats.halfcauchy(scale=3.0 * scale)}
    offset = {"offset": case.cheap["offset"]} if "offset" in case.cheap else {}
    return {
        "gaussian": (partial(noise.gaussian, case.data), scales | offset),
        "laplace": (partial(noise.laplace, case.data), scales | offset),
        "student": (partial(noise.student, case.data), scales | freedom | offset),
    }


def of_roots(density: Any, data: np.ndarray, output: np.ndarray, reported: Any, **cheap: Any) -> Any:
    """Noise on the square roots of counts."""
    mean = np.asarray(reported)[..., None] * np.maximum(output, noise.TINY)
    return density(np.sqrt(data), np.sqrt(mean), **cheap)


def of_both(density: Any, data: Mapping[str, np.ndarray], output: Mapping[str, Any], **cheap: Any) -> Any:
    """The same noise for hares and lynxes."""
    return sum(density(data[name], output[name], **cheap) for name in data)


def other_priors(prior: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Four other priors: narrower, wider, moved and of another family; uniform parameters keep their bounds."""
    names = ("narrower", "wider", "moved", "another family")
    each = {name: dict(zip(names, other_marginals(marginal), strict=True)) for name, marginal in prior.items()}
    return {change: {name: laws[change] for name, laws in each.items()} for change in names}


def other_marginals(marginal: Any) -> list[Any]:
    if isinstance(marginal, tuple):
        low, high = marginal
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        laws = [stats.beta(a, b, low, high - low) for a, b in ((2.0, 2.0), (0.7, 0.7), (1.5, 1.0))]
        return [*laws, stats.truncnorm(-1.5, 1.5, middle, half / 1.5)]
    low, high = marginal.support()
    if low > 0.0:  # log-uniform
        tenth = (high / low) ** 0.1
        ends = ((tenth, 1.0 / tenth), (1.0 / tenth, tenth), (np.sqrt(tenth), tenth))
        laws = [stats.loguniform(low * a, high * b) for a, b in ends]
        return [*laws, stats.lognorm(2.0 * np.log(tenth), scale=np.sqrt(low * high))]
    middle, upper = marginal.ppf([0.5, 0.84])
    if low == 0.0:
        sd = np.log(upper / middle)
        laws = [stats.lognorm(f * sd, scale=middle) for f in (0.7, 1.4)]
        ends = middle * np.exp(np.array([-3.0, 3.0]) * sd)
        return [*laws, stats.lognorm(sd, scale=middle * np.exp(0.5 * sd)), stats.loguniform(*ends)]
    sd = upper - middle
    laws = [stats.norm(middle, f * sd) for f in (0.7, 1.4)]
    return [*laws, stats.norm(middle + 0.5 * sd, sd), stats.t(4.0, middle, sd)]


@lru_cache(maxsize=2)
def first(model: str, seed: int) -> tuple[basq.Result, Counted]:
    """The run whose outputs are used again, and its simulator."""
    case = MODELS[model]()
    counted = Counted(case.simulate)
    return infer(replace(case, simulate=counted), seed), counted


def changes(model: str, case: Split) -> dict[str, dict[str, Any]]:
    """Three noise models and four priors, as arguments of `again`."""
    noises = {n: {"log_likelihood": f, "cheap": cheap} for n, (f, cheap) in other_noises(model, case).items()}
    return noises | {name: {"prior": prior} for name, prior in other_priors(case.prior).items()}
