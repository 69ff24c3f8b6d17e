"""The paper's three real cases, drawn as its Figure 2 draws them: error against time and against calls.

    python -m benchmarks.real_world            # every case and method at the reduced size (an hour)
    python -m benchmarks.real_world --quick    # without nested sampling and at half the calls (minutes)
    python -m benchmarks.real_world --full     # the paper's sizes; nested sampling would take days, see --methods

IVR, UB and IGB of `basq.Paper` and the default engine choose batches of 32, batch WSABI (local penalisation) batches
of 8; dynesty is the nested sampler. All run in one process, one after another, so that times can be compared. The
posterior is judged as in the paper: the densities on lines through the true parameters, 50 points along each. A line of
JSON a run goes to benchmarks/results/real_world.jsonl at once; a second call goes on where the first was stopped. The
figure of the documentation is drawn from there by `make pictures`; --figure draws one of this call's runs.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import logsumexp, ndtri
from scipy.stats import gaussian_kde

import basq
from basq.problems import Case
from basq.results.result import Result
from basq.run.steps import State

P = basq.problems
REDUCED: dict[str, Callable[[], Case]] = {
    "battery": partial(P.lithium_ion, experiment="reduced"),
    "phase-field": partial(P.phase_field, 16, 5, time_step=1.0),
    "battery-health": partial(P.battery_health, 60, 8, 32),
}
FULL: dict[str, Callable[[], Case]] = {
    "battery": P.lithium_ion,
    "phase-field": partial(P.phase_field, 64, 5000, frame_interval=1.0, pixel=1.0, time_step=0.5),
    "battery-health": P.battery_health,
}
TITLES = {"battery": "Lithium-ion cell", "phase-field": "Phase field, Fe–Cr", "battery-health": "Battery health"}
BATCH, WSABI_BATCH = 32, 8
"""The paper's batch sizes."""
METHODS: dict[str, tuple[Any, int]] = {
    "engine": ("auto", BATCH),
    "IVR": (basq.Paper(proposal="ivr"), BATCH),
    "UB": (basq.Paper(proposal="ub"), BATCH),
    "IGB": (basq.Paper(proposal="igb"), BATCH),
    "WSABI": (basq.Paper(selection="local-penalisation"), WSABI_BATCH),
    "nested": (None, 1),
}
SWAPPED: dict[str, tuple[Any, int]] = {
    "IVR, 8": (basq.Paper(proposal="ivr"), WSABI_BATCH),
    "WSABI, 32": (basq.Paper(selection="local-penalisation"), BATCH),
}
"""With the other's batch size: how much of the difference between them it makes."""
COLOURS = {"engine": "#0072B2", "IVR": "#E69F00", "UB": "#009E73", "IGB": "#CC79A7", "WSABI": "#D55E00", "nested": "k"}
MAX_EVALS = 320
N_LIVE = 500
POINTS = 50
DROP = 8.0
"""A line ends where the log-density has fallen by this much: four standard deviations of a Gaussian."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Lines:
    """Densities on lines through the true parameters, each along one coordinate of standard space.

    Attributes
    ----------
    u : (d, 50, d) array
    density : (d, 50) array
        Of the true conditional posterior, relative to its largest value.
    """

    u: np.ndarray
    density: np.ndarray

    @classmethod
    def through(cls, case: Case) -> "Lines":
        truth = case.prior.to_standard(case.truth[None])[0]

        def log_density(u: np.ndarray) -> float:
            return case.log_likelihood(case.prior.from_standard(u[None])[0]) - 0.5 * float(u @ u)

        lines, values = [], []
        for axis in np.eye(len(truth)):
            ends = [_end(lambda t, a=axis: log_density(truth + t * a), side) for side in (-1.0, 1.0)]
            line = truth + np.linspace(*ends, POINTS)[:, None] * axis
            log_values = np.array([log_density(u) for u in line])
            lines.append(line)
            values.append(np.exp(log_values - log_values.max()))
        return cls(np.array(lines), np.array(values))

    def error(self, log_density: Callable[[np.ndarray], np.ndarray]) -> float:
        """Root-mean-square error of an estimate, each line scaled to the area of the true one."""
        squares = []
        for line, truth in zip(self.u, self.density, strict=True):
            log_values = log_density(line)
            values = np.exp(log_values - logsumexp(log_values)) * truth.sum()
            squares.append((np.nan_to_num(values) - truth) ** 2)
        return float(np.sqrt(np.mean(squares)))


def _end(log_density: Callable[[float], float], side: float) -> float:
    """How far the log-density has fallen by DROP, by doubling and halving; six prior deviations at most."""
    top, far = log_density(0.0), 1e-3
    while far < 6.0 and log_density(side * far) > top - DROP:
        far *= 2.0
    near = 0.5 * far
    for _ in range(6):
        middle = 0.5 * (near + far)
        near, far = (middle, far) if log_density(side * middle) > top - DROP else (near, middle)
    return side * min(far, 6.0)


def quadrature(case: Case, lines: Lines, name: str, max_evals: int, seed: int) -> Row:
    """One of our methods: what it knows after every batch."""
    method, batch = (METHODS | SWAPPED)[name]
    track: list[dict[str, float]] = []
    clock = {"calls": 0.0, "overhead": 0.0}

    def look(state: State) -> None:
        last = state.history[-1]
        clock["calls"] += last.seconds["evaluate"]
        clock["overhead"] += sum(v for k, v in last.seconds.items() if k != "evaluate")
        point = {"calls": last.n_evals, "seconds": sum(clock.values()), "overhead": clock["overhead"],
                 "log_z": last.log_evidence, "sd": last.log_evidence_std}  # fmt: skip
        result = state.result(case.prior)
        if result.standard_posterior is not None:
            point["rmse"] = lines.error(result.standard_posterior.log_pdf)
        track.append(point)

    result = basq.infer(
        case.log_likelihood, case.prior, method=method, max_evals=max_evals, callback=look, seed=seed, batch_size=batch,
        dlogz=0.1 if name == "engine" else 0.0, progress=False,
    )  # fmt: skip
    inside = None
    if result.standard_posterior is not None:
        inside = bool(_rank(result, case.truth) < 0.95)
    return {"track": track, "converged": result.converged, "truth_in_95": inside}


def _rank(result: Result, truth: np.ndarray) -> float:
    """Share of the posterior with a higher density than the truth has: below 0.95 inside the 95 % region."""
    draws = result.log_pdf(result.sample(2000, seed=0))
    return float(np.mean(draws > result.log_pdf(truth[None])[0]))


def nested(case: Case, lines: Lines, seed: int) -> Row:
    """Run dynesty with its defaults."""
    import dynesty

    def log_likelihood(u: np.ndarray) -> float:
        return case.log_likelihood(case.prior.from_standard(u[None])[0])

    sampler = dynesty.NestedSampler(log_likelihood, ndtri, case.n_dim, nlive=N_LIVE, rstate=np.random.default_rng(seed))
    start = time.perf_counter()
    sampler.run_nested(print_progress=False)
    seconds = time.perf_counter() - start
    found = sampler.results
    calls = np.cumsum(found.ncall)
    at = np.unique(np.linspace(0, len(calls) - 1, 60).astype(int))
    share = calls / calls[-1]
    track = [
        {"calls": int(calls[i]), "seconds": float(seconds * share[i]), "log_z": float(found.logz[i]),
         "sd": float(found.logzerr[i])}
        for i in at
    ]  # fmt: skip
    track[-1]["rmse"] = lines.error(_kde(found))
    return {"track": track, "converged": True, "truth_in_95": None}


def _kde(found: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Density of weighted samples, as the paper makes one."""
    weights = np.exp(found.logwt - found.logz[-1])
    kde = gaussian_kde(found.samples.T, weights=weights / weights.sum())
    return lambda u: np.log(np.maximum(kde(u.T), 1e-300))


def done(path: Path) -> dict[tuple[str, str, str, int], Row]:
    """Runs that are known already."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(r["size"], r["case"], r["method"], r.setdefault("seed", 1)): r for r in rows}


def table(rows: list[Row]) -> dict[str, Any]:
    """Print a line a run, and return the engine's figures against nested sampling."""
    print(f"{'case':<15} {'method':<7} {'calls':>7} {'log Z':>10} {'sd':>6} {'RMSE':>7} {'seconds':>8} "
          f"{'converged':>9} {'truth in 95 %':>13}")  # fmt: skip
    out: dict[str, Any] = {}
    for r in rows:
        last = r["track"][-1]
        print(f"{r['case']:<15} {r['method']:<7} {last['calls']:>7} {last['log_z']:>10.3f} {last['sd']:>6.3f} "
              f"{last.get('rmse', float('nan')):>7.4f} {last['seconds']:>8.1f} {r['converged']!s:>9} "
              f"{r['truth_in_95']!s:>13}")  # fmt: skip
    last = {(r["case"], r["method"]): r["track"][-1] for r in reversed(rows)}
    for case in TITLES:
        ours, theirs = last.get((case, "engine")), last.get((case, "nested"))
        if ours and theirs:
            difference = ours["log_z"] - theirs["log_z"]
            out[case] = {
                "calls_ratio": theirs["calls"] / ours["calls"],
                "difference": difference,
                "in_sd": abs(difference) / float(np.hypot(ours["sd"], theirs["sd"])),
            }
    return out


def draw(rows: list[Row]) -> Figure:
    """Error of the evidence and of the posterior, against time and against calls, one column a case."""
    cases = [c for c in TITLES if any(r["case"] == c for r in rows)]
    figure = Figure(figsize=(4.2 * len(cases), 9.6), layout="constrained")
    axes = figure.subplots(4, len(cases), squeeze=False)
    panels = [("seconds", "log_z"), ("calls", "log_z"), ("seconds", "rmse"), ("calls", "rmse")]
    labels = {"seconds": "seconds, calls included", "calls": "likelihood calls", "log_z": "|log Z − reference|",
              "rmse": "RMSE of conditionals"}  # fmt: skip
    for column, case in enumerate(cases):
        mine = {r["method"]: r["track"] for r in reversed(rows) if r["case"] == case}  # of several seeds the first
        reference = mine["nested" if "nested" in mine else "engine"][-1]["log_z"]
        axes[0, column].set_title(TITLES[case])
        for row, (x, y) in enumerate(panels):
            axis = axes[row, column]
            for method in METHODS:
                points = [(p[x], abs(p[y] - reference) if y == "log_z" else p[y])
                          for p in mine.get(method, []) if p.get(y) is not None and np.isfinite(p[y])]  # fmt: skip
                if method == "nested" and y == "log_z":
                    points = points[:-1]  # the last one is the reference
                if points:
                    marker = "-" if len(points) > 40 else "o-" if len(points) > 1 else "*"
                    axis.plot(*np.array(points).T, marker, color=COLOURS[method], ms=8 if marker == "*" else 3,
                              lw=1.2, label=method)  # fmt: skip
            axis.set(xscale="log", yscale="log", xlabel=labels[x])
            if column == 0:
                axis.set_ylabel(labels[y])
            if y == "log_z":
                axis.set_ylim(1e-3, 1e4)
                if "nested" in mine:  # below its own error the reference says nothing
                    axis.axhspan(1e-3, mine["nested"][-1]["sd"], color="0.9", zorder=0)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    return figure


def main() -> None:
    from benchmarks.made import Session  # here: the documentation draws with this file alone

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="half the calls, no nested sampling")
    parser.add_argument("--full", action="store_true", help="the paper's sizes")
    parser.add_argument("--cases", default=",".join(TITLES))
    parser.add_argument("--methods", default=";".join(METHODS), help=f"with ; between them; also {'; '.join(SWAPPED)}")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each, with seeds 1, 2, …")
    parser.add_argument("--restart", action="store_true", help="forget earlier runs")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/real_world.jsonl"))
    parser.add_argument("--figure", type=Path, help="draw the paper's Figure 2 into this file")
    options = parser.parse_args()
    size = "full" if options.full else "quick" if options.quick else "reduced"
    methods = [m for m in options.methods.split(";") if not (options.quick and m == "nested")]
    if options.restart:
        options.output.unlink(missing_ok=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    known = done(options.output)
    for name in options.cases.split(","):
        seeds = range(1, options.seeds + 1)
        todo = [(m, s) for s in seeds for m in methods if (size, name, m, s) not in known]
        if not todo:
            continue
        case = (FULL if options.full else REDUCED)[name]()
        lines = Lines.through(case)
        session = Session(options.output, [{"size": size, "case": name, "method": m, "seed": s} for m, s in todo])
        for method, seed in todo:
            print(f"{name}: {method}, seed {seed} …", flush=True)
            if method == "nested":
                row = nested(case, lines, seed)
            else:
                row = quadrature(case, lines, method, MAX_EVALS // 2 if options.quick else MAX_EVALS, seed)
            task = {"size": size, "case": name, "method": method, "seed": seed}
            known[size, name, method, seed] = row = {**task, **row}
            with options.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
            session.added()
    wanted = [
        (size, case, method, seed)
        for seed in range(1, options.seeds + 1)
        for case in options.cases.split(",")
        for method in methods
    ]
    rows = [known[key] for key in wanted if key in known]
    figures = table(rows)
    if options.figure:
        draw(rows).savefig(options.figure, dpi=110)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
