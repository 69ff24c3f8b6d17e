"""The ends of the posterior: where a surrogate says, on its way out along a ridge, that nothing more comes.

A ridge is believed to end as it began, and points that integrate the posterior are not sent beyond it. So both ends of
every principal direction are looked at, as far out as the surrogate needs to be all but sure.
"""

import numpy as np

from basq.auto.cells import Cell
from basq.auto.chart import bent
from basq.auto.settings import Exploration
from basq.types import FloatArray

FAR = np.linspace(2.0, 10.0, 17)
"""Standard deviations at which an end is looked for."""


def unseen_ends(cell: Cell, seen: FloatArray, settings: Exploration) -> FloatArray:
    """Ends (m, d) near which no point (n, d) was seen; the widest directions first."""
    model, measure = cell.model, cell.measure
    inside = cell.population.u
    t = model.straighten(inside)
    centre, (directions, sds, _) = t.mean(axis=0), np.linalg.svd(np.cov(t.T).reshape(model.n_dim, -1))
    level = float(np.median(model.predict_mean(inside) + measure.log_pdf(inside)))
    depth, near = settings.ends
    out = []
    for direction, sd in zip(directions.T, np.sqrt(sds), strict=True):
        for sign in (1.0, -1.0):
            line = centre + sign * sd * FAR[:, None] * direction
            u = bent(model.straight.unstraighten(line), model.chart.flat)
            low = model.predict_mean(u) + measure.log_pdf(u) < level - depth
            out.append(u[int(np.argmax(low)) if low.any() else -1])
    ends = np.array(out)
    apart = (model.straighten(ends)[:, None] - model.straighten(seen)) @ directions / np.sqrt(sds)
    return ends[(np.square(apart).sum(axis=2) > near**2).all(axis=1) & np.isfinite(measure.log_pdf(ends))]
