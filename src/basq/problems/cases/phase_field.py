"""Spinodal decomposition of an iron–chromium alloy: a Cahn–Hilliard simulator and the inference of its parameters.

A quenched alloy is unstable and separates into iron-rich and chromium-rich regions a few nanometres wide, which
then coarsen. Four parameters of the model are inferred from images of the composition.

Energies are per mole and in units of RT, lengths in nanometres, times in units of 1 nm² / D_Fe(T), with D_Fe the
self-diffusion coefficient of iron. Compositions c are atomic fractions of chromium.

References
----------
Adachi et al., "Fast Bayesian Inference with Batch Bayesian Quadrature via Kernel Recombination", NeurIPS 2022,
arXiv:2206.04734, appendix "Phase-field model".
Koyama, Onodera, "Phase-field simulation of microstructure changes in Fe–Cr–Co alloys", Materials Transactions 45
(2004) 2797.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft, stats

from basq.errors import InputError
from basq.numerics.gaussians import LOG_2PI
from basq.prior import Prior
from basq.problems.cases.base import Case
from basq.problems.cases.iron_chromium import GAS_CONSTANT, IronChromium
from basq.types import FloatArray, IntArray, is_number

SQUARE_NANOMETRES = 1e18  # in a square metre

# Self-diffusion coefficients D exp(−Q / RT), as Koyama and Onodera use them; only the ratio Cr / Fe enters.
DIFFUSION_PREFACTOR_RATIO = 2.0e-5 / 1.0e-4
DIFFUSION_ENERGY_DIFFERENCE = 308e3 - 294e3  # J/mol

MEAN_COMPOSITION = 0.4  # inside the spinodal, 0.32 < c < 0.77 at 673 K
INITIAL_NOISE = 0.02  # half-width of the uniform law of the initial fluctuations
NOISE_VARIANCE = 1e-4
FRAME_INTERVAL = 20.0
PIXEL = 0.5  # nm; an interface is 1.2 nm wide, which pixels of 1 nm would not resolve
TIME_STEP = 0.1
# Implicit share of d²f/dc². The steps are stable if it is half the largest curvature that occurs: 8 would do at 673 K,
# but the prior's coldest alloys, six standard deviations out, reach c = 0.98 and a curvature of 46.
STABILISER = 24.0

NAMES = ("T", "L_cT", "n_B", "L_g")
UNITS = np.array([1e2, 1e4, 1.0, 1e-15])  # K, J/mol, 1, J m²/mol; the paper gives logarithms in these units
PRIOR_LOG_MEAN = np.array([1.91, 0.718, 0.798, 0.693])
PRIOR_LOG_VARIANCE = np.array([3e-4, 6e-5, 1e-4, 1e-4])
LOG_TRUTH = np.array([1.90657514, 0.71783979, 0.7975072, 0.69314718])


@dataclass(frozen=True)
class CahnHilliard:
    """Cahn–Hilliard dynamics of the alloy on a periodic square.

    Attributes
    ----------
    temperature, interaction, bohr_magnetons : float
        See `IronChromium`.
    gradient_energy : float
        L_g, J m²/mol.
    size : int
        Pixels along a side, at least 4.
    pixel : float
        Width of a pixel, nm.
    time_step : float
    mean_composition : float
        The composition at which the mobility is taken.

    Notes
    -----
    ∂c/∂t = M ∇²μ, μ = df/dc − 2 L_g ∇²c / RT, which descends the energy ∫ f + (L_g / RT) |∇c|². The factor 2
    follows Koyama's programs; the paper names L_g without a formula. As there, the mobility
    M = [c D_Fe + (1 − c) D_Cr] c (1 − c) / D_Fe is taken at the mean composition, so it only sets the pace.

    Space is spectral. Time stepping is a two-step backward difference, implicit in the linear terms and explicit, by
    extrapolation, in the rest of df/dc; its error is of second order. The mean of c is conserved.
    """

    temperature: float
    interaction: float
    bohr_magnetons: float
    gradient_energy: float
    size: int = 64
    pixel: float = PIXEL
    time_step: float = TIME_STEP
    mean_composition: float = MEAN_COMPOSITION

    def __post_init__(self) -> None:
        positive = ("temperature", "interaction", "bohr_magnetons", "gradient_energy", "pixel", "time_step")
        for name in positive:
            _check_positive(name, getattr(self, name))
        _check_count("size", self.size, least=4)
        if not (is_number(self.mean_composition) and 0.0 < self.mean_composition < 1.0):
            raise InputError(f"mean_composition is {self.mean_composition!r}; it must lie between 0 and 1.")

    @property
    def alloy(self) -> IronChromium:
        return IronChromium(self.temperature, self.interaction, self.bohr_magnetons)

    @property
    def stiffness(self) -> float:
        """2 L_g / RT, nm²."""
        return 2.0 * self.gradient_energy * SQUARE_NANOMETRES / (GAS_CONSTANT * self.temperature)

    @property
    def mobility(self) -> float:
        """M, nm² per unit of time."""
        c = self.mean_composition
        arrhenius = np.exp(-DIFFUSION_ENERGY_DIFFERENCE / (GAS_CONSTANT * self.temperature))
        return float((c + (1.0 - c) * DIFFUSION_PREFACTOR_RATIO * arrhenius) * c * (1.0 - c))

    @cached_property
    def square_wavenumbers(self) -> FloatArray:
        """|k|² of the half-spectrum of a real field, (size, size // 2 + 1), 1/nm²."""
        rows = 2.0 * np.pi * fft.fftfreq(self.size, self.pixel)
        columns = 2.0 * np.pi * fft.rfftfreq(self.size, self.pixel)
        out: FloatArray = rows[:, None] ** 2 + columns**2
        return out

    def chemical_potential(self, c: FloatArray) -> FloatArray:
        """μ of a field: (size, size) -> (size, size)."""
        out: FloatArray = self.alloy.potential(c) + self._bending(c)
        return out

    def free_energy(self, c: FloatArray) -> float:
        """Mean over the square of f + (L_g / RT) |∇c|², for a field (size, size)."""
        return float(np.mean(self.alloy.energy(c) + 0.5 * c * self._bending(c)))

    def growth_rate(self, k: ArrayLike) -> FloatArray:
        """Rate at which a small wave of wavenumber k, 1/nm, grows on the uniform mean composition."""
        square = np.square(np.asarray(k, dtype=float))
        curvature = self.alloy.curvature(np.array(self.mean_composition))
        out: FloatArray = -self.mobility * square * (curvature + self.stiffness * square)
        return out

    def run(self, initial: ArrayLike, times: ArrayLike) -> FloatArray:
        """Simulate from time 0 and save the field at given times.

        Parameters
        ----------
        initial : (size, size) array
            Compositions inside (0, 1).
        times : (n,) array
            Positive, increasing multiples of `time_step`.

        Returns
        -------
        (n, size, size) array

        Raises
        ------
        ArithmeticError
            If a composition leaves (0, 1) or is not finite; a smaller time step may help.
        """
        field = self._checked_field(initial)
        wanted = self._steps(times)
        frames = np.empty((len(wanted), *field.shape))
        n_saved = 0
        for step, c in enumerate(self._fields(field), start=1):
            # the comparison also fails for NaN
            if not (c.min() > 0.0 and c.max() < 1.0):
                raise ArithmeticError(
                    f"{self}: the composition left (0, 1) at time {step * self.time_step:g}; try a smaller time step."
                )
            if step == wanted[n_saved]:
                frames[n_saved] = c
                n_saved += 1
            if n_saved == len(wanted):
                break
        return frames

    def _fields(self, initial: FloatArray) -> Iterator[FloatArray]:
        """Yield the field after each time step, without end."""
        alloy, k2, shape = self.alloy, self.square_wavenumbers, initial.shape
        pace = -self.time_step * self.mobility * k2
        damping = -pace * (STABILISER + self.stiffness * k2)
        old = fft.rfft2(initial)
        past = pace * (fft.rfft2(alloy.potential(initial)) - STABILISER * old)
        new = (old + past) / (1.0 + damping)  # the first step has no predecessor: backward Euler
        while True:
            c = fft.irfft2(new, s=shape)
            yield c
            force = pace * (fft.rfft2(alloy.potential(c)) - STABILISER * new)
            old, new = new, (4.0 * new - old + 4.0 * force - 2.0 * past) / (3.0 + 2.0 * damping)
            past = force

    def _bending(self, c: FloatArray) -> FloatArray:
        """−2 L_g ∇²c / RT."""
        out: FloatArray = fft.irfft2(self.stiffness * self.square_wavenumbers * fft.rfft2(c), s=c.shape)
        return out

    def _checked_field(self, initial: ArrayLike) -> FloatArray:
        field = np.asarray(initial, dtype=float)
        if field.shape != (self.size, self.size):
            raise InputError(f"The initial field has shape {field.shape}; it must be ({self.size}, {self.size}).")
        if not (field.min() > 0.0 and field.max() < 1.0):
            raise InputError("The initial field has compositions that are not inside (0, 1).")
        return field

    def _steps(self, times: ArrayLike) -> IntArray:
        """Return the numbers of the steps after which to save."""
        ratio = np.asarray(times, dtype=float) / self.time_step
        if ratio.ndim != 1 or ratio.size == 0 or not np.isfinite(ratio).all():
            raise InputError(f"times is {times!r}; it must be a non-empty list of finite numbers.")
        steps = np.rint(ratio).astype(np.intp)
        if steps[0] < 1 or (np.diff(steps) < 1).any() or (np.abs(ratio - steps) > 1e-6 * steps).any():
            raise InputError(f"times must be positive, increasing multiples of the time step {self.time_step:g}.")
        return steps


@dataclass(frozen=True, eq=False)
class FieldLikelihood:
    """Gaussian log-likelihood of saved frames, pixel by pixel.

    Attributes
    ----------
    initial : (size, size) array
        Where every simulation starts.
    times : (n,) array
    frames : (n, size, size) array
        The data.
    noise_variance : float
    time_step, pixel : float
        Of the simulator.
    """

    initial: FloatArray
    times: FloatArray
    frames: FloatArray
    noise_variance: float = NOISE_VARIANCE
    time_step: float = TIME_STEP
    pixel: float = PIXEL

    def __call__(self, x: ArrayLike) -> float:
        """Log-likelihood of the parameters (T, L_cT, n_B, L_g), in K, J/mol, 1 and J m²/mol."""
        point = np.asarray(x, dtype=float)
        if point.shape != (len(NAMES),):
            raise InputError(f"The log-likelihood was given an array of shape {point.shape}; it takes ({len(NAMES)},).")
        simulator = _simulator(point, len(self.initial), self.time_step, self.pixel)
        residuals = self.frames - simulator.run(self.initial, self.times)
        misfit = float(np.sum(residuals**2)) / self.noise_variance
        return -0.5 * (misfit + residuals.size * (LOG_2PI + float(np.log(self.noise_variance))))


def phase_field(
    size: int = 64,
    n_frames: int = 10,
    seed: int = 0,
    *,
    time_step: float = TIME_STEP,
    frame_interval: float = FRAME_INTERVAL,
    pixel: float = PIXEL,
) -> Case:
    """Make the inference of four parameters of spinodal decomposition from noisy images.

    Parameters
    ----------
    size : int
        Pixels along a side, at least 4.
    n_frames : int
        Number of images.
    seed : int
        Draws, in order: the initial field, 0.4 + U(−0.02, 0.02) in each pixel, shifted to the mean 0.4; the noise.
    time_step : float
        Of the simulation, for the data and for every call. With 1 instead of 0.1 a call is ten times as fast and the
        separation comes up to a few time units early or late; the data do the same, so it is as good a test of
        inference, if not of steel.
    frame_interval : float
        Time between images, the first of which is taken after as much; a multiple of the time step. The cost of a call
        is in proportion to it and to the number of images.
    pixel : float
        Width of a pixel, nm.

    Returns
    -------
    Case
        Parameters T (K), L_cT (J/mol), n_B and L_g (J m²/mol), independent and lognormal; truth
        (673, 20500, 2.22, 2e-15).

    Notes
    -----
    log ℓ = −½ Σ (y − c)² / σ² − ½ n log 2πσ² over the n pixels of all frames, σ² = 1e-4. Every simulation starts
    from the initial field of the data. The alloy is uniform but for noise until t ≈ 80, separates by t ≈ 120, and
    coarsens from then on.

    Prior, truth and σ² are those of the paper, read as follows. The prior's means and variances, and the truth, are
    logarithms of the parameters in units of 100 K, 10⁴ J/mol, 1 and 10⁻¹⁵ J m²/mol. The noise is Gaussian, as in the
    paper's likelihood; its data had uniform noise on (0, σ), which has a mean. The paper has 5000 images of 64 × 64
    pixels of 1 nm, one a second: ``phase_field(64, 5000, frame_interval=1, pixel=1, time_step=0.5)``, with seconds read
    as dimensionless times. Here the images are fewer by default, and their pixels resolve the interfaces.
    """
    _check_count("size", size, least=4)
    _check_count("n_frames", n_frames)
    _check_positive("frame_interval", frame_interval)
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-INITIAL_NOISE, INITIAL_NOISE, (size, size))
    initial = MEAN_COMPOSITION + noise - noise.mean()
    times = frame_interval * np.arange(1.0, n_frames + 1.0)
    truth = np.exp(LOG_TRUTH) * UNITS
    frames = _simulator(truth, size, time_step, pixel).run(initial, times)
    frames += np.sqrt(NOISE_VARIANCE) * rng.standard_normal(frames.shape)
    return Case(
        name=f"phase-field-{size}",
        log_likelihood=FieldLikelihood(initial, times, frames, time_step=time_step, pixel=pixel),
        prior=_prior(),
        truth=truth,
    )


def _prior() -> Prior:
    sds, scales = np.sqrt(PRIOR_LOG_VARIANCE), np.exp(PRIOR_LOG_MEAN) * UNITS
    return Prior({name: stats.lognorm(sd, scale=scale) for name, sd, scale in zip(NAMES, sds, scales, strict=True)})


def _simulator(x: FloatArray, size: int, time_step: float, pixel: float) -> CahnHilliard:
    temperature, interaction, bohr_magnetons, gradient_energy = map(float, x)
    return CahnHilliard(
        temperature, interaction, bohr_magnetons, gradient_energy, size=size, pixel=pixel, time_step=time_step
    )


def _check_positive(name: str, value: Any) -> None:
    if not (is_number(value) and 0.0 < value < np.inf):
        raise InputError(f"{name} is {value!r}; it must be positive and finite.")


def _check_count(name: str, value: Any, least: int = 1) -> None:
    if not (is_number(value, Integral) and value >= least):
        raise InputError(f"{name} is {value!r}; it must be an integer of at least {least}.")
