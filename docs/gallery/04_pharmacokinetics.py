"""
Pharmacokinetics: absorption and elimination of a drug
======================================================

Concentrations of theophylline in the blood of one subject after a dose by mouth (Boeckmann, Sheiner and Beal 1994). A compartment
with first-order absorption has three parameters of unknown order, so their priors are flat in the logarithm.
"""

import numpy as np

import basq

hours = np.array([0.25, 0.57, 1.12, 2.02, 3.82, 5.10, 7.03, 9.05, 12.12, 24.37])
concentration = np.array([2.84, 6.57, 10.50, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28])
DOSE = 4.02  # mg/kg


def predicted(absorption, elimination, volume):
    rise = absorption / (absorption - elimination) * DOSE / volume
    return rise * (np.exp(-elimination * hours) - np.exp(-absorption * hours))


# %%
# Errors are of twenty per cent, on the logarithm.


def log_likelihood(absorption, elimination, volume):
    if absorption <= elimination:  # otherwise the two could change places
        return -np.inf
    off = (np.log(concentration) - np.log(predicted(absorption, elimination, volume))) / 0.2
    return -0.5 * off @ off - len(hours) * np.log(0.2 * np.sqrt(2 * np.pi))


prior = basq.Prior(
    {
        "absorption": basq.log_uniform(0.1, 10),
        "elimination": basq.log_uniform(0.005, 0.5),
        "volume": basq.log_uniform(0.1, 2),
    },
    labels={"absorption": "$k_a$", "elimination": "$k_e$", "volume": "$V$"},
    units={"absorption": "1/h", "elimination": "1/h", "volume": "L/kg"},
)
result = basq.infer(log_likelihood, prior, max_evals=160, seed=1, progress=False)
result

# %%

result.plot_corner()

# %%
# The half-life is a function of a sample.

half_life = np.log(2) / result.samples[:, 1]
print("half-life: {:.1f} h, 95 % between {:.1f} and {:.1f} h".format(*np.quantile(half_life, [0.5, 0.025, 0.975])))

# %%
# **What one learns.** The region of zero likelihood, where absorption would be slower than elimination, costs nothing but the calls
# that found it; the half-life of this subject is longer than usual.
