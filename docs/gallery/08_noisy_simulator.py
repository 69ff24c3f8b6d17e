"""
A noisy simulator: a likelihood that is estimated
=================================================

A queue is simulated at random, and the log-likelihood of what was observed is estimated from a few repetitions. Each value has an
error, which is given with it.
"""

import numpy as np

import basq

OBSERVED = np.array([3.1, 0.42])  # mean waiting time, share of customers who found nobody waiting


def simulated(arrival, service, rng, customers=400):
    gaps, work = rng.exponential(1 / arrival, customers), rng.exponential(1 / service, customers)
    wait = np.zeros(customers)
    for i in range(1, customers):
        wait[i] = max(wait[i - 1] + work[i - 1] - gaps[i], 0.0)
    return np.array([wait.mean(), (wait == 0.0).mean()])


# %%
# A synthetic likelihood: mean and covariance of the summaries from forty simulations. Splitting these into groups says how noisy
# the value is. Seeding from the point makes a call repeatable.


def log_likelihood(x):
    rng = np.random.default_rng(np.asarray(x).view(np.uint64))
    summaries = np.array([simulated(*x, rng) for _ in range(40)])
    spread = summaries.std(axis=0) + np.array([0.05, 0.005])

    def value(rows):
        off = (OBSERVED - rows.mean(axis=0)) / spread
        return -0.5 * off @ off - np.log(spread).sum()

    groups = np.array([value(summaries[i::4]) for i in range(4)])
    return value(summaries), groups.std() / 2


result = basq.infer(
    log_likelihood, {"arrival": (0.1, 1.0), "service": (0.2, 2.0)}, max_evals=96, seed=1, progress=False
)
result

# %%

result.plot_corner()

# %%
# **What one learns.** A noisy value is no surprise if its error is known: the surrogate smooths over it. A sampler that accepts or
# rejects single values would stick to the lucky ones.
