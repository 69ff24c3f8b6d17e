"""The density of two parameters, smoothed from samples: a filtered histogram on a grid that leans with them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dctn, idctn

from basq.errors import InputError
from basq.types import BoolArray, FloatArray

SIDE, LONGEST_SIDE = 96, 192
"""Points per side of the grid, and at most where the samples crowd."""
CROWD = 3.0
"""Steps across the narrowest part that holds a tenth of the samples."""
WIDTHS = (0.04, 0.1, 0.2, 0.35, 0.6, 0.9, 1.2)
"""Of the filter in either direction, relative to Scott's rule."""
WIDER = 1.5
"""The same, once its bias is corrected."""
LEAST = 0.6
"""Width of the narrowest filter, in steps of the grid: a narrower one would show single samples."""
NEAR = 0.05
"""Of the way round a circle: samples so near to both of its ends are taken to go on beyond them."""
UPRIGHT = 0.3
"""Correlation below which the grid does not lean."""


@dataclass(frozen=True)
class LeaningGrid:
    """A grid of upright columns, each shifted along the second coordinate so that it follows a linear ridge.

    However narrow the ridge, some tens of steps lie across it.

    Attributes
    ----------
    x : (m,) array
        Of the columns, evenly spaced.
    offset : (m,) array
        Of the rows within a column, evenly spaced.
    slope : float
        The point of row j in column i is at (x[i], offset[j] + slope x[i]).
    """

    x: FloatArray
    offset: FloatArray
    slope: float

    @classmethod
    def around(cls, points: FloatArray, bounds: FloatArray, *, leans: bool = True) -> "LeaningGrid":
        """Cover all but a thousandth of the samples (n, 2) at either end, inside the bounds (2, 2)."""
        cov = np.cov(points.T)
        correlation = cov[0, 1] / max(np.sqrt(cov[0, 0] * cov[1, 1]), 1e-300)
        slope = cov[0, 1] / cov[0, 0] if leans and abs(correlation) > UPRIGHT else 0.0
        rows = bounds[1] if slope == 0.0 else np.array([-np.inf, np.inf])
        return cls(_even(points[:, 0], bounds[0]), _even(points[:, 1] - slope * points[:, 0], rows), float(slope))

    @property
    def steps(self) -> FloatArray:
        """Between columns and between rows (2,)."""
        return np.array([self.x[1] - self.x[0], self.offset[1] - self.offset[0]])

    @property
    def mesh(self) -> tuple[FloatArray, FloatArray]:
        """Both coordinates of every node, each (rows, columns)."""
        x, offset = np.meshgrid(self.x, self.offset)
        return x, offset + self.slope * x

    def inside(self, bounds: FloatArray) -> BoolArray:
        """Which nodes are within the bounds (2, 2): (rows, columns)."""
        x, y = self.mesh
        out: BoolArray = (x >= bounds[0, 0]) & (x <= bounds[0, 1]) & (y >= bounds[1, 0]) & (y <= bounds[1, 1])
        return out

    @property
    def whole(self) -> "LeaningGrid":
        """The same with a rim of half a step, so that it reaches the bounds."""
        x, offset = (_with_rim(t, h) for t, h in zip((self.x, self.offset), self.steps, strict=True))
        return LeaningGrid(x, offset, self.slope)

    def places(self, points: FloatArray) -> FloatArray:
        """Where points (n, 2) are, in steps from the first node: column and row, (n, 2)."""
        offset = points[:, 1] - self.slope * points[:, 0]
        return (np.column_stack([points[:, 0], offset]) - [self.x[0], self.offset[0]]) / self.steps

    def counts(self, points: FloatArray) -> FloatArray:
        """Points nearest to each node: (rows, columns)."""
        column, row = self.places(points).T
        ends = [(-0.5, len(self.offset) - 0.5), (-0.5, len(self.x) - 0.5)]
        out: FloatArray = np.histogram2d(row, column, bins=(len(self.offset), len(self.x)), range=ends)[0]
        return out


@dataclass(frozen=True)
class PairDensity:
    """Two parameters' density, smoothed from samples.

    Attributes
    ----------
    points : (n, 2) array
        Equal-weight samples.
    bounds : (2, 2) array
        Beyond which there can be none; the density does not fall towards them for want of samples on the other side.
    periodic : tuple of bool
        Whose bounds are one point: on the other side are the samples from the other end.
    """

    points: FloatArray
    bounds: FloatArray
    periodic: tuple[bool, bool] = (False, False)

    @property
    def n_dim(self) -> int:
        return 2

    @cached_property
    def _rolled(self) -> tuple[FloatArray, FloatArray]:
        """The samples with copies beyond the ends of circles that they reach, (m, 2), and bounds of these, (2, 2)."""
        points, bounds = self.points, self.bounds.copy()
        for i in np.flatnonzero(self.periodic):
            low, high = self.bounds[i]
            period, column = high - low, points[:, i]
            if column.min() > low + NEAR * period or column.max() < high - NEAR * period:
                continue
            step = np.where(np.arange(2) == i, period, 0.0)
            upper = column > low + 0.5 * period
            points = np.concatenate([points[upper] - step, points, points[~upper] + step])
            bounds[i] = low - 0.25 * period, high + 0.25 * period
        return points, bounds

    @cached_property
    def grid(self) -> LeaningGrid:
        points, bounds = self._rolled
        return LeaningGrid.around(points, bounds, leans=points is self.points)

    @cached_property
    def values(self) -> FloatArray:
        """The density at the nodes of the grid (rows, columns), continued beyond the bounds.

        The filter is a Gaussian, of those widths under which each sample is most likely by all others. It is then made
        wider, and what that does to the density is divided out once (multiplicative bias correction, Jones, Linton
        and Nielsen 1995), so that contours are smooth and not inflated.
        """
        own, all_ = self.grid.counts(self.points), self.grid.counts(self._with_images())
        scott = self.grid.places(self.points).std(axis=0) * len(self.points) ** (-1.0 / 6.0)
        spectrum = dctn(all_)
        choices = [np.maximum(scott * w, LEAST) for w in np.stack(np.meshgrid(WIDTHS, WIDTHS), -1).reshape(-1, 2)]
        widths = WIDER * max(choices, key=lambda w: _left_out(own, _filtered(spectrum, w), w))
        first = _filtered(spectrum, widths) + 1e-9 * all_.max()
        smooth = first * _filtered(dctn(all_ / first), widths)
        out: FloatArray = smooth / (smooth[self.grid.inside(self.bounds)].sum() * self.grid.steps.prod())
        return out

    def _with_images(self) -> FloatArray:
        """The samples, and on a grid that leans also their images beyond either bound of the second coordinate.

        An image lies as far behind the bound as the sample before it, along the line on which the other coordinate is
        expected. The rims of the grid reflect on their own.
        """
        if self.grid.slope == 0.0:
            return self._rolled[0]
        cov = np.cov(self.points.T)
        shift = np.array([cov[0, 1] / cov[1, 1], 1.0])
        images = [self.points + 2.0 * (b - self.points[:, 1:]) * shift for b in self.bounds[1] if np.isfinite(b)]
        return np.concatenate([self.points, *images])

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at the rows of x (k, 2): (k,); between the nodes by interpolation, 0 off the grid."""
        points = np.atleast_2d(np.asarray(x, dtype=float)).reshape(-1, 2)
        place = self.grid.places(points)
        last = np.array(self.values.shape[::-1]) - 1.0
        on = ((place >= -0.5) & (place <= last + 0.5)).all(axis=1)
        on &= ((points >= self.bounds[:, 0]) & (points <= self.bounds[:, 1])).all(axis=1)
        place = np.clip(place, 0.0, last)
        low = np.minimum(place.astype(int), last.astype(int) - 1)
        (right, up), (i, j) = (place - low).T, low.T
        v = self.values
        below = v[j, i] * (1.0 - right) + v[j, i + 1] * right
        above = v[j + 1, i] * (1.0 - right) + v[j + 1, i + 1] * right
        return np.where(on, below * (1.0 - up) + above * up, 0.0)

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at the rows of x, −inf off the grid."""
        values = self.pdf(x)
        return np.log(values, out=np.full_like(values, -np.inf), where=values > 0)

    def cdf(self, t: ArrayLike) -> FloatArray:
        raise InputError("cdf needs one parameter, this density has 2; take a marginal first.")

    ppf = cdf

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (2,) and covariance (2, 2)."""
        return self.points.mean(axis=0), np.cov(self.points.T)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n of the samples: (n, 2)."""
        return self.points[rng.choice(len(self.points), size=n, replace=n > len(self.points))]


def _even(values: FloatArray, bounds: FloatArray) -> FloatArray:
    """Even steps over all but a thousandth of the values at either end and a margin, within bounds."""
    low, high = np.quantile(values, [0.001, 0.999])
    margin = 0.06 * (high - low) or abs(low) or 1.0
    low, high = max(low - margin, bounds[0]), min(high + margin, bounds[1])
    ordered, share = np.sort(values), max(len(values) // 10, 1)
    narrowest = max(float((ordered[share:] - ordered[:-share]).min()), 1e-300)
    n = int(np.clip(CROWD * (high - low) / narrowest, SIDE, LONGEST_SIDE))
    half = 0.5 * (high - low) / n
    return np.linspace(low + half, high - half, n)


def _with_rim(values: FloatArray, step: float) -> FloatArray:
    """The same with another value at either end, half a step further out."""
    return np.concatenate([values[:1] - 0.5 * step, values, values[-1:] + 0.5 * step])


def _left_out(own: FloatArray, filtered: FloatArray, widths: FloatArray) -> float:
    """Log-likelihood of the samples counted at each node under a filter that leaves out the sample itself."""
    others = np.maximum(filtered - 1.0 / (2.0 * np.pi * widths.prod()), 1e-6)
    return float((own * np.log(others)).sum())


def _filtered(spectrum: FloatArray, widths: FloatArray) -> FloatArray:
    """A table, given by its cosine transform, smoothed by a Gaussian (in columns, rows) and reflected at its rim."""
    rows, columns = (
        np.exp(-0.5 * (w * np.pi / n * np.arange(n)) ** 2) for w, n in zip(widths[::-1], spectrum.shape, strict=True)
    )
    return np.maximum(idctn(spectrum * np.outer(rows, columns)), 0.0)
