"""Thousands of small designs: threads of the linear algebra would only wait for each other."""

import pytest

from basq.numerics.linalg import blas_threads


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with blas_threads(1):
        yield
