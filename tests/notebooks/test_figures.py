"""Figures show themselves, once, in notebooks and wherever there are windows."""

import subprocess
import sys

import pytest

from helpers.notebook import RUN, executed, pictures


def test_a_figure_is_shown_in_a_fresh_kernel_however_it_is_asked_for():
    _, *outputs = executed(
        RUN,
        "result.plot_corner()",
        "result.plot_run()\nNone",
        "import matplotlib.pyplot as plt\nfigure = result.plot_slices()\nplt.show()",
        "figure = result.plot_time()\nfigure.show()",
        "result.plot_calibration()",
        "figure",
        "print(plt.get_fignums())",
    )
    assert [pictures(each) for each in outputs] == [1, 1, 1, 1, 1, 1, 0]
    assert outputs[-1][0].text == "[]\n"  # none is kept once it is shown


def test_a_notebook_may_choose_the_form_and_may_do_without_matplotlib():
    _, drawn, other = executed(
        RUN,
        "%config InlineBackend.figure_formats = ['svg']\nresult.plot_run()",
        "import matplotlib\nmatplotlib.use('agg')\nresult.plot_run()",
    )
    assert ["image/svg+xml" in output.get("data", {}) for output in drawn] == [True]
    assert pictures(other) == 1


WINDOWS = """
import sys, types
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
shown = []

class Manager(FigureManagerBase):
    @classmethod
    def pyplot_show(cls, *, block=None):
        import matplotlib.pyplot as plt
        shown.extend(len(plt.figure(n).axes) for n in plt.get_fignums())
        plt.close("all")

class FigureCanvas(FigureCanvasAgg):
    manager_class = Manager

backend = sys.modules["windows"] = types.ModuleType("windows")
backend.FigureCanvas, backend.FigureManager = FigureCanvas, Manager
import matplotlib
matplotlib.use("module://windows")
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import matplotlib.pyplot as plt; result.plot_run(); plt.show()", "[3]"),
        ("result.plot_run().show()", "[3]"),
        ("result.plot_run()", "[]"),
    ],
)
def test_a_script_shows_figures_in_windows(code, expected):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{RUN}{WINDOWS}{code}\nprint(shown)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == expected, done.stderr


def test_many_figures_in_a_script_without_windows_are_nobodys_concern():
    code = "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt\n"
    code += "for _ in range(25): result.plot_run()\nprint(plt.get_fignums())"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN + code], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
