"""Simulators with noise: models that have expensive parameters and cheap ones.

A simulation depends on the expensive parameters only; noise scales, offsets and the like enter where it is compared
with the data. Each function returns a `Split`, which has both parts and also the one black box that mixes them. The
data are simulated from a seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import stats
from scipy.special import gammaln

from basq.numerics.gaussians import LOG_2PI
from basq.prior import Prior
from basq.problems.base import Pointwise
from basq.problems.cases.lithium_ion import EXPERIMENTS, LOG_TRUTH, PRIOR_LOG_MEAN, UNITS, Cell
from basq.problems.noise import additive_and_proportional, gaussian, gaussian_variance
from basq.types import FloatArray


@dataclass(frozen=True, eq=False)
class Split:
    """A simulator, an observation model and their priors.

    Attributes
    ----------
    name : str
    simulate : callable
        Takes the expensive parameters, a (d,) array, and returns the output, a (t,) array or a dict of them. It also
        takes (n, d) and then returns (n, t).
    log_likelihood : callable
        ``log_likelihood(output, **cheap)``; with numbers it returns a number, with (m,) arrays an (m,) array.
    prior : dict
        Names and marginals of the expensive parameters.
    cheap : dict
        Names and marginals of the cheap parameters.
    data : (t,) array or dict of them
        Like the output.
    truth : (d + k,) array
        The parameters that made the data, expensive ones first.
    log_evidence : float or None
        The true log Z over all parameters, where a closed form is known.

    Examples
    --------
    >>> from basq import problems
    >>> model = problems.diffusion()
    >>> output = model.simulate(model.truth[:1])
    >>> model.log_likelihood(output, sigma=[0.02, 0.03], offset=0.1, nu=5.0).shape
    (2,)
    >>> model.joint_prior.names
    ('diffusivity', 'sigma', 'offset', 'nu')
    """

    name: str
    simulate: Callable[[FloatArray], Any]
    log_likelihood: Callable[..., Any]
    prior: Mapping[str, Any]
    cheap: Mapping[str, Any]
    data: Any
    truth: FloatArray
    log_evidence: float | None = None

    @property
    def joint_prior(self) -> Prior:
        """Of all parameters, expensive ones first."""
        return Prior({**self.prior, **self.cheap})

    @property
    def log_likelihood_all(self) -> Pointwise:
        """The black box: log-likelihood of all parameters, a float for (d + k,) and an (n,) array for (n, d + k)."""
        return Pointwise(partial(_black_box, self), len(self.prior) + len(self.cheap))


def _black_box(model: Split, x: FloatArray) -> FloatArray:
    d = len(model.prior)
    out: FloatArray = model.log_likelihood(model.simulate(x[:, :d]), **dict(zip(model.cheap, x[:, d:].T, strict=True)))
    return out


def regression(n_dim: int = 6, n_data: int = 40, seed: int = 0) -> Split:
    """Make a linear regression with a conjugate variance: everything is known in closed form.

    Parameters
    ----------
    n_dim : int
        Number of coefficients, d.
    n_data : int
    seed : int

    Returns
    -------
    Split
        Coefficients b1, b2, … uniform on ±20; cheap: variance, an inverse gamma IG(½, ½).

    Notes
    -----
    With a flat prior of width w in each coefficient, y = Xβ + ε and v ~ IG(a, b),

    log Z = −d log w − ½ (n − d) log 2π − ½ log |XᵀX| + a log b − log Γ(a) + log Γ(a') − a' log b',
    a' = a + ½ (n − d), b' = b + ½ |y − Xβ̂|².

    The posterior is v ~ IG(a', b') and β | v ~ N(β̂, v (XᵀX)⁻¹). What the box cuts off is below 10⁻⁹.
    """
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n_data), rng.standard_normal((n_data, n_dim - 1))])
    design[:, 1:] += 0.5 * rng.standard_normal((n_data, 1))  # correlated, as covariates are
    truth = np.append(rng.normal(0.0, 2.0, n_dim), 0.5)
    data = design @ truth[:-1] + np.sqrt(truth[-1]) * rng.standard_normal(n_data)
    half_width, a, b = 20.0, 0.5, 0.5
    best = np.linalg.lstsq(design, data, rcond=None)[0]
    after_a, after_b = a + 0.5 * (n_data - n_dim), b + 0.5 * float(((data - design @ best) ** 2).sum())
    log_evidence = (
        -n_dim * np.log(2.0 * half_width)
        - 0.5 * ((n_data - n_dim) * LOG_2PI + np.linalg.slogdet(design.T @ design)[1])
        + (a * np.log(b) - gammaln(a))
        + (gammaln(after_a) - after_a * np.log(after_b))
    )
    return Split(
        name=f"regression-{n_dim}",
        simulate=partial(_line, design),
        log_likelihood=partial(gaussian_variance, data),
        prior={f"b{i + 1}": (-half_width, half_width) for i in range(n_dim)},
        cheap={"variance": stats.invgamma(a, scale=b)},
        data=data,
        truth=truth,
        log_evidence=float(log_evidence),
    )


def _line(design: FloatArray, x: FloatArray) -> FloatArray:
    return np.asarray(x, dtype=float) @ design.T


def autoregression(n_data: int = 150, seed: int = 0) -> Split:
    """Make an ARMA(1, 1) series with an unknown scale of its innovations.

    The innovations eₜ = yₜ − mu − phi · yₜ₋₁ − theta · eₜ₋₁ stand for the simulation, and the data for zeros.

    Returns
    -------
    Split
        Parameters mu ~ N(0, 10²), phi ~ N(0, 1) and theta uniform on ±1; cheap: sigma, half-Cauchy of scale 2.5.
    """
    rng = np.random.default_rng(seed)
    truth = np.array([0.3, 0.8, 0.4, 0.5])
    mu, phi, theta, sigma = truth
    noise = sigma * rng.standard_normal(n_data + 50)
    series = np.zeros(n_data + 50)
    for t in range(1, len(series)):
        series[t] = mu + phi * series[t - 1] + noise[t] + theta * noise[t - 1]
    return Split(
        name="autoregression",
        simulate=partial(_innovations, series[50:]),
        log_likelihood=partial(gaussian, np.zeros(n_data - 1)),
        prior={"mu": stats.norm(0.0, 10.0), "phi": stats.norm(0.0, 1.0), "theta": (-1.0, 1.0)},
        cheap={"sigma": stats.halfcauchy(scale=2.5)},
        data=np.zeros(n_data - 1),
        truth=truth,
    )


def _innovations(series: FloatArray, x: FloatArray) -> FloatArray:
    mu, phi, theta = np.moveaxis(np.asarray(x, dtype=float), -1, 0)
    innovations = [np.zeros_like(mu)]
    for before, now in pairwise(series):
        innovations.append(now - mu - phi * before - theta * innovations[-1])
    return np.stack(innovations[1:], axis=-1)


def pharmacokinetics(seed: int = 0) -> Split:
    """Make a drug's concentration after one dose: one compartment, first-order absorption and elimination.

    Returns
    -------
    Split
        Parameters absorption and elimination (1/h) and volume (l), lognormal; cheap: additive (mg/l) and proportional,
        the two parts of the noise's standard deviation, half-normal.
    """
    times = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 18.0, 24.0, 30.0])
    truth = np.array([1.4, 0.09, 32.0, 0.15, 0.08])
    simulate = partial(_concentration, times)
    clean = simulate(truth[:3])
    noise = np.hypot(truth[3], truth[4] * clean) * np.random.default_rng(seed).standard_normal(len(times))
    return Split(
        name="pharmacokinetics",
        simulate=simulate,
        log_likelihood=partial(additive_and_proportional, clean + noise),
        prior={
            "absorption": stats.lognorm(0.7, scale=1.0),
            "elimination": stats.lognorm(0.7, scale=0.1),
            "volume": stats.lognorm(0.7, scale=30.0),
        },
        cheap={"additive": stats.halfnorm(scale=1.0), "proportional": stats.halfnorm(scale=0.5)},
        data=clean + noise,
        truth=truth,
    )


def _concentration(times: FloatArray, x: FloatArray, dose: float = 320.0) -> FloatArray:
    """Concentrations (…, t), mg/l, after a dose in mg."""
    absorption, elimination, volume = np.moveaxis(np.asarray(x, dtype=float), -1, 0)[..., None]
    gap = absorption - elimination
    gap = np.where(np.abs(gap) < 1e-9 * absorption, 1e-9 * absorption, gap)  # equal rates: the limit
    with np.errstate(all="ignore"):
        grown = -np.exp(-elimination * times) * np.expm1(-gap * times) / gap
    out: FloatArray = dose * absorption / volume * grown
    return out


@dataclass(frozen=True)
class Voltages:
    """A cell's voltages (t,) at diffusivities (2,), or (n, t) at (n, 2)."""

    cell: Cell

    def __call__(self, x: FloatArray) -> FloatArray:
        """Simulate, row by row."""
        rows = [self.cell.voltage(float(d_n), float(d_p)) for d_n, d_p in np.atleast_2d(x)]
        return np.stack(rows) if np.ndim(x) == 2 else rows[0]


def cell_voltage(model: Literal["SPM", "SPMe"] = "SPM", seed: int = 0) -> Split:
    """Make a lithium-ion cell's voltage in the slow experiment of `lithium_ion`, with noise of unknown scale.

    Parameters
    ----------
    model : "SPM" or "SPMe"
        PyBaMM's single-particle model, or the one with electrolyte, whose record has an unknown offset too.
    seed : int

    Returns
    -------
    Split
        Diffusivities D_n and D_p (m²/s), lognormal, their logarithms with standard deviations 0.5 and 0.2; cheap:
        sigma (V), log-uniform from 10⁻⁶ to 10⁻², and with SPMe offset (V), N(0, 0.001²).
    """
    experiment = EXPERIMENTS["reduced"]
    simulate = Voltages(Cell(model, experiment))
    noise = {"sigma": float(np.sqrt(experiment.noise_variance))} | ({"offset": 2e-4} if model == "SPMe" else {})
    truth = np.append(np.exp(LOG_TRUTH) * UNITS, list(noise.values()))
    data = simulate(truth[:2]) + noise.get("offset", 0.0)
    data = data + noise["sigma"] * np.random.default_rng(seed).standard_normal(len(data))
    marginals = {"sigma": stats.loguniform(1e-6, 1e-2), "offset": stats.norm(0.0, 1e-3)}
    centres = np.exp(PRIOR_LOG_MEAN) * UNITS
    return Split(
        name=f"cell-voltage-{model}",
        simulate=simulate,
        log_likelihood=partial(gaussian, data),
        prior={"D_n": stats.lognorm(0.5, scale=centres[0]), "D_p": stats.lognorm(0.2, scale=centres[1])},
        cheap={name: marginals[name] for name in noise},
        data=data,
        truth=truth,
    )
