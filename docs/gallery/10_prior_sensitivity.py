"""
Prior sensitivity: what if the prior had been another one?
==========================================================

The calls of a run say what the likelihood is; another prior asks for no new one, as long as they cover its posterior.
"""

import numpy as np
from scipy import stats

import basq

data = np.array([4.1, 5.3, 3.8, 4.9, 6.0])


def log_likelihood(mean, spread):
    return stats.norm.logpdf(data, mean, spread).sum()


prior = {"mean": stats.norm(0, 10), "spread": basq.log_uniform(0.1, 10)}
result = basq.infer(log_likelihood, prior, max_evals=96, seed=1, progress=False)
result

# %%
# Three other priors of the mean, and not one new call:

table = result.sensitivity({"mean": [stats.norm(0, 3), stats.norm(5, 1), (-20, 20)]})
print(table)

# %%

table.plot()

# %%
# The posteriors under two of them, one over the other:

narrow = result.again(prior={"mean": stats.norm(0, 1)}, progress=False)
result.plot_corner(others={"mean ~ N(0, 1)": narrow})

# %%
# **What one learns.** The posterior hardly depends on the prior unless that contradicts the data; the evidence does, always.
