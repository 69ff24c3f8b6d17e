"""
Batteries: resistance and capacity from a relaxation
====================================================

After a current pulse the voltage of a cell relaxes. An equivalent circuit of a resistance and one RC element explains sixty seconds of
it. Whether a second element is needed is on the page about model choice.
"""

import numpy as np
from scipy import stats

import basq

rng = np.random.default_rng(5)
time = np.linspace(0, 60, 61)
CURRENT = 2.0


def simulate(ohmic, polarisation, seconds):
    drop = np.where(time < 30, ohmic + polarisation * (1 - np.exp(-time / seconds)), 0.0)
    rest = polarisation * (1 - np.exp(-30 / seconds)) * np.exp(-(time - 30) / seconds)
    return 3.7 - CURRENT * np.where(time < 30, drop, rest)


measured = simulate(0.021, 0.034, 9.0) + rng.normal(0, 0.0015, len(time))

# %%
# The noise of the voltmeter is a cheap parameter.

prior = basq.Prior(
    {"ohmic": (0.0, 0.1), "polarisation": (0.0, 0.1), "seconds": basq.log_uniform(1, 100)},
    labels={"ohmic": "$R_0$", "polarisation": "$R_1$", "seconds": r"$\tau$"},
    units={"ohmic": r"$\Omega$", "polarisation": r"$\Omega$", "seconds": "s"},
)
model = basq.Model(
    simulate,
    lambda voltage, noise: stats.norm.logpdf(measured, voltage, noise).sum(),
    prior,
    cheap={"noise": basq.log_uniform(1e-4, 1e-1)},
)
result = basq.infer(model, max_evals=160, seed=1, progress=False)
result

# %%

result.plot_corner(truths={"ohmic": 0.021, "polarisation": 0.034, "seconds": 9.0, "noise": 0.0015})

# %%

result.plot_predictive(measured, time, noise=lambda voltage, rng, noise: voltage + rng.normal(0, noise, voltage.shape))

# %%
# **What one learns.** Both resistances and the time constant follow from a minute of data, and the noise comes with them.
