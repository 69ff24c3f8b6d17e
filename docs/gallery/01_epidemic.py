"""
Epidemiology: how infectious was the outbreak?
==============================================

Fourteen days of an influenza outbreak in a boarding school of 763 boys (*British Medical Journal*, 4 March 1978): how many were in
bed each day. An SIR model has two parameters, the rate of infection and that of recovery.
"""

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp

import basq

in_bed = np.array([3, 8, 28, 75, 221, 291, 255, 235, 190, 125, 70, 28, 12, 5])
days = np.arange(1.0, 15.0)

# %%
# The simulator integrates the equations. The number in bed scatters more than a Poisson law allows, so the likelihood is
# negative-binomial; its dispersion needs no new simulation, so it is a *cheap* parameter and costs no calls.


def simulate(x):
    infection, recovery = x

    def change(_, y):
        susceptible, infected = y
        new = infection * susceptible * infected / 763
        return [-new, new - recovery * infected]

    return solve_ivp(change, (0, 14), [762.0, 1.0], t_eval=days, rtol=1e-6).y[1]


def log_likelihood(infected, dispersion):
    mean = np.maximum(infected, 1e-3)
    return stats.nbinom.logpmf(in_bed, 1 / dispersion, 1 / (1 + dispersion * mean)).sum()


prior = basq.Prior(
    {"infection": (0.5, 4.0), "recovery": (0.1, 1.5)},
    labels={"infection": r"$\beta$", "recovery": r"$\gamma$"},
    units={"infection": "1/day", "recovery": "1/day"},
)
model = basq.Model(simulate, log_likelihood, prior, cheap={"dispersion": basq.log_uniform(0.001, 1)})
result = basq.infer(model, max_evals=192, seed=1, progress=False)
result

# %%
# The posterior of all three parameters, from calls in two of them.

result.plot_corner()

# %%
# Every output was stored, so the epidemic over the posterior costs no call. The basic reproduction number is a derived
# quantity.

result.plot_predictive(in_bed, days)

# %%

r0 = result.derived(lambda output, infection, recovery: infection / recovery, name="R0")
print(f"R0 = {r0.mean:.2f} ± {r0.samples.std():.2f}")

# %%
# **What one learns.** The reproduction number is far better known than either rate alone. The noise of the counts was integrated over
# at every call, and all calls were spent on the two parameters of the simulator.
