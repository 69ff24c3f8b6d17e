"""Writes the commit into what is built, so that ``basq --version`` can name it."""

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add ``commit.txt`` to a wheel or an sdist; an editable install asks Git, and an sdist has it."""
        package = Path(self.root) / "src" / "basq"
        if version == "editable" or (package / "commit.txt").exists():
            return
        spec = importlib.util.spec_from_file_location("version", package / "version.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        file = Path(tempfile.mkdtemp()) / "commit.txt"
        file.write_text(f"{module.of_checkout(Path(self.root)) or ''}\n", encoding="utf-8")
        build_data["force_include"][str(file)] = f"{'src/' if self.target_name == 'sdist' else ''}basq/commit.txt"
