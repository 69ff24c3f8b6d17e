"""Choice of the next batch: proposal, test functions and recombination."""
