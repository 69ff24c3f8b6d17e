"""Differential equations as simulators, with noise: epidemics, predators and prey, a neuron, diffusion.

Each function returns a `Split`. The solvers take many points at once, so that brute force can check what few calls
have found; a call stands for one that takes an hour.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from basq.problems.noise import gaussian, negative_binomial, student
from basq.problems.split import Split
from basq.types import FloatArray


def runge_kutta(
    slope: Callable[[FloatArray], FloatArray], start: FloatArray, step: float, n_records: int, every: int
) -> FloatArray:
    """Solve y' = slope(y) by the classical rule, from (k, …); records (k, …, t) after every so many steps."""
    records, y = [start], start
    with np.errstate(all="ignore"):  # extreme parameters overflow, which has likelihood zero
        for _ in range(n_records - 1):
            for _ in range(every):
                k1 = slope(y)
                k2 = slope(y + 0.5 * step * k1)
                k3 = slope(y + 0.5 * step * k2)
                y = y + step / 6.0 * (k1 + 2.0 * (k2 + k3) + slope(y + step * k3))
            records.append(y)
    return np.stack(records, axis=-1)


def _coordinates(x: FloatArray) -> FloatArray:
    """Points (…, d) as (d, …)."""
    return np.moveaxis(np.asarray(x, dtype=float), -1, 0)


def epidemic(n_days: int = 60, seed: int = 0) -> Split:
    """Make an epidemic in a town: daily cases of the SIR model, reported in part and overdispersed.

    Returns
    -------
    Split
        Parameters contact and recovery (1/day) and seeds, the share that is infected at first, all log-uniform;
        cheap: reported, the share of the cases that is reported, uniform, and dispersion, Gamma(2).

    Notes
    -----
    S' = −contact · S · I, I' = contact · S · I − recovery · I in a population of 10⁴. The counts are negative binomial
    with mean m = reported · cases and variance m + dispersion · m².
    """
    truth = np.array([0.5, 0.2, 5e-4, 0.4, 0.1])
    simulate = partial(_daily_cases, n_days)
    mean = truth[3] * simulate(truth[:3])
    size = 1.0 / truth[4]
    counts = np.random.default_rng(seed).negative_binomial(size, size / (size + mean)).astype(float)
    return Split(
        name="epidemic",
        simulate=simulate,
        log_likelihood=partial(negative_binomial, counts),
        prior={
            "contact": stats.loguniform(0.05, 5.0),
            "recovery": stats.loguniform(0.02, 2.0),
            "seeds": stats.loguniform(1e-5, 1e-2),
        },
        cheap={"reported": (0.0, 1.0), "dispersion": stats.gamma(2.0, scale=0.1)},
        data=counts,
        truth=truth,
    )


def _daily_cases(n_days: int, x: FloatArray, population: float = 1e4) -> FloatArray:
    contact, recovery, seeds = _coordinates(x)

    def slope(y: FloatArray) -> FloatArray:
        infections = contact * y[0] * y[1]
        return np.stack([-infections, infections - recovery * y[1]])

    susceptible = runge_kutta(slope, np.stack([1.0 - seeds, seeds]), 0.125, n_days + 1, 8)[0]
    return -population * np.diff(susceptible, axis=-1)


def predator_prey(n_years: int = 21, seed: int = 0) -> Split:
    """Make hares and lynxes, counted once a year: the Lotka–Volterra equations with lognormal noise.

    Returns
    -------
    Split
        Parameters birth, predation, death and growth, lognormal; cheap: sigma_hares and sigma_lynxes, the scales of the
        noise on the logarithms, lognormal. The output is a dict of the logarithms of the two numbers.

    Notes
    -----
    h' = birth · h − predation · h · l, l' = growth · h · l − death · l, from 30 hares and 6 lynxes.
    """
    truth = np.array([0.55, 0.028, 0.8, 0.024, 0.25, 0.2])
    simulate = partial(_log_numbers, n_years)
    clean, rng = simulate(truth[:4]), np.random.default_rng(seed)
    data = {name: v + s * rng.standard_normal(n_years) for (name, v), s in zip(clean.items(), truth[4:], strict=True)}
    return Split(
        name="predator-prey",
        simulate=simulate,
        log_likelihood=partial(two_species, data),
        prior={
            "birth": stats.lognorm(0.5, scale=0.6),
            "predation": stats.lognorm(0.5, scale=0.03),
            "death": stats.lognorm(0.5, scale=0.7),
            "growth": stats.lognorm(0.5, scale=0.03),
        },
        cheap={"sigma_hares": stats.lognorm(1.0, scale=0.4), "sigma_lynxes": stats.lognorm(1.0, scale=0.4)},
        data=data,
        truth=truth,
    )


def _log_numbers(n_years: int, x: FloatArray) -> dict[str, FloatArray]:
    birth, predation, death, growth = _coordinates(x)

    def slope(y: FloatArray) -> FloatArray:
        return np.stack([birth - predation * np.exp(y[1]), growth * np.exp(y[0]) - death])

    start = np.log([np.full_like(birth, 30.0), np.full_like(birth, 6.0)])
    hares, lynxes = runge_kutta(slope, start, 0.05, n_years, 20)
    return {"hares": hares, "lynxes": lynxes}


def two_species(data: dict[str, FloatArray], output: dict[str, Any], sigma_hares: Any, sigma_lynxes: Any) -> Any:
    """Log-density of Gaussian noise on both logarithms, each with its own scale."""
    hares = gaussian(data["hares"], output["hares"], sigma_hares)
    return hares + gaussian(data["lynxes"], output["lynxes"], sigma_lynxes)


def fitzhugh_nagumo(n_data: int = 61, seed: int = 0) -> Split:
    """Make a neuron that fires: the FitzHugh–Nagumo equations, of which the voltage is recorded.

    Returns
    -------
    Split
        Parameters a and b, uniform on (0, 1), and c, lognormal; cheap: sigma, log-uniform, and offset, N(0, 1).

    Notes
    -----
    V' = c (V − V³ / 3 + R), R' = −(V − a + b R) / c, from V = −1 and R = 1, over 12 units of time.
    """
    truth = np.array([0.3, 0.25, 2.5, 0.2, 0.4])
    simulate = partial(_membrane_voltage, n_data)
    data = simulate(truth[:3]) + truth[4] + truth[3] * np.random.default_rng(seed).standard_normal(n_data)
    return Split(
        name="fitzhugh-nagumo",
        simulate=simulate,
        log_likelihood=partial(gaussian, data),
        prior={"a": (0.0, 1.0), "b": (0.0, 1.0), "c": stats.lognorm(0.3, scale=2.5)},
        cheap={"sigma": stats.loguniform(1e-3, 10.0), "offset": stats.norm(0.0, 1.0)},
        data=data,
        truth=truth,
    )


def _membrane_voltage(n_data: int, x: FloatArray) -> FloatArray:
    a, b, c = _coordinates(x)

    def slope(y: FloatArray) -> FloatArray:
        return np.stack([c * (y[0] - y[0] ** 3 / 3.0 + y[1]), -(y[0] - a + b * y[1]) / c])

    start = np.stack([np.full_like(a, -1.0), np.full_like(a, 1.0)])
    out: FloatArray = runge_kutta(slope, start, 0.02, n_data, round(12.0 / (n_data - 1) / 0.02))[0]
    return out


def diffusion(seed: int = 0) -> Split:
    """Make heat that spreads in a rod with insulated ends, seen by three sensors with outliers and an offset.

    Returns
    -------
    Split
        Parameter diffusivity, log-uniform from 10⁻³ to 1; cheap: sigma, half-Cauchy, offset, N(0, 1), and nu,
        Gamma(2) of scale 10, of Student's t.

    Notes
    -----
    u' = diffusivity · ∂²u/∂x² on 60 cells of (0, 1), solved by its eigenvectors, from u = 1 in the left third.
    """
    truth = np.array([0.03, 0.02, 0.1, 4.0])
    data = _sensors(truth[:1])
    data = data + truth[2] + truth[1] * np.random.default_rng(seed).standard_t(truth[3], len(data))
    return Split(
        name="diffusion",
        simulate=_sensors,
        log_likelihood=partial(student, data),
        prior={"diffusivity": stats.loguniform(1e-3, 1.0)},
        cheap={
            "sigma": stats.halfcauchy(scale=1.0),
            "offset": stats.norm(0.0, 1.0),
            "nu": stats.gamma(2.0, scale=10.0),
        },
        data=data,
        truth=truth,
    )


def _sensors(x: FloatArray, n_cells: int = 60) -> FloatArray:
    """Temperatures (…, t) at 16 times in three places."""
    diffusivity = _coordinates(x)[0]
    second = -2.0 * np.eye(n_cells) + np.eye(n_cells, k=1) + np.eye(n_cells, k=-1)
    second[0, 0] = second[-1, -1] = -1.0  # insulated
    rates, modes = np.linalg.eigh(second * n_cells**2)
    start = modes.T @ (np.arange(n_cells) < n_cells // 3)
    times = np.linspace(0.1, 4.0, 16)
    decay = np.exp(np.minimum(rates, 0.0) * diffusivity[..., None, None] * times[:, None])
    heat = (decay * start) @ modes[[9, 29, 49]].T
    return heat.reshape(*diffusivity.shape, -1)
