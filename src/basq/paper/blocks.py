"""The Gaussian integrals that every closed form is made of (RBF kernel, Gaussian-mixture measure).

Two building blocks suffice, both from the product of Gaussians (eqs. 42–47 of the paper). With
K(x, x′) = v exp(−½ |x − x′|²_W⁻¹):

* ``smoothed``: E[K(x, x′)] when x − x′ ~ N(a − b, V); one and two integrals over K follow from it;
* ``pair``: ∫ K₁(Xᵢ, x) K₂(Yⱼ, x) N(x; μ, Σ) dx, with the Gaussian in x that the integrand is.

All normalisers are ratios of determinants at most 1 and all exponents are at most 0, so nothing overflows. (The v here
is K(x, x), the v of the paper's main text; its supplement calls that v′.)
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.gp.gp import GP
from basq.gp.kernels.base import Kernel
from basq.gp.kernels.stationary import RBF
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.linalg import log_det, square_distances, whiten
from basq.posterior.mixture import Group
from basq.types import FloatArray


@dataclass(frozen=True)
class Pair:
    """Gaussian components with means left_i + right_j and one covariance.

    Attributes
    ----------
    log_mass : (n, m) array
        Log-integral of each component.
    left : (n, d) array
    right : (m, d) array
    cov : (d, d) array
    """

    log_mass: FloatArray
    left: FloatArray
    right: FloatArray
    cov: FloatArray

    def times(self, coefficients: FloatArray) -> Group:
        """Σᵢⱼ cᵢⱼ K(Xᵢ, ·) K(Yⱼ, ·) times the measure's component, for coefficients (n, m)."""
        return Group(coefficients, self.log_mass, self.left, self.right, self.cov)


def log_smoothed(kernel: Kernel, a: FloatArray, b: FloatArray, spread: FloatArray) -> FloatArray:
    """log E[K(x, x′)] for x − x′ ~ N(aᵢ − bⱼ, spread).

    Parameters
    ----------
    kernel : Kernel
        A Gaussian one.
    a : (n, d) array
    b : (m, d) array
    spread : (d, d) array

    Returns
    -------
    (n, m) array
    """
    squares = kernel.lengthscale**2
    shrink = log_det(np.eye(len(spread)) + spread / squares[:, None])
    metric = np.diag(squares) + spread
    out = square_distances(whiten(metric, a), whiten(metric, b))
    out *= -0.5
    out += np.log(kernel.variance) - 0.5 * shrink
    return out


def pair(kernel_x: Kernel, x: FloatArray, kernel_y: Kernel, y: FloatArray, mu: FloatArray, sigma: FloatArray) -> Pair:
    """Integrate K₁(xᵢ, ·) K₂(yⱼ, ·) against N(μ, Σ), keeping the Gaussian that is integrated.

    Parameters
    ----------
    x : (n, d) array
    y : (m, d) array
    mu : (d,) array
    sigma : (d, d) array
    """
    w_x, w_y = kernel_x.lengthscale**2, kernel_y.lengthscale**2
    both = w_x * w_y / (w_x + w_y)  # (W₁⁻¹ + W₂⁻¹)⁻¹
    metric = np.diag(both) + sigma
    cov = both[:, None] * np.linalg.solve(metric, sigma)
    g = whiten(metric, (x - mu) * (both / w_x))
    h = whiten(metric, (y - mu) * (both / w_y))
    log_mass = square_distances(g, -h)
    log_mass += square_distances(x / np.sqrt(w_x + w_y), y / np.sqrt(w_x + w_y))
    log_mass *= -0.5
    log_mass += np.log(kernel_x.variance) + np.log(kernel_y.variance)
    log_mass -= 0.5 * log_det(np.eye(len(mu)) + sigma / both[:, None])
    cov = 0.5 * (cov + cov.T)
    return Pair(log_mass, 0.5 * mu + (x - mu) / w_x @ cov, 0.5 * mu + (y - mu) / w_y @ cov, cov)


@dataclass(frozen=True)
class Single:
    """∫ K(xᵢ, ·) N(μ, Σ) as Gaussians: log-masses (n,), means (n, d) and their covariance (d, d)."""

    log_mass: FloatArray
    means: FloatArray
    cov: FloatArray

    def times(self, coefficients: FloatArray) -> Group:
        """Σᵢ cᵢ K(Xᵢ, ·) times the measure's component, for coefficients (n,)."""
        d = self.means.shape[1]
        return Group(coefficients[:, None], self.log_mass[:, None], self.means, np.zeros((1, d)), self.cov)


def single(kernel: Kernel, x: FloatArray, mu: FloatArray, sigma: FloatArray) -> Single:
    """Integrate K(xᵢ, ·) against N(μ, Σ), keeping the Gaussian that is integrated."""
    squares = np.diag(kernel.lengthscale**2)
    gain = np.linalg.solve(squares + sigma, sigma)
    cov = squares @ gain
    log_mass = log_smoothed(kernel, x, mu[None], sigma)[:, 0]
    return Single(log_mass, mu + (x - mu) @ gain, 0.5 * (cov + cov.T))


@dataclass(frozen=True)
class Blocks:
    """The integrals of one process against one measure; each computed when first asked for.

    Names follow the maths: z = ∫K(X,·), Q = ∫K(X,·)K(·,X), R = ∬K(X,·)K(·,·′)K(·′,X), r = ∬K(X,·)K(·,·′),
    z₀ = ∬K, κ₂ = ∬K². In the paper z is in eq. 97, Q in eq. 68 and, misprinted, R in eqs. 70 and 71.
    """

    gp: GP
    measure: GaussianMixture

    @cached_property
    def kernel(self) -> Kernel:
        if not self.gp.kernel.gaussian:
            raise TypeError("closed forms need an RBF kernel")
        return self.gp.kernel

    @property
    def _components(self) -> list[tuple[float, FloatArray, FloatArray]]:
        m = self.measure
        return list(zip(m.weights.tolist(), m.means, m.covs, strict=True))

    @cached_property
    def singles(self) -> list[Single]:
        """K(Xᵢ, ·) times each component of the measure."""
        return [single(self.kernel, self.gp.x, mu, sigma) for _, mu, sigma in self._components]

    @cached_property
    def pairs(self) -> list[Pair]:
        """K(Xᵢ, ·) K(Xⱼ, ·) times each component of the measure."""
        k, x = self.kernel, self.gp.x
        return [pair(k, x, k, x, mu, sigma) for _, mu, sigma in self._components]

    @cached_property
    def z(self) -> FloatArray:
        weights = self.measure.weights
        return sum((w * np.exp(s.log_mass) for w, s in zip(weights, self.singles, strict=True)), np.zeros(1))

    @cached_property
    def q(self) -> FloatArray:
        out = np.zeros((len(self.gp.x),) * 2)
        for w, p in zip(self.measure.weights, self.pairs, strict=True):
            part = np.exp(p.log_mass)
            part *= w
            out += part
        return out

    def chain(self, kernel: Kernel) -> FloatArray:
        """∬ K(X, x) kernel(x, x′) K(x′, X): R for the process's own kernel, (n, n).

        K(Xᵢ, x) π(x) = zᵢ N(x; aᵢ, W′), so Rᵢⱼ = zᵢ zⱼ E[kernel(x, x′)] with x − x′ ~ N(aᵢ − aⱼ, 2W′): eqs. 70 and 71
        of the paper, corrected (theirs go back to eq. 44, where the mean should be A⁻¹(m − b)).
        """
        out = np.zeros((len(self.gp.x),) * 2)
        for i, (w_i, s_i) in enumerate(zip(self.measure.weights, self.singles, strict=True)):
            for j, (w_j, s_j) in enumerate(zip(self.measure.weights, self.singles, strict=True)):
                if j > i:
                    continue
                term = log_smoothed(kernel, s_i.means, s_j.means, s_i.cov + s_j.cov)
                term += s_i.log_mass[:, None]
                term += s_j.log_mass
                np.exp(term, out=term)
                term *= w_i * w_j
                out += term if i == j else term + term.T
        return out

    def half_chain(self, kernel: Kernel) -> FloatArray:
        """∬ K(X, x) kernel(x, x′): r for the process's own kernel, (n,)."""
        out = np.zeros(len(self.gp.x))
        for w_i, s in zip(self.measure.weights, self.singles, strict=True):
            for w_j, mu, sigma in self._components:
                middle = log_smoothed(kernel, s.means, mu[None], s.cov + sigma)[:, 0]
                out += w_i * w_j * np.exp(s.log_mass + middle)
        return out

    def double(self, kernel: Kernel) -> float:
        """∬ kernel(x, x′): z₀ for the process's own kernel."""
        total = 0.0
        for w_i, mu_i, sigma_i in self._components:
            for w_j, mu_j, sigma_j in self._components:
                log_k = log_smoothed(kernel, mu_i[None], mu_j[None], sigma_i + sigma_j)
                total += w_i * w_j * float(np.exp(log_k[0, 0]))
        return total

    @cached_property
    def squared_kernel(self) -> Kernel:
        """K², itself an RBF."""
        k = self.kernel
        return RBF(k.variance**2, k.lengthscale / np.sqrt(2.0))


def constant(level: float, mu: FloatArray, sigma: FloatArray) -> Group:
    """Level times N(μ, Σ), a component of the measure."""
    return Group(np.full((1, 1), level), np.zeros((1, 1)), mu[None], np.zeros((1, len(mu))), sigma)
