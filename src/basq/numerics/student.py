"""Mixtures of t distributions: proposals whose tails are heavier than what they stand for."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from basq.numerics.gaussians import mean_and_root
from basq.numerics.linalg import cholesky, solve_lower
from basq.types import FloatArray


@dataclass(frozen=True)
class MixtureSettings:
    """How a mixture is fitted to samples."""

    components: int = 8  # Of the mixture, where one component does not do as well: in many dimensions it overfits.
    freedom: float = 6.0  # Degrees of freedom: tails heavier than any posterior's bulk. [tried]
    broad: float = 0.1  # Share of a broad component, which keeps the weights bounded where the mixture is wrong,
    broad_width: float = 1.5  # and its width, in that of all samples.
    steps: int = 8  # Of expectation-maximisation,
    start: float = 0.5  # which begins with components of this variance, in units of all samples' covariance,
    shrinkage: float = 0.3  # shrinks theirs towards this one,
    widening: float = 1.1  # and widens them in the end;
    evenness: float = 0.1  # so much of their shares is even.


@dataclass(frozen=True)
class StudentMixture:
    """A mixture of multivariate t distributions.

    Attributes
    ----------
    weights : (k,) array
    means : (k, d) array
    roots : (k, d, d) array
        Cholesky factors of the scale matrices.
    freedom : float
        Degrees of freedom.
    """

    weights: FloatArray
    means: FloatArray
    roots: FloatArray
    freedom: float

    @classmethod
    def of(cls, points: FloatArray, rng: np.random.Generator, settings: MixtureSettings) -> "StudentMixture":
        """Fit to points (n, d), with one component or several: whichever, fitted to half of them, predicts the rest."""
        shuffled = points[rng.permutation(len(points))]
        seen, held_out = shuffled[::2], shuffled[1::2]
        one, several = (cls.fit(seen, k, rng, settings) for k in (1, settings.components))
        if several.log_pdf(held_out).mean() > one.log_pdf(held_out).mean():
            return several
        return cls.fit(points, 1, rng, settings)

    @classmethod
    def fit(
        cls, points: FloatArray, n_components: int, rng: np.random.Generator, settings: MixtureSettings
    ) -> "StudentMixture":
        """Fit by expectation-maximisation to points (n, d), with covariances shrunk to the whole cloud's."""
        n, d = points.shape
        centre, root = mean_and_root(points)
        x = (points - centre) @ solve_lower(root, np.eye(d)).T
        means = x[rng.choice(n, n_components, replace=False)]
        covs = np.tile(settings.start * np.eye(d), (n_components, 1, 1))
        shares, prior_count = np.full(n_components, 1.0 / n_components), d + 2.0
        for _ in range(settings.steps if n_components > 1 else 1):
            # all components at once: (k, n, d) arrays
            spread = np.linalg.cholesky(covs)
            z = (x - means[:, None]) @ np.linalg.inv(spread).transpose(0, 2, 1)
            log_det = np.log(np.einsum("kii->ki", spread)).sum(axis=1)
            log_r = (np.log(shares) - log_det)[:, None] - 0.5 * np.einsum("knd,knd->kn", z, z)
            r = np.exp(log_r - log_r.max(axis=0))
            r /= r.sum(axis=0)
            counts = r.sum(axis=1) + 1e-9
            shares, means = counts / counts.sum(), r @ x / counts[:, None]
            centred = x - means[:, None]
            scatter = (centred * r[:, :, None]).transpose(0, 2, 1) @ centred
            covs = (scatter + settings.shrinkage * prior_count * np.eye(d)) / (counts + prior_count)[:, None, None]
        roots = [root @ cholesky(settings.widening * c)[0] for c in covs]
        even, broad = settings.evenness, settings.broad
        weights = np.append((1.0 - broad) * ((1.0 - even) * shares + even / n_components), broad)
        centres = np.vstack([centre + means @ root.T, centre])
        return cls(weights, centres, np.stack([*roots, settings.broad_width * root]), settings.freedom)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points: (n, d)."""
        which = rng.choice(len(self.weights), n, p=self.weights)
        normal = rng.standard_normal((n, self.means.shape[1]))
        normal /= np.sqrt(rng.chisquare(self.freedom, n) / self.freedom)[:, None]
        return self.means[which] + np.einsum("nij,nj->ni", self.roots[which], normal)

    def log_pdf(self, u: FloatArray) -> FloatArray:
        """Log-density at the rows of u: (n,)."""
        d, freedom = u.shape[1], self.freedom
        z = np.linalg.inv(self.roots) @ (u.T - self.means[:, :, None])  # all components at once: (k, d, n)
        terms = np.einsum("kdn,kdn->kn", z, z)
        terms /= freedom
        terms += 1.0
        np.log(terms, out=terms)  # log1p has no vector instructions, and large terms are those that matter
        terms *= -0.5 * (freedom + d)
        log_det = np.log(np.einsum("kii->ki", self.roots)).sum(axis=1)
        terms += (np.log(self.weights) - log_det)[:, None]
        top = terms.max(axis=0)
        terms -= top
        constant = gammaln((freedom + d) / 2) - gammaln(freedom / 2) - 0.5 * d * np.log(freedom * np.pi)
        return top + np.log(np.exp(terms, out=terms).sum(axis=0)) + float(constant)
