"""An answer that does not rest on the surrogate: fresh calls at points drawn independently of all that was seen."""
