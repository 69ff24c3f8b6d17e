"""
Chemistry: rates of two reactions in a row
==========================================

A turns into B, and B into C; only B is measured. Either reaction may be the faster one, and the data can hardly tell: the posterior
has two modes, and both have to be found.
"""

import numpy as np

import basq

rng = np.random.default_rng(2)
minutes = np.linspace(1, 30, 12)


def intermediate(first, second, yield_):
    if np.isclose(first, second):
        return yield_ * first * minutes * np.exp(-first * minutes)
    return yield_ * first / (second - first) * (np.exp(-first * minutes) - np.exp(-second * minutes))


measured = intermediate(0.35, 0.08, 1.0) + rng.normal(0, 0.1, 12)


def log_likelihood(first, second, yield_):
    off = (measured - intermediate(first, second, yield_)) / 0.1
    return -0.5 * off @ off - 12 * np.log(0.1 * np.sqrt(2 * np.pi))


prior = basq.Prior(
    {"first": basq.log_uniform(0.01, 2), "second": basq.log_uniform(0.01, 2), "yield_": (0.0, 6.0)},
    labels={"first": "$k_1$", "second": "$k_2$", "yield_": "yield"},
    units={"first": "1/min", "second": "1/min"},
)
result = basq.infer(log_likelihood, prior, max_evals=320, seed=1, progress=False)
result

# %%

result.plot_corner(points=True)

# %%
# How it went: log Z after every batch, and how far off each batch was from what the surrogate had predicted of it.

result.plot_run()

# %%
# **What one learns.** Exchanging the two rates and scaling the yield gives the same curve. A chain that starts in one mode stays
# there; here a part of every batch looks for others. Knowing that the yield is at most one would leave a single mode.
