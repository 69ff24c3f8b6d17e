"""Evidence and marginals of the models of the zoo by brute force, in two ways.

    python -m benchmarks.zoo_references                                    # two data seeds of every model
    python -m benchmarks.zoo_references --seeds 10 --models sir ar1        # ten of some
    python -m benchmarks.zoo_references --again                            # anew where the two ways disagree

One way works in standard space: particles are tempered from the prior, a mixture of t distributions is fitted to them
and to chains from the parameters that made the data, and at least 10⁵ draws of it are weighted. The other works in
logarithms and logits of the parameters with scipy's own densities: particles are tempered again, chains go on from
them, a mixture of normals is fitted to one half of these samples, and the bridge of Meng and Wong (1996) joins it to
the other half. They have different coordinates, prior densities, proposals and estimators; the likelihood and the moves
of the particles are the same code, so a mode that tempering misses and that does not hold the truth is missed by both.

Where the two are not within 0.01 nats, both are repeated with four times as many particles; rows that then disagree by
more than 0.02 are marked, and the zoo does not use them. A line of JSON a model and seed goes to
src/basq/problems/zoo/references.jsonl at once; a second call goes on where the first was stopped.
"""

import argparse
import json
import time
from collections.abc import Iterable
from concurrent.futures import as_completed
from typing import Any

import numpy as np
from loky import get_reusable_executor
from scipy import special, stats
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from basq.numerics.student import MixtureSettings, StudentMixture
from basq.problems import zoo
from basq.problems.zoo.references import FILE, LEVELS
from benchmarks.zoo_particles import (
    CHUNK,
    Own,
    Target,
    Values,
    in_own_space,
    in_standard_space,
    jump,
    near,
    sweep,
    tempered,
)

TOLERANCE = 0.02
"""Nats between the two ways."""
CDF_TOLERANCE = 0.04
"""Between their marginal distribution functions; the chains' own noise is up to 0.02."""
PARTICLES = 4000
MORE = {"signals": 4}
"""Times as many where the modes are needles among hundreds."""
DRAWS = 100_000
MOST_DRAWS = 800_000
LARGEST_STD = 0.004
ROUNDS = 10
"""Of chains, each with proposals fitted to the round before; the first two are forgotten."""
FIT = MixtureSettings(components=16, freedom=5.0, steps=60, shrinkage=1e-4, evenness=0.02)

Row = dict[str, Any]


def importance(problem: zoo.ZooProblem, effort: int, rng: np.random.Generator) -> Row:
    """Draws of a fitted mixture of t distributions in standard space, weighted."""
    target = in_standard_space(problem)
    n = effort * PARTICLES * MORE.get(problem.group, 1)
    points = np.concatenate(
        [tempered(target, rng.standard_normal((n, problem.n_dim)), rng), near(problem, target, rng)]
    )
    best, log_w, draws = None, np.empty(0), points
    for _ in range(4):  # fits to better and better samples; the best is used
        fit = StudentMixture.of(points, rng, FIT)
        draws, log_w = _weighted(fit, target, DRAWS // 4, rng)
        w = special.softmax(log_w)
        size = 1.0 / (w**2).sum() / len(w)
        if best is None or size > best[0]:
            best = size, fit
        points = draws[rng.choice(len(w), len(points), p=np.minimum(w, 0.01) / np.minimum(w, 0.01).sum())]
        points = np.concatenate([points, best[1].sample(len(points) // 10, rng)])
    draws, log_w = _weighted(best[1], target, DRAWS, rng)
    while _log_mean(log_w)[1] > LARGEST_STD and len(log_w) < MOST_DRAWS:
        more, log_more = _weighted(best[1], target, len(log_w), rng)
        draws, log_w = np.concatenate([draws, more]), np.concatenate([log_w, log_more])
    log_z, std = _log_mean(log_w)
    return {"log_z": log_z, "log_z_std": std, "x": target.parameters(draws), "w": special.softmax(log_w)}


def _weighted(fit: StudentMixture, target: Target, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    draws = fit.sample(n, rng)
    log_q = np.concatenate([fit.log_pdf(piece) for piece in np.split(draws, range(CHUNK, n, CHUNK))])
    return draws, target.log_posterior(draws) - log_q


def _log_mean(log_w: np.ndarray) -> tuple[float, float]:
    w = np.exp(log_w - log_w.max())
    return float(np.log(w.mean()) + log_w.max()), float(w.std() / w.mean() / np.sqrt(len(w)))


def bridge(problem: zoo.ZooProblem, effort: int, rng: np.random.Generator) -> Row:
    """Chains in logarithms and logits, joined to a mixture of normals."""
    target = in_own_space(problem)
    own = [Own.of(marginal) for marginal in problem.prior.values()]
    x = tempered(
        target, np.column_stack([o.draw(effort * PARTICLES * MORE.get(problem.group, 1), rng) for o in own]), rng
    )
    state: Any = (x, target.log_likelihood(x), target.log_prior(x))
    kept, halves = [], (np.arange(0, len(x), 2), np.arange(1, len(x), 2))
    for i in range(ROUNDS):
        fits = [_normals(state[0][half], rng) for half in halves]
        for _ in range(10):
            state = jump(target, fits[1], state, halves[0], rng)
            state = jump(target, fits[0], state, halves[1], rng)
            state = sweep(target, 1.0, state, rng)[:3]
        if i > 1:
            kept.append(state)
    points = np.concatenate([s[0] for s in kept])
    log_posterior = np.concatenate([s[1] + s[2] for s in kept])
    # by particles and not by time, so that the halves do not know of each other
    seen = np.tile(np.arange(len(x)) % 2 == 0, len(kept))
    fit = _normals(points[seen], rng)
    log_q = fit.score_samples(points[~seen])
    draws = fit.sample(DRAWS)[0]
    rng.shuffle(draws)
    log_ratio = target.log_posterior(draws) - fit.score_samples(draws)
    own_ratio = log_posterior[~seen] - log_q
    parts = [_bridge(log_ratio[i::4], own_ratio[i::4]) for i in range(4)]
    return {"log_z": _bridge(log_ratio, own_ratio), "log_z_std": float(np.std(parts)) / 2.0,
            "x": target.parameters(points)}  # fmt: skip


def _normals(points: np.ndarray, rng: np.random.Generator) -> GaussianMixture:
    few = points[rng.permutation(len(points))[:8000]]
    fits = [GaussianMixture(k, reg_covar=1e-8, random_state=int(rng.integers(2**31))).fit(few[::2]) for k in (1, 4, 12)]
    return max(fits, key=lambda fit: fit.score(few[1::2]))


def _bridge(log_ratio: np.ndarray, own_ratio: np.ndarray) -> float:
    """log Z from log-ratios of posterior and proposal at draws of the proposal and of the posterior."""
    n, m = len(log_ratio), len(own_ratio)
    log_n, log_m = np.log(n / (n + m)), np.log(m / (n + m))
    log_z = float(np.median(own_ratio))
    for _ in range(1000):
        top = logsumexp(log_ratio - np.logaddexp(log_m + log_ratio, log_n + log_z)) - np.log(n)
        bottom = logsumexp(-np.logaddexp(log_m + own_ratio, log_n + log_z)) - np.log(m)
        new = float(top - bottom)
        if abs(new - log_z) < 1e-7:
            break
        log_z = new
    return log_z


def easier(problem: zoo.ZooProblem) -> tuple[zoo.ZooProblem, Values]:
    """The same integral in coordinates without a funnel, where there are such, and a map to the parameters."""
    if problem.name != "centred_schools":
        return problem, lambda x: x
    n_schools = problem.n_dim - 2
    prior = {k: problem.prior[k] for k in ("mu", "tau")} | {f"z{i}": stats.norm(0, 1) for i in range(n_schools)}

    def effects(x: np.ndarray) -> np.ndarray:
        return np.column_stack([x[:, :2], x[:, :1] + x[:, 1:2] * x[:, 2:]])

    def rows(x: np.ndarray) -> np.ndarray:
        # the law of the effects is the prior of z now, and their boxes are a factor
        y = effects(x)
        log_law = stats.norm.logpdf(y[:, 2:], x[:, :1], x[:, 1:2]).sum(axis=1)
        inside = (np.abs(y[:, 2:]) < 100.0).all(axis=1)
        return np.where(inside, problem.log_likelihood(y) - log_law - n_schools * np.log(200.0), -np.inf)

    truth = np.append(problem.truth[:2], (problem.truth[2:] - problem.truth[0]) / problem.truth[1])
    return zoo.ZooProblem(problem.name, problem.group, problem.seed, prior, truth, rows), effects


def solve(model: str, seed: int) -> Row:
    """Both ways, repeated with more particles where they disagree."""
    start, problem = time.perf_counter(), zoo.MODELS[model](seed)
    same, back = easier(problem)
    for effort in (1, 4):
        one = importance(same, effort, np.random.default_rng([seed, effort, 1]))
        two = bridge(same, effort, np.random.default_rng([seed, effort, 2]))
        quantiles = [_quantiles(column, one["w"]) for column in back(one["x"]).T]
        gap = max(_gap(column, q) for column, q in zip(back(two["x"]).T, quantiles, strict=True))
        miss = abs(one["log_z"] - two["log_z"])
        worst = max(miss / TOLERANCE, gap / CDF_TOLERANCE, 2.0 * one["log_z_std"] / TOLERANCE)
        if worst < 0.5:  # a good deal better than it must be: a bit of luck is not enough
            break
    return {
        "model": model, "seed": seed, "agree": bool(worst < 1.0), "log_z": round(one["log_z"], 5),
        "log_z_std": round(one["log_z_std"], 5), "log_z_bridge": round(two["log_z"], 5),
        "log_z_bridge_std": round(two["log_z_std"], 5), "cdf_gap": round(gap, 4),
        "information": round(1.0 / float((one["w"] ** 2).sum()) / len(one["w"]), 4), "draws": len(one["w"]),
        "effort": effort, "seconds": round(time.perf_counter() - start, 1),
        "log_likelihood_at_truth": problem.log_likelihood(problem.truth),
        "quantiles": [[float(f"{q:.5g}") for q in row] for row in quantiles],
    }  # fmt: skip


def _quantiles(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    order = np.argsort(x)
    return x[order][np.searchsorted(np.cumsum(w[order]), LEVELS)]


def _gap(x: np.ndarray, quantiles: np.ndarray) -> float:
    return float(np.abs(np.searchsorted(np.sort(x), quantiles) / len(x) - LEVELS).max())


def rows() -> list[Row]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()] if FILE.exists() else []


def run(tasks: Iterable[tuple[str, int]], jobs: int) -> None:
    """Solve tasks, each written as soon as it is known."""
    executor = get_reusable_executor(max_workers=jobs, timeout=600, env={"OMP_NUM_THREADS": "1"})
    futures = [executor.submit(solve, *task) for task in tasks]
    for i, future in enumerate(as_completed(futures)):
        row = future.result()
        with FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        shown = {k: v for k, v in row.items() if k != "quantiles"}
        print(f"{i + 1}/{len(futures)}", json.dumps(shown), flush=True)


def tidy() -> None:
    """Keep the last row of every model and seed, in the order of the zoo."""
    last = {(row["model"], row["seed"]): row for row in rows() if row["model"] in zoo.MODELS}
    order = sorted(last, key=lambda key: (list(zoo.MODELS).index(key[0]), key[1]))
    FILE.write_text("".join(json.dumps(last[key]) + "\n" for key in order), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=list(zoo.MODELS), choices=list(zoo.MODELS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="solve anew what disagrees")
    arguments = parser.parse_args()
    done = {(row["model"], row["seed"]) for row in rows() if row["agree"] or not arguments.again}
    tasks = [(model, seed) for seed in range(arguments.seeds) for model in arguments.models]
    run([task for task in tasks if task not in done], arguments.jobs)
    tidy()
    wanted = [row for row in rows() if (row["model"], row["seed"]) in tasks]
    print(json.dumps({"rows": len(wanted), "agree": sum(row["agree"] for row in wanted)}))


if __name__ == "__main__":
    main()
