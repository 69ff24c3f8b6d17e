"""Audits of the paper's method: every batch was predicted by the surrogate that chose it, and moves log Z.

The paper stops at the variance that its surrogate claims, which is too small by a factor of several. How far off the
predictions of the batches were, how far they moved log Z, and the term that WSABI-L leaves out say by how much.
"""

from collections.abc import Sequence

import numpy as np

from basq.method import Audit
from basq.observations import Observations
from basq.paper.evidence import Evidence
from basq.paper.models.base import Surrogate

MEMORY = 5
"""Batches whose residuals and moves are judged together."""
AGREES = 4.0
"""Mean square residual up to which they agree with their prediction: two standard deviations."""
CURVATURE = 0.7
"""Share of log(1 + ½∫C̃π / E[Z]) in the error: about as much as square models are off by. Chosen, as are the others, by
coverage: ``benchmarks/paper/errors.py`` measures it."""
UNTESTED = 4.0
"""Factor of the variance before the first audit."""
LARGEST = 5.0
"""Standardised residuals beyond it count as this."""
MATTERS = 0.01
"""Share of the largest likelihood seen that a point has to have, or be predicted to have, to matter."""
ENOUGH = 2
"""Audits needed to converge."""


def audit(surrogate: Surrogate, log_scale: float, new: Observations, n_before: int, moved: float, sd: float) -> Audit:
    """Compare a batch with what the surrogate before it predicted.

    Parameters
    ----------
    surrogate : Surrogate
        As it was when the batch was chosen, of the likelihood over exp(log_scale).
    new : Observations
        The batch.
    n_before : int
        Likelihood values before it.
    moved, sd : float
        How far the batch has moved log Z, and the standard deviation that the surrogate claimed before it.

    Notes
    -----
    A square's variance has ½ C̃² here, whether the model linearises or not: without it a point at which the surrogate is
    zero would have no variance at all.
    """
    p = surrogate.gp.predict(new.u)
    predicted = surrogate.mean(p)
    with np.errstate(over="ignore"):
        values = np.exp(np.minimum(new.log_values - log_scale, 300.0))
    var = surrogate.var(p)
    if surrogate.is_square:
        var = np.maximum(var, p.mean**2 * p.var + 0.5 * p.var**2)
    noise = values * np.nan_to_num(new.noise)
    z = (values - predicted) / np.sqrt(np.maximum(var + noise**2, 1e-300))
    surprise = bool(((values - predicted > 0.5) & (z > LARGEST)).any())
    capped = np.clip(z, -LARGEST, LARGEST)
    seen = np.maximum(values, predicted) > MATTERS
    both = seen & (values > 0.0) & (predicted > 0.0)
    nats = np.log(values[both]) - np.log(predicted[both])
    own = float(np.clip(moved / sd, -2.0 * LARGEST, 2.0 * LARGEST)) if sd > 0.0 and np.isfinite(moved) else 0.0
    return Audit(
        n_before,
        int(seen.sum()),
        max(float(np.mean(capped**2)), own * own),
        float(np.sqrt(np.mean(nats**2))) if both.any() else float("nan"),
        moved,
        surprise,
        tuple(capped[seen].tolist()),
        MEMORY,
        AGREES,
    )


def calibration(audits: Sequence[Audit]) -> float:
    """Factor, at least one, by which the claimed variance of log Z is too small."""
    if not audits:
        return UNTESTED
    return max(1.0, float(np.mean([a.z2 for a in audits[-MEMORY:]])))


def calibrated(evidence: Evidence, audits: Sequence[Audit], curvature: float) -> float:
    """Standard deviation of log Z.

    The surrogate's own as its batches calibrate it, how far the last one has moved log Z, and what a square model may
    be off by: ``curvature`` is ½∫C̃π on the scale of the evidence.
    """
    moved = audits[-1].log_ratio if audits else 0.0
    if not (evidence.scaled_mean > 0.0 and np.isfinite(moved)):  # no log Z, now or before the last batch
        return float("inf")
    neglected = CURVATURE * float(np.log1p(max(curvature, 0.0) / evidence.scaled_mean))
    return float(np.sqrt(calibration(audits) * evidence.log_std**2 + moved**2 + neglected**2))


def doubts(audits: Sequence[Audit], sd: float, dlogz: float) -> list[str]:
    """Reasons not to believe the answer yet, a clause each."""
    out = []
    if not sd <= dlogz:
        out.append(f"sd of log Z {sd:.3g} is above dlogz = {dlogz:g}")
    if len(audits) < ENOUGH:
        return [*out, f"{'only one batch has' if audits else 'no batch has'} tested the surrogate yet"]
    factor = calibration(audits)
    if factor > AGREES:
        out.append(f"the last batches were {np.sqrt(factor):.1f} sd off their prediction")
    if any(a.surprise for a in audits[-ENOUGH:]):
        out.append("one of the last batches found a likelihood far above its prediction")
    return out
