"""Programmes in processes of their own."""

import subprocess
import sys
import textwrap


def run(command, **options):
    """Run a command that has to succeed: what it wrote to its two outputs."""
    done = subprocess.run(command, check=False, **({"capture_output": True, "text": True, "timeout": 180} | options))
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def run_python(code, *flags, **options):
    """Run code in a new interpreter: what it wrote to its two outputs."""
    return run([sys.executable, *flags, "-c", textwrap.dedent(code)], **options)
