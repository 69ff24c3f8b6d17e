"""Time of a call of the lithium-ion cell and error of its solver: python -m benchmarks.battery [rest reduced paper]."""

import argparse
import time
from importlib import import_module

import numpy as np

from basq.problems.cases.lithium_ion import EXPERIMENTS, LOG_TRUTH, TOLERANCES, UNITS, Cell

MODULE = import_module("basq.problems.cases.lithium_ion")  # the package's attribute of this name is the function


def measure(cell: Cell, n_calls: int) -> tuple[np.ndarray, float, float]:
    """Voltage at the truth, seconds of the first call, and least processor seconds of the following ones."""
    point = tuple(map(float, np.exp(LOG_TRUTH) * UNITS))
    begin = time.perf_counter()
    voltage = cell.voltage(*point)
    first = time.perf_counter() - begin
    seconds = []
    for _ in range(n_calls):
        begin = time.process_time()
        cell.voltage(*point)
        seconds.append(time.process_time() - begin)
    return voltage, first, min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="*", default=["rest", "reduced"], help="by default those with short calls")
    print(f"{'experiment':<10} {'model':<14} {'first s':>8} {'call ms':>9} {'error µV':>9}")
    for name in parser.parse_args().experiments:
        n_calls = 2 if name == "paper" else 20
        for model, tolerance in list(TOLERANCES.items()):
            cell = Cell(model, EXPERIMENTS[name])
            voltage, first, seconds = measure(cell, n_calls)
            TOLERANCES[model] = 0.1 * tolerance
            MODULE._simulation.cache_clear()
            error = 1e6 * np.sqrt(np.mean((measure(cell, 1)[0] - voltage) ** 2))
            TOLERANCES[model] = tolerance
            MODULE._simulation.cache_clear()
            print(f"{name:<10} {model:<14} {first:8.2f} {1e3 * seconds:9.1f} {error:9.4f}", flush=True)
            if model != "DFN":  # which takes half a minute to compile
                _, first, seconds = measure(Cell(model, EXPERIMENTS[name], compiled=True), n_calls)
                print(f"{name:<10} {model + ' compiled':<14} {first:8.2f} {1e3 * seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
