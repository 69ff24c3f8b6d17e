"""The engine on likelihoods that do not change when labels are exchanged or signs: it learns one of the equal parts.

A mixture's components have no order, amplitude and phase can both be turned, so that a posterior consists of parts
which are alike, six of them with three components. That they are is seen exactly: values at images of points are the
same numbers. Space is then folded, and what was several modes is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from basq.auto.images import Mirror, likely_symmetries
from basq.auto.settings import Exploration
from basq.method import LogSurrogate
from basq.numerics.fold import Fold, SignedPermutation, apart, group, keys
from basq.numerics.gaussians import Measure
from basq.observations import Observations
from basq.prior import Prior
from basq.types import FloatArray, IntArray

SAME = 1e-9
"""Difference of two values, in units of one plus their size, that rounding explains."""
PAIRS = 2
"""Pairs of points and their images that show a symmetry."""
SAID = 3
"""Symmetries that are named."""
COMMON = 0.5
"""Share of all values from which a number is a common one."""


@dataclass(frozen=True)
class Symmetries:
    """What is known about symmetries.

    Attributes
    ----------
    found : tuple of SignedPermutation
    wanted : (m, d) array
        Images to be called next.
    names : tuple of str
        Of the parameters.
    """

    found: tuple[SignedPermutation, ...]
    wanted: FloatArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, seen: Observations, prior: Prior, settings: Exploration) -> "Symmetries":
        """What the observations show: the best two of the first points are called again as their likeliest images.

        Later one of the best points is, too: far from the posterior more may be alike than near it.
        """
        most, later = settings.symmetries
        candidates = () if prior.periodic.any() or np.any(seen.noise != 0.0) else likely_symmetries(prior, most)
        pairs = _sources(seen, later) if candidates else np.empty(0, dtype=np.intp)
        if len(pairs) < PAIRS:
            return cls((), np.empty((0, prior.n_dim)), prior.names)
        places = {key: k for k, key in enumerate(keys(seen.u))}
        found: list[SignedPermutation] = []
        wanted: list[FloatArray] = []
        for image in candidates:
            if found and image.key in {m.key for m in group(found)}:
                continue
            there = image.of(seen.u[pairs])
            others = [places.get(key) for key in keys(there)]
            alike = [_same(seen.log_likelihood, int(k), other) for k, other in zip(pairs, others, strict=True)]
            if False in alike:
                continue
            if None in alike:
                wanted.append(there[alike.index(None)])
            else:
                found.append(image)
        return cls(tuple(found), np.array(wanted).reshape(-1, prior.n_dim), prior.names)

    def due(self, taken: FloatArray) -> FloatArray:
        """Images that are wanted, and not on their way already (m, d)."""
        return apart(self.wanted, taken)

    def fold(self, last: Fold | None, best: FloatArray) -> Fold | None:
        """How standard space is folded, as before if the best point (d,) lies well inside; None if it is not."""
        new = Fold(group(self.found), best) if self.found else None
        if new is None or len(new) == 1:
            return None
        if last is not None and new.same_group(last) and last.central(last.of(best[None])[0]):
            return last
        return new

    def note(self, fold: Fold) -> str:
        """What the likelihood does not notice, in a clause."""
        ways = [_in_words(m, self.names) for m in self.found]
        more = "; …" if len(ways) > SAID else ""
        return (
            f"the likelihood stays the same with {'; '.join(ways[:SAID])}{more}: one of {len(fold)} equal parts was "
            "learned"
        )


def _in_words(image: SignedPermutation, names: Sequence[str]) -> str:
    """Which parameters an image exchanges, and which it reflects."""
    pairs = [(names[k], names[int(j)]) for k, j in enumerate(image.place) if k < j]
    turned = [name for name, sign in zip(names, image.sign, strict=True) if sign < 0.0]
    left, right = (", ".join(side) for side in zip(*pairs, strict=True))
    return f"{left} and {right} exchanged" + (f" and {', '.join(turned)} reflected" if turned else "")


def _sources(seen: Observations, later: int) -> IntArray:
    """Rows of the points whose images are called: the best two of the first ones, and later one of the best."""
    first = seen.batch == seen.batch.min()
    values = np.where(np.isfinite(seen.log_values), seen.log_values, -np.inf)
    order = np.argsort(-np.where(first, values, -np.inf), kind="stable")[:PAIRS]
    best = order[np.isfinite(values[order])]
    early = later * int(first.sum())
    return best if len(seen) < early else np.append(best, np.argmax(values[:early]))


def _same(values: FloatArray, k: int, other: int | None) -> bool | None:
    """Whether two values are equal, though no common number such as that of a floor; None if one is not known."""
    if other is None:
        return None
    alike = np.abs(values - values[k]) <= SAME * (1.0 + abs(values[k]))
    return bool(alike[other]) and not alike.mean() > COMMON


@dataclass(frozen=True)
class FoldedMeasure:
    """The prior on the part of standard space that a fold keeps, which stands for all.

    Attributes
    ----------
    base : Measure
        As symmetric as the fold.
    fold : Fold
    """

    base: Measure
    fold: Fold

    def log_pdf(self, u: FloatArray) -> FloatArray:
        return np.where(self.fold.inside(u), self.base.log_pdf(u) + np.log(len(self.fold)), -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.fold.of(self.base.sample(n, rng))


@dataclass(frozen=True)
class FoldedBand:
    """What is believed about the log-likelihood, from what is believed in one of the equal parts."""

    inner: LogSurrogate
    fold: Fold

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m)."""
        return self.inner.band(self.fold.of(u))


@dataclass(frozen=True)
class FoldedImage:
    """An image of the posterior, in the part that is kept."""

    image: SignedPermutation
    fold: Fold

    def of(self, u: FloatArray) -> FloatArray:
        """Images of points (n, d)."""
        return self.fold.of(self.image.of(u))

    def origin(self, u: FloatArray) -> FloatArray:
        """Points (n, d) of which these are the images."""
        return self.fold.of(self.image.origin(u))


def folded_images(every: Sequence[SignedPermutation], fold: Fold) -> tuple[Mirror, ...]:
    """Images that are no symmetries."""
    known = {m.key for m in fold.maps}
    return tuple(FoldedImage(image, fold) for image in every if image.key not in known)
