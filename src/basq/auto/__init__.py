"""The default engine."""

from basq.auto.engine import Auto
from basq.auto.settings import Settings

__all__ = ["Auto", "Settings"]
