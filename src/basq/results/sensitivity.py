"""How an answer depends on what was assumed: one row for each member of a family of priors or likelihoods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from basq.errors import InputError
from basq.prior import Prior
from basq.report.tables import aligned, with_error
from basq.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from basq.results.result import Result

FIRST = "as run"
"""Label of the answer that the others are held against."""
CHANGES = ("log_likelihood", "cheap", "prior", "model")
"""What a member of a family may change."""


@dataclass(frozen=True)
class Answer:
    """What one member of a family gives.

    Attributes
    ----------
    label : str
    log_evidence, log_evidence_std : float
    log_bayes_factor, log_bayes_factor_std : float
        log Z minus that of the answer as it was run. The standard deviation takes the two errors for independent, which
        is more than it is where both come from the same calls.
    mean, sd : dict of str to float
        Of the posterior, by parameter; empty if there is none.
    status : Status
    """

    label: str
    log_evidence: float
    log_evidence_std: float
    log_bayes_factor: float
    log_bayes_factor_std: float
    mean: dict[str, float]
    sd: dict[str, float]
    status: Status

    @classmethod
    def of(cls, label: str, result: "Result", first: "Result") -> "Answer":
        """The numbers of a result, held against the first one."""
        change, sd = 0.0, 0.0
        if result is not first:
            change = result.log_evidence - first.log_evidence
            sd = float(np.hypot(result.log_evidence_std, first.log_evidence_std))
        means, sds = {}, {}
        if result.standard_posterior is not None:
            means = dict(zip(result.names, result.mean.tolist(), strict=True))
            sds = dict(zip(result.names, np.sqrt(np.diag(result.cov)).tolist(), strict=True))
        return cls(label, result.log_evidence, result.log_evidence_std, change, sd, means, sds, result.status)

    def texts(self, names: tuple[str, ...]) -> list[str]:
        """The row, written for people."""
        means = [with_error(self.mean[n], self.sd[n]) if n in self.mean else "" for n in names]
        change = f"{self.log_bayes_factor:+.2f}" if self.label != FIRST else ""
        return [self.label, with_error(self.log_evidence, self.log_evidence_std), change, *means, self.status.value]


@dataclass(frozen=True, repr=False)
class Sensitivity:
    """Log Z, log Bayes factors and posterior means over a family: to print, to draw, or as numbers.

    Attributes
    ----------
    rows : tuple of Answer
        The answer as it was run, and one for each member of the family.
    results : dict of str to Result
        The same in full, by label.
    """

    rows: tuple[Answer, ...]
    results: dict[str, "Result"]

    @classmethod
    def of(cls, result: Any, family: Any) -> "Sensitivity":
        """Ask a result again under every member of a family."""
        members = _members(result, family)
        results = {FIRST: result} | {label: result.again(**changes) for label, changes in members.items()}
        return cls(tuple(Answer.of(label, found, result) for label, found in results.items()), results)

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of all members."""
        return tuple(dict.fromkeys(name for found in self.results.values() for name in found.names))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.rows)

    def __getitem__(self, label: str) -> Answer:
        for row in self.rows:
            if row.label == label:
                return row
        raise InputError(f"No {label!r} in this family; it has {', '.join(row.label for row in self.rows)}.")

    def __repr__(self) -> str:
        head = ["", "log Z", "ln B", *self.names, "status"]
        lines = [aligned([head, *(row.texts(self.names) for row in self.rows)])]
        doubtful = [label for label, found in self.results.items() if not found.converged]
        return "\n".join([*lines, *(f"{label}: {self.results[label].message}" for label in doubtful)])

    def to_pandas(self) -> "DataFrame":
        """A data frame, one row for each member, with two columns for each parameter."""
        from basq.extras import package

        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in self.rows]
            for name in ("log_evidence", "log_evidence_std", "log_bayes_factor", "log_bayes_factor_std")
        }
        for name in self.names:
            columns[f"{name}_mean"] = [row.mean.get(name, np.nan) for row in self.rows]
            columns[f"{name}_sd"] = [row.sd.get(name, np.nan) for row in self.rows]
        columns["status"] = [row.status.value for row in self.rows]
        frame: DataFrame = package("pandas").DataFrame(columns, index=[row.label for row in self.rows])
        return frame

    def plot(self) -> "Figure":
        """Draw log Z and the posterior means against the family."""
        from basq.plots import offered, plot_sensitivity

        return offered(plot_sensitivity(self))


def _members(result: "Result", family: Any) -> dict[str, dict[str, Any]]:
    """Changes by label; those of a parameter with a list of priors, each under a label of its own."""
    if not isinstance(family, Mapping) or not family:
        raise InputError(f"sensitivity({family!r:.60}): give {{label: {{'prior': …}}, …}}, or {{parameter: [priors]}}.")
    out: dict[str, dict[str, Any]] = {}
    for label, member in family.items():
        if isinstance(member, Mapping) and set(member) <= set(CHANGES):
            out[str(label)] = dict(member)
        elif isinstance(member, list) and label in result.names:
            for marginal in member:
                out[_free(repr(Prior({label: marginal}))[6:-1], out)] = {"prior": {label: marginal}}
        else:
            raise InputError(
                f"sensitivity: {label!r} has {member!r:.60}; allowed are a dict of {', '.join(CHANGES)}, or, for one "
                f"of the parameters {', '.join(result.names)}, a list of its priors."
            )
    if FIRST in out:
        raise InputError(f"sensitivity: the label {FIRST!r} is that of the answer itself; choose another one.")
    return out


def _free(label: str, taken: Mapping[str, Any]) -> str:
    """The label, with a number if it is taken."""
    numbers = (f"{label} ({i})" for i in range(2, len(taken) + 3))
    return next(name for name in (label, *numbers) if name not in taken)
