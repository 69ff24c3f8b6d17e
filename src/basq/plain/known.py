"""The classes that plain data may name: those that a run, its fits and its results are made of.

None of them calls a function of a file, since there is none in it. What runs are made of is here, as a test sees to.
"""

from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from typing import Any

_NAMES = {
    "status": "Status Finding",
    "observations": "Observations Failure",
    "method": "Audit",
    "numerics.fold": "SignedPermutation Fold",
    "numerics.gaussians": "GaussianMixture",
    "numerics.search": "Optimum",
    "numerics.student": "MixtureSettings StudentMixture",
    "prior.prior": "Prior",
    "prior.marginals": "Normal Uniform NewStyle ScipyMarginal",
    "prior.periodic": "Periodic Turn",
    "prior.maps": "SeparableMap AffineMap TransformMap PartOfTransform TransformCoordinate",
    "prior.joint": "JointMap",
    "prior.density": "DensityMap Density",
    "gp.gp": "GP",
    "gp.fit": "Hyperprior UnknownNoise",
    "gp.classifier": "ClassifierSettings Sites Feasibility",
    "gp.kernels.stationary": "RBF Matern12 Matern32 Matern52 RationalQuadratic",
    "gp.kernels.polynomial": "Polynomial",
    "gp.kernels.sheared": "Shear ShearedKernel",
    "gp.kernels.trend": "TrendKernel TrendPrior",
    "posterior.sampled": "GridDensity KernelDensity Moved Slice SampledPosterior",
    "posterior.circle": "CircleDensity",
    "posterior.pairs": "LeaningGrid PairDensity",
    "posterior.densities": "ParameterDensity",
    "posterior.folded": "FoldedDensity FoldedPosterior",
    "posterior.turned": "TurnedDensity TurnedPosterior TurnedKernel",
    "posterior.mixture": "Group SignedMixture",
    "posterior.parameters": "ParameterPosterior",
    "evaluation.calls": "Calls",
    "outputs.outputs": "Outputs",
    "certificate.certificate": "Certificate",
    "certificate.design": "Design",
    "results.result": "Result",
    "results.record": "Record",
    "cheap.conditionals": "Conditionals",
    "cheap.joint": "JointDensity",
    "cheap.widen": "Narrowed",
    "auto.blind": "Blind",
    "auto.cells": "Cell Total",
    "auto.chart": "Chart StraightMeasure",
    "auto.density": "CellDensity CellBand",
    "auto.engine": "Auto AutoFit",
    "auto.exploration": "Explorer Bulk",
    "auto.folded": "Symmetries FoldedMeasure FoldedBand FoldedImage",
    "auto.form": "Form Solution",
    "auto.gates": "CellMeasure Halves",
    "auto.importance": "Estimate Proposal",
    "auto.leaps": "Bowl",
    "auto.log_model": "Integrand LogModel",
    "auto.modes": "Suspect Leads",
    "auto.recognised": "Knowledge RecognisedFit",
    "auto.reduction": "Point Reduction Reducer",
    "auto.scales": "Axis NoiseScale Probes",
    "auto.scouts": "Scout",
    "auto.settings": (
        "Start Recognition Charts Values Hyperparameters Samples Integration Cells Audits Scouts Batches Exploration "
        "Errors Verdicts Settings"
    ),
    "auto.smc": "Particles Population",
    "auto.turned": "TurnedBand TurnedImage",
    "auto.unfolded": "Unfolded FullBand",
    "auto.values": "Scale Reach Data",
    "auto.verdict": "Facts",
    "paper.blocks": "Pair Single Blocks",
    "paper.evidence": "Evidence",
    "paper.fitted": "SurrogateDensity LikelihoodBand PaperFit",
    "paper.method": "Paper",
    "paper.models.bbq": "Bbq",
    "paper.models.vanilla": "Vanilla",
    "paper.models.wsabi": "Wsabi WsabiModel",
    "paper.positive_mixture": "PositiveMixture",
    "paper.posterior": "ProductDensity",
    "paper.target": "Target",
    "paper.training": "Data Training",
    "paper.warps": "SquareRoot ShiftedLog",
    "run.again": "Origin",
    "run.steps": "Recipe State",
    "run.stopping": "Stopping Verdict",
}
KNOWN = frozenset(f"{module}:{name}" for module, names in _NAMES.items() for name in names.split())
"""``module:class``, within this package."""


def name_of(cls: type) -> str | None:
    """The name of a class among the known ones; None if it is not."""
    name = f"{cls.__module__.removeprefix('basq.')}:{cls.__qualname__}"
    return name if name in KNOWN and cls.__module__.startswith("basq.") else None


@cache
def class_of(name: str) -> Any:
    """The class of a name; LookupError if it is not known."""
    if name not in KNOWN:
        raise LookupError(f"{name!r} is not a class of this version of basq")
    module, _, own = name.partition(":")
    return getattr(import_module(f"basq.{module}"), own)


@cache
def fields_of(cls: type) -> dict[str, Any]:
    """What makes an object of a class, each with the function that makes its default; None where it has none.

    The fields of a dataclass but for those that are marked with `UNKEPT`; a class that is none names its attributes in
    ``plain_fields``.
    """
    if hasattr(cls, "plain_fields"):
        return dict.fromkeys(cls.plain_fields)
    return {field.name: _default(field) for field in fields(cls) if "unkept" not in field.metadata}


UNKEPT = {"unkept": True}
"""Metadata of a field that is not written, as code: it has its default again."""


def unkept_of(cls: type) -> dict[str, Any]:
    """The fields of a class that are not written, each with the function that makes its default."""
    return {} if hasattr(cls, "plain_fields") else {f.name: _default(f) for f in fields(cls) if "unkept" in f.metadata}


def _default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory
    return None if field.default is MISSING else lambda: field.default


def kept_of(cls: type) -> tuple[str, ...]:
    """Cached properties of a class that cost more to compute than to keep: those that it names in ``plain_cached``."""
    kept: tuple[str, ...] = getattr(cls, "plain_cached", ())
    return kept
