"""The variance and the error of log Z, against sample paths and by hand."""

import numpy as np
import pytest

from basq.auto import Auto
from basq.observations import Observations
from basq.prior import Prior

PRIOR = Prior([(0.0, 1.0)] * 3)


@pytest.fixture(scope="module")
def fitted():
    """The engine's state after a design of a bumpy likelihood that leaves something uncertain."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((40, 3))
    values = -2.0 * ((u - 0.3) ** 2).sum(axis=1) + np.sin(3.0 * u[:, 0] * u[:, 1]) + np.cos(2.0 * u[:, 1] * u[:, 2])
    seen = Observations.empty(3).append(PRIOR.from_standard(u), u, values, np.zeros(40))
    return Auto().fit(seen, PRIOR, None, rng)


def test_surrogate_variance_against_sample_paths(fitted):
    (cell,) = fitted.cells
    found, model = cell.estimate, cell.model
    # equal-weight draws of the integrand: over them, log Z of a path is the log of its mean relative to the surrogate
    rng = np.random.default_rng(1)
    w = np.exp(found.log_weights)
    u = found.u[rng.choice(len(w), 600, p=w)]
    p = model.integrand(u).prediction
    values, vectors = np.linalg.eigh(model.cov(p, p))
    paths = rng.standard_normal((4000, len(u))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    log_z = np.log(np.exp(paths - 0.5 * p.var / model.scale.factor**2).mean(axis=1))
    assert 1e-4 < found.surrogate_var < 0.2  # something is uncertain, and not so much that first order fails
    assert found.surrogate_var == pytest.approx(log_z.var(), rel=0.35)


def test_error_is_the_root_of_its_terms(fitted):
    total = fitted.total
    terms = [0.4 * total.jensen, 1.2 * total.monte_carlo, 1.5 * total.wall, total.tamed, 0.005]
    # nothing has tested the surrogate yet: its variance counts four times; nor has log Z moved
    expected = np.sqrt(4.0 * total.surrogate_var + np.square(terms).sum())
    assert fitted.log_evidence_std == pytest.approx(expected, rel=1e-12)
