"""Which of several models the data favour, in numbers and in words."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from basq.errors import InputError, counted
from basq.report.tables import aligned, listed, probable
from basq.results.result import Result
from basq.rivals.standing import SCALE, Standing, spread
from basq.status import Status
from basq.types import is_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SURE = 2.0
"""Standard deviations of the log Bayes factor that a verdict allows for."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Evidences and probabilities of rival models.

    Attributes
    ----------
    results : dict of Result
        By the names of the models.
    prior_odds : dict of float
        Of each model before the data, relative to each other.
    status : Status
        ``CONVERGED`` if the probabilities are as sure as asked for, else ``NOT_CONVERGED`` or ``INTERRUPTED``.
    message : str
        What was done, and why it ended.
    """

    results: dict[str, Result]
    prior_odds: dict[str, float]
    status: Status
    message: str

    @classmethod
    def of_finished(cls, results: dict[str, Result], prior_odds: dict[str, float], dprob: float) -> "Comparison":
        """Compare runs that have ended; ``dprob`` is how sure the probabilities have to be."""
        message = f"{len(results)} runs with {_calls(results)} calls."
        found = cls(results, prior_odds, Status.NOT_CONVERGED, message)
        return replace(found, status=Status.CONVERGED) if found.standing.known_to(dprob) else found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.results)

    @property
    def n_evals(self) -> int:
        """Calls of all models that gave a value; one that served several counts once."""
        return _calls(self.results)

    @property
    def n_shared(self) -> int:
        """Values of outputs that were simulated for a rival, which cost nothing."""
        return sum(r.settings.get("shared", 0) for r in self.results.values())

    @cached_property
    def standing(self) -> Standing:
        """Log-evidences, their errors, and what they leave open; wider errors where a run has not converged."""
        runs = self.results.values()
        return Standing(
            np.array([r.log_evidence for r in runs]),
            np.array(
                [spread(r.log_evidence_std, r.converged, r.observations.log_values, len(r.expensive)) for r in runs]
            ),
            np.log([self.prior_odds[name] for name in self.results]),
        )

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probability of each model."""
        return dict(zip(self.names, map(float, self.standing.probability), strict=True))

    @property
    def probability_stds(self) -> dict[str, float]:
        """Standard deviation of each probability, from the errors of the log-evidences."""
        return dict(zip(self.names, map(float, self.standing.probability_std), strict=True))

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Interval that holds the probability of a model, as far as the errors of the log-evidences go."""
        if not (is_number(level) and 0.0 < level < 1.0):
            raise InputError(f"level={level!r}: give a number between 0 and 1, such as 0.95.")
        place, known = self._place(name), self.standing.known
        tail = 0.5 * (1.0 - level)
        low, high = np.quantile(self.standing.draws[:, place], [tail, 1.0 - tail])
        # a model of which nothing is known may have any share, and leaves any to the others
        return float(low) if known.all() else 0.0, float(high) if known[place] else 1.0

    def log_bayes_factor(self, name: str, against: str) -> tuple[float, float]:
        """Logarithm of the Bayes factor of one model against another, and its standard deviation."""
        a, b = self.results[self.names[self._place(name)]], self.results[self.names[self._place(against)]]
        if a is b:
            return 0.0, 0.0
        return a.log_evidence - b.log_evidence, float(np.hypot(a.log_evidence_std, b.log_evidence_std))

    def _place(self, name: str) -> int:
        if name not in self.results:
            raise InputError(f"There is no model {name!r}; there are {', '.join(self.names)}.")
        return self.names.index(name)

    @property
    def ranking(self) -> list[str]:
        """Names, from the most to the least log-evidence; those without one are last."""
        log_z = {name: result.log_evidence for name, result in self.results.items()}
        return sorted(self.names, key=lambda name: np.inf if np.isnan(log_z[name]) else -log_z[name])

    @property
    def best(self) -> str:
        """The model with the most evidence."""
        return self.ranking[0]

    @property
    def decided(self) -> bool:
        """Whether the data favour one model over all others, errors allowed for."""
        return self._grade[0] > 0

    @cached_property
    def _rival(self) -> str:
        """The model that the best one is least certain to beat."""
        log_z, sd = self.standing.log_evidence, self.standing.spread
        top = self.names.index(self.best)
        with np.errstate(invalid="ignore"):
            margin = log_z[top] - log_z - SURE * np.hypot(sd[top], sd)
        margin = np.where(self.standing.known, margin, -np.inf)
        margin[top] = np.inf
        return self.names[int(np.argmin(margin))]

    @cached_property
    def _grade(self) -> tuple[int, int]:
        """Places on the scale that the log Bayes factor of the best model may have: least and most."""
        places = [self.names.index(n) for n in (self.best, self._rival)]
        if not self.standing.known[places].all():
            return 0, len(SCALE) - 1
        log_b = self.results[self.best].log_evidence - self.results[self._rival].log_evidence
        sd = float(np.hypot(*self.standing.spread[places]))
        ends = [upper for upper, _ in SCALE]
        low, high = (int(np.searchsorted(ends, log_b + sign * SURE * sd, side="right")) for sign in (-1.0, 1.0))
        return low, high

    @property
    def verdict(self) -> str:
        """The answer in words, on the scale of Kass and Raftery (1995)."""
        a, b = self.best, self._rival
        log_b, sd = self.log_bayes_factor(a, b)
        figures = f"ln B = {_figure(log_b, sd)}"
        doubtful = [name for name in (a, b) if not self.results[name].converged]
        low, high = self._grade
        if low > 0:
            words = SCALE[low][1] if low == high else f"at least {SCALE[low][1]}"
            others = f"{b}, the next" if len(self.names) > 2 else b
            return f"{words[0].upper()}{words[1:]} evidence for {a} against {others} ({figures})."
        if doubtful:
            have = "has" if len(doubtful) == 1 else "have"
            why = f"{listed(doubtful)} {have} not converged, so the errors are not to be relied on; give more calls"
        elif high > 0:
            why = "the error of the evidences is too large to tell; give more calls"
        else:
            why = "the data hardly tell them apart"
        return f"Not decided between {a} and {b} ({figures}): {why}."

    @property
    def _notes(self) -> list[str]:
        """What the table needs said: how prior odds come in, who has converged, and what was done about errors."""
        out = []
        if self._has_odds:
            likely = max(self.probabilities, key=lambda name: self.probabilities[name])
            out.append(f"With the prior odds, {likely} has the highest probability, {self.probabilities[likely]:.3f}.")
        doubtful = [name for name, result in self.results.items() if not result.converged]
        if doubtful:
            have, its = ("has", "its error") if len(doubtful) == 1 else ("have", "their errors")
            out.append(f"{listed(doubtful)} {have} not converged: the probabilities allow for three times {its}.")
        else:
            out.append("All of them have converged.")
        certified = [name for name, result in self.results.items() if result.certified]
        if certified:
            whose = "All log Z are" if len(certified) == len(self.results) else f"log Z of {listed(certified)} is"
            out.append(f"{whose} certified by independent calls.")
        n_failed = sum(r.n_failed for r in self.results.values())
        if n_failed:
            out.append(f"{counted(n_failed, 'more call')} failed.")
        if self.n_shared:
            out.append(f"{counted(self.n_shared, 'value')} came from simulations that a rival had paid for.")
        return out

    @property
    def _has_odds(self) -> bool:
        return len(set(self.prior_odds.values())) > 1

    def rows(self) -> list[dict[str, Any]]:
        """The table as data, one dict a model, the best first."""
        out = []
        for name in self.ranking:
            result = self.results[name]
            log_b, log_b_std = self.log_bayes_factor(name, self.best)
            low, high = self.interval(name)
            out.append(
                {
                    "model": name,
                    "log_evidence": result.log_evidence,
                    "log_evidence_std": result.log_evidence_std,
                    "log_bayes_factor": log_b,
                    "log_bayes_factor_std": log_b_std,
                    "prior_odds": self.prior_odds[name],
                    "probability": self.probabilities[name],
                    "probability_std": self.probability_stds[name],
                    "probability_low": low,
                    "probability_high": high,
                    "n_evals": result.n_evals,
                    "converged": result.converged,
                    "certified": result.certified,
                }
            )
        return out

    def _cells(self) -> list[list[str]]:
        """The table as text, its head first."""
        odds = ["prior odds"] if self._has_odds else []
        head = ["model", "log Z", "ln B", *odds, "probability", "95 % interval", "calls"]
        return [head] + [
            [
                r["model"],
                _figure(r["log_evidence"], r["log_evidence_std"]),
                _figure(r["log_bayes_factor"], r["log_bayes_factor_std"]) if r["model"] != self.best else "–",
                *(f"{r['prior_odds']:g}" for _ in odds),
                probable(r["probability"], r["probability_std"]),
                _range(r["probability_low"], r["probability_high"]),
                str(r["n_evals"]),
            ]
            for r in self.rows()
        ]

    def __str__(self) -> str:
        return "\n".join([self.verdict, self.message, *self._notes, "", aligned(self._cells())])

    def plot(self) -> "Figure":
        """Draw log Bayes factors to the best model, and probabilities, with their errors."""
        from basq.plots import offered
        from basq.rivals.picture import plot_comparison

        return offered(plot_comparison(self))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head, *rows = [[html.escape(cell) for cell in row] for row in self._cells()]
        top = "".join(f"<th>{cell}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        words = f"<p><b>{html.escape(self.verdict)}</b><br>{html.escape(' '.join([self.message, *self._notes]))}</p>"
        return f"{words}<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _calls(results: Mapping[str, Result]) -> int:
    return sum(r.n_evals - r.settings.get("shared", 0) for r in results.values())


def _figure(value: float, std: float) -> str:
    """A logarithm and its error as text."""
    return "unknown" if np.isnan(value) else f"{value:.2f} ± {std:.2f}"


def _range(low: float, high: float) -> str:
    """An interval of probabilities as text."""
    first, last = probable(low), probable(high)
    return first if first == last and first[0] in "<>" else f"{low:.3f} to {high:.3f}"


def as_prior_odds(prior_odds: Any, names: tuple[str, ...]) -> dict[str, float]:
    """Odds of each model before the data; one where nothing is said."""
    if prior_odds is None:
        prior_odds = {}
    if not isinstance(prior_odds, Mapping) or not set(prior_odds) <= set(names):
        raise InputError(f"prior_odds={prior_odds!r}: give a dict with positive numbers for {', '.join(names)}.")
    for name, odds in prior_odds.items():
        if not (is_number(odds) and 0.0 < odds < np.inf):
            raise InputError(f"prior_odds: {odds!r} for {name!r}; give a positive number, relative to the others.")
    return {name: float(prior_odds.get(name, 1.0)) for name in names}
