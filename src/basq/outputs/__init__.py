"""What simulators gave: stored with the calls, and interpolated between them."""
