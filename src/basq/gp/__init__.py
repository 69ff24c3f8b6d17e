"""Gaussian processes: regression, hyperparameters, classification."""
