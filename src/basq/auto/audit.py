"""Audits: every batch tests the surrogate that chose it, before it is learned from.

A batch is predicted before it is evaluated, so its residuals are out of sample: they test the surrogate's variances
where it matters, and their mean square is the factor by which the error of log Z is too small.
"""

from collections.abc import Sequence

import numpy as np

from basq.auto.cells import Cell
from basq.auto.gates import labels
from basq.auto.settings import Audits
from basq.method import Audit
from basq.numerics.gaussians import Measure
from basq.observations import Observations
from basq.types import FloatArray


def audit(
    cells: Sequence[Cell],
    shares: FloatArray,
    measure: Measure,
    n_before: int,
    new: Observations,
    settings: Audits,
) -> Audit:
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
        mine, some = label == k, cell.population.u[: settings.samples]
        mean[mine], sd[mine] = cell.model.predict(new.u[mine])
        noise[mine & np.isnan(noise)] = cell.model.noise or 0.0
        levels = cell.model.predict(some)[0] + measure.log_pdf(some)
        common[mine] = np.quantile(levels, settings.common)
        rare = max(rare, float(np.quantile(levels, settings.rare)))  # a surprise is relative to the highest cell
    values, log_measure = new.log_values, measure.log_pdf(new.u)
    residual = np.where(np.isfinite(values), np.clip(values - mean, -1e6, 1e6), -settings.zero)
    matters = (mean + log_measure > common) | (values + log_measure > common)
    inside = matters & np.isfinite(values) & (shares[label] > settings.negligible)
    far_above = residual > settings.surprise + settings.surprise_noise * noise
    surprise = bool((far_above & (values + log_measure > rare)).any())
    rules = settings.memory, settings.agrees
    if not inside.any():
        return Audit(n_before, 0, float("nan"), float("nan"), float("nan"), surprise, (), *rules)
    largest = np.sqrt(settings.largest_z2)
    z = np.clip(residual / np.sqrt(sd**2 + noise**2 + settings.floor**2), -largest, largest)[inside]
    capped = np.clip(residual[inside], -settings.largest, settings.largest)
    return Audit(
        n_before,
        int(inside.sum()),
        float(np.mean(z**2)),
        float(np.sqrt(max(float(np.mean(capped**2 - noise[inside] ** 2)), 0.0))),
        float(np.log(np.mean(np.exp(capped - 0.5 * noise[inside] ** 2)))),
        surprise,
        tuple(z.tolist()),
        *rules,
    )


def calibration(audits: Sequence[Audit], settings: Audits) -> float:
    """Mean square standardised residual over the last batches, newest weighted most; NaN before the first."""
    if not settings.counts:
        return 1.0
    total = weight = 0.0
    for age, a in enumerate(reversed(audits[-settings.memory :])):
        if a.n_inside:
            w = settings.forgetting**age * a.n_inside
            total, weight = total + w * a.z2, weight + w
    return total / weight if weight else float("nan")


def overcaution(audits: Sequence[Audit], settings: Audits) -> float:
    """Factor, at most one, by which the surrogate's variances are too large for sure: one while little is known.

    Mean square standardised residual of many batches, and two of its standard errors more.
    """
    some = [a for a in audits[-settings.long_memory :] if a.n_inside]
    n = sum(a.n_inside for a in some)
    if not settings.counts or not n:
        return 1.0
    mean = sum(a.n_inside * a.z2 for a in some) / n
    return min(mean * (1.0 + 2.0 * float(np.sqrt(2.0 / n))), 1.0)
