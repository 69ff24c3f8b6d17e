"""Covariance functions, one class each."""
