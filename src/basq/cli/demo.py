"""The demonstration: a problem with a known answer, solved while you wait."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from basq import problems
from basq.cli.output import check_outputs, say, writing
from basq.cli.parser import DEMOS
from basq.inference import infer
from basq.rivals.compare import compare

PROBLEMS: dict[str, tuple[Callable[[int], problems.Problem], dict[str, Any]]] = {
    "banana": (lambda _: problems.rosen(2), {}),
    "mixture": (lambda seed: problems.mixture(n_dim=3, seed=seed), {"max_evals": 128, "dlogz": 0.01}),
    "gauss": (lambda seed: problems.gauss(n_dim=4, seed=seed), {}),
    "ring": (lambda _: problems.ring(), {}),
    "bimodal": (lambda _: problems.bimodal(n_dim=2), {}),
}
"""How each is made from a seed, and options of its run."""


def demo(options: Any) -> None:
    """Solve a problem, compare with the truth, draw the posterior and write the report."""
    check_outputs([options.output, options.report])
    if options.problem == "battery":
        return _battery(options)
    make, more = PROBLEMS[options.problem]
    problem = make(options.seed)
    say(f"{problem.name}: {DEMOS[options.problem]}")
    result = infer(problem.log_likelihood, problem.prior, vectorized=True, seed=options.seed, **more)
    named = {"log_likelihood": f"{problem.name} of basq.problems"}  # its class says nothing to a reader
    result = replace(result, settings={**result.settings, **named})
    error = result.log_evidence - problem.log_evidence
    print()
    say(result)
    print(f"\ntruth: log Z = {problem.log_evidence:.3f}   (error {error:+.3f})")
    if result.too_few is None:
        with writing(options.output, "picture"):
            result.plot_corner().savefig(options.output, dpi=150)
    with writing(options.report, "report"):
        result.report(options.report, title=f"basq demo: {options.problem}", truth=problem.log_evidence)


def _battery(options: Any) -> None:
    """Compare two models of a lithium-ion cell on the same data, and infer the parameters of the better one."""
    say(f"lithium-ion cell: {DEMOS['battery']}")
    cases = {model: problems.lithium_ion(model, data_model="SPMe", experiment="rest") for model in ("SPM", "SPMe")}
    say(
        "SPM: single-particle model. SPMe: the same with electrolyte; it made the data, 400 voltages with noise.\n"
        "Parameters: diffusivities in anode (D_n) and cathode (D_p), noise variance.\n"
    )
    found = compare(dict(cases), pool=2, seed=options.seed)
    best = found.results[found.best]
    print()
    say(found)
    print()
    say(f"{found.best}: {best}")
    print()
    case = cases[found.best]
    with writing(options.output, "picture"):
        best.plot_corner(truths=case.truth).savefig(options.output, dpi=150)
    with writing(options.report, "report"):
        best.report(options.report, title=f"Lithium-ion cell, {found.best}")
