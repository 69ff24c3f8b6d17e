"""Psychometrics: thresholds, tests and learning."""

from functools import partial

import numpy as np
from scipy import special, stats

from basq.problems.zoo.base import ZooProblem, columns, gamma, half_cauchy, lognormal
from basq.types import FloatArray

GROUP = "psychometrics"


def _psychometric_curve(x: FloatArray, level: FloatArray) -> FloatArray:
    threshold, slope, guess, lapse = columns(x)
    return guess + (1.0 - guess - lapse) * special.expit(slope * (level - threshold))


def _psychometric(x: FloatArray, level: FloatArray, n: FloatArray, y: FloatArray) -> FloatArray:
    p = _psychometric_curve(x, level)
    combinations = special.gammaln(n + 1.0) - special.gammaln(y + 1.0) - special.gammaln(n - y + 1.0)
    return (combinations + special.xlogy(y, p) + special.xlogy(n - y, 1.0 - p)).sum(axis=1)


def psychometric(seed: int = 0) -> ZooProblem:
    """Detections by stimulus level, with guesses and lapses (Wichmann and Hill 2001)."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.normal(0, 1), rng.uniform(0.8, 3.0), rng.uniform(0.02, 0.2), rng.uniform(0.01, 0.08)])
    level, n = np.linspace(-4.0, 4.0, 9), np.full(9, 20.0)
    y = rng.binomial(20, _psychometric_curve(truth[None], level)[0]).astype(float)
    prior = {
        "threshold": stats.norm(0, 3),
        "slope": lognormal(1, 1),
        "guess": stats.beta(1, 10),
        "lapse": stats.beta(1, 19),
    }
    return ZooProblem("psychometric", GROUP, seed, prior, truth, partial(_psychometric, level=level, n=n, y=y))


def _rasch(
    x: FloatArray, right: FloatArray, people: FloatArray, nodes: FloatArray, log_weights: FloatArray
) -> FloatArray:
    """Abilities, N(0, sd²), are integrated out by Gauss–Hermite quadrature.

    A person's number of right answers says all about the ability: `people` by that number (items + 1,), right answers
    by item `right` (items,).
    """
    difficulty, ability = x[:, :-1], x[:, -1:] * nodes
    none_right = special.log_expit(difficulty[:, None] - ability[:, :, None]).sum(axis=2) + log_weights
    by_score = none_right[:, :, None] + ability[:, :, None] * np.arange(len(people))
    return special.logsumexp(by_score, axis=1) @ people - difficulty @ right


def rasch(seed: int = 0) -> ZooProblem:
    """A test of five questions taken by 40 people; difficulties and the spread of abilities."""
    rng = np.random.default_rng(seed)
    truth = np.append(rng.normal(0, 1.2, 5), rng.uniform(0.6, 1.8))
    ability = truth[5] * rng.standard_normal((40, 1))
    y = (rng.random((40, 5)) < special.expit(ability - truth[:5])).astype(float)
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    prior = {f"difficulty{i + 1}": stats.norm(0, 3) for i in range(5)} | {"sd": half_cauchy(2.5)}
    people = np.bincount(y.sum(axis=1).astype(int), minlength=6).astype(float)
    log_weights = np.log(weights / weights.sum())
    rows = partial(_rasch, right=y.sum(axis=0), people=people, nodes=nodes, log_weights=log_weights)
    return ZooProblem("rasch", GROUP, seed, prior, truth, rows)


def _learning(x: FloatArray, choice: FloatArray, reward: FloatArray) -> FloatArray:
    rate, sharpness = x.T
    values, total = np.full((2, len(x)), 0.5), np.zeros(len(x))
    for c, r in zip(choice.astype(int), reward, strict=True):
        total = total + special.log_expit(sharpness * (values[c] - values[1 - c]))
        values[c] = values[c] + rate * (r - values[c])
    return total


def reinforcement_learning(seed: int = 0) -> ZooProblem:
    """Choices between two slot machines by a learner (Rescorla–Wagner): learning rate and inverse temperature."""
    rng = np.random.default_rng(seed)
    truth = np.array([rng.uniform(0.1, 0.5), rng.uniform(2.0, 6.0)])
    values, pays = np.full(2, 0.5), np.array([0.3, 0.7])
    choice, reward = np.empty(80, dtype=int), np.empty(80)
    for t in range(80):
        choice[t] = rng.random() < special.expit(truth[1] * (values[1] - values[0]))
        reward[t] = rng.random() < pays[choice[t]]
        values[choice[t]] += truth[0] * (reward[t] - values[choice[t]])
    prior = {"rate": stats.beta(1, 1), "sharpness": gamma(2, 0.2)}
    rows = partial(_learning, choice=choice.astype(float), reward=reward)
    return ZooProblem("reinforcement_learning", GROUP, seed, prior, truth, rows)


MODELS = (psychometric, rasch, reinforcement_learning)
