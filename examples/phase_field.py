"""Infer the temperature and the energies of an alloy from images of its separation.

An iron–chromium alloy separates into iron-rich and chromium-rich regions. Four parameters of the Cahn–Hilliard model
are inferred from noisy images of the composition, pixel by pixel.

    python examples/phase_field.py             # into the folder "phase_field", small images, half a minute
    python examples/phase_field.py elsewhere --full    # the paper's 64 × 64 pixels, a second a call
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

import basq
from basq.problems import phase_field


def draw_images(case: basq.problems.Case) -> Figure:
    """Draw the data: the composition at every time."""
    data = case.log_likelihood
    figure = Figure(figsize=(1.8 * len(data.times) + 0.9, 2.4), layout="constrained")
    axes = figure.subplots(1, len(data.times), squeeze=False)[0]
    for axis, time, frame in zip(axes, data.times, data.frames, strict=True):
        shown = axis.imshow(frame, vmin=data.frames.min(), vmax=data.frames.max(), cmap="cividis")
        axis.set(xticks=[], yticks=[], title=f"t = {time:g}")
    figure.colorbar(shown, ax=axes, label="share of chromium")
    return figure


def main() -> None:
    """Infer the parameters, and draw data and posterior."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("phase_field"))
    parser.add_argument("--full", action="store_true", help="the paper's size")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    case = phase_field() if options.full else phase_field(size=16, n_frames=5, time_step=1.0)
    result = basq.infer(case.log_likelihood, case.prior, pool=2, store=options.folder / f"{case.name}.sqlite", seed=1)
    print(result)
    draw_images(case).savefig(options.folder / "phase_field_data.png", dpi=100)
    result.plot_corner(truths=case.truth).savefig(options.folder / "phase_field_corner.png", dpi=80)


if __name__ == "__main__":
    main()
