"""The posterior for other packages: pandas, ArviZ, GetDist, anesthetic."""

import re
from collections.abc import Collection, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from basq.errors import InputError
from basq.extras import package
from basq.method import Posterior
from basq.posterior.sampled import SampledPosterior
from basq.prior import Prior
from basq.report.target import spare
from basq.types import FloatArray

if TYPE_CHECKING:
    from anesthetic import Samples
    from getdist import MCSamples
    from pandas import DataFrame

N_CHAINS = 4
"""Into which independent draws are dealt for ArviZ, which compares chains."""
N_EQUAL = 4000
"""Samples that stand for a posterior without weighted points."""
ESCAPED = {c: rf"\{c}" for c in " _%{}$"} | {"\\": r"\backslash ", "^": r"\hat{\ }", "~": r"\sim "}
CHAIN_FILES = (".txt", ".paramnames", ".ranges", ".properties.ini")
"""What the names of GetDist's files end in."""
UNDRAWABLE = '#!&"`'
"""Left out of labels: GetDist's files read # and ! as marks, Matplotlib knows no & and no such quotes in formulas."""


@dataclass(frozen=True)
class Draws:
    """Posterior samples with their weights and with what the surrogate says about them.

    Attributes
    ----------
    names : tuple of str
    x : (n, d) array
        In the user's parameters.
    log_weights : (n,) array
        Their exponentials add up to one.
    log_likelihood : (n,) array
        Of the surrogate: no call was made at these points.
    log_prior : (n,) array or None
        Log-density of the prior; None for a prior transform that couples its parameters.
    """

    names: tuple[str, ...]
    x: FloatArray
    log_weights: FloatArray
    log_likelihood: FloatArray
    log_prior: FloatArray | None

    @classmethod
    def of(
        cls, prior: Prior, posterior: Posterior, log_evidence: float, n: int | None, rng: np.random.Generator
    ) -> "Draws":
        """Draw n equal-weight samples; with None, take the posterior's weighted points, if it has any.

        Parameters
        ----------
        prior : Prior
        posterior : Posterior
            In standard space.
        log_evidence : float
            Turns posterior densities into likelihoods.
        n : int or None
        rng : Generator
        """
        if n is not None and (n < 1 or n != int(n)):
            raise InputError(f"n={n!r}: give a positive whole number of samples.")
        if n is None and isinstance(posterior, SampledPosterior):
            some = np.isfinite(posterior.log_weights)
            u, log_weights = posterior.points[some], posterior.log_weights[some]
        else:
            u = posterior.sample(N_EQUAL if n is None else int(n), rng)
            log_weights = np.full(len(u), -np.log(len(u)))
        log_measure = prior.measure.log_pdf(u) + prior.log_weight(u)
        has_density = prior.is_separable or prior.affine is not None
        return cls(
            prior.names,
            prior.from_standard(u),
            log_weights,
            posterior.log_pdf(u) + log_evidence - log_measure,
            log_measure - prior.log_jacobian(u) if has_density else None,
        )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def weights(self) -> FloatArray:
        """They add up to one."""
        out: FloatArray = np.exp(self.log_weights)
        return out

    @property
    def n_effective(self) -> float:
        """Number of equal-weight samples that would be worth as much (Kish)."""
        return float(np.exp(-logsumexp(2.0 * self.log_weights)))

    @property
    def relative_weights(self) -> FloatArray:
        """One for the heaviest."""
        out: FloatArray = np.exp(self.log_weights - self.log_weights.max())
        return out

    @property
    def log_joint(self) -> FloatArray | None:
        """Log of likelihood times prior, where the prior has a density."""
        return None if self.log_prior is None else self.log_likelihood + self.log_prior


def _refuse(names: Collection[str], reserved: Collection[str], where: str) -> None:
    taken = [name for name in names if name in reserved]
    if taken:
        raise InputError(
            f"A parameter is called {taken[0]!r}, a name that {where} keeps for itself. Give the prior other names."
        )


def to_frame(names: tuple[str, ...], x: FloatArray, extra: Mapping[str, NDArray[Any]] | None = None) -> "DataFrame":
    """A pandas data frame of points (n, d), with further columns (n,)."""
    more = extra or {}
    _refuse(names, more, "the table")
    columns = dict(zip(names, x.T, strict=True))
    frame: DataFrame = package("pandas").DataFrame({**columns, **more})
    return frame


# --- ArviZ ------------------------------------------------------------------------------------------------------------


def to_arviz(
    draws: Draws, prior: FloatArray, attributes: Mapping[str, Any], looks: Mapping[str, tuple[str, str]]
) -> Any:
    """Equal-weight draws as an InferenceData (ArviZ 0.x) or a DataTree (ArviZ 1.x).

    Parameters
    ----------
    draws : Draws
        Of equal weight: ArviZ knows no others.
    prior : (m, d) array
        Draws of the prior.
    attributes : mapping
        Of the posterior and of the whole.
    looks : mapping
        Label and unit of every parameter, by name.
    """
    arviz = _arviz()
    _refuse(draws.names, ("chain", "draw"), "ArviZ")
    stats = {"total_log_likelihood": _chains(draws.log_likelihood)}
    if draws.log_joint is not None:
        stats["lp"] = _chains(draws.log_joint)
    groups = {
        "posterior": _by_name(draws.names, draws.x),
        "sample_stats": stats,
        "log_likelihood": {"total": _chains(draws.log_likelihood)},
        "prior": _by_name(draws.names, prior),
    }
    if "InferenceData" in vars(arviz):  # 1.x answers hasattr with a warning
        data = arviz.from_dict(**groups, attrs=dict(attributes), posterior_attrs=dict(attributes))
    elif any("/" in name for name in draws.names):
        raise InputError(f"ArviZ 1.x allows no '/' in names, and the parameters are {draws.names}; rename them.")
    else:
        data = arviz.from_dict(groups, attrs={"/": dict(attributes), "posterior": dict(attributes)})
    for group in ("posterior", "prior"):
        for name, (label, unit) in looks.items():
            data[group][name].attrs.update({"long_name": label} | ({"units": unit} if unit else {}))
    return data


def _arviz() -> Any:
    """ArviZ, or the part of 1.x that holds data where only that is installed."""
    try:
        return package("arviz")
    except InputError:
        if find_spec("arviz_base") is None:
            raise
        return package("arviz_base")


def _by_name(names: tuple[str, ...], x: FloatArray) -> dict[str, FloatArray]:
    """The chains of every parameter, of points (n, d)."""
    return {name: _chains(column) for name, column in zip(names, x.T, strict=True)}


def _chains(values: FloatArray) -> FloatArray:
    """Independent draws (n,) as chains of equal length, (4, n / 4): diagnostics compare several, if they are long."""
    several = len(values) % N_CHAINS == 0 and len(values) >= N_CHAINS**2
    return values.reshape(N_CHAINS if several else 1, -1)


# --- GetDist and anesthetic -------------------------------------------------------------------------------------------


def to_getdist(draws: Draws, prior: Prior, root: str | Path | None, attributes: Mapping[str, Any]) -> "MCSamples":
    """GetDist samples, which are also written as chain files if a root is given."""
    for end in () if root is None else CHAIN_FILES:
        spare(f"{root}{end}")
    tags = plain_names(draws.names)
    known = draws.log_likelihood if draws.log_joint is None else draws.log_joint
    with redirect_stdout(StringIO()):  # GetDist tells the terminal that it removed no burn-in
        out: MCSamples = package("getdist").MCSamples(
            samples=draws.x.copy(),
            weights=draws.relative_weights,
            loglikes=-known,
            names=tags,
            labels=[tex(name) for name in prior.captions],
            ranges={tag: [_finite(b) for b in bounds] for tag, bounds in zip(tags, prior.bounds, strict=True)},
            sampler="uncorrelated",
        )
    if root is not None:
        start = Path(root)
        start.parent.mkdir(parents=True, exist_ok=True)
        out.saveAsText(str(start))
        about = {key: " ".join(str(value).split()) for key, value in attributes.items()}  # a line each
        out.saveTextMetadata(str(start), properties={"sampler": "uncorrelated", **about})
    return out


def to_anesthetic(draws: Draws, prior: Prior, attributes: Mapping[str, Any]) -> "Samples":
    """A weighted frame of anesthetic."""
    _refuse(draws.names, ("logL",), "anesthetic")
    out: Samples = package("anesthetic").Samples(
        data=draws.x,
        columns=list(draws.names),
        weights=draws.relative_weights,
        logL=draws.log_likelihood,
        labels=[f"${tex(name)}$" for name in prior.captions],
    )
    out.attrs.update(attributes)
    return out


def _finite(bound: float) -> float | None:
    return float(bound) if np.isfinite(bound) else None


def plain_names(names: tuple[str, ...]) -> list[str]:
    r"""Names without spaces and punctuation, all different: ``$\alpha$`` becomes alpha."""
    out: list[str] = []
    for name in names:
        tag = stem = re.sub(r"[^\w.+-]+", "_", name.replace("$", "").replace("\\", "")).strip("_") or "p"
        number = 1
        while tag in out:
            number += 1
            tag = f"{stem}_{number}"
        out.append(tag)
    return out


def tex(name: str) -> str:
    r"""A name for LaTeX's mathematics mode: upright, unless it brings its own, as ``$\alpha$`` does."""
    parts = name.split("$")
    if len(parts) % 2 == 0:  # an odd dollar sign means a dollar
        parts = [name]
    return "".join(part if i % 2 else _upright(part) for i, part in enumerate(parts)) or "p"


def _upright(text: str) -> str:
    kept = "".join(ESCAPED.get(c, c) for c in text if c not in UNDRAWABLE)
    return rf"\mathrm{{{kept}}}" if kept else ""
