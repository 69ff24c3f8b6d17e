"""The default engine."""

from basq.auto.engine import Auto

__all__ = ["Auto"]
