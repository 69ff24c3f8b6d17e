"""The most telling data of a process, whatever its kernel."""

import numpy as np

from basq.gp.gp import GP
from basq.gp.kernels import make_kernel


def test_data_beyond_the_rank_of_a_kernel_overflow_nothing():
    # a polynomial kernel has few directions: after them only rounding is left, which must not be blown up
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 3))
    gp = GP.condition(x, (x**2).sum(axis=1), make_kernel("polynomial", 3), noise=1e-6)
    sketch = gp.sketch(256)
    assert len(np.unique(sketch.x, axis=0)) == 256
    some = rng.standard_normal((50, 3))
    np.testing.assert_allclose(sketch.predict(some).var, gp.predict(some).var, atol=1e-4)
