"""Free energy of a homogeneous iron–chromium alloy, which is unstable over a range of compositions.

Energies are per mole and in units of RT. Compositions c are atomic fractions of chromium.

References
----------
Andersson, Sundman, "Thermodynamic properties of the Cr–Fe system", Calphad 11 (1987) 83.
Hillert, Jarl, "A model for alloying in ferromagnetic metals", Calphad 2 (1978) 227.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from basq.types import FloatArray

Derivatives = tuple[FloatArray, FloatArray, FloatArray]
"""A function and its first two derivatives."""

GAS_CONSTANT = 8.314462618  # J/(mol K)
INTERACTION_SLOPE = -9.68  # J/(mol K); Andersson and Sundman: L = 20500 − 9.68 T

# Magnetic part, for body-centred cubic metals.
SHORT_RANGE_ORDER = 0.4  # share of the magnetic enthalpy that remains above the Curie temperature
_RATIO = 1.0 / SHORT_RANGE_ORDER - 1.0
_NORM = 518.0 / 1125.0 + 11692.0 / 15975.0 * _RATIO
_LINEAR = 79.0 / (140.0 * SHORT_RANGE_ORDER)
_CUBIC = 474.0 / 497.0 * _RATIO


def magnetic_factor(y: FloatArray) -> Derivatives:
    """Inden, Hillert and Jarl's f of y = T_C / T = 1/τ, and its first two derivatives over y.

    Parameters
    ----------
    y : array

    Returns
    -------
    f, f′, f″ : arrays, of the shape of y

    Notes
    -----
    f and f′ are continuous at the Curie temperature, y = 1; f″ jumps. Powers of y rather than of τ take f smoothly
    through T_C = 0, beyond which chromium-rich alloys are antiferromagnetic. On that side |f ln(β + 1)| < 2e-5, so
    the usual change of the signs of T_C and β makes no difference.
    """
    z = np.minimum(y, 1.0)
    t = 1.0 / np.maximum(y, 1.0)
    z3, t3 = z * z * z, t * t * t
    z4, t4 = z3 * z, t3 * t
    z10, t6 = z4 * z3 * z3, t3 * t3
    above = (
        -z4 * z * (1.0 / 10.0 + z10 * (1.0 / 315.0 + z10 * (1.0 / 1500.0))),
        -z4 * (1.0 / 2.0 + z10 * (1.0 / 21.0 + z10 * (1.0 / 60.0))),
        -z3 * (2.0 + z10 * (2.0 / 3.0 + z10 * (2.0 / 5.0))),
    )
    below = (
        _NORM - _LINEAR * y - _CUBIC * t3 * (1.0 / 6.0 + t6 * (1.0 / 135.0 + t6 * (1.0 / 600.0))),
        -_LINEAR + _CUBIC * t4 * (1.0 / 2.0 + t6 * (1.0 / 15.0 + t6 * (1.0 / 40.0))),
        -_CUBIC * t4 * t * (2.0 + t6 * (2.0 / 3.0 + t6 * (2.0 / 5.0))),
    )
    hot = y < 1.0
    value, slope, bend = (np.where(hot, a, b) / _NORM for a, b in zip(above, below, strict=True))
    return value, slope, bend


@dataclass(frozen=True)
class IronChromium:
    """Molar free energy of the homogeneous alloy, in units of RT, without terms linear in c.

    Attributes
    ----------
    temperature : float
        T, K.
    interaction : float
        L_cT, J/mol: the regular solution's parameter is L = L_cT − 9.68 T.
    bohr_magnetons : float
        n_B, the magnetic moment of iron in Bohr magnetons per atom.

    Notes
    -----
    f(c) = (L / RT) c (1 − c) + c ln c + (1 − c) ln(1 − c) + ln(β + 1) f_mag(T_C / T), with the Curie temperature
    T_C = 1043 (1 − c) − 311.5 c + c (1 − c) [1650 + 550 (2c − 1)] and the moment
    β = n_B (1 − c) − 0.01 c − 0.85 c (1 − c). Linear terms drop out of the dynamics, which conserve c.
    """

    temperature: float
    interaction: float
    bohr_magnetons: float

    @property
    def regular(self) -> float:
        """L / RT."""
        t = self.temperature
        return (self.interaction + INTERACTION_SLOPE * t) / (GAS_CONSTANT * t)

    def curie_ratio(self, c: FloatArray) -> Derivatives:
        """T_C / T and its first two derivatives over c."""
        t, odd = self.temperature, 2.0 * c - 1.0
        excess = 1650.0 + 550.0 * odd
        product = c * (1.0 - c)
        value = (1043.0 - 1354.5 * c + product * excess) / t
        slope = (-1354.5 - odd * excess + 1100.0 * product) / t
        return value, slope, (-2.0 * excess - 2200.0 * odd) / t

    def log_moment(self, c: FloatArray) -> Derivatives:
        """ln(β + 1) and its first two derivatives over c."""
        beta = self.bohr_magnetons * (1.0 - c) - 0.01 * c - 0.85 * c * (1.0 - c)
        slope = (0.85 * (2.0 * c - 1.0) - 0.01 - self.bohr_magnetons) / (1.0 + beta)
        return np.log1p(beta), slope, 1.7 / (1.0 + beta) - slope**2

    def energy(self, c: FloatArray) -> FloatArray:
        """F(c), elementwise."""
        moment, value = self.log_moment(c)[0], magnetic_factor(self.curie_ratio(c)[0])[0]
        mixing = special.xlogy(c, c) + special.xlog1py(1.0 - c, -c)
        out: FloatArray = self.regular * c * (1.0 - c) + mixing + moment * value
        return out

    def potential(self, c: FloatArray) -> FloatArray:
        """df/dc, elementwise."""
        y, dy, _ = self.curie_ratio(c)
        moment, dmoment, _ = self.log_moment(c)
        value, slope, _ = magnetic_factor(y)
        magnetic = dmoment * value + moment * slope * dy
        out: FloatArray = self.regular * (1.0 - 2.0 * c) + special.logit(c) + magnetic
        return out

    def curvature(self, c: FloatArray) -> FloatArray:
        """d²f/dc², elementwise."""
        y, dy, ddy = self.curie_ratio(c)
        moment, dmoment, ddmoment = self.log_moment(c)
        value, slope, bend = magnetic_factor(y)
        magnetic = ddmoment * value + 2.0 * dmoment * slope * dy + moment * (bend * dy**2 + slope * ddy)
        out: FloatArray = -2.0 * self.regular + 1.0 / (c * (1.0 - c)) + magnetic
        return out
