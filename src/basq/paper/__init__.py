"""The method of the paper, with every switch of its ablations."""

from basq.paper.method import Paper

__all__ = ["Paper"]
