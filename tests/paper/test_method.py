"""Every switch of the paper's method runs, and every wrong one is refused."""

import numpy as np
import pytest

import basq
from basq.errors import InputError
from basq.gp.gp import GP
from basq.numerics.gaussians import GaussianMixture
from basq.observations import Observations
from basq.paper.method import MAX_CANDIDATES, MAX_NYSTROM, MIN_CANDIDATES, MIN_NYSTROM

PROBLEM = basq.problems.mixture(2)
SMALL = {"n_candidates": 1000, "n_nystrom": 60}
OPTIONS = [
    *({"model": m} for m in ("vanilla", "wsabi-l", "wsabi-m", "bbq")),
    *({"model": m, "mean": "constant"} for m in ("vanilla", "wsabi-l", "wsabi-m", "bbq")),
    *({"kernel": k} for k in ("rbf-iso", "matern12", "matern32", "matern52", "rq", "polynomial")),
    *({"kernel": k, "model": "wsabi-m"} for k in ("matern52", "polynomial")),
    {"kernel": "rq", "model": "vanilla"},
    *({"proposal": p} for p in ("ivr", "ub", "igb", "prior", "optimal")),
    *({"proposal": p, "factorised": False} for p in ("ivr", "ub", "igb", "prior", "optimal")),
    {"r": 0.0},
    {"r": 1.0},
    {"proposal": "igb", "r": 0.0},
    {"proposal": "igb", "r": 1.0},
    *({"selection": s} for s in ("herding", "local-penalisation", "samples")),
    {"recombination": "lp"},
    {"recombination": "lp", "proper": True},
    {"proper": True},
    {"test_functions": "nystrom-exact"},
    {"test_functions": "fourier"},
    {"test_functions": "fourier", "factorised": False},
    {"test_functions": "fourier", "kernel": "matern32"},
    {"selection": "local-penalisation", "kernel": "polynomial"},
    {"noise": "fit"},
    {"noise": 0.0},
    {"update_kernel": False},
    {"update_kernel": False, "mean": "constant", "noise": "fit"},
    {"n_nystrom": 4},
    {"n_candidates": np.int64(500)},
]


def run(options, *, batch_size=8, max_evals=24, problem=PROBLEM, **kwargs):
    method = basq.Paper(**{**SMALL, **options})
    return basq.infer(
        problem.log_likelihood,
        problem.prior,
        method=method,
        batch_size=batch_size,
        max_evals=max_evals,
        dlogz=0.0,
        vectorized=True,
        seed=1,
        progress=False,
        **kwargs,
    )


def label(options):
    return "-".join(map(str, options.values()))


@pytest.mark.parametrize("options", OPTIONS, ids=label)
def test_every_option_runs(options):
    result = run(options)
    assert result.n_evals == 24
    assert result.n_batches == 3
    assert abs(result.log_evidence - PROBLEM.log_evidence) < 0.7
    assert 0.0 <= result.log_evidence_std < 3.0
    assert len(np.unique(result.observations.x, axis=0)) == 24
    np.testing.assert_array_equal(np.bincount(result.observations.batch), [8, 8, 8])


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"model": "wsabi"}, ["'wsabi'", "'vanilla'", "'wsabi-l'", "'wsabi-m'", "'bbq'"]),
        ({"model": None}, ["None", "'vanilla'"]),
        ({"mean": "linear"}, ["'linear'", "'zero'", "'constant'"]),
        ({"kernel": "rfb"}, ["'rfb'", "'rbf'", "'rbf-iso'", "'matern12'", "'rq'", "'polynomial'"]),
        ({"proposal": "IVR"}, ["'IVR'", "'ivr'", "'ub'", "'igb'", "'prior'", "'optimal'"]),
        ({"selection": "random"}, ["'random'", "'recombination'", "'herding'", "'local-penalisation'", "'samples'"]),
        ({"recombination": "gurobi"}, ["'gurobi'", "'tree'", "'lp'"]),
        ({"test_functions": "wavelets"}, ["'wavelets'", "'nystrom'", "'nystrom-exact'", "'fourier'"]),
        ({"r": 1.5}, ["1.5", "[0, 1]"]),
        ({"r": -0.1}, ["-0.1", "[0, 1]"]),
        ({"r": float("nan")}, ["nan", "[0, 1]"]),
        ({"r": "half"}, ["'half'", "[0, 1]"]),
        ({"r": None}, ["None", "[0, 1]"]),
        ({"n_candidates": 1}, ["1", "at least 2", "'auto'"]),
        ({"n_candidates": 2000.0}, ["2000.0", "integer", "'auto'"]),
        ({"n_candidates": "all"}, ["'all'", "integer", "'auto'"]),
        ({"n_nystrom": True}, ["True", "integer", "'auto'"]),
        ({"n_nystrom": 0}, ["0", "at least 2", "'auto'"]),
        ({"noise": -1e-6}, ["-1e-06", "non-negative", "'fit'"]),
        ({"noise": float("inf")}, ["inf", "non-negative", "'fit'"]),
        ({"noise": "learn"}, ["'learn'", "non-negative", "'fit'"]),
        ({"noise": True}, ["True", "non-negative", "'fit'"]),
        ({"factorised": "yes"}, ["'yes'", "True and False"]),
        ({"proper": 1}, ["proper=1", "True and False"]),
        ({"update_kernel": None}, ["None", "True and False"]),
        ({"model": "bbq", "kernel": "matern32"}, ["'matern32'", "RBF"]),
        ({"test_functions": "fourier", "kernel": "polynomial"}, ["'polynomial'", "stationary"]),
    ],
    ids=lambda value: label(value) if isinstance(value, dict) else "",
)
def test_every_wrong_option_is_refused_by_name(options, allowed):
    with pytest.raises(InputError) as caught:
        basq.Paper(**options)
    for text in [*options, *allowed]:
        assert text in str(caught.value)


def test_batch_above_the_candidates_is_refused_before_any_call():
    calls = []
    with pytest.raises(InputError, match="batch_size=51 is above n_candidates=50"):
        basq.infer(
            calls.append,
            PROBLEM.prior,
            method=basq.Paper(n_candidates=50),
            batch_size=51,
            progress=False,
        )
    assert not calls


def test_a_batch_may_be_all_candidates():
    assert run({"n_candidates": 8}).n_evals == 24


@pytest.mark.parametrize("batch_size", [1, 16, 100, 400, 1500])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0, 2.9, 10.0, 1e9, float("inf")])
def test_automatic_sizes_never_fall_below_the_minimum(ratio, batch_size):
    n, m = basq.Paper(n_candidates="auto", n_nystrom="auto").sizes(batch_size, ratio)
    assert m >= max(MIN_NYSTROM, 2 * batch_size)
    assert n >= max(MIN_CANDIDATES, 10 * m)
    assert m <= max(MAX_NYSTROM, 2 * batch_size)
    assert n <= max(MAX_CANDIDATES, 10 * m)


def test_automatic_sizes_follow_the_guideline():
    paper = basq.Paper(n_candidates="auto", n_nystrom="auto")
    assert paper.sizes(100, 2.0) == (MIN_CANDIDATES, 2 * MIN_NYSTROM)
    assert paper.sizes(100, 6.0) == (2 * MIN_CANDIDATES, 6 * MIN_NYSTROM)
    assert basq.Paper(n_candidates="auto", n_nystrom=300).sizes(16, 9.0) == (3 * MIN_CANDIDATES, 300)
    assert basq.Paper(n_candidates=700, n_nystrom="auto").sizes(16, 2.0) == (700, 2 * MIN_NYSTROM)


def test_given_sizes_are_kept():
    assert basq.Paper(n_candidates=777, n_nystrom=33).sizes(16, 50.0) == (777, 33)
    # test functions cannot be learned from fewer centres than there are
    assert basq.Paper(n_candidates=777, n_nystrom=33).sizes(64, 0.0) == (777, 64)


def test_the_record_says_how_candidates_were_drawn():
    info = run({}).history[-1].info
    assert info["n_candidates"] == 1000
    assert info["n_nystrom"] == 60
    assert info["sampler"] in ("mixture", "resampling")
    assert 0.0 <= info["acceptance"] <= 1.0
    assert "fallback" in info


@pytest.mark.parametrize("kernel", ["matern52", "rq"])
def test_evidence_without_closed_form_is_close_to_the_rbf_one(kernel):
    rbf, other = (
        run({"model": "wsabi-m", "mean": "constant", "kernel": k}, max_evals=64, batch_size=16) for k in ("rbf", kernel)
    )
    assert rbf.log_evidence == pytest.approx(PROBLEM.log_evidence, abs=0.03)
    assert other.log_evidence == pytest.approx(rbf.log_evidence, abs=0.06)
    np.testing.assert_allclose(other.mean, rbf.mean, atol=0.15)


def test_iso_and_ard_kernels_agree_on_an_isotropic_problem():
    ard, iso = (run({"kernel": k, "model": "wsabi-m"}, max_evals=48, batch_size=16) for k in ("rbf", "rbf-iso"))
    assert iso.log_evidence == pytest.approx(ard.log_evidence, abs=0.05)


def kernels(options):
    """The kernel after every batch."""
    seen = []
    run(options, callback=lambda state: seen.append(state.fitted.surrogate.gp.kernel))
    return seen


def test_kernel_update_can_be_switched_off():
    fixed = kernels({"update_kernel": False})
    for kernel in fixed:
        np.testing.assert_array_equal(kernel.lengthscale, np.full(2, np.sqrt(2.0)))
    learned = kernels({})
    assert not np.allclose(learned[0].lengthscale, learned[-1].lengthscale)


def test_a_kept_kernel_is_not_factorised_again(monkeypatch):
    fits = []
    monkeypatch.setattr("basq.paper.training.still_right", lambda gp: fits.append(gp.n_learned) or True)
    factorised = []
    condition = GP.condition
    monkeypatch.setattr(
        GP, "condition", lambda x, *args, **options: factorised.append(len(x)) or condition(x, *args, **options)
    )
    result = run({})
    assert result.n_evals == 24
    assert factorised == [8] == list(set(fits))


def test_noise_is_learned_when_asked():
    rng = np.random.default_rng(0)
    u = rng.standard_normal((80, 2))
    exact = -0.5 * (u**2).sum(axis=1)
    prior = basq.Prior({"a": (-1, 1), "b": (-1, 1)})

    def relative_noise(log_likelihood):
        seen = Observations.empty(2).append(u, u, log_likelihood, np.zeros(80))
        gp = basq.Paper(model="vanilla", noise="fit").fit(seen, prior, None, rng).surrogate.gp
        return gp.noise[0] / gp.kernel.variance

    noisy = exact + np.log(np.maximum(1.0 + 0.3 * rng.standard_normal(80), 0.05))
    assert relative_noise(exact) < 1e-5
    assert relative_noise(noisy) > 1e-3


def test_dlogz_zero_never_stops_early():
    # a constant is learned so well that its variance may be clipped to zero
    result = basq.infer(
        lambda x: 0.0,
        {"a": (0, 1)},
        method=basq.Paper(**SMALL, model="vanilla", mean="constant"),
        batch_size=4,
        max_evals=20,
        dlogz=0.0,
        seed=0,
        progress=False,
    )
    assert result.n_evals == 20
    assert not result.converged


def test_fit_of_only_zeros_has_no_evidence_and_no_posterior():
    u = GaussianMixture.standard(2).sample_quasi(8, np.random.default_rng(0))
    seen = Observations.empty(2).append(u, u, np.full(8, -np.inf), np.zeros(8))
    for model in ("vanilla", "wsabi-l", "wsabi-m", "bbq"):
        fitted = basq.Paper(model=model).fit(seen, PROBLEM.prior, None, np.random.default_rng(1))
        assert fitted.log_evidence == -np.inf
        assert fitted.log_evidence_std == np.inf
        assert fitted.converged(0.1) == (False, "every likelihood value so far is zero (−inf)")
        with pytest.raises(InputError, match="no posterior"):
            _ = fitted.posterior
