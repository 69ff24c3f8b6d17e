"""Gates: Gaussians that divide standard space into cells, and how samples show that a cell is two.

A point belongs to the gate under which it is most likely.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from basq.auto.chart import Chart
from basq.auto.settings import Cells
from basq.numerics.gaussians import Measure
from basq.types import BoolArray, FloatArray, IntArray


def gate_scores(gates: Sequence[Chart], u: FloatArray) -> FloatArray:
    """Log-density of points u (n, d) under every gate, up to a constant: (n, k)."""
    columns = []
    for gate in gates:
        z = gate.whiten(u)
        columns.append(-0.5 * (z * z).sum(axis=1) - np.log(np.diag(gate.root)).sum())
    return np.stack(columns, axis=1)


def labels(gates: Sequence[Chart], u: FloatArray) -> IntArray:
    """Which cell each point belongs to: (n,)."""
    return gate_scores(gates, u).argmax(axis=1)


@dataclass(frozen=True)
class CellMeasure:
    """The prior measure inside one cell (not normalised).

    Attributes
    ----------
    base : Measure
    gates : tuple of Chart
    k : int
        Which of them.
    known : (m, d) array
        Points inside, used as draws where the cell is so rare that the prior has none there.
    draws : int
        Of the prior, for each one that is asked for.
    """

    base: Measure
    gates: tuple[Chart, ...]
    k: int
    known: FloatArray
    draws: int

    def inside(self, u: FloatArray) -> BoolArray:
        return labels(self.gates, u) == self.k

    def log_pdf(self, u: FloatArray) -> FloatArray:
        return np.where(self.inside(u), self.base.log_pdf(u), -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        draws = self.base.sample(self.draws * n, rng)
        draws = np.concatenate([draws[self.inside(draws)], self.known])
        return draws[rng.choice(len(draws), n, replace=len(draws) < n)]


@dataclass(frozen=True)
class Halves:
    """Two parts that samples fall into.

    Attributes
    ----------
    parts : tuple of two Chart
    border : float
        Margin of log-densities that nearly all samples keep from the border between them.
    """

    parts: tuple[Chart, Chart]
    border: float


def halves(u: FloatArray, settings: Cells) -> list[Halves]:
    """Ways in which samples u (n, d) fall into two parts whose centres lie apart."""
    found = (_parted(u, label, settings) for label in partings(Chart.of(u).whiten(u), settings))
    return [h for h in found if h]


def _parted(u: FloatArray, label: BoolArray, settings: Cells) -> Halves | None:
    """Let two parts of samples u (n, d) settle, each sample going to the Gaussian that explains it better."""
    n, d = u.shape
    for _ in range(settings.part_steps):
        if min(int(label.sum()), n - int(label.sum())) < max(settings.least_part * n, 2 * d + 2):
            return None
        parts = Chart.of(u[~label]), Chart.of(u[label])
        scores = gate_scores(parts, u)
        moved = scores[:, 1] > scores[:, 0]
        if (moved == label).all():
            break
        label = moved
    distances = [float(np.linalg.norm(a.whiten(b.mean[None]))) for a, b in (parts, parts[::-1])]
    border = float(np.quantile(np.abs(scores[:, 0] - scores[:, 1]), settings.nearly_all))
    return Halves(parts, border) if min(distances) > settings.apart else None


def partings(x: FloatArray, settings: Cells) -> tuple[BoolArray, BoolArray]:
    """Two ways in which white samples x (n, d) may fall into two parts: (n,) each.

    Of the directions between pairs of samples, that of the least kurtosis is across two equal parts (one for two
    points, three for a Gaussian), and that of the largest is towards a small part far away.
    """
    n = min(len(x) // 2, settings.pairs)
    ways = x[:n] - x[n : 2 * n]
    ways /= np.linalg.norm(ways, axis=1)[:, None] + 1e-300
    along = x @ ways.T
    along -= along.mean(axis=0)
    square = along**2
    kurtosis = (square**2).mean(axis=0) / (square.mean(axis=0) ** 2 + 1e-300)
    even, peaked = along[:, int(kurtosis.argmin())], along[:, int(kurtosis.argmax())]
    peaked = peaked * np.sign(peaked[int(np.abs(peaked).argmax())])
    return even > 0.0, peaked > settings.peaked * peaked.max()
