"""One self-contained HTML page about a run: verdict, posterior, pictures, audits, failures, settings."""

import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from basq.errors import counted
from basq.evaluation.call import place
from basq.plots import plot_calibration, plot_corner, plot_run, plot_slices, plot_time
from basq.plots.audits import audited
from basq.plots.corner import READABLE
from basq.plots.run import duration
from basq.report.next_step import next_step
from basq.report.parts import Html, picture, section, signed, table, text
from basq.report.proof import certificate, proven
from basq.report.tables import UNSURE, cheap_line, headline, html_name, shown
from basq.report.target import spare, writable
from basq.version import __version__

if TYPE_CHECKING:
    from basq.observations import Failure
    from basq.results.result import Result

Truths: TypeAlias = ArrayLike | Mapping[str, float] | None

MOST_FAILURES = 50
"""Failed calls that are shown one by one, and reasons."""
FRACTION = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
MOST_IDS = 8
"""Failed calls that are named with a reason."""

CITATION = (
    "Masaki Adachi, Satoshi Hayakawa, Martin Jørgensen, Harald Oberhauser and Michael A. Osborne. "
    "Fast Bayesian Inference with Batch Bayesian Quadrature via Kernel Recombination. "
    "Advances in Neural Information Processing Systems 35 (2022). arXiv:2206.04734."
)
BIBTEX = """@inproceedings{adachi2022fast,
  title     = {Fast {B}ayesian Inference with Batch {B}ayesian Quadrature via Kernel Recombination},
  author    = {Adachi, Masaki and Hayakawa, Satoshi and J{\\o}rgensen, Martin and Oberhauser, Harald
               and Osborne, Michael A.},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {35},
  year      = {2022},
  note      = {arXiv:2206.04734}
}"""


def write_report(
    result: "Result",
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    truths: Truths = None,
    truth: float | None = None,
) -> None:
    """Write the page; arguments as in ``Result.report``."""
    target = Path(path)
    writable(target, "report", "run.html")  # better known before the pictures are drawn than after
    spare(target)
    target.write_text(page(result, title=title, truths=truths, truth=truth), encoding="utf-8")


def page(result: "Result", *, title: str | None = None, truths: Truths = None, truth: float | None = None) -> str:
    """The page as text."""
    store = result.settings.get("store")
    name = title or (Path(store).stem if store else "basq run")
    sections = [
        _verdict(result, truth),
        section("Certificate", certificate(result)),
        section("Posterior", _posterior(result, truths)),
        section("How the run went", _run(result, truth)),
        section("Audits", _audits(result)),
        section("What the surrogate believes", _slices(result)),
        section("Where the time went", _time(result)),
        section(f"Failed calls ({result.n_failed})", _failures(result)) if result.failures else "",
        section("Settings", _settings(result)),
        section("Use these results", _use(result)),
    ]
    style = files("basq.report").joinpath("page.css").read_text(encoding="utf-8")
    made = f"Made by basq {__version__} on {_date(datetime.now(UTC).timestamp())}"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(name)}: evidence and posterior</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{text(name)}</h1><p>{', '.join(map(html_name, result.prior.labels))}</p></header>\n<main>\n"
        + "\n".join(s for s in sections if s)
        + f"\n</main>\n<footer><p>{text(made)}</p></footer>\n</body>\n</html>\n"
    )


# --- parts ------------------------------------------------------------------------------------------------------------


def _verdict(result: "Result", truth: float | None) -> str:
    """What came out, and whether to believe it, in words."""
    kind, word, advice = proven(result) or _status(result)
    known = bool(np.isfinite(result.log_evidence))
    number = "No evidence yet"
    if known:
        number = headline(result).replace("-", "−")
    why = f"{result.why}." if result.status.is_open or result.status.word == word else result.message
    lines = [signed(f"{'Still open' if word == 'Not finished' else 'Why'}: {why}"), advice]
    if (step := next_step(result)) is not None:
        lines.insert(0, Html(f"Next: <code>{text(step)}</code>"))
    calls = f"{result.n_evals} likelihood values in {counted(result.n_batches, 'batch', 'batches')}"
    if result.certificate is not None:
        calls += f", {result.certificate.n_evals} more for the certificate"
    if result.failures:
        calls += f", and {counted(result.n_failed, 'failed call', 'failed calls')}"
    if result.settings.get("pending"):
        calls += f"; {counted(result.settings['pending'], 'call', 'calls')} under way or left"
    lines.append(f"{calls}.")
    lines += cheap_line(result)
    lines += [note for note in result.notes if note not in result.message]
    if truth is not None and np.isfinite(result.log_evidence):
        off = result.log_evidence - truth
        sds = f", {abs(off) / result.log_evidence_std:.1f} standard deviations" if result.log_evidence_std > 0.0 else ""
        lines.append(signed(f"The true log Z is {truth:.3f}: the error is {off:+.3f}{sds}."))
    paragraphs = "".join(f"<p>{text(line)}</p>" for line in lines)
    return (
        f'<section class="verdict {kind}" aria-labelledby="verdict"><h2 id="verdict">'
        f'<span class="badge">{word}</span> {text(number)}</h2>{paragraphs}</section>'
    )


def _status(result: "Result") -> tuple[str, str, str]:
    """The class of a verdict, its word, and what to do."""
    error = "The error is one standard deviation of log Z"
    if result.converged and result.audits:
        return "good", "Converged", f"{error}, calibrated by how well each batch was predicted before it was evaluated."
    if result.converged:
        return "fair", "Converged", f"{error} as the surrogate itself sees it; this method has no audits that test it."
    if not result.n_evals and result.failures and not result.settings.get("pending"):
        return "poor", "No value", "Every call has failed: see the failed calls below, and correct the cause."
    known = np.isfinite(result.log_evidence)
    if result.status.is_open:
        now = "the numbers are those of the calls so far" if known else "there are no numbers yet"
        return "open", "Not finished", f"The run was not finished when this page was made: {now}."
    if result.sound:
        return "fair", "Not converged", f"{error}; nothing but its size speaks against these numbers."
    what = "Do not rely on these numbers yet" if known else "There is no evidence and no posterior"
    return "poor", "Not converged", f"{what}: allow more calls, or see the reason above."


def _posterior(result: "Result", truths: Truths) -> str:
    if result.standard_posterior is None:
        return "<p>There is no posterior; the verdict above says why.</p>"
    if result.too_few is not None:
        return f"<p>{text(result.too_few.capitalize())}.</p>"
    # a long name may be broken after its underscores
    rows = [
        [Html(html_name(name).replace("_", "_<wbr>")), *row.texts()]
        for name, row in zip(result.prior.captions, result.summary(), strict=False)
    ]
    numbers = table(["parameter", "mean", "sd", "2.5 %", "median", "97.5 %"], rows)
    if not (result.converged or result.sound):
        numbers = f'<p class="unsure">{text(UNSURE)}</p>{numbers}'
    names = result.names[:READABLE]
    more = len(result.names) - len(names)
    note = f"<p>The picture shows the first {READABLE} parameters; {more} more are in the table.</p>" if more else ""
    alt = f"Corner plot: posterior densities of {', '.join(names)} alone and in pairs, with the evaluated points."
    return numbers + picture(lambda: plot_corner(result, names=names, truths=truths), alt) + note


def _run(result: "Result", truth: float | None) -> str:
    if not np.isfinite([r.log_evidence for r in result.history]).any():
        return ""
    alt = "Log evidence with its error after every batch, against the number of likelihood calls, with the audits."
    return picture(lambda: plot_run(result, truth=truth), alt)


def _audits(result: "Result") -> str:
    if not result.audits:
        return "<p>Audits come with the default method, from its second batch on; this run has none.</p>"
    rows = [
        [str(n), str(a.n_inside), *(_short(v) for v in (np.sqrt(a.z2), a.rms, a.log_ratio)),
         "yes" if a.surprise else "no"]
        for n, a in audited(result)
    ]  # fmt: skip
    words = (
        "<p>Every batch is predicted before it is evaluated. A calibrated surrogate has residuals of one standard "
        "deviation (rms z = 1); larger ones widen the error of log Z, smaller ones leave it as it is. A surprise is a "
        "point far above its prediction: something that was not known.</p>"
    )
    head = ["calls with the batch", "points inside", "rms z", "rms (nats)", "log true/predicted", "surprise"]
    alt = "Histogram and quantiles of the standardised residuals of the batches, against the standard normal."
    drawn = picture(lambda: plot_calibration(result), alt)
    return f"{words}{drawn}<details><summary>Table of {len(rows)} audits</summary>{table(head, rows)}</details>"


def _slices(result: "Result") -> str:
    if result.surrogate is None:
        return ""
    alt = "The surrogate's log-likelihood along each parameter through the best point, with its error."
    return picture(lambda: plot_slices(result, names=result.expensive[:12]), alt)


def _time(result: "Result") -> str:
    return picture(lambda: plot_time(result), "Seconds per batch by stage.") if result.history else ""


def _failures(result: "Result") -> str:
    """The reasons, each with its calls, and where the calls were."""
    groups: dict[str, list[Failure]] = {}
    for failure in result.failures:
        groups.setdefault(FRACTION.sub("#", _reason(failure, _names(result, failure))), []).append(failure)
    ordered = sorted(groups.values(), key=len, reverse=True)
    reasons = []
    for group in ordered[:MOST_FAILURES]:
        ids = ", ".join(str(f.id) for f in group[:MOST_IDS])
        reason = _reason(group[0], _names(result, group[0]))
        reasons.append([str(len(group)), reason, ids + (", …" if len(group) > MOST_IDS else "")])
    calls = [
        [str(f.id), ", ".join(f"{n} = {v:.6g}" for n, v in zip(_names(result, f), f.x, strict=True)), str(f.attempts)]
        for f in result.failures[:MOST_FAILURES]
    ]
    body = table(["calls", "reason", "which"], reasons, words={1, 2}) + _rest(len(ordered), "reason")
    inputs = table(["call", "input", "attempts"], calls, words={1}) + _rest(result.n_failed, "call")
    body += f"<details><summary>Inputs of the failed calls</summary>{inputs}</details>"
    trace = next((f.traceback for f in reversed(result.failures) if f.traceback), None)
    return body + (f"<details><summary>The last traceback</summary><pre>{text(trace)}</pre></details>" if trace else "")


def _names(result: "Result", failure: "Failure") -> tuple[str, ...]:
    """Names of the parameters that a call was made with."""
    return result.names if len(failure.x) == len(result.names) else result.expensive


def _reason(failure: "Failure", names: tuple[str, ...]) -> str:
    """Why a call failed, without its input, which has its own place, and with numbers of six digits."""
    reason = failure.error
    for known in (names, ()):
        reason = reason.replace(f" at {place(known, failure.x)}", "")
    return FRACTION.sub(lambda found: f"{float(found[0]):.6g}" if len(found[0]) > 8 else found[0], reason)


def _rest(n: int, one: str) -> str:
    more = n - MOST_FAILURES
    return f"<p>{counted(more, f'more {one}')} {'is' if more == 1 else 'are'} in the store.</p>" if more > 0 else ""


def _settings(result: "Result") -> str:
    s = result.settings
    seconds = s.get("seconds")
    values: list[tuple[str, Any]] = [
        ("prior", repr(result.prior)),
        ("cheap parameters", ", ".join(result.cheap) or None),
        ("log-likelihood", (s.get("command") or {}).get("model") or s.get("log_likelihood")),
        ("not compared when it is resumed", s.get("not_compared")),
        ("method", s.get("method")),
        ("batch size", s.get("batch_size")),
        ("seed", s.get("seed")),
        ("most calls (max_evals)", s.get("max_evals")),
        ("target error (dlogz)", s.get("dlogz")),
        ("failed calls (on_error)", s.get("on_error")),
        ("values given beforehand", s.get("n_given") or None),
        ("calls simulated for a rival", s.get("shared") or None),
        ("noise of the values", result.noise and f"sd {shown([result.noise], result.noise)[0]} (estimated)"),
        ("time inside likelihood calls", duration(seconds) if seconds else None),
        ("started", _date(s["started"]) if s.get("started") else None),
        ("last call ended", _date(s["last_call"]) if s.get("last_call") else None),
        ("store", s.get("store")),
        ("basq of the run", s.get("basq")),
        ("this page", f"basq {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
                      f"SciPy {version('scipy')}"),
    ]  # fmt: skip
    rows = [[name, str(value)] for name, value in values if value is not None]
    return table(["setting", "value"], rows, words={1})


def _use(result: "Result") -> str:
    store = result.settings.get("store")
    if store:
        code = f"import basq\n\nresult = basq.Sampler.open({Path(store).name!r}).result()  # needs no likelihood\n"
    else:
        code = "# result is what basq.infer returned; with store='run.sqlite' it can be read again at any time\n"
    code += (
        "samples = result.sample(1000)  # equal weight, one column for each parameter\n"
        f"result.marginal({result.names[0]!r}).ppf([0.025, 0.975])\n"
        "result.log_evidence, result.log_evidence_std"
    )
    return (
        f"<h3>Load the samples</h3><pre><code>{text(code)}</code></pre>"
        f"<h3>Cite</h3><p>{text(CITATION)}</p><details><summary>BibTeX</summary><pre>{text(BIBTEX)}</pre></details>"
    )


def _short(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "—"


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
