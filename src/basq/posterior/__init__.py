"""Posteriors and densities over parameters, whichever engine made them."""
