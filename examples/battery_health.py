"""Infer how fast batteries age, and how their resistance depends on temperature, current and acid.

Readings of the resistance of a battery over years depend on temperature, current and acid concentration, and on age. A
Gaussian process describes both; its five hyperparameters are inferred by its marginal likelihood, a Kalman filter.

    python examples/battery_health.py             # into the folder "battery_health", 60 charging segments, seconds
    python examples/battery_health.py elsewhere --full    # 1000 segments, half a second a call
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

import basq
from basq.problems import battery_health


def draw_readings(case: basq.problems.Case) -> Figure:
    """Draw the data: resistance over time, coloured by temperature."""
    data = case.log_likelihood.segments
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    axis = figure.subplots()
    times = data.times[:, None].repeat(data.resistance.shape[1], axis=1)
    shown = axis.scatter(times, data.resistance, c=data.conditions[..., 0], s=6, cmap="cividis")
    axis.set(xlabel="years", ylabel="excess resistance, mΩ")
    figure.colorbar(shown, label="temperature, °C")
    return figure


def main() -> None:
    """Infer the hyperparameters, and draw data and posterior."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("battery_health"))
    parser.add_argument("--full", action="store_true", help="the paper's size")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    case = battery_health() if options.full else battery_health(n_segments=60, n_readings=8, n_inducing=32)
    result = basq.infer(case.log_likelihood, case.prior, pool=2, store=options.folder / f"{case.name}.sqlite", seed=1)
    print(result)
    draw_readings(case).savefig(options.folder / "battery_health_data.png", dpi=100)
    result.plot_corner(truths=case.truth).savefig(options.folder / "battery_health_corner.png", dpi=70)


if __name__ == "__main__":
    main()
