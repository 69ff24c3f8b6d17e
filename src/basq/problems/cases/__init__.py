"""Simulators: cases without a known answer."""

from basq.problems.cases.base import Case

__all__ = ["Case"]
