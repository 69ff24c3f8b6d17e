"""Find out which model a lithium-ion cell needs, its diffusivities, and how noisy its voltage is.

A cell has been discharged for 500 s; its voltage was recorded while it rested (400 points, 40 µV of noise, of which the
inference knows nothing). The single-particle models without (SPM) and with electrolyte (SPMe) both explain that. Which
does so better? The calls are spent on the two diffusivities; the noise needs no new simulation and is integrated over
at every call.

    pip install 'basq[battery]'
    python examples/battery.py            # into the folder "battery"
    python examples/battery.py elsewhere  # a run that was stopped goes on from its store
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

import basq
from basq.problems import lithium_ion
from basq.problems.cases.lithium_ion import Cell

PRIOR = {"D_n": stats.lognorm(0.173, scale=3.97e-14), "D_p": stats.lognorm(0.0316, scale=1e-13)}  # m²/s
CHEAP = {"noise": stats.loguniform(1e-6, 1e-3)}  # V


def voltage(cell: Cell, x: np.ndarray) -> np.ndarray:
    """Simulate the voltage of a cell."""
    return cell.voltage(*map(float, x))


def log_likelihood(voltages: np.ndarray, output: np.ndarray, noise: float) -> float:
    """Gaussian noise; takes one standard deviation or many."""
    square = np.sum((voltages - output) ** 2)
    return -0.5 * square / noise**2 - len(voltages) * np.log(np.sqrt(2.0 * np.pi) * noise)


def main(folder: Path) -> None:
    """Run both models on the same data, each next batch for the one that settles the most, and draw them."""
    folder.mkdir(exist_ok=True)
    # the data are those of SPMe; experiment="paper" has the paper's 40,000 points and takes seconds a call
    cases = {model: lithium_ion(model, data_model="SPMe", experiment="rest") for model in ("SPM", "SPMe")}
    models = {}
    for name, case in cases.items():
        cell, voltages = case.log_likelihood.cell, case.log_likelihood.voltages
        models[name] = basq.Model(partial(voltage, cell), partial(log_likelihood, voltages), PRIOR, CHEAP)
    comparison = basq.compare(models, pool=2, store=folder, seed=1)
    print(comparison)
    for name, result in comparison.results.items():
        print(f"\n{name}\n{result}")
        truths = [*cases[name].truth[:2], np.sqrt(cases[name].truth[2])]
        result.plot_corner(truths=truths).savefig(folder / f"{name}.png", dpi=150)
    comparison.plot().savefig(folder / "comparison.png", dpi=100)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "battery"))
