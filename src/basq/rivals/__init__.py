"""Models that compete for the same data."""
