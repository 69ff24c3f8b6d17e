"""Measurements, each run as ``python -m benchmarks.<name>``; the last line printed is JSON."""
