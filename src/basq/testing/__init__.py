"""Contract tests for what others add: ``check_method``, ``check_kernel`` and ``check_pool``.

Each raises an AssertionError that says which clause of the contract is broken and what was seen, and returns nothing if
all hold. They need no test framework; in one, a test is a single line.
"""

from basq.testing.kernel import check_kernel
from basq.testing.method import check_method
from basq.testing.pool import check_pool

__all__ = ["check_kernel", "check_method", "check_pool"]
