"""Draw the pictures of the documentation with the code that they explain: ``make pictures``, half a minute.

python docs/make_pictures.py                  # all, into docs/pictures; screenshots of the report need Chromium
python docs/make_pictures.py corner batch     # some
"""

import argparse
import contextlib
import functools
import json
import re
import runpy
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from scipy import stats

import basq
from basq.auto.batch import selection_measure
from basq.plots.style import BLUE, GREY, ORANGE
from basq.selection.nystrom import nystrom_features
from basq.selection.recombination import recombine

DOCS = Path(__file__).parent
BATCH = 16
TIMES = np.linspace(0.0, 4.0, 25)
TRUTH = np.array([1.0, 0.7, 0.05])
DATA = TRUTH[0] * np.exp(-TRUTH[1] * TIMES) + TRUTH[2] * np.random.default_rng(3).standard_normal(len(TIMES))


@functools.cache
def watched_run(family, n_dim, **options):
    """Run the default engine on a test problem and keep the state after every batch."""
    problem, states = getattr(basq.problems, family)(n_dim), []
    result = basq.infer(
        problem.log_likelihood,
        problem.prior,
        batch_size=BATCH,
        vectorized=True,
        progress=False,
        callback=states.append,
        **options,
    )
    return problem, result, states


def corner():
    """The picture that the page for beginners makes."""
    page = (DOCS / "start.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    namespace = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(code, "start.md", "exec"), namespace)
    return namespace["figure"]


def blocks_of(page):
    """The Python blocks of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def predictive():
    """The picture that the page about results makes of a simulator's output."""
    block = next(block for block in blocks_of("results.md") if "plot_predictive" in block)
    namespace = {"np": np, "basq": basq, "stats": stats}
    exec(compile(block, "results.md", "exec"), namespace)
    return namespace["figure"]


def certificate():
    """The picture that the page about certificates makes."""
    namespace = {}
    for block in blocks_of("certificate.md")[:3]:
        exec(compile(block, "certificate.md", "exec"), namespace)
    return namespace["figure"]


def sensitivity():
    """The picture that the page about cheap parameters makes of a family of priors."""
    first, last = (next(b for b in blocks_of("cheap.md") if what in b) for what in ("basq.Model(", "table.plot()"))
    namespace = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in (first, last):
            exec(compile(block, "cheap.md", "exec"), namespace)
    return namespace["figure"]


def standard_space():
    """A prior in the user's parameters and in standard space."""
    prior = basq.Prior({"rate": stats.lognorm(0.5), "phase": (0, 1)})
    u = np.random.default_rng(1).standard_normal((600, 2))
    x = prior.from_standard(u)
    figure = Figure(figsize=(7.5, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    lines = np.linspace(-4, 4, 200)
    for axis, points, mapped in ((left, x, prior.from_standard), (right, u, lambda rows: rows)):
        axis.scatter(*points.T, s=5, color=BLUE, alpha=0.6, lw=0)
        for at in (-2, -1, 0, 1, 2):
            for line in (np.c_[np.full(200, at), lines], np.c_[lines, np.full(200, at)]):
                axis.plot(*mapped(line).T, color=GREY, lw=0.7, zorder=0)
    left.set(xlabel="rate ~ lognorm(0.5)", ylabel="phase ~ uniform(0, 1)", xlim=(0, 4), ylim=(-0.02, 1.02))
    left.set_title("your parameters x", fontsize=10)
    right.set(xlabel="u₁", ylabel="u₂", xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), aspect="equal")
    right.set_title("standard space u: the prior is N(0, I)", fontsize=10)
    return figure


def grid_of(problem, n=120):
    """Points over the box of a problem with two parameters: axes and (n², 2)."""
    (x_low, x_high), (y_low, y_high) = problem.prior.bounds
    x, y = np.linspace(x_low, x_high, n + 2)[1:-1], np.linspace(y_low, y_high, n + 2)[1:-1]
    return x, y, np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def draw_depth(axis, x, y, values, best):
    """Contours of a log-likelihood, relative to the best."""
    levels = np.array([-64.0, -32.0, -16.0, -8.0, -4.0, -2.0, -1.0, 1e9])
    depth = (values - best).reshape(len(y), len(x))
    return axis.contourf(x, y, depth, levels=levels, cmap="Blues", norm="symlog", vmin=-64, vmax=2)


def surrogate():
    """What the surrogate believes after one, two and more batches, and the truth."""
    problem, result, states = watched_run("rosen", 2, seed=3)
    x, y, grid = grid_of(problem)
    truth = problem.log_likelihood(grid)
    figure = Figure(figsize=(7.5, 6.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    shown = [0, 1, len(states) - 1]
    for axis, k in zip(axes.flat, shown, strict=False):
        fitted, seen = states[k].fitted, states[k].observations
        draw_depth(axis, x, y, fitted.cells[0].model.predict(problem.prior.to_standard(grid))[0], truth.max())
        axis.plot(*seen.x.T, ".", color="k", ms=4)
        title = f"surrogate after {len(seen)} calls"
        if k + 1 < len(states):
            new = states[k + 1].observations.since(len(seen))
            axis.plot(*new.x.T, "o", mfc="none", color=ORANGE, ms=6)
            title += f"; next {len(new)} circled"
        axis.set_title(title, fontsize=10)
    drawn = draw_depth(axes.flat[3], x, y, truth, truth.max())
    scale = figure.colorbar(drawn, ax=axes, shrink=0.6, spacing="uniform", ticks=[-64, -32, -16, -8, -4, -2, -1])
    scale.set_label("log-likelihood, nats relative to its maximum")
    scale.ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
    axes.flat[3].set_title("the true log-likelihood", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel(result.names[0])
    for axis in axes[:, 0]:
        axis.set_ylabel(result.names[1])
    return figure


def batch():
    """From candidates to a batch with weights."""
    problem, _, states = watched_run("rosen", 2, seed=3)
    cell, rng = states[2].fitted.cells[0], np.random.default_rng(0)
    points, weights = selection_measure(cell, rng)
    order = rng.permutation(len(points))
    points, weights = points[order], weights[order]
    prediction = cell.model.gp.predict(cell.model.chart.whiten(points))
    features = nystrom_features(cell.model.gp, prediction, BATCH - 1, 200, rng, weights=weights, randomised=False)
    chosen = recombine(features.values, weights)
    x = problem.prior.from_standard(points)
    figure = Figure(figsize=(7.5, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis in (left, right):
        axis.scatter(*x.T, s=1.0 + 4000.0 * weights, color=BLUE, alpha=0.35 if axis is left else 0.12, lw=0)
        axis.set_xlabel(problem.prior.names[0])
    picked = x[chosen.index]
    right.scatter(*picked.T, s=8.0 + 900.0 * chosen.weights, color=ORANGE, alpha=0.85, edgecolor="k", lw=0.6)
    left.set_ylabel(problem.prior.names[1])
    left.set_title(f"{len(x):,} weighted candidates", fontsize=10)
    right.set_title(f"{len(picked)} of them (area: weight)", fontsize=10)
    middle, spread = np.median(x, axis=0), np.ptp(np.quantile(x, [0.01, 0.99], axis=0), axis=0)
    left.set(xlim=middle[0] + 0.8 * spread[0] * np.array([-1, 1]), ylim=(np.quantile(x[:, 1], 0.002), 4.15))
    return figure


def audits():
    """Predicted against evaluated, for the first, a middle and the last batch."""
    _, result, states = watched_run("lumpy", 4, seed=0)
    figure = Figure(figsize=(7.5, 3.0), layout="constrained")
    axes = figure.subplots(1, 3)
    for axis, k in zip(axes, (1, len(states) // 2, len(states) - 1), strict=True):
        before = states[k - 1].fitted
        new = states[k].observations.since(len(before.observations))
        mean, sd = before.cells[0].model.predict(new.u)
        near = (mean > mean.max() - 12.0) | (new.log_values > new.log_values.max() - 12.0)
        axis.errorbar(mean[near], new.log_values[near], xerr=2.0 * sd[near], fmt="o", ms=4, lw=1, color=BLUE)
        ends = np.array([axis.get_xlim(), axis.get_ylim()])
        line = np.array([ends.min(), ends.max()])
        axis.plot(line, line, color=ORANGE, lw=1, zorder=0)
        axis.set(xlim=line, ylim=line, aspect="equal")
        axis.set_title(f"calls {len(before.observations) + 1}–{len(states[k].observations)}", fontsize=10)
        axis.set_xlabel("predicted log ℓ ± 2 sd")
        axis.text(0.04, 0.95, f"z² = {result.audits[k - 1].z2:.2g}", transform=axis.transAxes, va="top")
    axes[0].set_ylabel("evaluated log ℓ")
    return figure


def evidence():
    """Log Z and its error after every batch of the run whose audits are shown."""
    problem, result, _ = watched_run("lumpy", 4, seed=0)
    return result.plot_run(truth=problem.log_evidence)


def alloy():
    """Images of the alloy while it separates, as the likelihood of the phase-field case sees them."""
    data = basq.problems.phase_field().log_likelihood
    figure = Figure(figsize=(9.4, 2.3), layout="constrained")
    axes = figure.subplots(1, 5)
    for axis, time, frame in zip(axes, data.times[1::2], data.frames[1::2], strict=True):
        shown = axis.imshow(frame, vmin=0.0, vmax=1.0, cmap="cividis")
        axis.set(xticks=[], yticks=[], title=f"t = {time:g}")
    figure.colorbar(shown, ax=axes, label="share of chromium")
    return figure


def health():
    """Readings of the battery-health case, as its example draws them."""
    example = runpy.run_path(str(DOCS.parent / "examples" / "battery_health.py"))
    return example["draw_readings"](basq.problems.battery_health(n_segments=300, n_readings=8, n_inducing=32))


def battery():
    """The posterior of the better of two models of a cell, as ``basq demo battery`` draws it."""
    cases = {model: basq.problems.lithium_ion(model, data_model="SPMe", experiment="rest") for model in ("SPM", "SPMe")}
    found = basq.compare(cases, pool=2, seed=1)
    return found.results[found.best].plot_corner(truths=cases[found.best].truth)


def real_world():
    """The paper's Figure 2, of the runs that ``make real-world`` has recorded."""
    benchmark = DOCS.parent / "benchmarks"
    lines = (benchmark / "results" / "real_world.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["size"] == "reduced"]
    return runpy.run_path(str(benchmark / "real_world.py"))["draw"](rows)


# --- the page about the report ----------------------------------------------------------------------------------------


def decay(x):
    """Gaussian noise of standard deviation x[2] about an exponential decay; a stiff solver fails at high rates."""
    if x[1] > 6.0:
        raise ArithmeticError("the solver did not converge")
    residual = DATA - x[0] * np.exp(-x[1] * TIMES)
    return float(stats.norm.logpdf(residual, scale=x[2]).sum())


@functools.cache
def decay_run():
    """The run that the page about the report shows."""
    prior = {"amplitude": (0.0, 3.0), "decay_rate": stats.lognorm(1.0), "noise": (0.01, 0.5)}
    with tempfile.TemporaryDirectory() as folder:
        return basq.infer(decay, prior, store=Path(folder) / "decay.sqlite", seed=1, progress=False)


def screenshot(path, size, *, dark=False):
    """Write what a browser shows of the report, in a frame: a window cannot be as narrow as a telephone."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("The screenshots need Chromium (Debian: apt-get install chromium).")
    width, height = size
    with tempfile.TemporaryDirectory() as folder:
        decay_run().report(Path(folder) / "decay.html", truths=TRUTH)
        frame = Path(folder) / "frame.html"
        inner = f'<iframe src="decay.html" width="{width}" height="{height}" style="border:0"></iframe>'
        frame.write_text(f'<body style="margin:0">{inner}', encoding="utf-8")
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--force-device-scale-factor=1", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={max(width, 500)},{height}", f"--user-data-dir={folder}/profile",
            f"--screenshot={path}", frame.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    with Image.open(path) as image:
        image.crop((0, 0, width, height)).convert("RGB").save(path, optimize=True)


# --- all of them ------------------------------------------------------------------------------------------------------


def figure_of(draw, dpi=150):
    """Writes a figure into a file."""
    return lambda path: draw().savefig(path, dpi=dpi, metadata={"Software": None})


PICTURES = {
    "corner": figure_of(corner),
    "predictive": figure_of(predictive, dpi=110),
    "sensitivity": figure_of(sensitivity, dpi=110),
    "certificate": figure_of(certificate, dpi=110),
    "standard-space": figure_of(standard_space),
    "surrogate": figure_of(surrogate),
    "batch": figure_of(batch),
    "audits": figure_of(audits),
    "evidence": figure_of(evidence),
    "alloy": figure_of(alloy),
    "health": figure_of(health),
    "battery": figure_of(battery),
    "real-world": figure_of(real_world, dpi=110),
    "report-corner": figure_of(lambda: decay_run().plot_corner(truths=TRUTH), dpi=90),
    "report-run": figure_of(lambda: decay_run().plot_run(), dpi=90),
    "report-calibration": figure_of(lambda: decay_run().plot_calibration(), dpi=90),
    "report-slices": figure_of(lambda: decay_run().plot_slices(), dpi=90),
    "report-time": figure_of(lambda: decay_run().plot_time(), dpi=90),
    "report": functools.partial(screenshot, size=(1280, 1700)),
    "report-dark": functools.partial(screenshot, size=(1280, 900), dark=True),
    "report-phone": functools.partial(screenshot, size=(400, 1100)),
}


def main(folder=DOCS / "pictures", names=tuple(PICTURES)):
    """Write pictures into a folder."""
    for name in names:
        path = folder / f"{name}.png"
        PICTURES[name](path)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"out of {', '.join(PICTURES)}; without names, all")
    chosen = parser.parse_args().names
    if unknown := set(chosen) - set(PICTURES):
        parser.error(f"no picture {', '.join(sorted(unknown))}")
    main(names=chosen or tuple(PICTURES))
