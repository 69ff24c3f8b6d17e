"""Images of the posterior: places where another mode is to be expected before anything was seen there.

Most twin modes that people meet come from how a model is written: labels that can be exchanged, signs that cancel,
rates that swap their roles, a phase whose ends meet. In standard space they are all reflections of single parameters,
exchanges of parameters with the same prior, or both. A single call at the image of the best point tells.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np

from basq.auto.exploration import Bulk, outside
from basq.numerics.fold import SignedPermutation
from basq.prior import Prior
from basq.types import FloatArray

GRID = np.linspace(-2.0, 2.0, 9)
"""Where marginal priors are compared, in standard space."""
LABELS = 3
"""Parameters of the same prior that may well be those of one component each."""


class Mirror(Protocol):
    """A map of standard space onto itself which leaves the prior as it is."""

    def of(self, u: FloatArray) -> FloatArray:
        """Images of points (n, d)."""
        ...

    def origin(self, u: FloatArray) -> FloatArray:
        """Points (n, d) of which these are the images."""
        ...


def images(prior: Prior, most: int) -> tuple[SignedPermutation, ...]:
    """The likeliest images, at most so many."""
    if not prior.is_separable:
        return ()
    found = {(tuple(i.place), tuple(i.sign)): i for i in _all(prior)}
    return tuple(found.values())[:most]


def likely_symmetries(prior: Prior, most: int) -> tuple[SignedPermutation, ...]:
    """The images, at most so many, under which a likelihood may well stay the same: all labels exchanged at once.

    A single pair of parameters with the same prior may be all that two components have besides a share, which turns
    round; exchanges of the coefficients of a regression are none of labels.
    """
    if not prior.is_separable:
        return ()
    d, alike, even = prior.n_dim, _alike(prior), _even(prior)
    joint = [e for size in sorted({len(a) for a in alike}) for e in _exchanged([a for a in alike if len(a) == size])]
    plain = [_image(d, exchanges) for exchanges in joint]
    if not joint and len(alike) == 1 and len(alike[0]) <= LABELS:
        joint = [((i, j),) for i, j in combinations(alike[0], 2)]
    return tuple(plain + [image for exchanges in joint for image in _reflected(d, exchanges, even)])[:most]


def _all(prior: Prior) -> Iterator[SignedPermutation]:
    """Images, the likeliest first: labels of all parameters of a component, signs, single exchanges, and mixtures."""
    d, alike, even = prior.n_dim, _alike(prior), _even(prior)
    joint = [e for size in sorted({len(a) for a in alike}) for e in _exchanged([a for a in alike if len(a) == size])]
    single = [((i, j),) for a in alike for i, j in combinations(a, 2)]
    for exchanges in joint:
        yield _image(d, exchanges)
    for exchanges in joint:
        yield from _reflected(d, exchanges, even)
    yield from _reflected(d, (), even)
    for exchanges in single:
        yield _image(d, exchanges)
    for exchanges in single:
        yield from _reflected(d, exchanges, even)


def _alike(prior: Prior) -> list[list[int]]:
    """Places of parameters with the same prior, where there are several."""
    x = prior.from_standard(np.repeat(GRID[:, None], prior.n_dim, axis=1))
    groups: dict[tuple[bytes, bool], list[int]] = {}
    for i, (column, periodic) in enumerate(zip(x.T, prior.periodic, strict=True)):
        groups.setdefault((np.array([f"{v:.9e}" for v in column]).tobytes(), bool(periodic)), []).append(i)
    return [g for g in groups.values() if len(g) > 1]


def _exchanged(groups: Sequence[Sequence[int]]) -> list[tuple[tuple[int, int], ...]]:
    """Exchanges of two components, in all groups of parameters of the same size at once; nothing for one group."""
    if len(groups) < 2:
        return []
    return [tuple((g[i], g[j]) for g in groups) for i, j in combinations(range(len(groups[0])), 2)]


def _even(prior: Prior) -> list[int]:
    """Places of parameters whose prior is the same on both sides of its middle: others are not likely to turn round."""
    x = prior.from_standard(np.repeat(GRID[:, None], prior.n_dim, axis=1))
    sums = x + x[::-1]
    return np.flatnonzero(np.ptp(sums, axis=0) <= 1e-9 * np.ptp(x, axis=0)).tolist()


def _reflected(d: int, exchanges: Sequence[tuple[int, int]], even: Sequence[int]) -> Iterator[SignedPermutation]:
    """With the sign of one parameter changed that is not exchanged."""
    for k in np.setdiff1d(even, np.array(exchanges, dtype=np.intp).ravel()):
        yield _image(d, exchanges, int(k))


def _image(d: int, exchanges: Sequence[tuple[int, int]], reflected: int | None = None) -> SignedPermutation:
    place, sign = np.arange(d), np.ones(d)
    for i, j in exchanges:
        place[[i, j]] = j, i
    if reflected is not None:
        sign[reflected] = -1.0
    return SignedPermutation(place, sign)


def unseen_images(
    every: Sequence[Mirror], best: FloatArray, seen: FloatArray, own: Bulk, bulks: Sequence[Bulk]
) -> FloatArray:
    """Images (m, d) of the best point (d,) outside the known posterior, unless an image was seen (n, d) already.

    Parameters
    ----------
    own : Bulk
        The part of the posterior that the best point belongs to: any of its images tells.
    """
    out = [
        image.of(best[None])[0]
        for image in every
        if outside(bulks, image.of(best[None]))[0] and not own.contains(image.origin(seen)).any()
    ]
    return np.array(out).reshape(-1, len(best))


def n_apart(every: Sequence[Mirror], best: Sequence[FloatArray], bulks: Sequence[Bulk]) -> int:
    """How many of several modes, with their best points (d,), are no images of an earlier one: they were expected."""
    return sum(
        not any(bulks[j].contains(image.of(best[i][None]))[0] for i in range(j) for image in every)
        for j in range(len(best))
    )
