"""Find out which model a lithium-ion cell needs, and its diffusivities.

A cell has been discharged for 500 s; its voltage was recorded while it rested (400 points, 40 µV of noise). The
single-particle models without (SPM) and with electrolyte (SPMe) both explain that. Which does so better?

    pip install 'basq[battery]'
    python examples/battery.py            # into the folder "battery"
    python examples/battery.py elsewhere  # a run that was stopped goes on from its store
"""

import sys
from pathlib import Path

import numpy as np

import basq
from basq.problems import lithium_ion


def main(folder: Path) -> None:
    """Infer the parameters of both models from the same data, and compare the evidence."""
    folder.mkdir(exist_ok=True)
    results = {}
    for model in ("SPM", "SPMe"):
        # the data are those of SPMe; experiment="paper" has the paper's 40,000 points and takes seconds a call
        case = lithium_ion(model, data_model="SPMe", experiment="rest")
        result = basq.infer(
            case.log_likelihood,
            case.prior,
            pool=2,
            store=folder / f"{model}.sqlite",
            seed=1,
        )
        print(f"\n{model}\n{result}")
        result.plot_corner(truths=case.truth).savefig(folder / f"{model}.png", dpi=150)
        results[model] = result

    spm, spme = results["SPM"], results["SPMe"]
    log_factor = spme.log_evidence - spm.log_evidence
    error = np.hypot(spme.log_evidence_std, spm.log_evidence_std)
    print(f"\nlog Bayes factor of SPMe over SPM: {log_factor:.2f} ± {error:.2f}")
    print(f"Probability of SPMe, if both were as probable before: {1.0 / (1.0 + np.exp(-log_factor)):.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "battery"))
