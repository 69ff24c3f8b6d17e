"""The version, in one place, and the commit that it was made of."""

import subprocess
from pathlib import Path

__version__ = "0.1.0.dev0"

WRITTEN = Path(__file__).with_name("commit.txt")
"""What a wheel or an sdist is built with: see ``hatch_build.py``."""
CHECKOUT = Path(__file__).parents[2]


def commit() -> str | None:
    """The commit of this code: written into a release, asked of Git in a checkout; None if nobody knows."""
    if WRITTEN.exists():
        return WRITTEN.read_text(encoding="utf-8").strip() or None
    return of_checkout(CHECKOUT)


def of_checkout(folder: Path) -> str | None:
    """The commit that a folder is at, with a mark if files have changed since; None if it is no checkout of its own."""
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
