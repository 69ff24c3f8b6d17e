"""
Model choice: how fast does it decay?
=====================================

One exponential or two? Both models are run together and share the calls: each batch goes where it settles most.
"""

import numpy as np

import basq

rng = np.random.default_rng(4)
time = np.linspace(0, 10, 40)
counts = 80 * np.exp(-time / 0.9) + 30 * np.exp(-time / 6.0) + rng.normal(0, 2.0, 40)


def log_likelihood(curve):
    off = (counts - curve) / 2.0
    return -0.5 * off @ off - 40 * np.log(2.0 * np.sqrt(2 * np.pi))


def one(height, life):
    return log_likelihood(height * np.exp(-time / life))


def two(height, share, fast, slow):
    return log_likelihood(height * (share * np.exp(-time / fast) + (1 - share) * np.exp(-time / slow)))


models = {
    "one": (one, {"height": (0, 300), "life": basq.log_uniform(0.1, 30)}),
    "two": (
        two,
        {"height": (0, 300), "share": (0, 1), "fast": basq.log_uniform(0.1, 3), "slow": basq.log_uniform(3, 30)},
    ),
}
comparison = basq.compare(models, max_evals=360, seed=1, progress=False)
print(comparison)

# %%

comparison.plot()

# %%

comparison.results["two"].plot_corner(truths={"height": 110, "share": 80 / 110, "fast": 0.9, "slow": 6.0})

# %%
# **What one learns.** The loser stopped early, so most calls went to the model whose posterior is of interest. Priors of lives that do not overlap
# keep the two exponentials from changing places.
