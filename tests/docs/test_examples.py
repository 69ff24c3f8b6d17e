"""The example scripts run as they are, at their small size."""

import sys
from pathlib import Path

import pytest

from helpers.commands import run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", [pytest.param("phase_field", marks=pytest.mark.slow), "battery_health"])
def test_example(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(tmp_path / "out")]
    out, _ = run(command, timeout=300)
    assert "Converged: " in out
    assert {f"{name}_data.png", f"{name}_corner.png"} <= {path.name for path in (tmp_path / "out").iterdir()}
