"""Test problems with known evidence: those of the paper, sharper ones, awkwardly shaped ones; simulators; real models.

Each function returns a `Problem`, with the log-likelihood, the prior, the true log-evidence and, where they
are known, posterior moments and an exact posterior sampler. A simulator has no known evidence; it comes as a
`Case`, with the parameters that made its data, or as a `Split`, with its noise apart. `zoo` has models as people
write them, with simulated data.

References
----------
Adachi, Hayakawa, Jørgensen, Oberhauser, Osborne, "Fast Bayesian Inference with Batch Bayesian Quadrature via
Kernel Recombination", NeurIPS 2022, arXiv:2206.04734.
"""

from basq.problems import zoo
from basq.problems.base import Problem
from basq.problems.boundaries import edge, skew, wall
from basq.problems.cases.base import Case
from basq.problems.cases.lithium_ion import lithium_ion
from basq.problems.cases.phase_field import phase_field
from basq.problems.cases.recursive_gp import battery_health
from basq.problems.curved import banana_and_gauss, eggbox, funnel, ring, shell
from basq.problems.dynamics import diffusion, epidemic, fitzhugh_nagumo, predator_prey
from basq.problems.heavy import heavy
from basq.problems.paper import ackley, branin_hoo, mixture, oscillatory
from basq.problems.sharp import bimodal, boxed, cigar, gauss, lumpy, narrow_modes, rosen, student
from basq.problems.split import Split, autoregression, cell_voltage, pharmacokinetics, regression
from basq.problems.twisted import twisted

__all__ = [
    "Case",
    "Problem",
    "Split",
    "ackley",
    "autoregression",
    "banana_and_gauss",
    "battery_health",
    "bimodal",
    "boxed",
    "branin_hoo",
    "cell_voltage",
    "cigar",
    "diffusion",
    "edge",
    "eggbox",
    "epidemic",
    "fitzhugh_nagumo",
    "funnel",
    "gauss",
    "heavy",
    "lithium_ion",
    "lumpy",
    "mixture",
    "narrow_modes",
    "oscillatory",
    "pharmacokinetics",
    "phase_field",
    "predator_prey",
    "regression",
    "ring",
    "rosen",
    "shell",
    "skew",
    "student",
    "twisted",
    "wall",
    "zoo",
]
