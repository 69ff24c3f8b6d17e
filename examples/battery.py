"""Find out which model a lithium-ion cell needs, and its diffusivities.

A cell has been discharged for 500 s; its voltage was recorded while it rested (400 points, 40 µV of noise). The
single-particle models without (SPM) and with electrolyte (SPMe) both explain that. Which does so better?

    pip install 'basq[battery]'
    python examples/battery.py            # into the folder "battery"
    python examples/battery.py elsewhere  # a run that was stopped goes on from its store
"""

import sys
from pathlib import Path

import basq
from basq.problems import lithium_ion


def main(folder: Path) -> None:
    """Run both models on the same data, each next batch for the one that settles the most, and draw the better one."""
    folder.mkdir(exist_ok=True)
    # the data are those of SPMe; experiment="paper" has the paper's 40,000 points and takes seconds a call
    cases = {model: lithium_ion(model, data_model="SPMe", experiment="rest") for model in ("SPM", "SPMe")}
    comparison = basq.compare(cases, pool=2, store=folder, seed=1)
    print(comparison)
    for model, result in comparison.results.items():
        print(f"\n{model}\n{result}")
        result.plot_corner(truths=cases[model].truth).savefig(folder / f"{model}.png", dpi=150)
    comparison.plot().savefig(folder / "comparison.png", dpi=100)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "battery"))
