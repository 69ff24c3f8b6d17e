"""Gaussian-process models of the likelihood."""
