"""
Cosmology: how much of the universe is matter?
==============================================

Distances of supernovae tell how the universe expands. Thirty simulated ones, in a flat universe with dark energy of the equation of
state w: a curved ridge, because matter and w can stand in for each other.
"""

import numpy as np
from scipy.integrate import cumulative_trapezoid

import basq

rng = np.random.default_rng(8)
redshift = np.sort(rng.uniform(0.02, 1.2, 30))
grid = np.linspace(0, 1.3, 400)


def modulus(matter, w):
    rate = np.sqrt(matter * (1 + grid) ** 3 + (1 - matter) * (1 + grid) ** (3 * (1 + w)))
    comoving = np.interp(redshift, grid, cumulative_trapezoid(1 / rate, grid, initial=0))
    return 43.1 + 5 * np.log10((1 + redshift) * comoving)


observed = modulus(0.3, -1.0) + rng.normal(0, 0.12, 30)


def log_likelihood(matter, w, offset):
    off = (observed - offset - modulus(matter, w)) / 0.12
    return -0.5 * off @ off - 30 * np.log(0.12 * np.sqrt(2 * np.pi))


prior = basq.Prior(
    {"matter": (0.0, 1.0), "w": (-2.5, 0.0), "offset": (-0.5, 0.5)},
    labels={"matter": r"$\Omega_m$", "w": "$w$", "offset": r"$\Delta M$"},
)
result = basq.infer(log_likelihood, prior, max_evals=200, seed=1, progress=False)
result

# %%

result.plot_corner(truths={"matter": 0.3, "w": -1.0, "offset": 0.0})

# %%
# Is it a cosmological constant, w = −1? That is a model with a parameter less.

constant = basq.infer(
    lambda matter, offset: log_likelihood(matter, -1.0, offset),
    {"matter": (0.0, 1.0), "offset": (-0.5, 0.5)},
    max_evals=200,
    seed=1,
    progress=False,
)
basq.compare({"constant": constant, "w free": result})

# %%
# **What one learns.** These supernovae alone cannot tell the two apart much better than the prior of w allows: the evidence charges
# for the width of a prior that the data do not need.
