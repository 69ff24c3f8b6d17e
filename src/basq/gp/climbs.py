"""Climbs: from the best places seen upwards, by processes that know their neighbourhoods only.

A process that has learned from everything looks at a place with the lengthscales of all that it knows. Where that is a
plateau, on which a signal is too weak to matter or two components of a mixture are one, the foot of a needle is a
blemish to it, while one that has learned from some dozen neighbours sees the way up. How far to go the neighbours'
distances say: they grow where steps succeed and shrink where they fail.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from basq.gp.fit import fit
from basq.gp.gp import GP
from basq.gp.kernels.stationary import Matern52
from basq.numerics.linalg import square_distances
from basq.types import FloatArray, IntArray


@dataclass(frozen=True)
class ClimbSettings:
    """Numbers of the climbs."""

    unsure: float = 0.25  # They begin where the standard deviation of log Z is still above this [tried]
    after: int = 25  # after so many calls for every parameter and two more. [tried]
    places: int = 2  # Highest places that are climbed from.
    neighbours: int = 10  # Nearest points that a process learns from, per coordinate.
    first: float = 0.5  # Lengthscales that it begins with, in √d standard deviations of its points,
    steps: int = 30  # and steps of its search for others.
    longest: float = 20.0  # Largest lengthscale, in their geometric mean.
    radii: tuple[float, ...] = (0.5, 1.0, 2.0, 1.0)  # Longest steps in turn, in the distance of the d-th neighbour,
    optimism: tuple[float, ...] = (0.0, 1.0, 1.0, 2.0)  # judged at so many standard deviations above the mean.
    apart: float = 0.1  # and so far from everything seen, in the length of the step.
    rounds: int = 6  # In which the best step is found,
    best: int = 20  # each with so many of the best
    cloud: int = 300  # of so many.
    farthest: float = 6.0  # Coordinates of standard space end here.


@dataclass(frozen=True)
class View:
    """Coordinates to climb in: a map from standard space, (n, d) -> (n, d), and back."""

    of: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]


STANDARD = View(np.asarray, np.asarray)
"""Standard space itself."""


def climbs(
    u: FloatArray,
    levels: FloatArray,
    taken: FloatArray,
    views: Sequence[View],
    n: int,
    rng: np.random.Generator,
    *,
    settings: ClimbSettings,
) -> FloatArray:
    """n points above the highest places, (n, d); fewer if all within reach has been seen.

    Parameters
    ----------
    u : (m, d) array
        Points seen.
    levels : (m,) array
        Their values, finite; differences count in units of d and more.
    taken : (k, d) array
        Points under way.
    views : sequence of View
        Coordinates, of which those go that explain a place's neighbours best.
    """
    found = [u[:0]]
    starts = peaks(u, levels, u.shape[1])[: settings.places]
    # a batch may be a single point: then the places and the kinds of steps come in turn
    for i, share in zip(rng.permutation(starts), np.array_split(np.arange(n), len(starts)), strict=True):
        options = [Place.among(view.of(u), levels, int(i), settings) for view in views]
        k = int(np.argmin([place.misfit for place in options]))
        way = options[k].upwards(len(share), views[k].of(taken), rng, settings)
        found.append(np.clip(views[k].back(way), -settings.farthest, settings.farthest))
    return np.concatenate(found)


def peaks(z: FloatArray, levels: FloatArray, k: int) -> IntArray:
    """Points z (m, d) none of whose k nearest neighbours is higher, the highest first."""
    distances, k = square_distances(z, z), min(k, len(z) - 1)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argpartition(distances, max(k - 1, 0), axis=1)[:, :k]
    top = np.flatnonzero(levels >= levels[nearest].max(axis=1, initial=-np.inf))
    return top[np.argsort(-levels[top], kind="stable")]


@dataclass(frozen=True)
class Place:
    """A point with a process of what its neighbours say.

    Attributes
    ----------
    point : (d,) array
    gp : GP
        On −log(1 + gap to the best), standardised: far below, the logarithm is the smoother function.
    scales : (d,) array
        Units of length.
    reach : float
        Distance of the d-th neighbour.
    misfit : float
        Minus the log of what speaks for the process.
    """

    point: FloatArray
    gp: GP
    scales: FloatArray
    reach: float
    misfit: float

    @classmethod
    def among(cls, z: FloatArray, levels: FloatArray, i: int, settings: ClimbSettings) -> "Place":
        """The i-th of points z (m, d) with values (m,)."""
        d = z.shape[1]
        near = np.argsort(square_distances(z[[i]], z)[0], kind="stable")[: settings.neighbours * d]
        x, gap = z[near], levels[near].max() - levels[near]
        y = -np.log1p(gap / max(float(np.median(gap)), d))
        y = (y - y.mean()) / max(float(y.std()), 1e-6)
        start = Matern52(1.0, settings.first * np.sqrt(d) * np.maximum(x.std(axis=0), 1e-9))
        gp = fit(x, y, start, constant_mean=True, noise=None, max_steps=settings.steps)
        assert gp.optimum is not None
        scales = gp.kernel.lengthscale
        scales = np.minimum(scales, settings.longest * np.exp(np.log(scales).mean()))
        distances = np.sort(np.linalg.norm((x - z[i]) / scales, axis=1))
        return cls(z[i], gp, scales, max(float(distances[min(d, len(x) - 1)]), 1e-6), gp.optimum.value)

    def upwards(self, n: int, taken: FloatArray, rng: np.random.Generator, settings: ClimbSettings) -> FloatArray:
        """At most n points within several distances where the process is highest, apart from all others: (k, d)."""
        gp, out = self.gp.expecting(taken, noise=1e-4) if len(taken) else self.gp, self.point[None][:0]
        first = int(rng.integers(len(settings.radii)))
        for k in range(first, first + n):
            radius = self.reach * settings.radii[k % len(settings.radii)]
            step = self._best(gp, radius, settings.optimism[k % len(settings.optimism)], rng, settings)
            gp, out = gp.expecting(step, noise=1e-4), np.concatenate([out, step])
        return out

    def _best(self, gp: GP, radius: float, sds: float, rng: np.random.Generator, settings: ClimbSettings) -> FloatArray:
        """Where a process is highest, so many standard deviations above its mean, within a radius: (1, d) or (0, d)."""
        d = len(self.point)
        centre, width, seen = np.zeros(d), np.full(d, radius / np.sqrt(d)), (gp.x - self.point) / self.scales
        for _ in range(settings.rounds):
            step = centre + width * rng.standard_normal((settings.cloud, d))
            step[0] = centre
            step *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300))
            p = gp.predict(self.point + step * self.scales)
            level = p.mean + sds * np.sqrt(p.var)
            level[square_distances(step, seen).min(axis=1) < (settings.apart * radius) ** 2] = -np.inf
            order = np.argsort(-level, kind="stable")[: settings.best]
            centre, width = step[order[0]], step[order].std(axis=0)
        best: FloatArray = self.point + centre[None] * self.scales
        return best[: int(np.isfinite(level[order[0]]))]
