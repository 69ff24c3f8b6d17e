"""Symmetries of standard space: exchanges of coordinates and changes of sign, and what is left when they are folded."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from basq.types import FloatArray, IntArray

DIGITS = 7
"""Decimals to which two points have to be equal to be one."""
MOST = 120
"""Maps of a group at most: the exchanges of five labels."""


@dataclass(frozen=True)
class SignedPermutation:
    """The map u -> sign u[place] of standard space onto itself, which leaves N(0, I) as it is.

    Attributes
    ----------
    place : (d,) int array
    sign : (d,) array
    """

    place: IntArray
    sign: FloatArray

    def of(self, u: FloatArray) -> FloatArray:
        """Images of points (n, d)."""
        return self.sign * u[:, self.place]

    def origin(self, u: FloatArray) -> FloatArray:
        """Points (n, d) of which these are the images."""
        out = np.empty_like(u)
        out[:, self.place] = self.sign * u
        return out

    def after(self, other: "SignedPermutation") -> "SignedPermutation":
        """The other one first, then this one."""
        return SignedPermutation(other.place[self.place], self.sign * other.sign[self.place])

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Equal for equal maps."""
        return np.asarray(self.place, dtype=np.int64).tobytes(), (self.sign > 0.0).tobytes()


def keys(u: FloatArray) -> list[bytes]:
    """Equal for points (n, d) that are equal but for rounding."""
    return [row.tobytes() for row in np.round(u, DIGITS) + 0.0]


def apart(u: FloatArray, taken: FloatArray) -> FloatArray:
    """Those of the points (n, d) that are not among others (m, d)."""
    known = set(keys(taken))
    return u[[key not in known for key in keys(u)]]


def group(generators: Sequence[SignedPermutation]) -> tuple[SignedPermutation, ...]:
    """All that they make together, the identity first; that alone where they are too many."""
    d = len(generators[0].place)
    one = SignedPermutation(np.arange(d), np.ones(d))
    found, new = {one.key: one}, [one]
    while new and len(found) <= MOST:
        made = [g.after(h) for h in new for g in generators]
        new = list({m.key: m for m in made if m.key not in found}.values())
        found.update({m.key: m for m in new})
    return tuple(found.values()) if len(found) <= MOST else (one,)


@dataclass(frozen=True)
class Fold:
    """Standard space folded along the symmetries of a function: of all images of a point, one is kept.

    Attributes
    ----------
    maps : tuple of SignedPermutation
        A group, the identity first.
    centre : (d,) array
        The image that is nearest to it is the one that is kept.
    """

    maps: tuple[SignedPermutation, ...]
    centre: FloatArray

    def __len__(self) -> int:
        return len(self.maps)

    @cached_property
    def _images_of_centre(self) -> FloatArray:
        """The image of u nearest to the centre is g(u) if the nearest of the centre's images to u is g⁻¹(centre)."""
        return np.concatenate([m.origin(self.centre[None]) for m in self.maps])

    def same_group(self, other: "Fold | None") -> bool:
        return other is not None and {m.key for m in self.maps} == {m.key for m in other.maps}

    def of(self, u: FloatArray) -> FloatArray:
        """The image of every point (n, d) that is kept."""
        nearest = np.argmax(u @ self._images_of_centre.T, axis=1)  # all are as far from the origin
        return self.images(u, nearest)

    def images(self, u: FloatArray, which: IntArray) -> FloatArray:
        """One image of every point (n, d), by the places of the maps (n,)."""
        out = u.copy()
        for k in np.unique(which):
            if k:
                mine = which == k
                out[mine] = self.maps[k].of(u[mine])
        return out

    def inside(self, u: FloatArray) -> FloatArray:
        """Whether points (n, d) are kept, those at the edge too."""
        with_images = u @ self._images_of_centre.T
        inside: FloatArray = with_images[:, 0] >= with_images.max(axis=1) - 1e-9
        return inside

    def unfolded(self, u: FloatArray, rng: np.random.Generator) -> FloatArray:
        """A random image of every point (n, d)."""
        return self.images(u, rng.integers(len(self), size=len(u)))

    def central(self, u: FloatArray) -> bool:
        """Whether a point (d,) is at least half as far from the edge as if it were the centre."""
        walls = self.centre - self._images_of_centre[1:]
        here = (walls @ u / np.maximum(np.linalg.norm(walls, axis=1), 1e-300)).min()
        apart = np.linalg.norm(u - np.concatenate([m.of(u[None]) for m in self.maps[1:]]), axis=1).min()
        return bool(here >= 0.25 * apart)
