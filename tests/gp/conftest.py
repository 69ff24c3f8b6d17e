"""Fixtures of the tests of kernels."""

import pytest


@pytest.fixture(params=[20, 32_768], ids=["many blocks", "one block"])
def block(request, monkeypatch):
    """Kernel matrices are made in blocks of at most so many numbers."""
    monkeypatch.setattr("basq.numerics.linalg.BLOCK", request.param)
