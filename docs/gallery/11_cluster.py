"""
On a cluster: workers, failures and a store
===========================================

The same lines run on one machine, on Dask, Ray or MPI: only ``pool`` changes. Here two worker processes evaluate a simulator that
sometimes crashes; every call is on disk the moment it has finished.
"""

import tempfile
from pathlib import Path

import numpy as np

import basq

folder = Path(tempfile.mkdtemp())


def log_likelihood(x):
    if x[0] > 2.6 and x[1] > 2.0:
        raise RuntimeError("the solver did not converge")
    return -0.5 * float(np.sum((x - np.array([0.5, 1.0])) ** 2 / np.array([0.3, 0.2])))


prior = {"a": (-3, 3), "b": (-3, 3)}
options = {"pool": 2, "store": folder / "run.sqlite", "seed": 1, "dlogz": 0.02, "progress": False}

# %%
# A job that is cut short: a callback that returns True stops the run after 48 calls. The result says how it goes on.

first = basq.infer(log_likelihood, prior, callback=lambda state: state.history[-1].n_evals >= 48, **options)
print(first.status, first.n_evals)

# %%
# The same line again takes the run up where it was left; no call is made twice.

result = basq.infer(log_likelihood, prior, **options)
result

# %%
# What has failed is kept with its point and its reason, and drawn:

print([str(failure.error)[:60] for failure in result.failures[:3]])
result.plot_corner()

# %%
# **What one learns.** A crash of the simulator costs its call, and a crash of the job costs nothing.
