"""Infer how fast an epidemic spreads, and how over-dispersed its reported cases are.

Five people bring a disease to a town of 10,000: susceptible people are infected at a rate, infectious ones recover at
a rate (SIR). Six of ten new cases are reported, every day for 60 days, with more scatter than counting explains
(negative binomial). The differential equation is what takes time; how dispersed the counts are needs no new solution.
So the calls are spent on the two rates, and the dispersion is integrated over at every call.

    python examples/epidemic.py            # into the folder "epidemic"
    python examples/epidemic.py elsewhere  # a run that was stopped goes on from its store
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import gammaln

import basq

matplotlib.use("Agg")  # writes files, needs no screen
import matplotlib.pyplot as plt

DAYS, PEOPLE, FIRST, REPORTED = 60, 10_000, 5.0, 0.6
TRUTH = {"infection rate": 0.4, "recovery rate": 0.15, "dispersion": 8.0}
PRIOR = {
    "infection rate": stats.loguniform(0.05, 2.0),  # a day
    "recovery rate": stats.loguniform(0.02, 1.0),  # a day
}
CHEAP = {"dispersion": stats.loguniform(0.5, 100.0)}


def simulate(x: dict[str, float]) -> np.ndarray:
    """New infections of every day: SIR, solved."""
    infection, recovery = (x[name] for name in PRIOR)

    def rates(_: float, state: np.ndarray) -> list[float]:
        susceptible, infectious, _ = state
        infected = infection * susceptible * infectious / PEOPLE
        return [-infected, infected - recovery * infectious, infected]

    start = [PEOPLE - FIRST, FIRST, 0.0]
    solution = solve_ivp(rates, (0.0, DAYS), start, t_eval=np.arange(DAYS + 1.0), rtol=1e-8, atol=1e-6, method="LSODA")
    return np.maximum(np.diff(solution.y[2]), 1e-9)


class Reported:
    """Log-likelihood of the reported cases, given new infections; takes one dispersion or many."""

    def __init__(self, cases: np.ndarray) -> None:
        self.cases = cases[:, None]

    def __call__(self, output: np.ndarray, dispersion: float) -> np.ndarray:
        mean, k = REPORTED * output[:, None], np.atleast_1d(dispersion)
        counts = gammaln(self.cases + k) - gammaln(k) - gammaln(self.cases + 1.0)
        log_l = counts + k * np.log(k / (k + mean)) + self.cases * np.log(mean / (k + mean))
        return log_l.sum(axis=0) if np.ndim(dispersion) else log_l.sum()


def observe(seed: int = 3) -> np.ndarray:
    """Reported cases of every day, drawn from the truth."""
    mean, k = REPORTED * simulate(TRUTH), TRUTH["dispersion"]
    return np.random.default_rng(seed).negative_binomial(k, k / (k + mean))


def draw(cases: np.ndarray, result: basq.Result, path: Path) -> None:
    """The reported cases, and what the posterior expects to be reported."""
    some = result.sample(100, seed=1)
    figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for i, x in enumerate(some):
        values = dict(zip(result.names, x, strict=True))
        label = "posterior" if i == 0 else None
        axis.plot(np.arange(1, DAYS + 1), REPORTED * simulate(values), color="#0072B2", alpha=0.1, label=label)
    axis.plot(np.arange(1, DAYS + 1), cases, "o", ms=3.5, color="#222222", label="reported cases")
    axis.set_xlabel("day")
    axis.set_ylabel("new cases a day")
    legend = axis.legend(frameon=False)
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)
    figure.savefig(path, dpi=150)


def main(folder: Path) -> None:
    """Run, print the answer, draw the cases and the posterior."""
    folder.mkdir(exist_ok=True)
    cases = observe()
    model = basq.Model(simulate, Reported(cases), PRIOR, CHEAP, pass_dict=True)
    result = basq.infer(model, pool=2, store=folder / "epidemic.sqlite", seed=1)
    print(result)
    draw(cases, result, folder / "epidemic_data.png")
    result.plot_corner(truths=TRUTH).savefig(folder / "epidemic_corner.png", dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "epidemic"))
