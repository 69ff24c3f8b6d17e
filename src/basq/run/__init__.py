"""A run: the loop of Algorithm 1, and all it needs besides a method and workers."""
