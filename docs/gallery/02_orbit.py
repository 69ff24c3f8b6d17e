r"""
Astronomy: a planet in radial velocities
========================================

A star's velocity along the line of sight swings when a planet goes round it. From twenty-five simulated velocities: the period, the
amplitude and the phase of a circular orbit. The phase is an angle, whose two ends are one point.
"""

import numpy as np

import basq

rng = np.random.default_rng(3)
time = np.sort(rng.uniform(0, 60, 25))
velocity = 12.0 + 24.0 * np.sin(2 * np.pi * time / 14.3 + 6.1) + rng.normal(0, 5.0, 25)

# %%
# The function takes its parameters by name. The period's prior is flat in its logarithm.


def log_likelihood(period, amplitude, phase, offset):
    model = offset + amplitude * np.sin(2 * np.pi * time / period + phase)
    return -0.5 * np.sum(((velocity - model) / 5.0) ** 2) - 25 * np.log(5.0 * np.sqrt(2 * np.pi))


prior = basq.Prior(
    {
        "period": basq.log_uniform(12, 17),
        "amplitude": (0, 60),
        "phase": basq.periodic(0, 2 * np.pi),
        "offset": (-50, 50),
    },
    labels={"period": "$P$", "amplitude": "$K$", "phase": r"$\varphi$", "offset": "$v_0$"},
    units={"period": "d", "amplitude": "m/s", "phase": "rad", "offset": "m/s"},
)
result = basq.infer(log_likelihood, prior, max_evals=240, seed=1, progress=False)
result

# %%
# The phase lies across the two ends of its interval, and is drawn in one piece.

result.plot_corner(truths={"period": 14.3, "amplitude": 24.0, "phase": 6.1, "offset": 12.0})

# %%
# Is there a planet at all? The same data without one:

without = basq.infer(
    lambda x: log_likelihood(1.0, 0.0, 0.0, x[0]), {"offset": (-50, 50)}, max_evals=48, seed=1, progress=False
)
comparison = basq.compare({"planet": result, "no planet": without})
comparison

# %%
# **What one learns.** The period is known to a percent, and the evidence, not the fit alone, says that there is a planet: it has
# paid for its three more parameters.
