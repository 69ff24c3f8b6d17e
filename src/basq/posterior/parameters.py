"""The posterior in the user's parameters: densities, samples, moments."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from basq.errors import InputError
from basq.method import Density, Posterior
from basq.posterior.circle import CircleDensity, held, on_circle
from basq.posterior.densities import ParameterDensity, coordinate_moments
from basq.posterior.edges import up_to_edges
from basq.posterior.pairs import PairDensity
from basq.posterior.sampled import GRID, GridDensity, KernelDensity, SampledPosterior, Slice, smooth_1d
from basq.prior import Prior
from basq.prior.checks import Names
from basq.types import FloatArray

N_SUMMARY = 4000
"""Samples behind correlations and behind marginals without closed form."""


@dataclass(frozen=True, eq=False)
class ParameterPosterior:
    """A posterior over all of the user's parameters.

    Attributes
    ----------
    prior : Prior
        Maps standard space to parameters.
    standard : Posterior
        In standard space.
    """

    prior: Prior
    standard: Posterior

    plain_cached: ClassVar = ("samples", "moments", "lines")

    @cached_property
    def _own(self) -> Posterior:
        """In the user's parameters for an affine prior, in standard space otherwise."""
        return self.standard if self.prior.affine is None else self.standard.affine(*self.prior.affine)

    @property
    def _map(self) -> Prior | None:
        """From the space of `_own` to the user's parameters; None where they are the same."""
        return None if self.prior.affine is not None else self.prior

    @property
    def _is_coupled(self) -> bool:
        return self._map is not None and not self.prior.is_separable

    @cached_property
    def circles(self) -> dict[int, CircleDensity]:
        """Densities of periodic parameters, by their places; a closed form knows of none."""
        known = self.standard
        if not isinstance(known, SampledPosterior):
            return {}
        return {int(i): on_circle(self.prior, int(i), known) for i in np.flatnonzero(self.prior.periodic)}

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at the rows of x (k, d): (k,)."""
        points = np.atleast_2d(np.asarray(x, dtype=float))
        if self._is_coupled:
            u = self.prior.to_standard(points)  # says why a coupled transform has no density
            return self.standard.log_pdf(u) - self.prior.log_jacobian(u)
        full = ParameterDensity(self.prior.names, self._own, self._map, tuple(range(self.prior.n_dim)))
        return full.log_pdf(points)

    def sample(self, n: int, seed: Any = None) -> FloatArray:
        """Draw n equal-weight samples: (n, d)."""
        if n < 1 or n != int(n):
            raise InputError(f"sample({n!r}): give a positive whole number.")
        if self.prior.absent and self.prior.affine is None and n <= len(self.__dict__.get("samples", ())):
            return self._drawn_again(int(n), seed)
        return self.prior.from_standard(self.standard.sample(int(n), np.random.default_rng(seed)))

    def _drawn_again(self, n: int, seed: Any) -> FloatArray:
        """What `sample` has given before the map was lost: the samples are the population, in another order."""
        population, place = np.empty_like(self.samples), np.random.default_rng(0)
        population[place.choice(len(population), len(population), replace=False)] = self.samples
        return population[np.random.default_rng(seed).choice(len(population), n, replace=False)]

    @cached_property
    def samples(self) -> FloatArray:
        """Those behind numerical summaries, (n, d); a fixed stream, so that a posterior is one answer."""
        return self.sample(N_SUMMARY, seed=0)

    def marginal(self, names: Names) -> ParameterDensity:
        """Density of one or several parameters, by name or place."""
        dims = self.prior.index(names)
        if not dims or len(set(dims)) < len(dims):
            raise InputError(f"marginal({names!r}): give one or several different names out of {self.prior.names}.")
        chosen = tuple(self.prior.names[i] for i in dims)
        smoothed = self._smoothed(dims)
        if smoothed is not None:
            return ParameterDensity(chosen, smoothed, None, tuple(dims))
        return ParameterDensity(chosen, self._own.marginal(dims), self._map, tuple(dims))

    def _smoothed(self, dims: list[int]) -> Density | None:
        """A marginal that is better smoothed in the user's parameters than in standard space, else None."""
        coupled, standard = self._is_coupled, self.standard
        if len(dims) == 1:
            line = self.lines.get(dims[0])
            return smooth_1d(self.samples[:, dims[0]]) if line is None and coupled else line
        if coupled and len(dims) != 2:
            return KernelDensity(self.samples[:, dims])
        if not coupled and not isinstance(standard, SampledPosterior):
            return None  # a closed form
        if len(dims) == 2 and (coupled or self.prior.n_dim > 2):
            return PairDensity(self.samples[:, dims], self.prior.bounds[dims], tuple(self.prior.periodic[dims]))
        return None

    @cached_property
    def lines(self) -> dict[int, Density]:
        """Marginals of single parameters that are better smoothed in the user's parameters, by their places."""
        found = {i: self._line(i) for i in range(self.prior.n_dim)}
        return {i: line for i, line in found.items() if line is not None}

    @property
    def own_lines(self) -> dict[int, Density]:
        """Marginals of all single parameters, in the user's parameters: what is left when the map is lost."""
        return self.lines | {i: self._by_levels(i) for i in range(self.prior.n_dim) if i not in self.lines}

    def _by_levels(self, i: int) -> Density:
        """The marginal of a parameter on a grid of quantiles."""
        density = self.marginal(self.prior.names[i])
        x = np.unique(density.ppf(ndtr(np.linspace(-6.0, 6.0, GRID))))
        values = density.pdf(x)
        return GridDensity(x, values / np.trapezoid(values, x))

    def _line(self, i: int) -> Density | None:
        if self._is_coupled:
            return smooth_1d(self.samples[:, i])
        if i in self.circles:
            return self.circles[i]
        if isinstance(self.standard, SampledPosterior) and self._map is not None:
            return up_to_edges(self.prior, i, self.standard)
        return None

    def conditional(self, values: Mapping[str, float]) -> ParameterDensity:
        """Density of the other parameters when some are held at values."""
        names, dims = self.prior.names, self.prior.index(list(values))
        if not 0 < len(dims) < self.prior.n_dim:
            raise InputError(f"conditional() must hold some but not all of {names}, got {tuple(values)}.")
        if self._is_coupled:
            raise InputError("A prior transform that couples its parameters has no conditional densities.")
        at = np.array([float(values[names[i]]) for i in dims])
        if self._map is not None:
            at = np.array(
                [self.prior.coordinate_to_standard(i, np.array([t]))[0] for i, t in zip(dims, at, strict=True)]
            )
        free = tuple(i for i in range(self.prior.n_dim) if i not in dims)
        chosen, given = tuple(names[i] for i in free), self._own.conditional(dims, at)
        if len(free) == 1 and free[0] in self.circles and isinstance(self.standard, SampledPosterior):
            line = Slice(self.standard.log_density, np.array(free), np.array(dims), at)
            return ParameterDensity(chosen, held(self.prior, free[0], line), None, free)
        return ParameterDensity(chosen, given, self._map, free)

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d).

        Exact for affine priors; else by quadrature of each marginal, with correlations from samples. Those of periodic
        parameters are of their circles, cut where they are emptiest.
        """
        if self._map is None:
            return self._own.moments()
        if self._is_coupled:
            return self.samples.mean(axis=0), np.atleast_2d(np.cov(self.samples.T))
        each = [self._moments_of(i) for i in range(self.prior.n_dim)]
        means, sds = np.array([m or (c.mean(), c.std()) for m, c in zip(each, self.samples.T, strict=True)]).T
        samples = self.samples.copy()
        for i, circle in self.circles.items():
            samples[:, i] = circle.unrolled(samples[:, i])
        correlation = np.atleast_2d(np.corrcoef(samples.T))
        return means, correlation * np.outer(sds, sds)

    def _moments_of(self, i: int) -> tuple[float, float] | None:
        """Mean and standard deviation of one parameter; None if no mass is to be seen."""
        if i not in self.circles:
            return coordinate_moments(self.prior, i, self.standard.marginal([i]))
        mean, cov = self.circles[i].moments()
        return float(mean[0]), float(np.sqrt(cov[0, 0]))
