"""The part of the page that says what independent calls prove."""

from typing import TYPE_CHECKING

from basq.plots import plot_certificate
from basq.report.parts import picture, signed, table, text
from basq.report.tables import shown
from basq.status import Finding

if TYPE_CHECKING:
    from basq.results.result import Result


def proven(result: "Result") -> tuple[str, str, str] | None:
    """The class of a verdict, its word, and what to do, where independent calls have decided."""
    finding = result.certificate and result.certificate.finding
    if finding is Finding.CERTIFIED:
        return "good", "Certified", "The number and its error (one standard deviation) are those of independent calls."
    if finding is Finding.CONTRADICTED:
        return (
            "poor",
            "Contradicted",
            "The surrogate is wrong; the number is that of independent calls. Go on from here.",
        )
    return None


def certificate(result: "Result") -> str:
    """What independent calls say, beside the surrogate."""
    found = result.certificate
    if found is None:
        return ""
    rows = [
        ["the surrogate", *shown(found.surrogate, found.surrogate[1]), str(result.n_evals)],
        ["independent calls", *shown([found.log_evidence, found.log_evidence_std], found.log_evidence_std),
         str(found.n_evals)],
    ]  # fmt: skip
    words = (
        f"<p>{text(signed(found.message))}</p><p>The second estimate has no bias, whatever the surrogate is: its "
        "points were drawn from a known density, independently of all calls of the run. What neither knows of, such as "
        "a mode that no call has come near, it cannot see.</p>"
    )
    alt = "How far the surrogate was off at each independent call, against the share of the posterior it stands for."
    return (
        words + table(["log Z from", "log Z", "error", "calls"], rows) + picture(lambda: plot_certificate(result), alt)
    )
