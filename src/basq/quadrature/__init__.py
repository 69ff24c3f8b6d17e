"""Integrals of the surrogate: the evidence and the posterior."""
