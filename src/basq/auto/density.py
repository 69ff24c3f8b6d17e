"""What the surrogates of all cells believe: the posterior's density, and a band for the log-likelihood."""

from dataclasses import dataclass

import numpy as np

from basq.auto.cells import Cell
from basq.auto.gates import labels
from basq.numerics.gaussians import Measure
from basq.types import FloatArray


@dataclass(frozen=True)
class CellDensity:
    """Log posterior density of all cells in standard space, (m, d) -> (m,); a class, so that it can be pickled."""

    cells: tuple[Cell, ...]
    measure: Measure
    log_z: float

    def __call__(self, u: FloatArray) -> FloatArray:
        out = self.measure.log_pdf(u) - self.log_z
        label = labels([c.gate for c in self.cells], u)
        for k, cell in enumerate(self.cells):
            mine = label == k
            if mine.any():
                out[mine] += cell.model.integrand(u[mine]).expected + cell.model.scale.top
        return out


@dataclass(frozen=True)
class CellBand:
    """What the surrogates of all cells believe about the log-likelihood, relative to the measure."""

    cells: tuple[Cell, ...]

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m); −inf where zero likelihood is expected."""
        out = np.empty((3, len(u)))
        label = labels([c.gate for c in self.cells], u)
        for k, cell in enumerate(self.cells):
            mine = label == k
            if mine.any():
                mean, sd = cell.model.predict(u[mine])
                band = np.stack([mean - 2.0 * sd, mean, mean + 2.0 * sd])
                out[:, mine] = np.where(cell.model.feasibility(u[mine]) < 0.5, -np.inf, band)
        return out
