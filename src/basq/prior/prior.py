"""The prior: a law π over named parameters, and its map to and from standard space."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from basq.errors import InputError
from basq.numerics.gaussians import GaussianMixture
from basq.plain import Absent
from basq.prior.checks import Looks, Names, checked_looks, checked_names, checked_samples
from basq.prior.density import DensityMap
from basq.prior.joint import JointMap
from basq.prior.maps import AffineMap, SeparableMap, StandardMap, TransformMap
from basq.prior.marginals import Coordinate, as_marginal, is_flat, is_pair
from basq.prior.parts import absent_among, parts_of
from basq.prior.periodic import Periodic
from basq.types import BoolArray, FloatArray

_MultivariateNormal = type(stats.multivariate_normal([0.0]))


class Prior:
    r"""A law π over named parameters, with a map to and from standard space.

    Standard space has coordinates u in which π is N(0, I) (in general: `measure` times exp(`log_weight`)).
    Every method takes points as rows, (n, d), or one point, (d,), and answers in kind.

    Parameters
    ----------
    spec : dict, list, frozen distribution or Prior
        ``{name: marginal}`` or a list of marginals, each a frozen continuous `scipy.stats` distribution or a
        pair (lo, hi), the uniform, or `basq.periodic`; one such; or a frozen `scipy.stats.multivariate_normal`.
    names : sequence of str, optional
        Names of the parameters; a dict has its own. Default x1, x2, …
    labels, units : dict or sequence of str, optional
        How pictures, reports and exports write the parameters, such as ``{"rate": r"$\lambda$"}`` and
        ``{"rate": "1/s"}``; by default as they are called. They do not change the problem.

    Attributes
    ----------
    names, labels, units : tuple of str
    n_dim : int
    measure : GaussianMixture
        Integration measure over standard space; N(0, I) unless the prior was built by `from_density`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> prior = Prior({"shift": stats.norm(0, 2), "phase": (0, 1)})
    >>> prior
    Prior(shift ~ norm(0, 2), phase ~ uniform(0, 1))
    >>> prior.from_standard(np.array([1.0, 0.0])).tolist()
    [2.0, 0.5]
    """

    names: tuple[str, ...]
    n_dim: int
    measure: GaussianMixture
    plain_fields: ClassVar = ("names", "n_dim", "measure", "_labels", "_units", "_map")

    _labels: Mapping[str, str] = MappingProxyType({})
    _units: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self, spec: Any, *, names: Sequence[str] | None = None, labels: Looks = None, units: Looks = None
    ) -> None:
        self._map, own_names = _interpret(spec, names)
        self.n_dim = self._map.n_dim
        self.names = checked_names(own_names, self.n_dim)
        self.measure = self._map.measure if isinstance(self._map, DensityMap) else GaussianMixture.standard(self.n_dim)
        known = spec if isinstance(spec, Prior) and names is None else self
        self._labels = {**known._labels, **checked_looks("labels", labels, self.names)}
        self._units = {**known._units, **checked_looks("units", units, self.names)}

    @classmethod
    def from_transform(
        cls,
        transform: Callable[[FloatArray], Any],
        n_dim: int | None = None,
        names: Sequence[str] | None = None,
    ) -> "Prior":
        """Build a prior from a unit-cube transform, the habit of nested samplers.

        Parameters
        ----------
        transform : callable, (d,) -> (d,)
            Maps the uniform law on the unit cube to the prior. Works on copies.
        n_dim : int, optional
            Number of parameters; may be left out if `names` is given.
        names : sequence of str, optional

        Notes
        -----
        If each parameter is a strictly monotone function of its own cube coordinate (a test at fixed points
        decides), the inverse is found by bisection. If not, `to_standard`, `log_jacobian`, `log_pdf` and
        `in_support` raise; sampling and evidence need none of them.
        """
        if not callable(transform):
            raise InputError(f"transform is {transform!r}; it must be a function of a unit-cube point.")
        if n_dim is None:
            if names is None:
                raise InputError("A prior transform does not say how many parameters it has; give n_dim or names.")
            n_dim = len(names)
        if not isinstance(n_dim, int | np.integer) or n_dim < 1:
            raise InputError(f"n_dim is {n_dim!r}; it must be a positive integer.")
        # the names first: they are cheaper to get wrong than the transform
        names = checked_names(names, int(n_dim))
        return cls(TransformMap.probe(transform, int(n_dim)), names=names)

    @classmethod
    def from_density(
        cls,
        log_pdf: Callable[[FloatArray], Any],
        samples: Any,
        names: Sequence[str] | None = None,
        *,
        normalised: bool = True,
        vectorized: bool | None = None,
    ) -> "Prior":
        """Build a prior that is known only by its log-density and by samples.

        Parameters
        ----------
        log_pdf : callable, (d,) -> float or (n, d) -> (n,)
            Log-density in the user's parameters; -inf outside the support.
        samples : (n, d) array
            Draws from it, n >= 10 d.
        names : sequence of str, optional
        normalised : bool
            Whether exp(log_pdf) integrates to one, which is checked. If false, its integral is estimated by
            importance sampling and divided out.
        vectorized : bool, optional
            Whether log_pdf takes (n, d); by default found out by trying.

        Notes
        -----
        Standard space is the whitened space of the samples; `measure` is a Gaussian mixture g fitted there,
        with two broad components, and `log_weight` is log π - log g.
        """
        if not callable(log_pdf):
            raise InputError(f"log_pdf is {log_pdf!r}; it must be a function that returns the log-density.")
        points = checked_samples(samples)
        names = checked_names(names, points.shape[1])
        return cls(DensityMap.fit(log_pdf, points, normalised, vectorized), names=names)

    def joined(self, other: "Prior") -> "Prior":
        """Return the prior of these parameters and, independent of them, others."""
        for prior in (self, other):
            if isinstance(prior._map, DensityMap):
                raise InputError(f"{prior!r} is known by samples only; it cannot stand beside other parameters.")
        joint = Prior(JointMap.of(self._map, other._map), names=(*self.names, *other.names))
        return joint._looking_like(self)._looking_like(other)

    def changed(self, marginals: Mapping[str, Any]) -> "Prior":
        """Return the prior with other marginals of some parameters, by name; those of the others stay."""
        self.index(marginals)
        if not isinstance(self._map, SeparableMap):
            raise InputError(f"{self!r} has no marginals of their own; give the priors of all parameters.")
        own = zip(self.names, self._map.coordinates, strict=True)
        new = tuple(as_marginal(n, marginals[n]) if n in marginals else old for n, old in own)
        return Prior(SeparableMap(new), names=self.names)._looking_like(self)

    @property
    def labels(self) -> tuple[str, ...]:
        """How the parameters are written."""
        return tuple(self._labels.get(name, name) for name in self.names)

    @property
    def units(self) -> tuple[str, ...]:
        """Of the parameters; empty texts where there are none."""
        return tuple(self._units.get(name, "") for name in self.names)

    @property
    def captions(self) -> tuple[str, ...]:
        """Labels with their units."""
        pairs = zip(self.labels, self.units, strict=True)
        return tuple(f"{label} [{unit}]" if unit else label for label, unit in pairs)

    def labelled(self, labels: Looks = None, units: Looks = None) -> "Prior":
        """Return the same prior with these labels and units, by name or one for each."""
        return Prior(self, labels=labels, units=units)

    def _looking_like(self, other: "Prior") -> "Prior":
        """The same prior, its parameters written as those of another one."""
        labels, units = ({n: t for n, t in own.items() if n in self.names} for own in (other._labels, other._units))
        return self.labelled(labels, units)

    def __repr__(self) -> str:
        return f"Prior({self._map.describe(self.names)})"

    @property
    def bounds(self) -> FloatArray:
        """Box that holds the support, (d, 2); entries may be infinite."""
        return self._map.bounds.copy()

    @property
    def is_separable(self) -> bool:
        """Whether the map works coordinate by coordinate, and can be used."""
        return self._map.coordinates is not None and not self.absent

    @property
    def parts(self) -> tuple[Any, ...]:
        """What the map is made of: marginals, and functions of the user's."""
        return parts_of(self._map)

    @cached_property
    def absent(self) -> tuple[Absent, ...]:
        """What of it was not in the file that it was read from: functions, and distributions of the user's own."""
        return absent_among(self.parts)

    @cached_property
    def flat(self) -> BoolArray:
        """Parameters that the prior spreads evenly, (d,): they or their logarithms are linear in Φ(u)."""
        coordinates = self._map.coordinates
        return np.zeros(self.n_dim, dtype=bool) if coordinates is None else np.array([is_flat(c) for c in coordinates])

    @property
    def periodic(self) -> BoolArray:
        """Parameters on a circle, (d,)."""
        return np.array([isinstance(c, Periodic) for c in self._map.coordinates or [None] * self.n_dim])

    @property
    def affine(self) -> tuple[FloatArray, FloatArray] | None:
        """A (d, d) and b (d,) of x = b + A u for a multivariate normal or a density prior, else None."""
        affine = self._map.affine if isinstance(self._map, DensityMap) else self._map
        return (affine.factor.copy(), affine.offset.copy()) if isinstance(affine, AffineMap) else None

    def only(self, dims: Sequence[int]) -> "Prior":
        """The prior of some of the parameters, by their places; they have to be independent of each other.

        Raises
        ------
        InputError
            If the prior does not map coordinate by coordinate.
        """
        names = tuple(self.names[i] for i in dims)
        if isinstance(self._map, SeparableMap):
            return Prior(SeparableMap(tuple(self._map.coordinates[i] for i in dims)), names=names)._looking_like(self)
        if isinstance(self._map, TransformMap) and self._map.signs is not None:
            return Prior(self._map.only(np.array(dims, dtype=np.intp)), names=names)._looking_like(self)
        raise InputError(f"{self!r} does not map coordinate by coordinate, so there is no prior of some of them.")

    def from_standard(self, u: FloatArray) -> FloatArray:
        """Map standard space to the user's parameters: (n, d) -> (n, d)."""
        rows, one = self._rows(u, "u")
        return _answer(self._map.from_standard(rows), one)

    def to_standard(self, x: FloatArray) -> FloatArray:
        """Map the user's parameters to standard space: (n, d) -> (n, d).

        Raises
        ------
        InputError
            If a point is outside the bounds, or the prior transform has no inverse.
        """
        rows, one = self._rows(x, "x")
        lo, hi = self.bounds.T
        outside = np.argwhere((rows < lo) | (rows > hi))
        if len(outside):
            self._refuse_outside(rows[tuple(outside[0])], *outside[0])
        return _answer(self._map.to_standard(rows), one)

    def log_jacobian(self, u: FloatArray) -> FloatArray:
        """Log |det dx/du| at u: (n, d) -> (n,)."""
        rows, one = self._rows(u, "u")
        return _answer(self._map.log_jacobian(rows), one)

    def log_weight(self, u: FloatArray) -> FloatArray:
        """Log of the prior's density over u relative to `measure`: (n, d) -> (n,); 0 for exact maps."""
        rows, one = self._rows(u, "u")
        if isinstance(self._map, DensityMap):
            return _answer(self._map.log_weight(rows), one)
        return _answer(np.zeros(len(rows)), one)

    def log_pdf(self, x: FloatArray) -> FloatArray:
        """Log-density of π in the user's parameters: (n, d) -> (n,); -inf outside the support."""
        rows, one = self._rows(x, "x")
        inside = self._in_bounds(rows)
        out = np.full(len(rows), -np.inf)
        out[inside] = self._map.log_pdf(rows[inside])
        return _answer(out, one)

    def in_support(self, x: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether π allows x: (n, d) -> (n,) of bool."""
        rows, one = self._rows(x, "x")
        if isinstance(self._map, SeparableMap | AffineMap):
            inside = self._in_bounds(rows)
        else:
            inside = np.asarray(self.log_pdf(rows) > -np.inf)
        out: np.ndarray[Any, np.dtype[np.bool_]] = inside[0] if one else inside
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n points of π in the user's parameters, (n, d)."""
        if isinstance(self._map, DensityMap):
            return self._map.sample(n, rng)
        return self._map.from_standard(rng.standard_normal((n, self.n_dim)))

    def coordinate_from_standard(self, i: int, u: FloatArray) -> FloatArray:
        """Map coordinate i of a separable prior to user space: (n,) -> (n,)."""
        return self._coordinate(i).from_standard(np.asarray(u, dtype=float))

    def coordinate_to_standard(self, i: int, x: FloatArray) -> FloatArray:
        """Map coordinate i of a separable prior to standard space: (n,) -> (n,)."""
        coordinate, column = self._coordinate(i), np.asarray(x, dtype=float)
        lo, hi = coordinate.bounds
        inside = (column >= lo) & (column <= hi)
        if not inside.all():
            row = int(np.argmin(inside))
            self._refuse_outside(column[row], row, i)
        return coordinate.to_standard(column)

    def coordinate_log_jacobian(self, i: int, u: FloatArray) -> FloatArray:
        """Log |dx_i/du_i| of coordinate i of a separable prior: (n,) -> (n,)."""
        return self._coordinate(i).log_jacobian(np.asarray(u, dtype=float))

    def index(self, names: Names) -> list[int]:
        """Positions of parameters, given by their names or places, in the order given."""
        wanted = [names] if isinstance(names, str | Integral) else list(names)  # type: ignore[arg-type]
        places = {i: i for i in range(self.n_dim)} | {name: i for i, name in enumerate(self.names)}
        unknown = [name for name in wanted if name not in places]
        if unknown:
            raise InputError(
                f"No parameter {unknown[0]!r}; this prior has {', '.join(map(repr, self.names))}, by their places 0 to "
                f"{self.n_dim - 1}."
            )
        return [places[name] for name in wanted]

    def _coordinate(self, i: int) -> Coordinate:
        coordinates = self._map.coordinates
        if coordinates is None:
            raise InputError(f"{self!r} does not map coordinate by coordinate; use to_standard and from_standard.")
        return coordinates[i]

    def _in_bounds(self, rows: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        lo, hi = self.bounds.T
        return np.asarray(((rows >= lo) & (rows <= hi)).all(axis=1))

    def _refuse_outside(self, value: float, row: int, i: int) -> None:
        lo, hi = self.bounds[i]
        raise InputError(
            f"Row {row}: {self.names[i]!r} is {value:g}, outside the prior's support [{lo:g}, {hi:g}]. "
            f"Remove the point (in_support tells which), or widen the prior."
        )

    def _rows(self, x: Any, what: str) -> tuple[FloatArray, bool]:
        """Read points as finite rows; also tell whether a single point was given."""
        rows = np.asarray(x, dtype=float)
        one = rows.ndim == 1
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.n_dim:
            raise InputError(
                f"{what} has shape {rows.shape}; expected (n, {self.n_dim}), or ({self.n_dim},) for one "
                f"point, with columns {', '.join(self.names)}."
            )
        rows = np.atleast_2d(rows)
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            i, j = bad[0]
            raise InputError(f"{what}[{i}, {j}] ({self.names[j]!r}) is {rows[i, j]}; coordinates must be finite.")
        return rows, one


def as_prior(spec: Any, *, names: Sequence[str] | None = None) -> Prior:
    """Return a `Prior` as it is and turn anything else that `Prior` accepts into one."""
    return spec if isinstance(spec, Prior) and names is None else Prior(spec, names=names)


def _answer(out: FloatArray, one: bool) -> FloatArray:
    """Drop the leading axis if the question was one point."""
    answer: FloatArray = out[0] if one else out
    return answer


def _interpret(spec: Any, names: Sequence[str] | None) -> tuple[StandardMap, Sequence[str] | None]:
    """Read a prior's spec in any of its forms."""
    if isinstance(spec, Prior):
        return spec._map, spec.names if names is None else names
    if isinstance(spec, TransformMap | DensityMap | SeparableMap | JointMap):
        return spec, names
    if isinstance(spec, _MultivariateNormal):
        return AffineMap.whitening(spec.mean, spec.cov, "The multivariate normal prior"), names
    if isinstance(spec, Mapping):
        if names is not None:
            raise InputError(f"names={names!r} was given next to a dict, whose keys {list(spec)} are the names.")
        names, marginals = list(spec), list(spec.values())
    elif isinstance(spec, list | tuple | np.ndarray) and not is_pair(spec):
        marginals = list(spec)
    else:
        marginals = [spec]
    if not marginals:
        raise InputError("The prior is empty; give at least one parameter, as {'x': stats.norm(0, 1)}.")
    checked = checked_names(names, len(marginals))
    return SeparableMap(tuple(map(as_marginal, checked, marginals))), checked
