"""Command line: ``basq demo``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="basq",
        description="Evidence and posterior of an expensive likelihood, from few calls.",
        epilog="example: basq demo --output corner.png",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="solve a small built-in problem and draw its posterior")
    demo.add_argument("--output", type=Path, default=Path("basq-demo.png"), help="picture to write (%(default)s)")
    demo.add_argument("--seed", type=_seed, default=1, help="random seed (%(default)s)")
    options = parser.parse_args(argv)
    from basq.errors import BasqError

    try:
        _demo(options.output, options.seed)
    except BasqError as error:
        print(f"basq: {error}", file=sys.stderr)
        return 2
    return 0


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{seed} is negative; give 0 or more")
    return seed


def _demo(output: Path, seed: int) -> None:
    """Solve the paper's mixture in three dimensions."""
    import basq

    problem = basq.problems.mixture(n_dim=3, seed=seed)
    print(f"{problem.name}: a mixture of Gaussians as likelihood, a normal prior over {problem.n_dim} parameters")
    result = basq.infer(
        problem.log_likelihood, problem.prior, batch_size=16, max_evals=128, dlogz=0.01, vectorized=True, seed=seed
    )
    error = result.log_evidence - problem.log_evidence
    print(f"\n{result}\n")
    print(f"truth: log Z = {problem.log_evidence:.3f}   (error {error:+.3f})")
    result.plot_corner().savefig(output, dpi=150)
    print(f"picture: {output}")
