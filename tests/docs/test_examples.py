"""The example scripts run as they are, at their small size."""

import sys
from pathlib import Path

import pytest

from helpers.commands import run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", [pytest.param("phase_field", marks=pytest.mark.slow), "battery_health", "epidemic"])
def test_example(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(tmp_path / "out")]
    out, _ = run(command, timeout=300)
    assert "Converged: " in out
    assert {f"{name}_data.png", f"{name}_corner.png"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_the_battery_with_its_noise_as_a_cheap_parameter(tmp_path):
    pytest.importorskip("pybamm")
    out, _ = run([sys.executable, str(EXAMPLES / "battery.py"), str(tmp_path / "out")], timeout=600)
    assert "noise was integrated over at every call; the calls were spent on D_n and D_p." in out
    assert out.count("Converged: ") == 2 or "probabilities" in out
    assert {"SPM.png", "SPMe.png", "comparison.png"} <= {path.name for path in (tmp_path / "out").iterdir()}
