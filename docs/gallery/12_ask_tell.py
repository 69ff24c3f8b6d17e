"""
Ask and tell: an experiment in the laboratory
=============================================

Sometimes nobody can call the simulator from Python: it is another program, a queue, or a person with a pipette. ``Sampler.ask`` gives
points, and ``tell`` takes their values, in any order.
"""

import numpy as np

import basq


def in_the_laboratory(points):
    """What comes back, some day."""
    return [-0.5 * ((np.log(a) - 0.3) ** 2 / 0.05 + (b - a) ** 2 / 0.2) for a, b in points]


sampler = basq.Sampler({"a": basq.log_uniform(0.1, 10), "b": (-5, 5)}, seed=1, max_evals=96)

# %%
# Whole batches, until the run is content. In the middle, one answer is late, and one is lost.

for i in range(6):
    batch = sampler.ask()
    values = in_the_laboratory(batch.x)
    if i == 2:
        sampler.tell(batch.ids[:-2], values[:-2])
        sampler.tell(batch.ids[-1:], state="failed", error="spilled")
        sampler.tell(batch.ids[-2:-1], values[-2:-1])
    else:
        sampler.tell(batch, values)
    if sampler.result().converged:
        break
result = sampler.result()
result

# %%

result.plot_corner()

# %%
# **What one learns.** The sampler does not care who evaluates its points, or when; with ``store=`` the months between two batches do
# not matter either, and ``basq ask`` and ``basq tell`` do the same on the command line.
