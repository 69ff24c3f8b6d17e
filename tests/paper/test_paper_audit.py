"""The paper's method tests itself: errors are calibrated by its batches, and a wrong answer is not converged."""

import numpy as np
import pytest

import basq
from basq.gp.gp import GP
from basq.gp.kernels.stationary import RBF
from basq.method import Audit
from basq.numerics.linalg import cholesky
from basq.paper.audit import AGREES, MEMORY, UNTESTED, audit, calibrated, calibration, doubts
from basq.paper.evidence import Evidence
from basq.paper.models import Vanilla, Wsabi
from helpers.observations import observe

KERNEL = RBF(0.04, np.array([0.7, 0.7]))
N_BEFORE, N_NEW = 20, 60


def drawn(seed):
    """A likelihood drawn from a process about one, at old and new points."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((N_BEFORE + N_NEW, 2))
    root, _ = cholesky(KERNEL(u, u), plus=np.full(len(u), 1e-8))
    return u, 1.0 + root @ rng.standard_normal(len(u))


def audited(seed, believed=1.0):
    """The audit of new points by a process whose variance is so many times that of the truth."""
    u, values = drawn(seed)
    kernel = RBF(believed * KERNEL.variance, KERNEL.lengthscale)
    gp = GP.condition(u[:N_BEFORE], values[:N_BEFORE], kernel, mean=1.0, noise=1e-8)
    new = observe(u[N_BEFORE:], np.log(np.maximum(values[N_BEFORE:], 1e-3)))
    return audit(Vanilla(gp), 0.0, new, N_BEFORE, 0.0, 1.0)


@pytest.mark.parametrize(("believed", "z2"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.25)])
def test_residuals_show_by_what_factor_variances_are_wrong(believed, z2):
    found = [audited(seed, believed) for seed in range(30)]
    # points of one batch are correlated: thirty batches, and the standard error that they show
    mean, error = np.mean([a.z2 for a in found]), np.std([a.z2 for a in found]) / np.sqrt(30)
    assert abs(mean - z2) < 4.0 * error + 0.1 * z2
    assert {a.n_inside for a in found} == {N_NEW}
    assert all(len(a.z) == N_NEW for a in found)


def test_a_move_of_log_z_counts_like_a_residual():
    u, values = drawn(0)
    gp = GP.condition(u[:N_BEFORE], values[:N_BEFORE], KERNEL, mean=1.0, noise=1e-8)
    new = observe(u[N_BEFORE:], np.log(values[N_BEFORE:]))
    still, moved = (audit(Vanilla(gp), 0.0, new, N_BEFORE, m, 0.05) for m in (0.0, -0.2))
    assert moved.z2 == pytest.approx(16.0)
    assert moved.log_ratio == -0.2
    assert still.z2 < 3.0


def test_a_peak_that_nobody_expected_is_a_surprise():
    u = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]])
    gp = GP.condition(u, np.sqrt(2.0 * np.array([1.0, 0.8, 0.8])), KERNEL, noise=1e-8)
    new = observe(np.array([[3.0, 3.0]]), np.array([np.log(5.0)]))
    found = audit(Wsabi(gp, 0.0, False), 0.0, new, 3, 0.0, 1.0)
    assert found.surprise
    assert "far above its prediction" in doubts((found, found), 0.01, 0.1)[-1]
    expected = observe(np.array([[0.2, 0.2]]), np.array([np.log(0.95)]))
    assert not audit(Wsabi(gp, 0.0, False), 0.0, expected, 3, 0.0, 1.0).surprise


def one(z2=1.0, moved=0.0):
    return Audit(10, 5, z2, 0.1, moved, False, (), MEMORY, AGREES)


def test_error_grows_with_residuals_with_moves_and_with_what_a_square_leaves_out():
    evidence = Evidence(2.0, 0.04)  # claims sd 0.0998 of log Z
    claimed = evidence.log_std
    assert calibration(()) == UNTESTED
    assert calibrated(evidence, (one(), one(0.2)), 0.0) == pytest.approx(claimed)
    assert calibrated(evidence, (one(3.0), one(5.0)), 0.0) == pytest.approx(2.0 * claimed)
    assert calibrated(evidence, (one(), one(moved=-0.3)), 0.0) == pytest.approx(np.hypot(claimed, 0.3))
    assert calibrated(evidence, (one(), one()), 0.5) == pytest.approx(np.hypot(claimed, 0.7 * np.log(1.25)))
    assert calibrated(Evidence(-1.0, 0.04), (one(),), 0.0) == np.inf
    assert calibrated(evidence, (one(moved=np.nan),), 0.0) == np.inf  # where log Z came from is not known


def test_reasons_not_to_believe_it():
    assert doubts((one(), one()), 0.05, 0.1) == []
    assert doubts((), 0.05, 0.1) == ["no batch has tested the surrogate yet"]
    assert doubts((one(),), 0.2, 0.1) == [
        "sd of log Z 0.2 is above dlogz = 0.1",
        "only one batch has tested the surrogate yet",
    ]
    assert doubts((one(9.0), one(9.0)), 0.05, 0.1) == ["the last batches were 3.0 sd off their prediction"]


def mixture(seed, **options):
    problem = basq.problems.mixture(10, seed)
    method = basq.Paper(n_candidates=2000, **options)
    result = basq.infer(
        problem.log_likelihood, problem.prior, method=method, batch_size=50, max_evals=300, dlogz=0.05, vectorized=True,
        seed=seed, progress=False,
    )  # fmt: skip
    return result, result.log_evidence - problem.log_evidence


def test_an_answer_a_quarter_off_is_not_called_converged():
    papers, off = mixture(0, audited=False)
    assert papers.converged
    assert abs(off) > 0.2 > 3.0 * papers.log_evidence_std
    result, off = mixture(0)
    assert not result.converged
    assert "sd of log Z" in result.message
    assert len(result.audits) == result.n_batches - 1
    assert abs(off) < 3.0 * result.log_evidence_std


def test_it_converges_where_it_is_right():
    problem = basq.problems.mixture(2)
    options = {"batch_size": 16, "max_evals": 400, "dlogz": 0.05, "vectorized": True, "seed": 1, "progress": False}
    result = basq.infer(problem.log_likelihood, problem.prior, method=basq.Paper(n_candidates=2000), **options)
    assert result.converged
    assert result.n_evals < 400
    assert abs(result.log_evidence - problem.log_evidence) < 3.0 * result.log_evidence_std < 0.15


def test_batches_before_any_value_above_zero_are_not_audited():
    def shell(x):
        return np.where((x**2).sum(axis=1) > 1.0, -0.5 * (x**2).sum(axis=1), -np.inf)

    start = np.zeros((8, 2)) + 0.01 * np.arange(16).reshape(8, 2)
    result = basq.infer(
        shell, basq.problems.mixture(2).prior, method=basq.Paper(n_candidates=500), batch_size=8, max_evals=32,
        evaluations=(start, np.full(8, -np.inf)), vectorized=True, seed=0, progress=False,
    )  # fmt: skip
    assert len(result.audits) < result.n_batches
    assert np.isfinite(result.log_evidence_std)


def test_a_fit_without_new_values_keeps_its_audits():
    result = mixture(0)[0]
    method, prior = basq.Paper(n_candidates=2000), basq.problems.mixture(10, 0).prior
    first, seen = None, result.observations
    for n in (100, 150):
        part = seen.at(np.arange(n))
        first = method.fit(part, prior, first, np.random.default_rng(0))
    assert len(first.audits) == 1
    again = method.fit(part, prior, first, np.random.default_rng(0))
    assert again.audits == first.audits


@pytest.mark.slow
def test_errors_are_about_as_large_as_they_claim():
    off = []
    for seed in range(10):
        for make in (basq.problems.mixture, lambda d, s: basq.problems.mixture(d, s, shared=True)):
            problem = make(6, seed)
            method = basq.Paper(n_candidates=4000)
            result = basq.infer(
                problem.log_likelihood, problem.prior, method=method, batch_size=50, max_evals=300, dlogz=0.0,
                vectorized=True, seed=seed, progress=False,
            )  # fmt: skip
            off.append((result.log_evidence - problem.log_evidence) / result.log_evidence_std)
    assert np.mean(np.abs(off) < 1.96) >= 0.85
