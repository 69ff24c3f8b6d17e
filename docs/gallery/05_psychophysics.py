"""
Psychophysics: threshold and slope of an observer
=================================================

How often an observer sees a grating of a given contrast. A psychometric function has a threshold, a slope and a rate of lapses;
which are never negative and rarely more than a tenth.
"""

import numpy as np
from scipy import stats

import basq

contrast = np.array([0.5, 1, 1.5, 2, 3, 4, 6, 8]) / 100
seen = np.array([21, 22, 27, 31, 36, 39, 39, 40])
TRIALS = 40


def log_likelihood(threshold, slope, lapses):
    rising = 1 - np.exp(-((contrast / threshold) ** slope))
    return stats.binom.logpmf(seen, TRIALS, 0.5 + (0.5 - lapses) * rising).sum()


prior = {"threshold": basq.log_uniform(0.002, 0.2), "slope": basq.log_uniform(0.5, 10), "lapses": stats.beta(1, 30)}
result = basq.infer(log_likelihood, prior, max_evals=160, seed=1, progress=False)
result

# %%

result.plot_corner()

# %%
# How sure is the surrogate between the calls? Slices of the log-likelihood through the best call, with its error:

result.plot_slices()

# %%
# **What one learns.** Threshold and slope are known from 320 trials. Lapses are known by their prior as much as by the data, as
# the dotted line beside their marginal shows.
