"""Linear algebra, Gaussians, a search and Metropolis moves: mathematics that knows nothing of inference."""
