"""What is known about the cheap parameters at a point that was never simulated.

At every evaluated point their posterior is known, as draws. Its location and spread vary smoothly from point to point,
so each of these numbers is interpolated by a Gaussian process; its shape, standardised, is taken from the nearest
points.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from basq.gp.fit import fit
from basq.gp.gp import GP
from basq.gp.kernels import make_kernel
from basq.numerics.gaussians import LOG_2PI, mean_and_root
from basq.numerics.linalg import row_blocks, solve_lower, square_distances
from basq.types import FloatArray, IntArray

NEAREST = 8
"""Points whose shapes stand for that of a new one."""
LEAST_POINTS, PER_COEFFICIENT = 80, 5
"""Points that are interpolated between, nearest to the posterior: at least, and per coefficient of a quadratic."""
MAX_STEPS = 20
"""Of the search for hyperparameters."""


@dataclass(frozen=True)
class Conditionals:
    """The law of cheap parameters v (k,) given expensive ones u (d,), both in standard space.

    Attributes
    ----------
    centre : (d,) array
    whitening : (d, d) array
        Maps u − centre to coordinates in which the posterior is about N(0, I).
    z : (n, d) array
        Evaluated points in these coordinates.
    shapes : (n, m, k) array
        Draws at each of them, standardised.
    processes : tuple of GP
        Of the means, the logarithms of the scales and the slopes between the cheap parameters.
    scales : (p, 2) array
        Mean and standard deviation of what each process describes.
    """

    centre: FloatArray
    whitening: FloatArray
    z: FloatArray
    shapes: FloatArray
    processes: tuple[GP, ...]
    scales: FloatArray

    @classmethod
    def learn(cls, u: FloatArray, draws: FloatArray, samples: FloatArray) -> "Conditionals":
        """Learn from draws (n, m, k) at points u (n, d), where samples (N, d) of the posterior are."""
        centre, root = mean_and_root(samples)
        whitening = solve_lower(root, np.eye(len(root)))
        z = (u - centre) @ whitening.T
        d = z.shape[1]
        wanted = max(LEAST_POINTS, PER_COEFFICIENT * (d + 1) * (d + 2) // 2)
        near = np.argsort((z * z).sum(axis=1), kind="stable")[:wanted]
        z, draws = z[near], draws[near]
        moments = [mean_and_root(own) for own in draws]
        shapes = np.stack([solve_lower(r, (own - m).T).T for (m, r), own in zip(moments, draws, strict=True)])
        targets = np.stack([_as_numbers(m, r) for m, r in moments])
        scales = np.stack([targets.mean(axis=0), np.maximum(targets.std(axis=0), 1e-12)], axis=1)
        processes = tuple(_interpolated(z, y) for y in ((targets - scales[:, 0]) / scales[:, 1]).T)
        return cls(centre, whitening, z, shapes, processes, scales)

    @property
    def n_dim(self) -> int:
        return self.shapes.shape[2]

    def moments(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means (q, k) and roots (q, k, k) of the covariances at points u (q, d)."""
        z = (u - self.centre) @ self.whitening.T
        numbers = np.stack([p.predict_mean(z) for p in self.processes], axis=1)
        return _as_moments(numbers * self.scales[:, 1] + self.scales[:, 0], self.n_dim)

    def _nearest(self, u: FloatArray) -> IntArray:
        """Which evaluated points are nearest to points u (q, d): (q, NEAREST)."""
        distance = square_distances((u - self.centre) @ self.whitening.T, self.z)
        n = min(NEAREST, len(self.z))
        return np.argpartition(distance, n - 1, axis=1)[:, :n]

    def sample(self, u: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One draw (q, k) for each of the points u (q, d)."""
        mean, root = self.moments(u)
        nearest = self._nearest(u)
        which = nearest[np.arange(len(u)), rng.integers(nearest.shape[1], size=len(u))]
        shape = self.shapes[which, rng.integers(self.shapes.shape[1], size=len(u))]
        return mean + np.einsum("qij,qj->qi", root, shape)

    def log_pdf(self, v: FloatArray, u: FloatArray) -> FloatArray:
        """Log-density of v (q, k) given u (q, d): (q,); smoothed from the draws of the nearest points."""
        mean, root = self.moments(u)
        r = np.linalg.solve(root, (v - mean)[:, :, None])[:, :, 0]
        log_det = np.log(np.einsum("qii->qi", root)).sum(axis=1)
        k, m = self.n_dim, self.shapes.shape[1]
        n = min(NEAREST, len(self.z)) * m
        width = (4.0 / (k + 2.0)) ** (1.0 / (k + 4.0)) * n ** (-1.0 / (k + 4.0))  # Silverman
        out = np.empty(len(v))
        for rows in row_blocks(len(v), n * k):
            cloud = self.shapes[self._nearest(u[rows])].reshape(-1, n, k)
            # as much narrower as the smoothing is wide, so that the spread stays what it is
            cloud = cloud / np.sqrt(1.0 + width**2)
            w = width / np.sqrt(1.0 + width**2)
            square = ((r[rows, None] - cloud) ** 2).sum(axis=2) / w**2
            out[rows] = logsumexp(-0.5 * square, axis=1) - np.log(n) - k * (np.log(w) + 0.5 * LOG_2PI)
        return out - log_det


def _interpolated(z: FloatArray, y: FloatArray) -> GP:
    """A process through standardised values y (n,) at points z (n, d), with as much noise as they show."""
    d = z.shape[1]
    if np.ptp(y) < 1e-9:  # nothing varies
        return GP.condition(
            z, y, make_kernel("rbf", d, lengthscale=10.0, variance=1.0), mean=float(y.mean()), noise=1.0
        )
    start = make_kernel("rbf", d, lengthscale=2.0 * np.sqrt(d), variance=1.0)
    return fit(z, y, start, constant_mean=True, noise=None, max_steps=MAX_STEPS)


def _as_numbers(mean: FloatArray, root: FloatArray) -> FloatArray:
    """Location and spread as free numbers: means, log-scales, and slopes L_ij / L_jj."""
    scale = np.diag(root)
    rows, columns = np.tril_indices(len(mean), -1)
    return np.concatenate([mean, np.log(scale), root[rows, columns] / scale[columns]])


def _as_moments(numbers: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Inverse of `_as_numbers` for rows of numbers: (q, k) and (q, k, k)."""
    scale = np.exp(numbers[:, k : 2 * k])
    rows, columns = np.tril_indices(k, -1)
    root = np.zeros((len(numbers), k, k))
    root[:, np.arange(k), np.arange(k)] = scale
    root[:, rows, columns] = numbers[:, 2 * k :] * scale[:, columns]
    return numbers[:, :k], root
