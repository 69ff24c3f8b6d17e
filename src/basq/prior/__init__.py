"""Priors: a law over named parameters and its map to and from standard space."""

from basq.prior.log_uniform import log_uniform
from basq.prior.periodic import periodic
from basq.prior.prior import Prior, as_prior

__all__ = ["Prior", "as_prior", "log_uniform", "periodic"]
