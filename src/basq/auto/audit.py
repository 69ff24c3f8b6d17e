"""Audits: every batch tests the surrogate that chose it, before it is learned from.

A batch is predicted before it is evaluated, so its residuals are out of sample: they test the surrogate's variances
where it matters, and their mean square is the factor by which the error of log Z is too small.
"""

from collections.abc import Sequence

import numpy as np

from basq.auto.cells import Cell, labels
from basq.method import Audit
from basq.numerics.gaussians import Measure
from basq.observations import Observations
from basq.types import FloatArray

LARGEST_Z2 = 25.0
"""Cap on squared standardised residuals: one early disaster would otherwise rule for ten batches."""
FLOOR = 0.01
"""Nats: residuals below this are as good as none, whatever the process claims."""
SURPRISE = 3.0
"""Nats above its prediction that make a point of the posterior a surprise."""
AGREES = 6.0
"""Mean square standardised residual up to which the last batches agree with their prediction."""
MEMORY, FORGETTING = 3, 0.7
"""Batches that the calibration looks back on, and the weight of each against the one after it."""


def audit(cells: Sequence[Cell], shares: FloatArray, measure: Measure, n_before: int, new: Observations) -> Audit:
    """Compare a batch with its prediction.

    Parameters
    ----------
    cells : sequence of Cell
        As they were when the batch was chosen.
    shares : (k,) array
        Of the evidence; a cell without any has nothing to say.
    measure : Measure
        The prior.
    n_before : int
        Likelihood values before the batch.
    new : Observations
        The batch.
    """
    label = labels([c.gate for c in cells], new.u)
    mean, sd, common = np.empty(len(new)), np.empty(len(new)), np.empty(len(new))
    noise = new.noise.copy()
    rare = -np.inf
    for k, cell in enumerate(cells):
        mine, some = label == k, cell.population.u[:400]
        mean[mine], sd[mine] = cell.model.predict(new.u[mine])
        noise[mine & np.isnan(noise)] = cell.model.noise or 0.0
        levels = cell.model.predict(some)[0] + measure.log_pdf(some)
        common[mine] = np.quantile(levels, 0.01)
        rare = max(rare, float(np.quantile(levels, 0.0025)))  # a surprise is relative to the highest cell
    values, log_measure = new.log_values, measure.log_pdf(new.u)
    residual = np.where(np.isfinite(values), np.clip(values - mean, -1e6, 1e6), -50.0)
    matters = (mean + log_measure > common) | (values + log_measure > common)
    inside = matters & np.isfinite(values) & (shares[label] > 0.01)
    surprise = bool(((residual > SURPRISE + 3.0 * noise) & (values + log_measure > rare)).any())
    if not inside.any():
        return Audit(n_before, 0, float("nan"), float("nan"), float("nan"), surprise, (), MEMORY, AGREES)
    largest = np.sqrt(LARGEST_Z2)
    z = np.clip(residual / np.sqrt(sd**2 + noise**2 + FLOOR**2), -largest, largest)[inside]
    tamed = np.clip(residual[inside], -20.0, 20.0)
    return Audit(
        n_before,
        int(inside.sum()),
        float(np.mean(z**2)),
        float(np.sqrt(max(float(np.mean(tamed**2 - noise[inside] ** 2)), 0.0))),
        float(np.log(np.mean(np.exp(tamed - 0.5 * noise[inside] ** 2)))),
        surprise,
        tuple(z.tolist()),
        MEMORY,
        AGREES,
    )


def calibration(audits: Sequence[Audit]) -> float:
    """Mean square standardised residual over the last batches, newest weighted most; NaN before the first."""
    total = weight = 0.0
    for age, a in enumerate(reversed(audits[-MEMORY:])):
        if a.n_inside:
            w = FORGETTING**age * a.n_inside
            total, weight = total + w * a.z2, weight + w
    return total / weight if weight else float("nan")
