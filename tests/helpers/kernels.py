"""What tests of kernels and of their gradients share."""

import numpy as np


def half(g):
    """The upper triangle that stands for half of a symmetric matrix."""
    return np.triu(g) - 0.5 * np.diag(np.diag(g))


def differences(function, at, step=1e-3):
    """Fourth-order finite differences of a function of a vector, one row per entry of the vector."""
    rows = []
    for e in step * np.eye(len(at)):
        near, far = function(at + e) - function(at - e), function(at + 2.0 * e) - function(at - 2.0 * e)
        rows.append((8.0 * near - far) / (12.0 * step))
    return np.array(rows)
