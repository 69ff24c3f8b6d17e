"""Batch WSABI: the acquisition and its maxima."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.numerics.gaussians import GaussianMixture
from basq.paper.local_penalisation import local_penalisation, log_acquisition, penalise
from basq.paper.models import Bbq, Vanilla, Wsabi
from basq.paper.target import Target

MEASURES = {
    "single": GaussianMixture(np.ones(1), np.array([[0.2, -0.1]]), np.array([[[1.0, 0.3], [0.3, 0.8]]])),
    "mixture": GaussianMixture(
        np.array([0.6, 0.4]), np.array([[-0.5, 0.0], [1.0, 0.5]]), np.array([np.eye(2), [[0.5, 0.1], [0.1, 0.7]]])
    ),
}
KERNELS = ["rbf", "matern32", "matern52", "rq", "polynomial"]
POINTS = np.random.default_rng(9).standard_normal((6, 2))


def surrogate(model="wsabi-l", kernel="rbf", n=8):
    x = np.random.default_rng(0).standard_normal((n, 2))
    y = np.sqrt(2.0 * np.exp(-((x - 0.5) ** 2).sum(axis=1)))
    gp = GP.condition(x, y, make_kernel(kernel, 2, lengthscale=0.9, variance=1.2), mean=0.1, noise=1e-4)
    if model == "vanilla":
        return Vanilla(gp)
    return Bbq(gp, gp, gp, 0.01) if model == "bbq" else Wsabi(gp, 0.0, matched=model == "wsabi-m")


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", ["vanilla", "wsabi-l", "wsabi-m", "bbq"])
def test_acquisition_is_the_log_variance_of_the_integrand(model, kernel, measure):
    s, g = surrogate(model, kernel), MEASURES[measure]
    objective = log_acquisition(Target(s, True), g)
    p = s.gp.predict(POINTS)
    var = p.var * p.mean**2 if model.startswith("wsabi") else p.var
    expected = np.log(var) + 2.0 * g.log_pdf(POINTS)
    np.testing.assert_allclose([objective(x)[0] for x in POINTS], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", ["vanilla", "wsabi-l", "wsabi-m", "bbq"])
def test_gradient_of_the_acquisition_agrees_with_finite_differences(model, kernel, measure):
    objective = log_acquisition(Target(surrogate(model, kernel), True), MEASURES[measure])
    for x in POINTS:
        numeric = 0.5 * (
            approx_fprime(x, lambda z: objective(z)[0], 1e-6) - approx_fprime(x, lambda z: objective(z)[0], -1e-6) * -1
        )
        np.testing.assert_allclose(objective(x)[1], numeric, rtol=1e-4, atol=1e-4)


def test_gradient_of_the_penalty_agrees_with_finite_differences():
    base = log_acquisition(Target(surrogate(), True), MEASURES["single"])
    objective = penalise(base, [np.array([0.3, 0.4]), np.array([-0.5, 0.1])], [1.5, 0.7])
    for x in POINTS:
        steps = 1e-6 * np.eye(2)
        numeric = [(objective(x + h)[0] - objective(x - h)[0]) / 2e-6 for h in steps]
        np.testing.assert_allclose(objective(x)[1], numeric, rtol=1e-4, atol=1e-4)


def test_penalty_closes_the_chosen_point_and_leaves_the_distance_alone():
    base = log_acquisition(Target(surrogate(), True), MEASURES["single"])
    chosen = np.array([0.3, 0.4])
    objective = penalise(base, [chosen], [2.0])
    assert objective(chosen + 1e-9)[0] < base(chosen + 1e-9)[0] - 15.0
    far = chosen + np.array([6.0, 0.0])
    assert objective(far)[0] == pytest.approx(base(far)[0], abs=1e-4)
    near = [
        objective(chosen + t * np.array([0.6, 0.8]))[0] - base(chosen + t * np.array([0.6, 0.8]))[0]
        for t in (0.1, 0.3, 0.5, 1.0)
    ]
    assert all(a < b for a, b in pairwise(near))


@pytest.mark.parametrize("model", ["vanilla", "wsabi-l", "wsabi-m", "bbq"])
def test_a_single_point_is_a_local_maximum(model):
    target, g = Target(surrogate(model), True), MEASURES["mixture"]
    objective = log_acquisition(target, g)
    (x,) = local_penalisation(target, g, 1, np.random.default_rng(1))
    value, gradient = objective(x)
    assert np.abs(gradient).max() < 1e-2
    rng = np.random.default_rng(2)
    for radius in (0.01, 0.05):
        around = x + radius * rng.standard_normal((30, 2))
        assert max(objective(z)[0] for z in around) <= value + 1e-6
    # and a good one: no prior draw beats it
    assert max(objective(z)[0] for z in g.sample(300, rng)) <= value + 1e-6


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kernel", ["rbf", "matern32", "polynomial"])
def test_batches_are_distinct_and_spread(kernel, measure):
    target = Target(surrogate("wsabi-l", kernel), True)
    batch = local_penalisation(target, MEASURES[measure], 6, np.random.default_rng(3), n_starts=40, n_refined=2)
    assert batch.shape == (6, 2)
    distance = np.linalg.norm(batch[:, None] - batch, axis=2)[np.triu_indices(6, 1)]
    assert distance.min() > 0.05
    assert distance.max() > 1.0


def test_the_same_generator_gives_the_same_batch():
    target = Target(surrogate(), True)
    a, b = (local_penalisation(target, MEASURES["single"], 3, np.random.default_rng(4), n_starts=20) for _ in range(2))
    np.testing.assert_array_equal(a, b)
