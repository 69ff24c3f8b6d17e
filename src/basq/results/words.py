"""A result in words: one line, a terminal's page, a notebook's card."""

from typing import TYPE_CHECKING

from basq.errors import counted
from basq.report.next_step import next_step
from basq.report.tables import UNSURE, card, cheap_line, headline, shown

if TYPE_CHECKING:
    from basq.results.result import Result


def one_line(result: "Result") -> str:
    """The answer, the verdict and the effort."""
    verdict = "converged" if result.converged else "not converged"
    return f"<basq.Result: {headline(result)}, {verdict}, {_effort(result)}, parameters {', '.join(result.names)}>"


def page(result: "Result") -> str:
    """The answer, what has to be known about it, and the table of the posterior."""
    lines = [f"{headline(result)}   ({_effort(result)})", *_lines(result)]
    table = [*_doubt(result), str(result.summary())] if result.too_few is None else [result.too_few]
    return "\n".join([*lines, "", *table])


def html(result: "Result") -> str:
    """The same for a notebook."""
    if result.too_few is not None:
        return card(headline(result), _effort(result), result.converged, [*_lines(result), result.too_few])
    lines = [*_lines(result), *_doubt(result)]
    return card(headline(result), _effort(result), result.converged, lines) + result.summary()._repr_html_()


def _effort(result: "Result") -> str:
    more = f", {result.certificate.n_evals} more for the certificate" if result.certificate is not None else ""
    return f"{counted(result.n_evals, 'call')} in {counted(result.n_batches, 'batch', 'batches')}{more}"


def _lines(result: "Result") -> list[str]:
    """What has to be known before the posterior is looked at."""
    lines = [result.message]
    if (step := next_step(result)) is not None:
        lines.append(f"Next: {step}")
    if result.certificate is not None and result.certificate.why not in result.why:
        lines.append(result.certificate.message)
    lines += [*cheap_line(result), *(note for note in result.notes if note not in result.message)]
    if result.failures:
        more = counted(result.n_failed, "more call", "more calls")
        lines.append(f"{more} failed (result.failures), the last: {result.failures[-1].error}")
    if result.noise is not None:
        lines.append(f"Noise of the values: sd {shown([result.noise], result.noise)[0]} (estimated)")
    return lines


def _doubt(result: "Result") -> list[str]:
    return [] if result.converged or result.sound or result.standard_posterior is None else [UNSURE]
