"""The pictures of the documentation: a run of a small simulator, its plots, and its report in a real browser.

    python -m benchmarks.pictures     # a minute; needs Chromium for the screenshots of the report

The run is the decay of a signal with noise of unknown size. Pictures go to ``docs/images/``.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import stats

import basq

IMAGES = Path(__file__).parents[1] / "docs" / "images"
TIMES = np.linspace(0.0, 4.0, 25)
TRUTH = np.array([1.0, 0.7, 0.05])
DATA = TRUTH[0] * np.exp(-TRUTH[1] * TIMES) + TRUTH[2] * np.random.default_rng(3).standard_normal(len(TIMES))
PRIOR = {"amplitude": (0.0, 3.0), "decay_rate": stats.lognorm(1.0), "noise": (0.01, 0.5)}


def log_likelihood(x: np.ndarray) -> float:
    """Gaussian noise of standard deviation x[2] about an exponential decay; a stiff solver fails at high rates."""
    if x[1] > 6.0:
        raise ArithmeticError("the solver did not converge")
    residual = DATA - x[0] * np.exp(-x[1] * TIMES)
    return float(stats.norm.logpdf(residual, scale=x[2]).sum())


def screenshot(page: Path, output: Path, size: tuple[int, int], *, dark: bool = False) -> None:
    """Write what a browser shows of a page; a frame of its own, since a window cannot be as narrow as a telephone."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("The screenshots need Chromium (Debian: apt-get install chromium).")
    width, height = size
    frame = page.with_name("frame.html")
    frame.write_text(
        f'<body style="margin:0"><iframe src="{page.name}" width="{width}" height="{height}" style="border:0"></iframe>'
    )
    scheme = 0 if dark else 1
    command = [
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
        f"--blink-settings=preferredColorScheme={scheme}", f"--window-size={max(width, 500)},{height}",
        f"--user-data-dir={page.parent / 'profile'}", f"--screenshot={output}", frame.as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with Image.open(output) as image:
        image.crop((0, 0, width, height)).convert("RGB").save(output, optimize=True)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "decay.sqlite"
        result = basq.infer(log_likelihood, PRIOR, store=store, seed=1, progress=False)
        print(result)
        figures = {
            "corner": result.plot_corner(truths=TRUTH),
            "run": result.plot_run(),
            "calibration": result.plot_calibration(),
            "slices": result.plot_slices(),
            "time": result.plot_time(),
        }
        for name, figure in figures.items():
            figure.savefig(IMAGES / f"{name}.png", dpi=90)
        page = Path(directory) / "decay.html"
        result.report(page, truths=TRUTH)
        screenshot(page, IMAGES / "report.png", (1280, 1700))
        screenshot(page, IMAGES / "report-dark.png", (1280, 900), dark=True)
        screenshot(page, IMAGES / "report-phone.png", (400, 1100))
    for path in sorted(IMAGES.glob("*.png")):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
