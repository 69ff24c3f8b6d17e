"""Diffusion in a lithium-ion cell: PyBaMM's models of it, and the inference of two diffusivities from its voltage.

Lithium enters and leaves the electrodes' particles by diffusion, which the voltage shows only faintly: with the
paper's current, 5 % more diffusivity in the anode changes it by 0.4 µV. The single-particle model without (SPM) and
with electrolyte (SPMe), and the Doyle–Fuller–Newman model (DFN), describe the same cell more and more closely.

The cell is PyBaMM's parameter set Marquis2019 (graphite and LiCoO₂, 0.68 Ah), in the set's initial state. PyBaMM is
optional: ``pip install 'basq[battery]'``.

References
----------
Adachi et al., "Fast Bayesian Inference with Batch Bayesian Quadrature via Kernel Recombination", NeurIPS 2022,
arXiv:2206.04734, appendix "Battery simulator".
Aitio, Marquis, Ascencio, Howey, "Bayesian parameter estimation applied to the Li-ion battery single particle model
with electrolyte dynamics", IFAC-PapersOnLine 53 (2020) 12497.
Marquis, Sulzer, Timms, Please, Chapman, "An asymptotic derivation of a single particle model with electrolyte",
Journal of the Electrochemical Society 166 (2019) A3693.
"""

import os
import threading
import warnings
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from basq.errors import EvaluationError, InputError
from basq.numerics.gaussians import LOG_2PI
from basq.prior import Prior
from basq.problems.cases.base import Case
from basq.types import FloatArray, is_number

Model = Literal["SPM", "SPMe", "DFN"]

TOLERANCES = {"SPM": 1e-10, "SPMe": 1e-9, "DFN": 1e-9}
"""Relative and absolute tolerances of the solver.

They leave an error of the voltage (root mean square) below 0.03 µV over the paper's signal and below 0.005 µV in the
shorter experiments, as the tests check. Larger errors differ from call to call and make the log-likelihood noisy: over
40,000 points with 40 µV of noise, 0.2 µV are one nat.
"""
FIRST_STEP = 1e-6  # s; the solver's own guess, a thousandth of the duration, can make DFN fail at tight tolerances

NAMES = ("D_n", "D_p", "noise_variance")
UNITS = np.array([1e-14, 1e-13])  # m²/s; the paper gives logarithms in these units
PRIOR_LOG_MEAN = np.array([1.38, 0.0])
PRIOR_LOG_VARIANCE = np.array([0.03, 0.001, 0.001])
LOG_TRUTH = np.array([1.361, 0.0])
INPUTS = ("Negative particle diffusivity [m2.s-1]", "Positive particle diffusivity [m2.s-1]")
VOLTAGE = "Voltage [V]"


@dataclass(frozen=True)
class Experiment:
    """A current and the times at which the voltage is recorded.

    Attributes
    ----------
    amplitude : float
        A, of each sine. Positive current discharges the cell.
    frequencies : tuple of float
        Hz.
    stop : float
        The time at which the current ends, s; the cell rests from then on.
    start : float
        The time of the first record, s.
    duration : float
        Length of the record, s.
    n_points : int
        The voltage is recorded at start + k · duration / n_points, k = 0 … n_points − 1.
    noise_variance : float
        Of the recorded voltage, V².

    Notes
    -----
    The current is amplitude · Σⱼ sin(2π fⱼ t) until `stop`. The defaults are the paper's experiment.
    """

    amplitude: float = 0.132671
    frequencies: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    stop: float = np.inf
    start: float = 0.0
    duration: float = 10.0
    n_points: int = 40_000
    noise_variance: float = float(np.exp(-20.25))

    def __post_init__(self) -> None:
        if not self.frequencies:
            raise InputError("frequencies is empty; give at least one.")
        positive = {name: getattr(self, name) for name in ("amplitude", "duration", "noise_variance")}
        for name, value in [*positive.items(), *(("frequencies", f) for f in self.frequencies)]:
            if not (is_number(value) and 0.0 < value < np.inf):
                raise InputError(f"{name} is {value!r}; it must be positive and finite.")
        if not (is_number(self.stop) and self.stop > 0.0):
            raise InputError(f"stop is {self.stop!r}; it must be positive.")
        if not (is_number(self.start) and 0.0 <= self.start < np.inf):
            raise InputError(f"start is {self.start!r}; it must be finite and not negative.")
        if not (is_number(self.n_points, Integral) and self.n_points >= 2):
            raise InputError(f"n_points is {self.n_points!r}; it must be an integer of at least 2.")

    @property
    def times(self) -> FloatArray:
        """(n_points,) array, s."""
        out: FloatArray = self.start + np.arange(float(self.n_points)) * (self.duration / self.n_points)
        return out


EXPERIMENTS = {
    "paper": Experiment(),
    "reduced": Experiment(frequencies=(0.001, 0.005), duration=1000.0, n_points=400),
    "rest": Experiment(amplitude=0.68, frequencies=(0.001,), stop=500.0, start=590.0, duration=1000.0, n_points=400),
}
"""Named experiments.

paper
    10 s at 0.25 ms, 40,000 points.
reduced
    The same current made slower and without its two highest frequencies, 400 points. Slow currents reach deeper into
    the particles and tell as much with fewer points; a call takes a fortieth of the time or less.
rest
    Half a sine of discharge over 500 s; the voltage is recorded from 90 s after its end on, 400 points. By then the
    electrolyte has nearly relaxed and the particles have not, so the data tell the diffusivities but hardly SPM from
    SPMe. While a current flows the two differ by millivolts, which leaves nothing to ask.
"""


@dataclass(frozen=True)
class Cell:
    """A model of the cell in an experiment.

    Attributes
    ----------
    model : "SPM", "SPMe" or "DFN"
    experiment : Experiment
    compiled : bool
        Whether PyBaMM translates the equations to C and compiles them, see `lithium_ion`.
    """

    model: Model
    experiment: Experiment
    compiled: bool = False

    def voltage(self, d_n: float, d_p: float) -> FloatArray:
        """Simulate the voltage without noise.

        Parameters
        ----------
        d_n, d_p : float
            Diffusivities in the particles of the anode and of the cathode, m²/s.

        Returns
        -------
        (n_points,) array
            V.

        Raises
        ------
        pybamm.SolverError
        EvaluationError
            If the voltage reaches a cut-off before the last record.
        """
        times = self.experiment.times
        # PyBaMM's objects are not for several threads at once
        simulation = _simulation(self, threading.get_ident())
        solution = simulation.solve([0.0, times[-1]], t_interp=times, inputs=dict(zip(INPUTS, (d_n, d_p), strict=True)))
        # the solver adds the times at which the current ends
        at = np.searchsorted(solution.t, times)
        if at[-1] == len(solution.t):
            raise EvaluationError(
                f"The simulation ended at {solution.t[-1]:.6g} s, before the last record at {times[-1]:.6g} s "
                f"({solution.termination}), with diffusivities {d_n:.6g} and {d_p:.6g} m²/s."
            )
        out: FloatArray = solution[VOLTAGE].data[at]
        return out


@dataclass(frozen=True, eq=False)
class VoltageLikelihood:
    """Log-density of recorded voltages, given two diffusivities and the variance of the noise.

    Attributes
    ----------
    cell : Cell
        Simulates. It pickles as a few numbers; PyBaMM's objects are made at the first call in each process and kept.
    voltages : (n,) array
        Data, V.

    Notes
    -----
    log ℓ = −½ Σ (y − v)² / s − ½ n log 2πs.
    """

    cell: Cell
    voltages: FloatArray

    def __call__(self, x: ArrayLike) -> float:
        """Log-likelihood at (D_n, D_p, s), in m²/s and V²."""
        point = np.asarray(x, dtype=float)
        if point.shape != (3,) or not ((point > 0.0) & (point < np.inf)).all():
            raise InputError(f"The point is {point}; it must be three positive numbers: {', '.join(NAMES)}.")
        d_n, d_p, variance = map(float, point)
        residuals = self.voltages - self.cell.voltage(d_n, d_p)
        return -0.5 * (float(residuals @ residuals) / variance + len(residuals) * (LOG_2PI + float(np.log(variance))))


def lithium_ion(
    model: Model = "SPMe",
    data_model: Model | None = None,
    experiment: Literal["paper", "reduced", "rest"] | Experiment = "paper",
    seed: int = 0,
    *,
    compiled: bool = False,
) -> Case:
    """Make the inference of two diffusivities and the noise of a lithium-ion cell from its voltage.

    Parameters
    ----------
    model : "SPM", "SPMe" or "DFN"
        The model whose log-likelihood is wanted.
    data_model : "SPM", "SPMe" or "DFN", optional
        The model that made the data; the same by default. Cases that differ only in `model` have the same data.
    experiment : "paper", "reduced", "rest" or Experiment
        "paper" has 40,000 points, "reduced" 400 and a call that is forty times faster; "rest" leaves the choice
        between SPM and SPMe open (`EXPERIMENTS`).
    seed : int
        Draws the noise.
    compiled : bool
        Have PyBaMM compile the equations, which makes SPM and SPMe two to five times faster. It needs gcc, takes a
        second (DFN: half a minute, for no gain) and keeps the libraries in a folder of the system's temporary
        directory, or in the one that the environment variable PYBAMM_CASADI_AOT_CACHE names; where others can write
        there, name your own.

    Returns
    -------
    Case
        Parameters D_n and D_p, the diffusivities in anode and cathode (m²/s), and noise_variance (V²), independent and
        lognormal; truth (3.9e-14, 1e-13, 1.6e-9).

    Notes
    -----
    Prior, truth and noise are those of the paper, read as follows. The prior's means and variances, and the truth, are
    logarithms in units of 10⁻¹⁴ m²/s, 10⁻¹³ m²/s and 1 V²; the factor 10⁻¹⁰ in the paper's noise variance is left
    out, which would be 0.4 nV. The noise is Gaussian, as in the paper's likelihood; its data had uniform noise on
    (0, √s), which has a mean. For another `noise_variance` the prior moves with it.
    """
    if isinstance(experiment, str) and experiment in EXPERIMENTS:
        experiment = EXPERIMENTS[experiment]
    if not isinstance(experiment, Experiment):
        raise InputError(f"experiment is {experiment!r}; it must be {', '.join(EXPERIMENTS)} or an Experiment.")
    data_model = model if data_model is None else data_model
    for name, value in (("model", model), ("data_model", data_model)):
        if value not in get_args(Model):
            raise InputError(f"{name} is {value!r}; it must be one of {', '.join(get_args(Model))}.")
    diffusivities = np.exp(LOG_TRUTH) * UNITS
    voltages = Cell(data_model, experiment, compiled).voltage(*map(float, diffusivities))
    voltages += np.sqrt(experiment.noise_variance) * np.random.default_rng(seed).standard_normal(len(voltages))
    return Case(
        name=f"lithium-ion-{model}",
        log_likelihood=VoltageLikelihood(Cell(model, experiment, compiled), voltages),
        prior=_prior(experiment),
        truth=np.append(diffusivities, experiment.noise_variance),
    )


def _prior(experiment: Experiment) -> Prior:
    sds = np.sqrt(PRIOR_LOG_VARIANCE)
    scales = np.append(np.exp(PRIOR_LOG_MEAN) * UNITS, experiment.noise_variance)
    return Prior({name: stats.lognorm(sd, scale=scale) for name, sd, scale in zip(NAMES, sds, scales, strict=True)})


@lru_cache(maxsize=16)
def _simulation(cell: Cell, thread: int) -> Any:
    """PyBaMM's simulation of a cell, one for each thread of this process."""
    pybamm = _pybamm()
    current = cell.experiment

    def amperes(t: Any) -> Any:
        sines = sum(pybamm.sin(2.0 * np.pi * f * t) for f in current.frequencies)
        return current.amplitude * sines * ((t < current.stop) if current.stop < np.inf else 1.0)

    values = pybamm.ParameterValues("Marquis2019")
    values.update({"Current function [A]": amperes} | dict.fromkeys(INPUTS, "[input]"))
    tolerance = TOLERANCES[cell.model]
    solver = pybamm.IDAKLUSolver(
        rtol=tolerance,
        atol=tolerance,
        output_variables=[VOLTAGE],
        options={"dt_init": FIRST_STEP, "compile": cell.compiled, "silence_sundials_errors": True},
    )
    return pybamm.Simulation(getattr(pybamm.lithium_ion, cell.model)(), parameter_values=values, solver=solver)


def _pybamm() -> Any:
    """PyBaMM, imported without its question about telemetry, of which nothing is sent."""
    os.environ.setdefault("PYBAMM_DISABLE_TELEMETRY", "true")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pybamm
    except ImportError as error:
        raise InputError("The lithium-ion cell needs PyBaMM: pip install 'basq[battery]'.") from error
    return pybamm
