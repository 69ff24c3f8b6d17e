"""The example scripts run as they are, at their small size."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", [pytest.param("phase_field", marks=pytest.mark.slow), "battery_health"])
def test_example(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "Converged: " in done.stdout
    assert {f"{name}_data.png", f"{name}_corner.png"} <= {path.name for path in (tmp_path / "out").iterdir()}
