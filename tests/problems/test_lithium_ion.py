"""The lithium-ion cell: its voltage against other solvers and tolerances, and its inference against interpolation."""

import builtins
import re
import runpy
import shutil
import threading
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import cloudpickle
import numpy as np
import pybamm
import pytest
from numpy.polynomial import chebyshev
from scipy import integrate, stats
from scipy.special import logsumexp

import basq
from basq import problems
from basq.errors import EvaluationError, InputError
from basq.problems.cases.lithium_ion import EXPERIMENTS, INPUTS, VOLTAGE, Cell, Experiment, VoltageLikelihood
from helpers.commands import run_python

# the package's attribute of this name is the function
MODULE = import_module("basq.problems.cases.lithium_ion")
MODELS = ("SPM", "SPMe", "DFN")
EXAMPLE = Path(__file__).parents[2] / "examples" / "battery.py"
D_N, D_P = np.exp(1.361) * 1e-14, 1e-13
REDUCED = EXPERIMENTS["reduced"]
# the voltage falls to its lower cut-off near the last record: before it if the anode's diffusivity is below the median
EMPTYING = Experiment(amplitude=4.0, frequencies=(5e-4,), duration=823.6, n_points=50)


def rms(x: np.ndarray) -> float:
    """Root mean square of a voltage, in µV."""
    return 1e6 * float(np.sqrt(np.mean(x**2)))


@pytest.fixture(scope="module")
def case():
    return problems.lithium_ion("SPM", experiment="reduced")


# --- the voltage -----------------------------------------------------------------------------------------------------


def by_scipy(cell: Cell) -> np.ndarray:
    """The voltage from PyBaMM's equations, integrated by SciPy."""
    experiment, inputs = cell.experiment, dict(zip(INPUTS, (D_N, D_P), strict=True))
    model = MODULE._simulation(cell, threading.get_ident()).built_model

    def slope(t, y):
        return model.concatenated_rhs.evaluate(t, y[:, None], inputs=inputs)[:, 0]

    times = experiment.times
    ends = np.unique(np.minimum([0.0, experiment.stop, times[-1]], times[-1]))
    y = model.concatenated_initial_conditions.evaluate(0.0, inputs=inputs)[:, 0]
    for span in pairwise(ends):
        t = np.union1d(times[(times >= span[0]) & (times < span[1])], span[1])
        path = integrate.solve_ivp(slope, span, y, method="LSODA", t_eval=t, rtol=1e-10, atol=1e-10)
        y = path.y[:, -1]
    voltage = model.get_processed_variable(VOLTAGE)
    return np.array(
        [voltage.evaluate(t, y[:, None], inputs=inputs).item() for t, y in zip(path.t, path.y.T, strict=True)]
    )


@pytest.mark.parametrize(("model", "name"), [("SPM", "reduced"), ("SPM", "rest"), ("SPMe", "rest")])
def test_voltage_is_that_of_another_integrator(model, name):
    cell = Cell(model, EXPERIMENTS[name])
    voltage = cell.voltage(D_N, D_P)
    assert rms(voltage - by_scipy(cell)) < 0.01


@pytest.mark.parametrize("name", ["reduced", "rest"])
@pytest.mark.parametrize("model", MODELS)
def test_solver_error_is_far_below_a_tenth_of_a_microvolt(model, name, monkeypatch):
    corners = [(D_N, D_P), (D_N * 0.6, D_P * 1.1), (D_N * 1.6, D_P * 0.9)]
    assert solver_error(Cell(model, EXPERIMENTS[name]), corners, monkeypatch) < 0.005


def test_solver_error_stays_small_over_many_cycles(monkeypatch):
    assert solver_error(Cell("SPM", EXPERIMENTS["paper"]), [(D_N, D_P)], monkeypatch) < 0.03


def solver_error(cell: Cell, points: list[tuple[float, float]], monkeypatch) -> float:
    """Largest error in µV, against a tenth of the tolerance."""
    voltages = [cell.voltage(*x) for x in points]
    with monkeypatch.context() as patch:
        patch.setitem(MODULE.TOLERANCES, cell.model, 0.1 * MODULE.TOLERANCES[cell.model])
        MODULE._simulation.cache_clear()
        tighter = [cell.voltage(*x) for x in points]
    MODULE._simulation.cache_clear()
    return max(rms(a - b) for a, b in zip(voltages, tighter, strict=True))


def test_paper_signal_shows_the_parameters_and_the_models():
    cell = Cell("SPMe", EXPERIMENTS["paper"])
    voltage = cell.voltage(D_N, D_P)
    assert voltage.shape == (40_000,)
    assert rms(cell.voltage(1.05 * D_N, D_P) - voltage) == pytest.approx(0.4, abs=0.05)
    assert rms(cell.voltage(D_N, 1.03 * D_P) - voltage) == pytest.approx(2.7, abs=0.1)
    assert rms(replace(cell, model="SPM").voltage(D_N, D_P) - voltage) == pytest.approx(2575.0, rel=0.01)


def test_models_are_close_in_the_right_order():
    spm, spme, dfn = (Cell(model, REDUCED).voltage(D_N, D_P) for model in MODELS)
    assert rms(spme - dfn) < 0.2 * rms(spm - dfn)


def test_cut_off_is_an_error_that_says_when():
    cell = Cell("SPM", EMPTYING)
    assert cell.voltage(1.4 * D_N, D_P).shape == (50,)
    with pytest.raises(EvaluationError, match=r"ended at 80\d\.\d+ s, before .* Minimum voltage"):
        cell.voltage(0.7 * D_N, D_P)


def test_solver_failure_is_pybamms_exception(monkeypatch, capfd):
    monkeypatch.setitem(MODULE.TOLERANCES, "SPM", 1e-18)
    with pytest.raises(pybamm.SolverError):
        Cell("SPM", replace(REDUCED, n_points=7)).voltage(D_N, D_P)
    MODULE._simulation.cache_clear()
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="PyBaMM compiles with gcc")
def test_compiled_equations_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("PYBAMM_CASADI_AOT_CACHE", str(tmp_path))
    cell = Cell("SPMe", replace(REDUCED, n_points=100))
    difference = replace(cell, compiled=True).voltage(D_N, D_P) - cell.voltage(D_N, D_P)
    assert any(tmp_path.iterdir())
    assert rms(difference) < 0.005


def test_threads_do_not_share_a_simulation():
    cell = Cell("SPM", REDUCED)
    expected = {d_n: cell.voltage(d_n, D_P) for d_n in (D_N, 1.3 * D_N)}
    voltages = {}

    def work(d_n):
        voltages[d_n] = [cell.voltage(d_n, D_P) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(d_n,)) for d_n in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for d_n, once in expected.items():
        np.testing.assert_allclose(voltages[d_n], np.tile(once, (5, 1)), rtol=0.0, atol=1e-12)


# --- the case --------------------------------------------------------------------------------------------------------


def test_truth_and_prior_are_the_papers(case):
    np.testing.assert_allclose(case.truth, [3.9e-14, 1e-13, 1.605e-9], rtol=1e-3)
    logs = np.log(case.prior.from_standard(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])))
    np.testing.assert_allclose(logs[0], np.log([1e-14, 1e-13, 1.0]) + [1.38, 0.0, -20.25], rtol=1e-12)
    np.testing.assert_allclose((logs[1] - logs[0]) ** 2, [0.03, 0.001, 0.001], rtol=1e-6)
    times = EXPERIMENTS["paper"].times
    assert len(times) == 40_000
    np.testing.assert_allclose(np.diff(times), 0.00025, rtol=1e-9)


def test_log_likelihood_is_the_normal_density_of_the_residuals(case):
    x = case.truth * [1.1, 0.99, 1.2]
    voltage = case.log_likelihood.cell.voltage(x[0], x[1])
    expected = stats.norm.logpdf(case.log_likelihood.voltages, voltage, np.sqrt(x[2])).sum()
    value = case.log_likelihood(x)
    assert isinstance(value, float)
    assert value == pytest.approx(expected, rel=1e-12)


def test_data_belong_to_their_model_and_seed(case):
    clean = Cell("SPM", REDUCED).voltage(*case.truth[:2])
    noise = case.log_likelihood.voltages - clean
    assert np.std(noise) == pytest.approx(np.exp(-20.25 / 2), rel=0.1)
    crossed = problems.lithium_ion("SPMe", "SPM", "reduced")
    np.testing.assert_array_equal(crossed.log_likelihood.voltages, case.log_likelihood.voltages)
    assert crossed.log_likelihood.cell.model == "SPMe"
    other = problems.lithium_ion("SPM", experiment="reduced", seed=1)
    assert not np.array_equal(other.log_likelihood.voltages, case.log_likelihood.voltages)


def test_another_noise_moves_the_prior():
    quiet = problems.lithium_ion("SPM", experiment=replace(REDUCED, noise_variance=1e-10))
    assert quiet.truth[2] == 1e-10
    assert quiet.prior.from_standard(np.zeros((1, 3)))[0, 2] == pytest.approx(1e-10)


def test_pickle_holds_the_data_and_not_the_simulation(case):
    case.log_likelihood(case.truth)
    packed = cloudpickle.dumps(case.log_likelihood)
    assert len(packed) < case.log_likelihood.voltages.nbytes + 2000
    assert cloudpickle.loads(packed)(case.truth) == pytest.approx(case.log_likelihood(case.truth), abs=1e-9)


def test_simulation_is_built_once(case, monkeypatch):
    case.log_likelihood(case.truth)
    monkeypatch.setattr(MODULE, "_pybamm", lambda: pytest.fail("built again"))
    cloudpickle.loads(cloudpickle.dumps(case.log_likelihood))(case.truth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "P2D"}, "model is 'P2D'; it must be one of SPM, SPMe, DFN"),
        ({"data_model": "spm"}, "data_model is 'spm'"),
        ({"experiment": "full"}, "experiment is 'full'; it must be paper, reduced, rest or an Experiment"),
        ({"experiment": 3}, "experiment is 3"),
    ],
)
def test_bad_case_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        problems.lithium_ion(**arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"amplitude": 0.0},
        {"frequencies": ()},
        {"frequencies": (1.0, -1.0)},
        {"stop": 0.0},
        {"start": -1.0},
        {"duration": np.inf},
        {"n_points": 1},
        {"n_points": 10.0},
        {"noise_variance": True},
    ],
)
def test_bad_experiment_is_refused(change):
    with pytest.raises(InputError, match=next(iter(change))):
        replace(REDUCED, **change)


@pytest.mark.parametrize("x", [[D_N, D_P], [D_N, D_P, -1e-9], [D_N, np.nan, 1e-9]])
def test_bad_point_is_refused(case, x):
    with pytest.raises(InputError, match="three positive numbers"):
        case.log_likelihood(x)


def test_missing_pybamm_names_the_extra(monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pybamm":
            raise ImportError("No module named 'pybamm'")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'basq\[battery\]'"):
        problems.lithium_ion("SPM", experiment=replace(REDUCED, n_points=3))


def test_basq_does_not_import_pybamm_and_pybamm_asks_nothing(tmp_path):
    # outside pytest, and in a home without settings, PyBaMM would ask about telemetry
    program = (
        "import sys, basq, basq.problems\n"
        "assert 'pybamm' not in sys.modules\n"
        "case = basq.problems.lithium_ion('SPM', experiment='reduced')\n"
        "import pybamm\n"
        "assert pybamm.telemetry._posthog.disabled\n"
    )
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    assert run_python(program, "-W", "error", env=environment) == ("", "")
    assert not list(tmp_path.rglob("config.yml"))


# --- its inference ---------------------------------------------------------------------------------------------------


class Interpolated:
    """The case in standard space with the residuals interpolated over both diffusivities, and integrated on a grid.

    Residuals at degree + 1 Chebyshev nodes a side over ±6 prior standard deviations; the noise by Gauss–Hermite
    quadrature. Interpolation of the residuals makes their sum of squares a quadratic form in the weights of the nodes.
    """

    def __init__(self, case, degree: int = 8, n_grid: int = 801):
        self.case, self.degree = case, degree
        nodes = 6.0 * chebyshev.chebpts1(degree + 1)
        self.residuals = np.stack([[self.residual(a, b) for b in nodes] for a in nodes])
        self.basis = np.linalg.inv(chebyshev.chebvander(nodes / 6.0, degree))
        u = np.linspace(-6.0, 6.0, n_grid)
        w, log_weights = normal_nodes(24)
        variances = case.prior.from_standard(np.stack([0 * w, 0 * w, w], axis=1))[:, 2]
        n = len(case.log_likelihood.voltages)
        weights = self.weights(u)
        log_posterior = np.empty((n_grid, n_grid))
        noise = log_weights - 0.5 * n * np.log(2.0 * np.pi * variances)
        for i, row in enumerate(weights):
            along = np.tensordot(row, self.residuals, axes=1)
            squares = ((weights @ (along @ along.T)) * weights).sum(axis=1)
            log_posterior[i] = logsumexp(noise - 0.5 * squares[:, None] / variances, axis=1)
        log_posterior += stats.norm.logpdf(u)[:, None] + stats.norm.logpdf(u)
        total = logsumexp(log_posterior)
        self.log_evidence = total + 2.0 * np.log(u[1] - u[0])
        mass = np.exp(log_posterior - total)
        marginals = mass.sum(axis=1), mass.sum(axis=0)
        self.mean = np.array([m @ u for m in marginals])
        self.sd = np.sqrt([m @ u**2 for m in marginals] - self.mean**2)

    def residual(self, a: float, b: float) -> np.ndarray:
        d_n, d_p, _ = self.case.prior.from_standard(np.array([[a, b, 0.0]]))[0]
        return self.case.log_likelihood.voltages - self.case.log_likelihood.cell.voltage(d_n, d_p)

    def weights(self, u: np.ndarray) -> np.ndarray:
        return chebyshev.chebvander(u / 6.0, self.degree) @ self.basis


def normal_nodes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and log-weights of Gauss–Hermite quadrature under N(0, 1)."""
    x, w = np.polynomial.hermite_e.hermegauss(n)
    return x, np.log(w / np.sqrt(2.0 * np.pi))


def test_evidence_and_posterior_agree_with_the_grid(case):
    oracle = Interpolated(case)
    for a, b in np.random.default_rng(0).uniform(-4.0, 4.0, (5, 2)):
        wa, wb = oracle.weights(np.array([a, b]))
        assert rms(np.einsum("i,j,ijn->n", wa, wb, oracle.residuals) - oracle.residual(a, b)) < 0.03

    result = basq.infer(case.log_likelihood, case.prior, pool=2, seed=1, progress=False)
    assert result.converged
    assert result.n_failed == 0
    assert result.log_evidence_std < 0.1
    assert abs(result.log_evidence - oracle.log_evidence) < 3.0 * result.log_evidence_std

    u = case.prior.to_standard(result.sample(4000, seed=1))
    assert (oracle.sd < 0.3).all()  # the data tell much more than the prior
    assert (np.abs(u.mean(axis=0)[:2] - oracle.mean) < 0.2 * oracle.sd).all()
    np.testing.assert_allclose(u.std(axis=0)[:2], oracle.sd, rtol=0.1)
    offset = case.prior.to_standard(case.truth[None])[0] - u.mean(axis=0)
    assert offset @ np.linalg.solve(np.cov(u.T), offset) < stats.chi2(3).ppf(0.95)


def test_failed_solves_are_recorded(case):
    cell = Cell("SPM", EMPTYING)
    log_likelihood = VoltageLikelihood(cell, cell.voltage(1.1 * D_N, D_P))
    result = basq.infer(log_likelihood, case.prior, max_evals=32, seed=0, progress=False)
    assert 0 < result.n_failed < 32
    assert "before the last record" in result.failures[0].error


@pytest.mark.slow  # the demonstration of the command line does the same
def test_example_runs_and_compares(tmp_path, monkeypatch, capsys):
    compare, options = basq.compare, {"max_evals": 112, "pool": None, "progress": False}
    monkeypatch.setattr(basq, "compare", lambda *args, **settings: compare(*args, **(settings | options)))
    runpy.run_path(str(EXAMPLE))["main"](tmp_path)
    printed = capsys.readouterr().out
    log_factor = float(re.search(r"ln B = (\S+)", printed)[1])
    assert 0.5 < log_factor < 4.0  # open: neither model is out of the question
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"SPM.png", "SPMe.png", "comparison.png", "SPM.sqlite", "SPMe.sqlite"}
